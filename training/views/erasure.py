"""The page that deletes a contributor's data: first what there is, then the name typed once more."""

from __future__ import annotations

from django import forms
from django.contrib import messages
from django.contrib.auth.models import User
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from annotation.errors import Refused as NotNow
from annotation.models import Pseudonym, Session
from blobs import BlobError
from training import access, erasure
from training.errors import Refused


class WhoForm(forms.Form):
    """Whose data it is about."""

    who = forms.CharField(
        max_length=150,
        label="Pseudonym or account",
        help_text="A pseudonym as datasets name it, or the name that somebody signs in with.",
        widget=forms.TextInput(attrs={"autocomplete": "off", "spellcheck": "false"}),
    )

    def found(self) -> str | User:
        """Return the pseudonym, or the account where it is none."""
        who: str = self.cleaned_data["who"].strip()
        known = Pseudonym.objects.filter(name=who) or Session.objects.filter(pseudonym=who)
        return who if known.exists() else User.objects.filter(username=who).first() or who


class ConfirmForm(forms.Form):
    """The pseudonym, typed once more."""

    confirm = forms.CharField(
        max_length=150,
        label="Type the pseudonym to delete it all",
        widget=forms.TextInput(attrs={"autocomplete": "off", "spellcheck": "false"}),
    )


@access.staff_only
def erase(request: HttpRequest) -> HttpResponse:
    """Show what there is of a person; delete it once the pseudonym is typed. There is no way back."""
    form = WhoForm(request.POST or request.GET or None)
    found, confirm = None, ConfirmForm(request.POST or None)
    if form.is_bound and form.is_valid():
        who = form.found()
        found = erasure.trace(who)
        if found.empty:
            form.add_error("who", f"There is nothing of {found.person.name} here.")
            found = None
        elif request.method == "POST" and confirm.is_valid():
            if confirm.cleaned_data["confirm"].strip() != found.person.name:
                confirm.add_error(
                    "confirm", f"This is not {found.person.name}: nothing was deleted."
                )
            elif done := _erased(request, who, confirm):
                messages.success(request, f"Deleted the data of {done.person.name}.")
                context = {"section": "datasets", "done": done, "left": _left(done)}
                return render(request, "training/erased.html", context)
    context = {
        "section": "datasets",
        "form": form,
        "confirm": confirm,
        "found": found,
        "unfinished": erasure.unfinished(),
    }
    return render(request, "training/erase.html", context)


def _erased(request: HttpRequest, who: str | User, form: forms.Form) -> erasure.Trace | None:
    try:
        return erasure.erase(who, by=request.user)  # type: ignore[arg-type]
    except (Refused, NotNow) as error:
        form.add_error("confirm", str(error))
    except BlobError as error:
        form.add_error("confirm", f"The rows are deleted, files are left: {error}. Do it again.")
    return None


def _left(done: erasure.Trace) -> bool:
    return done.person.name in erasure.unfinished()
