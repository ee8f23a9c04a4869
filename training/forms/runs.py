"""What people type to launch a run; the verb checks it again."""

from __future__ import annotations

from typing import Any

from django import forms
from django.db.models import Count, Q, QuerySet

from agent.models import Deployment
from training import guide
from training.errors import BadConfig
from training.evaluations import suites
from training.forms.shares import Shares, SharesField
from training.models import Checkpoint, Dataset, Episode, Rollout, Run
from training.presets import Field
from training.rollouts import choosing
from training.runs import inputs

Kind = Run.Kind
LISTED = 30  # rows of a table of shares; what was chosen is always among them


class BaseField(forms.ModelChoiceField):
    def label_from_instance(self, row: Checkpoint) -> str:
        return f"{row.version}{' (holds deleted data)' if row.erased_at else ''}"


class DatasetField(forms.ModelChoiceField):
    def label_from_instance(self, row: Dataset) -> str:
        if row.erased_at:
            return f"{row.name} (emptied: its data was deleted)"
        return f"{row.name}: {holds(row)}"


def holds(row: Dataset) -> str:
    """Return how much is in a dataset, in words."""
    what = "conversation" if row.pool == Dataset.Pool.GENERAL else "trajectory"
    many = "conversations" if row.pool == Dataset.Pool.GENERAL else "trajectories"
    return f"{row.trajectories} {what if row.trajectories == 1 else many}, {row.steps} steps"


class CriticField(forms.ModelChoiceField):
    """Critics, with how much they explain and whether they are the base's own."""

    base: Checkpoint | None = None

    def label_from_instance(self, row: Checkpoint) -> str:
        value = inputs.explained(row)
        says = "unknown" if value is None else f"{value:.2f}"
        mine = self.base is not None and inputs.critic_of(row, self.base)
        whose = "of this policy" if mine else "of another policy"
        return f"{row.version}: {whose}, explained variance {says}"


class RolloutField(forms.ModelChoiceField):
    def label_from_instance(self, row: Any) -> str:
        version = row.deployment.version or row.deployment.name
        return f"{row.name}: {row.finished} episodes of {version}{'' if row.ended else f', {row.state}'}"


def rollouts() -> QuerySet[Rollout]:
    """Return all rollouts with how many of their episodes were finished."""
    done = Count("episodes", filter=Q(episodes__state=Episode.State.DONE))
    rows = Rollout.objects.select_related("deployment").annotate(finished=done)
    return rows.order_by("-pk")


