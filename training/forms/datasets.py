"""What people type to make a dataset; the verbs check it again."""

from __future__ import annotations

from typing import Any

from django import forms

from annotation.models import Task
from training.data.flywheel import RIGHT
from training.data.selection import Filters, check
from training.errors import BadConfig
from training.models import Dataset, RewardModel, Rollout
from training.rewards.reward_models import in_force

SLUG_HELP = "Letters, digits, - and _; it stays for ever."
SHOWN_ROLLOUTS = 200


def date_input() -> forms.DateInput:
    return forms.DateInput(attrs={"type": "date"}, format="%Y-%m-%d")


def limit(**options: Any) -> forms.IntegerField:
    return forms.IntegerField(required=False, min_value=0, max_value=1_000_000, **options)


class FiltersForm(forms.Form):
    """Which sessions and episodes a dataset is frozen from."""

    source = forms.ChoiceField(
        required=False,
        choices=[
            ("", "sessions and episodes"),
            ("sessions", "sessions only"),
            ("episodes", "episodes only"),
        ],
        label="From",
        help_text="Sessions are people's, episodes were played by a policy alone.",
    )
    task = forms.CharField(
        required=False, max_length=200, help_text="How the task's id begins, such as miniwob."
    )
    since = forms.DateField(required=False, widget=date_input(), help_text="First day, UTC.")
    until = forms.DateField(required=False, widget=date_input(), help_text="Last day, UTC.")

    domain = forms.ChoiceField(required=False, help_text="Of the task; no episode has one.")
    author = forms.CharField(
        required=False, max_length=32, label="Annotator",
        help_text="One pseudonym; no episode has one.",
    )  # fmt: skip
    thoughts = forms.ChoiceField(
        required=False,
        choices=[("", "all"), ("without-synthesized", "without synthesized")],
        label="Thoughts of recordings",
        help_text="Synthesized: by a model, where nothing was said.",
    )
    rewordings = forms.BooleanField(
        required=False, label="Add recordings again in other words, as samples marked augmented"
    )
    undisputed = forms.BooleanField(
        required=False, label="Leave out sessions about which verifier and reviewer disagree"
    )

    rollouts = forms.MultipleChoiceField(
        required=False, widget=forms.SelectMultiple(attrs={"size": 4}),
        help_text="None chosen: all that collect. Evaluations are never here: they are the test set.",
    )  # fmt: skip
    judge = forms.ChoiceField(
        required=False,
        label="Reward model",
        help_text="Judges episodes that no verifier can; only models in force are listed.",
    )
    per_seed = limit(
        label="Successes per task and seed", help_text="The shortest first; empty: all."
    )
    per_task = limit(label="Successes per task", help_text="The shortest first; empty: all.")
    max_steps = limit(
        label="Steps at most", help_text="A longer success goes to CT; empty: any length."
    )
    min_reward = forms.FloatField(
        required=False,
        min_value=0.01,
        max_value=1000,
        label="Reward that is right",
        help_text=f"From which on V(s) = 1; empty: {RIGHT:g}.",
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        domains = Task.objects.exclude(domain="").values_list("domain", flat=True)
        names = domains.distinct().order_by("domain")
        collected = Rollout.objects.filter(purpose=Rollout.Purpose.COLLECT).order_by("-pk")
        found = collected.values_list("name", flat=True)[:SHOWN_ROLLOUTS]
        gates = RewardModel.objects.filter(gates=True).select_related("gated_by").order_by("name")
        judges = [row.name for row in gates if in_force(row)]
        self._offer("domain", [("", "all"), *((name, name) for name in names)])
        self._offer("rollouts", [(name, name) for name in found])
        self._offer("judge", [("", "none"), *((name, name) for name in judges)])

    def clean(self) -> dict[str, Any]:
        values = super().clean() or {}
        since, until = values.get("since"), values.get("until")
        if since and until and until < since:
            self.add_error("until", "The last day is before the first.")
        if not self.errors:
            try:
                check(self.filters())
            except BadConfig as error:
                for name, why in error.errors.items():
                    self.add_error(name, why)
        return values

    def filters(self) -> Filters:
        """Return the filters of a valid form."""
        values = {name: self.cleaned_data[name] for name in Filters.__dataclass_fields__}
        for name in ("per_seed", "per_task", "max_steps", "min_reward"):
            values[name] = values[name] or 0
        return Filters(**values | {"rollouts": tuple(values["rollouts"])})

    def of_episodes(self) -> list[forms.BoundField]:
        """Return the fields of rejection sampling."""
        names = ("rollouts", "judge", "per_seed", "per_task", "max_steps", "min_reward")
        return [self[name] for name in names]

    def _offer(self, name: str, choices: list[tuple[str, str]]) -> None:
        self.fields[name].choices = choices  # type: ignore[attr-defined]


class FreezeForm(FiltersForm):
    """A dataset to be frozen."""

    name = forms.SlugField(max_length=50, help_text=SLUG_HELP)
    pool = forms.ChoiceField(
        choices=[(Dataset.Pool.SFT, "SFT: V(s) = 1"), (Dataset.Pool.CT, "CT: V(s) = 0")],
        initial=Dataset.Pool.SFT,
    )
    field_order = ("name", "pool")


class ImportForm(forms.Form):
    """General data to be imported."""

    name = forms.SlugField(max_length=50, help_text=SLUG_HELP)
    file = forms.FileField(
        label="JSON lines",
        help_text='One conversation a line: {"messages": [{"role", "content"}, …]}, text only.',
    )
