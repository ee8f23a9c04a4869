"""What people type on the pages of reward models; the verbs check it again."""

from __future__ import annotations

from typing import Any

from django import forms

from agent.models import Deployment
from training.models import Episode, RewardModel
from training.rewards.calibrations import SIZE
from training.rewards.reward_models import MIN_PRECISION


class RewardModelForm(forms.Form):
    """A reward model to be made."""

    name = forms.SlugField(max_length=50, help_text="Letters, digits, - and _; it stays for ever.")
    kind = forms.ChoiceField(
        choices=[
            ("generative", "Generative: a model reads the whole episode"),
            ("reference", "Reference: compares the answer with the right one"),
            ("ensemble", "Ensemble: all its members agree, else it abstains"),
        ]
    )
    deployment = forms.ModelChoiceField(
        Deployment.objects.exclude(kind=Deployment.Kind.SCRIPTED).order_by("name"),
        required=False,
        empty_label="none",
        help_text="The model that judges. Without one, references are compared by rules alone.",
    )
    members = forms.ModelMultipleChoiceField(
        RewardModel.objects.exclude(kind=RewardModel.Kind.ENSEMBLE).order_by("name"),
        required=False,
        widget=forms.CheckboxSelectMultiple,
        help_text="Of an ensemble.",
    )


class CalibrateForm(forms.Form):
    """A calibration to be started."""

    size = forms.IntegerField(
        initial=SIZE, min_value=2, max_value=5000, help_text="Episodes, half of them successes."
    )
    families = forms.MultipleChoiceField(
        required=False, widget=forms.CheckboxSelectMultiple, help_text="None ticked: all."
    )
    seed = forms.IntegerField(initial=0, min_value=0, help_text="Another one draws other episodes.")

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        played = Episode.objects.filter(state=Episode.State.DONE).exclude(reward=None)
        names = played.order_by("family").values_list("family", flat=True).distinct()
        self.fields["families"].choices = [(name, name) for name in names]  # type: ignore[attr-defined]


class AdmitForm(forms.Form):
    """What an admin asks of a reward model before it may gate data."""

    precision = forms.FloatField(
        initial=MIN_PRECISION,
        min_value=0.01,
        max_value=1.0,
        widget=forms.NumberInput(attrs={"step": "0.01"}),
        help_text="Which the lower end of the 95 % interval must reach.",
    )
