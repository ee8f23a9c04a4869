"""The page that launches a run: what kind, then a form, then perhaps a sample of what it would learn."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse

from agent.models import Deployment
from training import access
from training.errors import BadConfig, NameTaken
from training.forms.runs import LaunchForm, rollouts
from training.guide import GUIDES
from training.models import Checkpoint, Dataset, Episode, Rollout, Run
from training.presets import presets_of
from training.runs import inputs
from training.runs import runs as verbs
from training.views import samples

CARRIED = ("base", "dataset", "rollout", "critic", "deployment")
Kind = Run.Kind


@access.staff_only
def new(request: HttpRequest) -> HttpResponse:
    """Launch a run; it starts from ?kind=, ?preset=, ?clone=RUN and the rows that ?base= etc. name.

    Asked by htmx with ?part=inputs, it returns only what depends on the base checkpoint.
    """
    asked = request.POST or request.GET
    clone = (
        access.run_for(request, int(asked["clone"])) if asked.get("clone", "").isdecimal() else None
    )
    kind = clone.kind if clone else _kind(asked)
    if kind not in verbs.kinds():
        return _choose(request)
    initial = _initial(kind, asked) | (verbs.launch_values(clone) if clone else {})
    if request.method == "GET" and request.GET.get("part") == "inputs":
        form = LaunchForm(kind, initial=initial | request.GET.dict() | _fitting(kind, initial))
        return render(request, "training/_run_inputs.html", _context(kind, form))
    form = LaunchForm(kind, request.POST or None, initial=initial)
    if request.method == "POST" and "sample" in request.POST:
        return _sample(request, kind, form)
    if request.method == "POST" and form.is_valid():
        try:
            run = verbs.launch(**form.wanted(), by=request.user)  # type: ignore[arg-type]
        except BadConfig as error:
            for field, message in error.errors.items():
                form.add_error(field if field in form.fields else None, message)
        except NameTaken as error:
            form.add_error("name", str(error))
        else:
            return redirect("training:run", run.pk)
    return render(request, "training/run_new.html", _context(kind, form))


def _kind(asked: Any) -> str:
    """Return the kind that was asked for, or that the dataset of a link is for; "" for none."""
    if asked.get("kind"):
        return str(asked["kind"])
    dataset = asked.get("dataset", "")
    pool = (
        Dataset.objects.filter(pk=dataset).values_list("pool", flat=True).first()
        if dataset.isdecimal()
        else None
    )
    return str(pool or "")


def _choose(request: HttpRequest) -> HttpResponse:
    carried = {k: v for k, v in request.GET.items() if k in CARRIED}
    has = verbs.kinds()
    base = _base(carried)
    cards = [
        {
            "guide": guide,
            "link": f"{reverse('training:new-run')}?{urlencode({'kind': kind} | carried)}",
            "missing": missing(kind, base),
        }
        for kind, guide in GUIDES.items()
        if kind in has
    ]
    return render(request, "training/run_kinds.html", {"section": "runs", "cards": cards})


def _context(kind: str, form: LaunchForm, **more: Any) -> dict[str, Any]:
    first, *rest = [(title, [form[field.name] for field in fields]) for title, fields in form.parts]
    named = {field.name for _, fields in rest for field in fields}
    return {
        "section": "runs",
        "form": form,
        "guide": GUIDES[kind],
        "presets": presets_of(kind),
        "first": first[1],
        "rest": rest,
        "rest_open": bool(named & form.errors.keys()) if form.is_bound else False,
        "missing": missing(kind, form.chosen_base()),
        "samples": kind in samples.KINDS,
        **more,
    }


def _sample(request: HttpRequest, kind: str, form: LaunchForm) -> HttpResponse:
    """Show the first row of each dataset as a trainer would see it; nothing is launched."""
    form.is_valid()
    given = form.cleaned_data
    context = samples.of(
        kind, given.get("base"), [given.get("dataset"), *(row for row, _ in given.get("mixed", ()))]
    )
    if request.headers.get("HX-Request"):
        return render(request, "training/_run_sample.html", context)
    return render(request, "training/run_new.html", _context(kind, form, shown=True, **context))


# -- where a form starts ---------------------------------------------------------------------------


def _base(asked: Any) -> Checkpoint | None:
    """Return the policy of the link, what the annotators work beside, or the newest one."""
    known = Checkpoint.objects.filter(role=Checkpoint.Role.POLICY, erased_at=None).order_by("-pk")
    if asked.get("base", "").isdecimal():
        row = Checkpoint.objects.filter(pk=asked["base"]).first()
        # From a critic, training goes on with the policy that it belongs to.
        return row.parent if row and row.role == Checkpoint.Role.CRITIC else row
    partner = Deployment.objects.filter(is_partner=True).values_list("version", flat=True)
    return known.filter(version__in=partner).first() or known.first()


def _initial(kind: str, asked: Any) -> dict[str, Any]:
    presets = presets_of(kind)
    initial: dict[str, Any] = dict(
        presets.get(asked.get("preset", ""), next(iter(presets.values())))
    )
    base = _base(asked)
    datasets = Dataset.objects.filter(pool=kind, erased_at=None).order_by("-pk")
    initial |= {"base": base.pk if base else None, "dataset": _pk(datasets.first())}
    if base and kind == Kind.VALUE:
        initial["rollout"] = _pk(_rollouts_of(base).first())
    if kind == Kind.ORM:
        collected = rollouts().filter(purpose=Rollout.Purpose.COLLECT, finished__gt=0)
        initial["rollout"] = _pk(collected.exclude(state__in=Rollout.LIVE).first())
    if kind == Kind.PPO:
        best = _best_critic(base) if base else None
        initial |= {"critic": _pk(best), "tasks": "miniwob/click-*"}
    for name in CARRIED:
        if name != "base" and asked.get(name, "").isdecimal():
            initial[name] = int(asked[name])
    return initial


def _fitting(kind: str, initial: dict[str, Any]) -> dict[str, Any]:
    """Return what belongs to the base alone: with another base, another critic and rollout."""
    base = Checkpoint.objects.filter(pk=initial.get("base")).first()
    critic = Checkpoint.objects.filter(pk=initial.get("critic")).first()
    if kind == Kind.PPO and base and not (critic and inputs.critic_of(critic, base)):
        return {"critic": _pk(_best_critic(base))}
    rollout = initial.get("rollout")
    if kind == Kind.VALUE and base and not _rollouts_of(base).filter(pk=rollout).exists():
        return {"rollout": _pk(_rollouts_of(base).first())}
    return {}


def _best_critic(base: Checkpoint) -> Checkpoint | None:
    mine = [one for one in _critics() if inputs.critic_of(one, base)]
    return max(mine, key=lambda one: inputs.explained(one) or -1, default=None)


def _pk(row: Any) -> int | None:
    return row.pk if row else None


def _critics() -> Any:
    return Checkpoint.objects.filter(role=Checkpoint.Role.CRITIC, erased_at=None).order_by("-pk")


def _rollouts_of(base: Checkpoint) -> Any:
    """Return the ended rollouts that a checkpoint's deployment played, with finished episodes."""
    rows = rollouts().exclude(state__in=Rollout.LIVE)
    return rows.filter(deployment__version=base.version, finished__gt=0)


