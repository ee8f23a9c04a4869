"""The pages of runs: choosing a kind, a form for each, one run live, several on one plot."""

from __future__ import annotations

import pytest
from django.urls import reverse
from django.utils import timezone

from agent.models import Deployment
from tests.training.played import (  # noqa: F401  (fixtures)
    base,
    critic,
    dataset,
    every_kind,
    played,
    policy,
)
from training.models import Checkpoint, Dataset, Episode, Metric, Rollout, Run
from training.presets import presets_of

# ruff: noqa: F811
pytestmark = pytest.mark.django_db
NEW = "/training/runs/new/"


@pytest.fixture
def staff(client, admin_user):
    client.force_login(admin_user)
    return client


@pytest.fixture
def run(dataset, base) -> Run:
    return Run.objects.create(
        name="sft-clicks-1", dataset=dataset, base=base, config=presets_of("sft")["standard"],
        state=Run.State.RUNNING, step=3, total_steps=8,
        metrics={"step": 3, "loss": 0.25, "eta_s": 60}, log="line\n",
    )  # fmt: skip


def values_of(kind, preset=None, **changes):
    presets = presets_of(kind)
    return {"kind": kind, "name": "", **presets[preset or next(iter(presets))]} | changes


def field_errors(answer):
    return {name: str(errors[0]) for name, errors in answer.context["form"].errors.items()}


# -- choosing a kind ------------------------------------------------------------------------------


def test_the_first_page_says_what_each_kind_is_for_and_what_it_lacks(staff, base):
    page = staff.get(NEW, {"base": base.pk}).content.decode()
    for title in ("Supervised fine-tuning", "Value pretraining", "Reinforcement learning", "Merge"):
        assert title in page
    assert f"{NEW}?kind=value&amp;base={base.pk}" in page
    assert "There is no critic of box yet" in page
    assert "There is no dataset of the CT pool yet" in page
    critic(base)
    assert "There is no critic of box yet" not in staff.get(NEW, {"base": base.pk}).content.decode()


@pytest.mark.parametrize("kind", Run.Kind.values)
def test_every_kind_has_a_form_with_help_also_where_nothing_is_there(staff, kind):
    answer = staff.get(NEW, {"kind": kind})
    assert answer.status_code == 200
    form = answer.context["form"]
    assert all(field.help_text for field in form)
    shown = [f.name for f in answer.context["first"]]
    hidden = [f.name for _, fields in answer.context["rest"] for f in fields]
    assert sorted(shown + hidden) == sorted(
        presets_of(kind)["standard" if kind != "ppo" else "GRPO"]
    )
    assert b"register_box" in answer.content


# -- SFT ------------------------------------------------------------------------------------------


def test_a_run_is_launched_from_the_form(staff, dataset, base, admin_user):
    chat = Dataset.objects.create(name="chat", pool="general", sha256="0" * 64, uri="x")
    sent = values_of("sft", dataset=dataset.pk, base=base.pk, steps="12")
    answer = staff.post(NEW, sent | {"mixed": [chat.pk], f"mixed-{chat.pk}": "0.5"})
    run = Run.objects.get()
    assert answer["Location"] == reverse("training:run", args=[run.pk])
    assert (run.state, run.config["steps"], run.created_by) == ("queued", 12, admin_user)
    assert [(one.dataset, one.weight) for one in run.mixed.all()] == [(chat, 0.5)]


def test_the_form_names_the_wrong_field_and_keeps_what_was_typed(staff, dataset, base):
    sent = values_of(
        "sft", dataset=dataset.pk, base=base.pk, learning_rate="fast", batch_size="0", seed="77"
    )
    answer = staff.post(NEW, sent)
    assert set(field_errors(answer)) == {"learning_rate", "batch_size"}
    assert b'value="fast"' in answer.content
    assert b'value="77"' in answer.content
    assert not answer.context["rest_open"]
    hidden = staff.post(NEW, sent | {"max_grad_norm": "x"})
    assert hidden.context["rest_open"]
    assert not Run.objects.exists()


def test_what_is_mixed_in_is_kept_with_its_error(staff, dataset, base):
    chat = Dataset.objects.create(name="chat", pool="general", sha256="0" * 64, uri="x")
    sent = values_of("sft", dataset=dataset.pk, base=base.pk)
    answer = staff.post(NEW, sent | {f"mixed-{chat.pk}": "much"})
    assert "'much'" in field_errors(answer)["mixed"]
    assert b'value="much"' in answer.content
    answer = staff.post(NEW, sent | {f"mixed-{chat.pk}": "-1"})
    assert "more than 0" in field_errors(answer)["mixed"]


