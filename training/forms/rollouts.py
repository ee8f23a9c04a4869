"""What people type to start a rollout; the verb checks it again."""

from __future__ import annotations

from typing import Any

from django import forms
from django.utils.text import slugify

from agent.models import Deployment
from training.errors import BadConfig
from training.models import Rollout
from training.rollouts import choosing
from training.rollouts.config import FIELDS


class RolloutForm(forms.Form):
    """Who plays, what, how often, and every value of the configuration."""

    name = forms.SlugField(
        required=False, max_length=100, help_text="Empty: made from the deployment's name."
    )
    deployment = forms.ModelChoiceField(
        Deployment.objects.order_by("-is_partner", "name"),
        empty_label="Choose a deployment",
        help_text="The policy that plays.",
    )
    tasks = forms.CharField(
        widget=forms.Textarea(attrs={"rows": 4, "spellcheck": "false"}),
        initial="miniwob/click-*",
        help_text="One a line: a family, a task, or a pattern such as miniwob/click-*.",
    )
    seeds = forms.CharField(initial="0:10", help_text="Such as 0:10 (10 not included) or 3, 7.")
    repeats = forms.IntegerField(
        initial=1, min_value=1, max_value=1000, help_text="Samples of each task and seed."
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for one in FIELDS:
            options = {"label": one.metadata["label"], "help_text": one.metadata["help"]}
            made: forms.Field
            if isinstance(one.default, bool):
                made = forms.BooleanField(required=False, **options)
            else:
                # Text, so that what was typed comes back as it was; the verb names what is wrong.
                attrs = {"inputmode": "decimal", "autocomplete": "off"}
                made = forms.CharField(widget=forms.TextInput(attrs=attrs), **options)
            made.initial = one.default
            self.fields[one.name] = made

    def clean(self) -> dict[str, Any]:
        values = super().clean() or {}
        for name, read in (("tasks", choosing.tasks_of), ("seeds", choosing.seeds_of)):
            if name in values:
                try:
                    values[name] = read(values[name])
                except BadConfig as error:
                    self.add_error(name, error.errors[name])
        return values

    def wanted(self) -> dict[str, Any]:
        """Return the arguments of `rollouts.create` from a valid form."""
        values = self.cleaned_data
        return {
            "name": values["name"] or _free_name(values["deployment"].name),
            "deployment": values["deployment"],
            "tasks": values["tasks"],
            "seeds": values["seeds"],
            "repeats": values["repeats"],
            "config": {one.name: values[one.name] for one in FIELDS},
        }


def _free_name(deployment: str) -> str:
    stem = slugify(f"collect-{deployment}")[:80]
    taken = set(Rollout.objects.filter(name__startswith=stem).values_list("name", flat=True))
    return next(name for n in range(1, len(taken) + 2) if (name := f"{stem}-{n}") not in taken)