class LaunchForm(forms.Form):
    """A run of one kind to be launched: what from, what on, and every value of its configuration."""

    def __init__(self, kind: str, data: Any = None, *, initial: dict[str, Any]) -> None:
        super().__init__(data, initial=initial)
        self.kind = kind
        self.parts = guide.layout(kind)
        takes = inputs.TAKES[Kind(kind)]
        if kind == Kind.MERGE:
            takes = takes - {"base"}
        for name in (
            "base",
            "dataset",
            "mixed",
            "rollout",
            "critic",
            "sources",
            "tasks",
            "deployment",
        ):
            if name in takes:
                getattr(self, f"_add_{name}")()
        self.fields["name"] = forms.SlugField(
            required=False,
            max_length=50,
            help_text="Empty: made from the kind and what it learns from.",
        )
        for _, fields in self.parts:
            for field in fields:
                self.fields[field.name] = _typed(field)

    # -- what it starts from -----------------------------------------------------------------------

    def _add_base(self) -> None:
        rows = Checkpoint.objects.filter(role=Checkpoint.Role.POLICY).order_by("-pk")
        self.fields["base"] = BaseField(
            rows, label="Base checkpoint", empty_label="Choose a checkpoint",
            help_text="The weights to start from.",
        )  # fmt: skip

    def _add_dataset(self) -> None:
        rows = Dataset.objects.exclude(pool=Dataset.Pool.GENERAL).order_by("-pk")
        # Those of the other pool stay choosable by a link: the verb says what is wrong with them.
        chosen = self.data.get("dataset") or self.initial.get("dataset")
        mine = Q(pool=self.kind) | Q(pk=chosen if str(chosen or "").isdecimal() else None)
        judges = self.kind == Kind.ORM
        self.fields["dataset"] = DatasetField(
            rows if judges else rows.filter(mine),
            required=not judges,
            empty_label="None" if judges else "Choose a dataset",
            help_text="Trajectories with a reward, instead of a rollout or beside it."
            if judges
            else "Frozen: the run can be repeated exactly.",
        )

    def _add_mixed(self) -> None:
        rows = Dataset.objects.filter(erased_at=None).order_by("pool", "-pk")  # general first
        self.fields["mixed"] = self._shares(
            rows, [(r.pk, r.name, f"{r.pool.upper()}, {holds(r)}") for r in rows],
            self.initial.get("mixed"), Shares("Dataset", "There is no other dataset to mix in."),
            label="",
            help_text="How often a row of it comes where a row of the dataset above comes once. Empty: 1.",
        )  # fmt: skip

    def _add_sources(self) -> None:
        rows = Checkpoint.objects.filter(role=Checkpoint.Role.POLICY).order_by("-pk")
        rows = rows.select_related("run", "parent")
        noted = [
            (
                r.pk,
                r.version,
                f"from {r.parent.version}" if r.parent else "no run of this site made it",
            )
            for r in rows
        ]
        self.fields["sources"] = self._shares(
            rows, noted, self.initial.get("sources"),
            Shares("Checkpoint", "There is no checkpoint yet."), label="Checkpoints",
            help_text="Weights add up to 1. Leave them empty for equal parts.",
        )  # fmt: skip

    def _shares(
        self, rows: Any, noted: Any, initial: Any, widget: Shares, **options: Any
    ) -> SharesField:
        chosen = set(initial or {})
        name = "mixed" if widget.one == "Dataset" else "sources"
        if hasattr(self.data, "getlist"):
            chosen |= {int(pk) for pk in self.data.getlist(name) if pk.isdecimal()}
        widget.rows = [row for at, row in enumerate(noted) if at < LISTED or row[0] in chosen]
        return SharesField(rows, widget, **options)

    def _add_rollout(self) -> None:
        if self.kind == Kind.VALUE:
            help_text = (
                "Played to its end by exactly the base checkpoint, on our own policy server."
            )
            empty = "Choose a rollout"
        else:
            help_text = "Whose episodes it learns to judge; one that evaluates is no choice."
            empty = "None"
        rows = rollouts().exclude(purpose=Rollout.Purpose.EVALUATE)
        self.fields["rollout"] = RolloutField(
            rows, required=self.kind == Kind.VALUE, empty_label=empty, help_text=help_text
        )

    def _add_critic(self) -> None:
        rows = Checkpoint.objects.filter(role=Checkpoint.Role.CRITIC).order_by("-pk")
        field = CriticField(
            rows, required=False, empty_label="None",
            help_text="Of exactly the base checkpoint. Not asked with grpo and reinforce.",
        )  # fmt: skip
        field.base = self.chosen_base()
        self.fields["critic"] = field

    def _add_tasks(self) -> None:
        self.fields["suite"] = forms.ChoiceField(
            required=False,
            choices=[("", "None: the tasks below"), *suites.titles().items()],
            help_text="A fixed list of tasks. Those that you evaluate on prove less once trained on.",
        )
        self.fields["tasks"] = forms.CharField(
            required=False,
            widget=forms.Textarea(attrs={"rows": 3, "spellcheck": "false"}),
            help_text="One a line: a family, a task, or a pattern such as miniwob/click-*. Added to the suite's.",
        )

    def _add_deployment(self) -> None:
        self.fields["deployment"] = forms.ModelChoiceField(
            Deployment.objects.filter(kind=Deployment.Kind.LOCAL, is_partner=False)
            .exclude(Q(base_url="") | Q(name__startswith="rl-"))
            .order_by("name"),
            required=False,
            empty_label="A policy server of its own",
            help_text="What plays; its weights are replaced after each update, so never the annotators' partner.",
        )

    def chosen_base(self) -> Checkpoint | None:
        """Return the base that is chosen now, typed or initial."""
        pk = self.data.get("base") or self.initial.get("base")
        return Checkpoint.objects.filter(pk=pk).first() if str(pk or "").isdecimal() else None

    # -- reading -----------------------------------------------------------------------------------

    def clean(self) -> dict[str, Any]:
        values = super().clean() or {}
        if "tasks" in self.fields:
            values["tasks"] = self._tasks(values.get("suite", ""), values.get("tasks", ""))
        if "mixed" in values:
            values["mixed"] = [(row, 1.0 if w is None else w) for row, w in values["mixed"]]
        return values

    def _tasks(self, suite: str, typed: str) -> list[tuple[str, str]]:
        found: dict[tuple[str, str], None] = {}
        try:
            if suite:
                found |= dict.fromkeys((t.family, t.name) for t in suites.load(suite).tasks)
        except suites.NoSuite as error:
            self.add_error("suite", str(error))
        try:
            if typed.strip():
                found |= dict.fromkeys(choosing.tasks_of(typed))
        except BadConfig as error:
            self.add_error("tasks", error.errors["tasks"])
        return list(found)

    def wanted(self) -> dict[str, Any]:
        """Return the arguments of `runs.launch` from a valid form."""
        values = self.cleaned_data
        names = inputs.TAKES[Kind(self.kind)] & values.keys()
        config = {field.name: values[field.name] for _, fields in self.parts for field in fields}
        return {
            "kind": self.kind, "name": values["name"], "config": config,
            **{name: values[name] for name in names},
        }  # fmt: skip


def _typed(field: Field) -> forms.Field:
    options: dict[str, Any] = {"label": field.label, "help_text": field.help}
    if field.choices:
        made: forms.Field = forms.ChoiceField(choices=[(c, c) for c in field.choices], **options)
    else:
        # Text, so that what was typed comes back as it was; the verb names what is wrong.
        attrs = {"inputmode": "decimal", "autocomplete": "off"}
        made = forms.CharField(widget=forms.TextInput(attrs=attrs), **options)
    made.initial = field.default
    return made
