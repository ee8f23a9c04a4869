"""What people type on the training pages; the verbs check it again."""

from __future__ import annotations

from typing import Any

from django import forms

from agent.models import Deployment
from annotation.models import Task
from training.models import Dataset
from training.selection import Filters

SLUG_HELP = "Letters, digits, - and _; it stays for ever."


def date_input() -> forms.DateInput:
    return forms.DateInput(attrs={"type": "date"}, format="%Y-%m-%d")


class FiltersForm(forms.Form):
    """Which sessions a dataset is frozen from."""

    domain = forms.ChoiceField(required=False, help_text="Of the task.")
    task = forms.CharField(
        required=False, max_length=200, help_text="How the task's id begins, such as miniwob."
    )
    author = forms.CharField(
        required=False, max_length=32, label="Annotator", help_text="One pseudonym."
    )
    since = forms.DateField(required=False, widget=date_input(), help_text="First day, UTC.")
    until = forms.DateField(required=False, widget=date_input(), help_text="Last day, UTC.")
    undisputed = forms.BooleanField(
        required=False, label="Leave out sessions about which verifier and reviewer disagree"
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        domains = Task.objects.exclude(domain="").values_list("domain", flat=True)
        names = domains.distinct().order_by("domain")
        self.fields["domain"].choices = [("", "all"), *((name, name) for name in names)]  # type: ignore[attr-defined]

    def clean(self) -> dict[str, Any]:
        values = super().clean() or {}
        since, until = values.get("since"), values.get("until")
        if since and until and until < since:
            self.add_error("until", "The last day is before the first.")
        return values

    def filters(self) -> Filters:
        """Return the filters of a valid form."""
        return Filters(**{name: self.cleaned_data[name] for name in Filters.__dataclass_fields__})


class FreezeForm(FiltersForm):
    """A dataset to be frozen."""

    name = forms.SlugField(max_length=50, help_text=SLUG_HELP)
    pool = forms.ChoiceField(
        choices=[(Dataset.Pool.SFT, "SFT: V(s) = 1"), (Dataset.Pool.CT, "CT: V(s) = 0")],
        initial=Dataset.Pool.SFT,
    )
    field_order = ("name", "pool")


class PromoteForm(forms.Form):
    """The deployment that a checkpoint is put behind."""

    deployment = forms.ModelChoiceField(
        Deployment.objects.filter(kind=Deployment.Kind.LOCAL).order_by("-is_partner", "name"),
        empty_label=None,
        help_text="Its next proposal comes from this checkpoint.",
    )
