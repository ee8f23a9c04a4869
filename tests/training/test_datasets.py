"""Freezing: what goes in, what is left out and why, the hash, and the rows that come of it."""

from __future__ import annotations

import json

import pytest
from django.conf import settings

from blobs import Damaged, open_store
from tests.training.sessions import PICTURE, make_session
from training.data import datasets
from training.data.rows import LeftOut, PromptFormat, Row, rows
from training.data.selection import Filters, preview
from training.errors import EmptyDataset, NameTaken
from trajectory import Click, Drag, Finish, Scroll, Type, action_to_dict

pytestmark = pytest.mark.django_db

ELEMENTS = PromptFormat(dialect="element", observation="elements")


def freeze(name: str = "d", pool: str = "sft", filters: Filters | None = None, by=None):
    return datasets.freeze(name=name, pool=pool, filters=filters or Filters(), by=by)


def test_v_of_s_decides_who_goes_where_and_everyone_else_is_left_out_with_a_reason(admin_user):
    good, bad = make_session(), make_session(reward=0.0, status="rejected", verdict="rejected")
    waiting = make_session(status="submitted", verdict="")
    broken = make_session(status="failed", verdict="", outcome="env_failure")
    empty = make_session(actions=())

    dataset = freeze(by=admin_user)

    assert [e.session for e in dataset.entries.all()] == [good]
    assert (dataset.trajectories, dataset.steps, dataset.created_by) == (1, 2, admin_user)
    reasons = {one["session"]: one["reason"] for one in dataset.left_out}
    assert set(reasons) == {bad.pk, waiting.pk, broken.pk, empty.pk}
    assert "CT pool" in reasons[bad.pk]
    assert "reviewer" in reasons[waiting.pk]
    assert "environment" in reasons[broken.pk]
    assert "no steps" in reasons[empty.pk]
    assert [e.session for e in freeze("c", "ct").entries.all()] == [bad]


def test_the_same_sessions_give_the_same_hash_and_a_correction_another():
    session = make_session()
    make_session(task="miniwob/enter-text", actions=(Click(150, 210), Type("bob"), Finish()))
    one, two = freeze("one"), freeze("two")
    assert one.sha256 == two.sha256
    assert one.uri == two.uri
    review = session.reviews.get()
    review.steps.create(step=session.steps.first(), thought="Better said.")
    assert freeze("three").sha256 != one.sha256


def test_what_was_frozen_comes_back_and_a_damaged_file_is_named():
    make_session(pseudonym="A-3")
    dataset = freeze()
    (trajectory,) = datasets.trajectories(dataset)
    assert trajectory.annotator == "A-3"
    assert trajectory.steps[0].action == Click(120, 110)
    open_store(settings.STORAGE_URL).put_object(datasets.key_of(dataset), b"{}\n")
    with pytest.raises(Damaged, match=dataset.sha256[:12]):
        list(datasets.trajectories(dataset))


def test_a_text_with_the_separators_of_unicode_survives():
    make_session(actions=(Type("a\u2028b\x85c"), Finish()))
    (trajectory,) = datasets.trajectories(freeze())
    assert trajectory.steps[0].action == Type("a\u2028b\x85c")


def test_nothing_to_freeze_and_a_taken_name_are_refused_by_name():
    make_session(status="submitted", verdict="")
    with pytest.raises(EmptyDataset, match="1 looked at"):
        freeze()
    make_session()
    freeze("taken")
    with pytest.raises(NameTaken, match="'taken'"):
        freeze("taken")


def test_filters_narrow_it_down():
    web = make_session()
    desk = make_session(task="desk/rename", domain="desktop", pseudonym="A-2")
    disputed = make_session(
        task="desk/copy", domain="desktop", verdict="rejected", status="rejected"
    )

    def chosen(**filters):
        dataset = freeze(
            "-".join(filters) + str(filters.get("task", "")), filters=Filters(**filters)
        )
        return [entry.session for entry in dataset.entries.all()]

    assert chosen(domain="web") == [web]
    assert chosen(task="desk/") == [desk, disputed]
    assert chosen(task="desk/", undisputed=True) == [desk]
    assert chosen(author="A-2") == [desk]
    day = web.created_at.date()
    assert chosen(since=day, until=day) == [web, desk, disputed]
    assert preview(Filters(domain="nowhere")).total == 0


def test_the_preview_counts_without_changing_anything():
    make_session()
    make_session(reward=0.0)
    make_session(status="submitted", verdict="")
    seen = preview(Filters())
    assert (seen.sft, seen.ct, seen.disputed, seen.total) == (1, 1, 1, 3)
    assert seen.left_out == [("it waits for a reviewer", 1)]


# -- rows ----------------------------------------------------------------------------------------


def rows_of(*actions, form=ELEMENTS, marks=None):
    make_session(actions=actions, marks=marks)
    return list(rows(datasets.trajectories(freeze()), form))


def test_one_row_per_step_with_the_earlier_ones_as_context_and_loss_on_the_last_turn_only():
    first, second = rows_of(Click(120, 110), Finish())
    assert first.id.endswith("/0")
    assert first.target == "Thought: I do step 0.\nAction: click(element=1)"
    assert first.messages[-1]["role"] == "user"
    assert "Done:" not in first.messages[-1]["content"]
    assert '1. click button "ok"' in second.messages[-1]["content"]
    assert all("Thought: I do step 1." not in m["content"] for m in second.messages)
    record = json.loads(second.to_line())
    assert set(record) == {"id", "messages", "target", "images", "loss", "weight", "source"}
    assert record["loss"] is True


def test_what_the_dialect_cannot_say_is_named_and_stays_in_the_context():
    lost, kept = rows_of(Drag(((900, 600), (950, 650))), Finish())
    assert isinstance(lost, LeftOut)
    assert lost.id.endswith("/0")
    assert lost.reason
    assert isinstance(kept, Row)
    assert "drag" in kept.messages[-1]["content"]


def test_a_wrong_step_gets_no_loss_and_a_corrected_one_teaches_the_correction():
    marks = {
        0: {"mark": "wrong"},
        1: {"mark": "wrong", "action": action_to_dict(Click(150, 210)), "thought": "The user box."},
    }
    wrong, corrected, last = rows_of(Click(1, 1), Click(120, 110), Finish(), marks=marks)
    assert wrong == LeftOut(wrong.id, "marked as not to be learnt")
    assert corrected.target == "Thought: The user box.\nAction: click(element=2)"
    assert isinstance(last, Row)


def test_a_policy_that_sees_gets_at_most_n_pictures_by_hash():
    form = PromptFormat(dialect="box", observation="screenshot", coordinates="frame", history_n=2)
    found = rows_of(Click(1, 2), Scroll(5, 5, dy=5), Click(3, 4), Finish(), form=form)
    assert [row.images for row in found] == [[PICTURE], [PICTURE] * 2, [PICTURE] * 2, [PICTURE] * 2]


def test_a_policy_that_reads_elements_cannot_learn_from_a_screen_without_them():
    session = make_session()
    session.steps.update(observation={"screenshot": PICTURE, "width": 1280, "height": 720})
    found = list(rows(datasets.trajectories(freeze()), ELEMENTS))
    assert found
    assert all(isinstance(row, LeftOut) for row in found)
    assert "element" in found[0].reason


def test_a_manifest_says_how_a_checkpoint_is_asked():
    manifest = {"dialect": "element", "observation": "elements", "base": None, "format": 1}
    assert PromptFormat.of_manifest(manifest) == ELEMENTS
    with pytest.raises(KeyError, match="observation"):
        PromptFormat.of_manifest({"dialect": "box"})