def test_erased_data_is_refused_at_its_field(staff, dataset, base):
    sent = values_of("sft", dataset=dataset.pk, base=base.pk)
    Dataset.objects.update(erased_at=timezone.now())
    Checkpoint.objects.update(erased_at=timezone.now())
    assert "deleted on" in field_errors(staff.post(NEW, sent))["base"]
    Checkpoint.objects.update(erased_at=None)
    assert "freeze a new one" in field_errors(staff.post(NEW, sent))["dataset"]


def test_a_clone_starts_from_the_values_of_its_run(staff, run):
    Run.objects.update(config=presets_of("sft")["standard"] | {"seed": 4242})
    answer = staff.get(NEW, {"clone": run.pk})
    assert b'value="4242"' in answer.content
    assert answer.context["form"].initial["base"] == run.base_id


def test_a_run_starts_from_what_the_annotators_work_beside(staff, base):
    newer = policy("newer", parent=base)
    partner = Deployment.objects.create(
        name="partner", reads="elements", dialect="element", version="box", is_partner=True
    )
    assert staff.get(NEW, {"kind": "sft"}).context["form"].initial["base"] == base.pk
    partner.delete()
    assert staff.get(NEW, {"kind": "sft"}).context["form"].initial["base"] == newer.pk


def test_the_dataset_of_the_link_chooses_the_kind(staff, dataset, base):
    answer = staff.get(NEW, {"dataset": dataset.pk})
    assert answer.context["form"].kind == "sft"
    assert f'<option value="{dataset.pk}" selected>'.encode() in answer.content


def test_a_sample_shows_what_gets_loss_and_launches_nothing(staff, dataset, base):
    sent = values_of("sft", dataset=dataset.pk, base=base.pk, steps="12") | {"sample": "1"}
    whole = staff.post(NEW, sent).content.decode()
    assert 'value="12"' in whole
    part = staff.post(NEW, sent, headers={"HX-Request": "true"}).content.decode()
    assert "<html" not in part
    for page in (whole, part):
        assert "click(element=1)" in page.split('<mark class="loss">')[-1].split("</mark>")[0]
    assert not Run.objects.exists()
    nothing = staff.post(NEW, sent | {"dataset": ""}, headers={"HX-Request": "true"})
    assert b"Choose a base checkpoint and a dataset first" in nothing.content


# -- the other kinds ------------------------------------------------------------------------------


def test_a_critic_is_launched_from_the_rollout_of_its_policy(staff, base):
    assert b"has played no rollout" in staff.get(NEW, {"kind": "value"}).content
    rollout = played(base)
    form = staff.get(NEW, {"kind": "value"}).context["form"]
    assert form.initial["rollout"] == rollout.pk
    staff.post(NEW, values_of("value", base=base.pk, rollout=rollout.pk))
    assert Run.objects.get().rollout == rollout
    other = policy("other")
    answer = staff.post(NEW, values_of("value", base=other.pk, rollout=rollout.pk))
    assert "not by other" in field_errors(answer)["rollout"]
    answer = staff.post(NEW, values_of("value", base=base.pk, held_out="0.9"))
    assert set(field_errors(answer)) == {"rollout", "held_out"} or "rollout" in field_errors(answer)


def test_rl_is_launched_with_tasks_and_the_best_critic_of_its_policy(staff, base):
    poor, good = critic(base, explains=0.2, version="poor"), critic(base)
    critic(policy("other"), version="alien")
    page = staff.get(NEW, {"kind": "ppo", "base": base.pk})
    assert page.context["form"].initial["critic"] == good.pk
    assert b"poor: of this policy, explained variance 0.20" in page.content
    assert b"alien: of another policy" in page.content
    sent = values_of("ppo", "quick", base=base.pk, critic=good.pk, suite="smoke", tasks="")
    answer = staff.post(NEW, sent | {"any_critic": "no"})
    run = Run.objects.get()
    assert answer["Location"] == reverse("training:run", args=[run.pk])
    assert {e.task for e in run.rollout.episodes.all()} <= {
        "click-test",
        "click-button",
        "enter-text",
    }
    assert (run.critic, poor.advised_runs.count()) == (good, 0)
    clone = staff.get(NEW, {"clone": run.pk}).context["form"].initial
    assert (clone["critic"], clone["deployment"]) == (good.pk, None)
    assert "miniwob/click-test" in clone["tasks"]


