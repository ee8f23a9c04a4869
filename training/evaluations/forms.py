"""What people type to begin an evaluation; the verbs check it again."""

from __future__ import annotations

from typing import Any

from django import forms

from agent.models import Deployment
from training.evaluations import evaluations, suites


class SeedsField(forms.CharField):
    """Seeds as A:B, B not included, or one number; gives a range."""

    def clean(self, value: Any) -> range:
        text = str(super().clean(value))
        try:
            return suites.seeds(text)
        except ValueError as error:
            raise forms.ValidationError(str(error)) from error


class EvaluationForm(forms.Form):
    """An evaluation to be begun."""

    suite = forms.ChoiceField(help_text="A fixed list of tasks.")
    deployment = forms.ModelChoiceField(
        Deployment.objects.order_by("-is_partner", "name"), empty_label=None
    )
    seeds = SeedsField(
        initial="10000:10010", help_text="A:B, B not included; trained-on seeds prove nothing."
    )
    max_steps = forms.IntegerField(
        initial=evaluations.MAX_STEPS, min_value=1, max_value=1000, help_text="Of an episode."
    )
    repeats = forms.IntegerField(
        initial=1, min_value=1, max_value=100, help_text="Samples of each seed, for pass@k."
    )
    name = forms.SlugField(
        required=False, max_length=100, help_text="Empty: made from suite and deployment."
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        choices = [(name, f"{name}: {title}") for name, title in suites.titles().items()]
        self.fields["suite"].choices = choices  # type: ignore[attr-defined]