def missing(kind: str, base: Checkpoint | None) -> list[dict[str, str]]:
    """Return what has to be done before a run of `kind` from `base`, each with a link there."""
    if base is None:
        return [
            _todo(
                "There is no checkpoint to start from: run manage.py register_box to register the one that Tandem ships with."
            )
        ]
    if (
        kind in (Kind.SFT, Kind.CT)
        and not Dataset.objects.filter(pool=kind, erased_at=None).exists()
    ):
        return [
            _todo(
                f"There is no dataset of the {kind.upper()} pool yet.",
                "Freeze one",
                "new-dataset",
                pool=kind,
            )
        ]
    if kind == Kind.VALUE and not _rollouts_of(base).exists():
        return [
            _todo(
                f"{base.version} has played no rollout to its end yet: a critic learns from its episodes.",
                "Start one",
                "new-rollout",
                deployment=_deployment_of(base),
            )
        ]
    if kind == Kind.PPO and not any(inputs.critic_of(one, base) for one in _critics()):
        return [
            _todo(
                f"There is no critic of {base.version} yet. Without one choose GRPO, or start anyway with a fresh critic.",
                "Pretrain one",
                "new-run",
                kind=Kind.VALUE,
                base=base.pk,
            )
        ]
    if kind == Kind.ORM and not Episode.objects.filter(state=Episode.State.DONE).exists():
        return [_todo("No episode was judged yet.", "Start a rollout", "new-rollout")]
    if kind == Kind.MERGE and Checkpoint.objects.filter(role=Checkpoint.Role.POLICY).count() < 2:
        return [
            _todo(
                "There is only one checkpoint: train specialists first.",
                "Launch an SFT run",
                "new-run",
                kind=Kind.SFT,
            )
        ]
    return []  # fmt: skip


def _deployment_of(base: Checkpoint) -> int | str:
    return (
        Deployment.objects.filter(version=base.version).values_list("pk", flat=True).first() or ""
    )


def _todo(text: str, link: str = "", to: str = "", **values: Any) -> dict[str, str]:
    carried = urlencode({key: value for key, value in values.items() if value != ""})
    return {
        "text": text,
        "link": link,
        "to": f"{reverse(f'training:{to}')}?{carried}" if to else "",
    }