def test_from_a_critic_training_goes_on_with_its_policy(staff, base):
    mine = critic(base)
    policy("newer", parent=base)
    form = staff.get(NEW, {"kind": "ppo", "base": mine.pk}).context["form"]
    assert (form.initial["base"], form.initial["critic"]) == (base.pk, mine.pk)


def test_rl_names_each_wrong_field(staff, base):
    sent = values_of("ppo", "quick", base=base.pk, any_critic="no", tasks="", critic="")
    errors = field_errors(staff.post(NEW, sent))
    assert "name at least one" in errors["tasks"]
    assert "pretrain a critic" in errors["critic"]
    errors = field_errors(staff.post(NEW, sent | {"tasks": "miniwob/no-such", "group": "3"}))
    assert "no task" in errors["tasks"]
    errors = field_errors(
        staff.post(NEW, sent | {"tasks": "miniwob/click-test", "group": "3", "any_critic": "yes"})
    )
    assert "no multiple of 3" in errors["group"]
    alien = critic(policy("other"), version="alien")
    sent |= {"tasks": "miniwob/click-test", "critic": alien.pk}
    assert "another policy" in field_errors(staff.post(NEW, sent))["critic"]
    assert not Run.objects.exists()
    assert not Rollout.objects.exists()


def test_another_base_brings_other_critics_and_loses_nothing(staff, base):
    critic(base)
    other = policy("other")
    sent = values_of("ppo", base=other.pk, name="mine", tasks="games")
    answer = staff.get(NEW, sent | {"part": "inputs"}).content.decode()
    assert "<html" not in answer
    assert "critic: of another policy" in answer
    assert "There is no critic of other yet" in answer
    assert 'value="mine"' in answer
    assert "games</textarea>" in answer


def test_a_judge_is_launched_on_a_rollout_or_a_dataset(staff, base, dataset):
    sent = values_of("orm", base=base.pk, rollout="", dataset="")
    assert "a rollout or a dataset" in field_errors(staff.post(NEW, sent))["rollout"]
    staff.post(NEW, sent | {"dataset": dataset.pk})
    assert Run.objects.get().dataset == dataset
    rollout = played(base)
    assert staff.get(NEW, {"kind": "orm"}).context["form"].initial["rollout"] == rollout.pk
    staff.post(NEW, sent | {"rollout": rollout.pk})
    assert Run.objects.last().rollout == rollout


def test_a_merge_is_launched_from_ticked_checkpoints(staff, base):
    one, two = policy("one", parent=base), policy("two", parent=base)
    sent = values_of("merge", sources=[one.pk, two.pk])
    staff.post(NEW, sent)
    assert [s.weight for s in Run.objects.get().sources.all()] == [0.5, 0.5]
    answer = staff.post(NEW, sent | {f"sources-{one.pk}": "0.9", f"sources-{two.pk}": "0.9"})
    assert "add up to 1.8" in field_errors(answer)["sources"]
    assert answer.content.count(b'value="0.9"') == 2
    assert "only" not in field_errors(staff.post(NEW, values_of("merge")))["sources"]
    clone = staff.get(NEW, {"clone": Run.objects.get().pk}).content.decode()
    assert clone.count(" checked") == 2


# -- one run --------------------------------------------------------------------------------------


def test_metrics_tell_what_is_new_and_whether_to_ask_again(staff, run):
    for step in (1, 2, 3):
        Metric.objects.create(
            run=run, step=step, values={"loss": 1 / step, "lr": 0.1, "version": "x"}
        )
    address = reverse("training:metrics", args=[run.pk])
    first = staff.get(address).json()
    assert [point["step"] for point in first["points"]] == [1, 2, 3]
    assert first["points"][0] == {"step": 1, "loss": 1.0, "lr": 0.1}
    assert (first["state"], first["ended"], first["more"]) == ("running", False, False)
    assert first["log"] == "line\n"
    assert [p["step"] for p in staff.get(address, {"after": 2}).json()["points"]] == [3]
    Run.objects.update(state=Run.State.SUCCEEDED)
    last = staff.get(address, {"after": 3}).json()
    assert last["ended"]
    assert last["stamp"] != first["stamp"]


