"""What people type to start iterations; the verb checks it again."""

from __future__ import annotations

from typing import Any

from django import forms

from agent.models import Deployment
from training.iterations.config import FIELDS, GROUPS, MOST
from training.models import Checkpoint

LONG = ("tasks", "mix", "changes")


class IterationForm(forms.Form):
    """Whose flywheel it is, how many turns, and every value of the configuration."""

    deployment = forms.ModelChoiceField(
        Deployment.objects.filter(kind=Deployment.Kind.LOCAL).exclude(version=""),
        label="Improve",
        empty_label=None,
        help_text="What it serves is M(t); a better candidate is promoted to it.",
    )
    count = forms.IntegerField(
        label="Iterations", initial=1, min_value=1, max_value=MOST,
        help_text="In a row, each from what is promoted by then.",
    )  # fmt: skip
    base = forms.ModelChoiceField(
        Checkpoint.objects.filter(role=Checkpoint.Role.POLICY, erased_at=None).order_by("-pk"),
        required=False, label="Shared base",
        empty_label="what M(t) was first trained from",
        help_text="Where training starts from in every iteration.",
    )  # fmt: skip
    server = forms.ModelChoiceField(
        Deployment.objects.none(), required=False, label="Plays on",
        empty_label="a policy server of its own",
        help_text="Another server of ours, whose weights are replaced; never the annotators'.",
    )  # fmt: skip
    name = forms.SlugField(
        required=False, max_length=32, help_text="Empty: iteration and a number."
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        ours: Any = self.fields["deployment"]
        ours.queryset = ours.queryset.exclude(name__startswith="flywheel-").exclude(
            name__startswith="rl-"
        ).order_by("-is_partner", "name")  # fmt: skip
        other: Any = self.fields["server"]
        other.queryset = Deployment.objects.filter(
            kind=Deployment.Kind.LOCAL, is_partner=False
        ).exclude(base_url="").exclude(name__startswith="flywheel-").exclude(
            name__startswith="rl-"
        )  # fmt: skip
        for one in FIELDS:
            options = {"label": one.metadata["label"], "help_text": one.metadata["help"]}
            made: forms.Field
            if one.metadata["choices"]:
                made = forms.ChoiceField(
                    choices=[(choice, choice) for choice in one.metadata["choices"]], **options
                )
            elif one.name in LONG:
                rows = 8 if one.name == "tasks" else 3
                attrs: dict[str, Any] = {"rows": rows, "spellcheck": "false"}
                made = forms.CharField(
                    widget=forms.Textarea(attrs=attrs), required=one.name == "tasks", **options
                )
            else:
                # Text, so that what was typed comes back as it was; the verb names what is wrong.
                attrs = {"inputmode": "decimal", "autocomplete": "off"}
                made = forms.CharField(widget=forms.TextInput(attrs=attrs), **options)
            made.initial = one.default
            self.fields[one.name] = made

    def groups(self) -> list[tuple[str, list[forms.BoundField]]]:
        """Return the fields of the configuration by what they are about."""
        return [
            (group, [self[one.name] for one in FIELDS if one.metadata["group"] == group])
            for group in GROUPS
        ]

    def config(self) -> dict[str, Any]:
        """Return what was typed for the configuration."""
        return {one.name: self.cleaned_data[one.name] for one in FIELDS}