def test_an_rl_run_shows_its_series_its_episodes_and_what_it_came_from(staff, base):
    rollout = played(base)
    row = Run.objects.create(
        name="rl", kind="ppo", base=base, critic=critic(base), rollout=rollout, config=presets_of("ppo")["GRPO"]
    )  # fmt: skip
    before = staff.get(reverse("training:metrics", args=[row.pk])).json()["stamp"]
    Run.objects.filter(pk=row.pk).update(step=1)
    said = {"reward": 0.5, "entropy": 1.2, "rounds": 3, "clip_high": 0.1, "mismatch_kl": 0.01}
    Metric.objects.create(run=row, step=1, values=said | {"version": "rl-step-1"})
    news = staff.get(reverse("training:metrics", args=[row.pk])).json()
    assert news["points"] == [said | {"step": 1}]
    assert news["stamp"] != before
    page = staff.get(reverse("training:run", args=[row.pk])).content.decode()
    for episode in Episode.objects.all():
        assert reverse("training:episode", args=[episode.pk]) in page
    for name in ("checkpoint", "rollout"):
        assert (
            reverse(
                f"training:{name}",
                args=[getattr(row, "critic" if name == "checkpoint" else name).pk],
            )
            in page
        )
    assert reverse("training:events", args=[row.pk]) in page
    for listing in ("runs", "overview"):
        assert staff.get(reverse(f"training:{listing}")).status_code == 200


@pytest.mark.parametrize("kind", Run.Kind.values)
def test_a_run_of_every_kind_has_a_page(staff, base, kind):
    row = Run.objects.create(name="bare", kind=kind, base=base if kind != "merge" else None)
    for page in ("run", "panel", "metrics"):
        assert staff.get(reverse(f"training:{page}", args=[row.pk])).status_code == 200


def test_only_policies_are_promoted_and_a_critic_leads_to_rl(staff, run):
    mine = critic(run.base)
    Checkpoint.objects.filter(pk=mine.pk).update(run=run)
    page = staff.get(reverse("training:run", args=[run.pk])).content.decode()
    assert reverse("training:promote", args=[mine.pk]) not in page
    assert f"kind=ppo&amp;base={run.base_id}&amp;critic={mine.pk}" in page
    ours = policy("ours", run=run)
    page = staff.get(reverse("training:run", args=[run.pk])).content.decode()
    assert reverse("training:promote", args=[ours.pk]) in page


def test_the_first_rows_of_a_run_are_shown(staff, run):
    page = staff.get(reverse("training:run-rows", args=[run.pk])).content.decode()
    assert "click(element=1)" in page
    Run.objects.update(kind="ppo")
    assert staff.get(reverse("training:run-rows", args=[run.pk])).status_code == 404


def test_a_running_run_can_be_cancelled_and_only_an_ended_one_resumed(staff, run):
    staff.post(reverse("training:resume", args=[run.pk]))
    assert Run.objects.get().state == Run.State.RUNNING
    staff.post(reverse("training:cancel", args=[run.pk]))
    assert Run.objects.get().state == Run.State.CANCELLING
    Run.objects.update(state=Run.State.CANCELLED)
    assert b"Resume" in staff.get(reverse("training:run", args=[run.pk])).content
    staff.post(reverse("training:resume", args=[run.pk]))
    assert Run.objects.get().state == Run.State.QUEUED


# -- several --------------------------------------------------------------------------------------


def test_several_runs_are_compared_by_what_differs(staff, run):
    other = Run.objects.create(
        name="other", dataset=run.dataset, base=run.base,
        config=presets_of("sft")["standard"] | {"seed": 9},
    )  # fmt: skip
    compare = reverse("training:compare")
    answer = staff.get(compare, {"runs": f"{run.pk},{other.pk}"})
    assert [name for name, _ in answer.context["differences"]] == ["Seed"]
    assert (answer.context["metric"], answer.context["x"]) == ("loss", "step")
    ticked = staff.get(f"{compare}?runs={run.pk}&runs={other.pk}&metric=grad_norm&x=tokens")
    assert ticked.context["runs"] == [run, other]
    assert (ticked.context["metric"], ticked.context["x"]) == ("grad_norm", "tokens")
    wrong = staff.get(f"{compare}?runs={run.pk}&metric=reward&x=moon")
    assert (wrong.context["metric"], wrong.context["x"]) == ("loss", "step")
    assert staff.get(compare, {"runs": "99999"}).status_code == 404
    assert b"other" in staff.get(compare).content


def test_runs_of_different_kinds_are_compared_by_what_they_share(staff, run):
    rl = Run.objects.create(name="rl", kind="ppo", base=run.base, config={"updates": 5})
    answer = staff.get(reverse("training:compare"), {"runs": f"{run.pk},{rl.pk}"})
    keys = [one.key for one in answer.context["choices"]]
    assert set(keys[:2]) <= {"lr", "grad_norm"}
    assert {"reward", "loss"} <= set(keys)
    assert {"kind", "dataset", "Updates"} <= {name for name, _ in answer.context["differences"]}
