"""The oracle in a real Chromium, and what becomes of its episodes as training rows."""

from __future__ import annotations

import json

import pytest

from sandbox import browser, miniwob
from training.box import __main__ as box
from training.box import demonstrations
from training.box.demonstrations import demonstrate, reworded
from training.box.episodes import Game, play
from training.data.rows import LeftOut, PromptFormat, rows
from trajectory import FORMAT_VERSION, Actor, Finish, Outcome, Trajectory, Type, Wait, load_lines

FORM = PromptFormat("element", "elements")
pytestmark = pytest.mark.timeout(180)


@pytest.fixture(scope="module")
def recorded() -> list[Trajectory]:
    return list(demonstrate(miniwob.PAGES, range(2)))


def test_the_oracle_solves_every_page(recorded):
    assert {t.metadata["page"] for t in recorded} == set(miniwob.PAGES)
    assert len(recorded) == 2 * len(miniwob.PAGES)
    for t in recorded:
        assert t.reward == 1 and t.outcome is Outcome.FINISHED
        assert isinstance(t.steps[-1].action, Finish)
        assert all(step.actor is Actor.ORACLE for step in t.steps)


def test_every_step_to_learn_can_be_said_with_element_numbers(recorded):
    for item in rows(recorded, FORM):
        assert not (isinstance(item, LeftOut) and "not to be learnt" not in item.reason), item


def test_thoughts_are_short(recorded):
    assert max(len(step.thought.split()) for t in recorded for step in t.steps) <= 15


def test_the_same_seed_is_the_same_episode_whatever_ran_before():
    def signature(game: Game, seed: int) -> object:
        said = game.start(seed)
        return said, [(e.role, e.name, e.box) for e in game.observe().elements or ()]

    with browser.headless() as port:
        game = Game(port, "click-checkboxes")
        first, other = signature(game, 7), signature(game, 8)
        assert first == signature(game, 7) != other


def test_a_wrong_first_action_is_shown_and_repaired_but_not_learnt():
    found = [t for t in demonstrate(["click-option"], range(12)) if not t.steps[0].trainable]
    assert found
    for t in found:
        assert t.reward == 1
        assert all(step.trainable for step in t.steps[1:])


def test_other_words_are_the_same_episode(recorded):
    again = next(t for t in recorded if t.metadata["page"] == "login-user")
    told = reworded(again, 1)
    assert told == reworded(again, 1) != again
    assert told.id != again.id
    for old, new in zip(again.steps, told.steps, strict=True):
        assert type(old.action) is type(new.action)
        if isinstance(new.action, Type):
            assert new.action.text in told.instruction
        for a, b in zip(old.observation.elements, new.observation.elements, strict=True):
            assert (a.role, a.box, a.focused) == (b.role, b.box, b.focused)
    assert not [
        r for r in rows([told], FORM) if isinstance(r, LeftOut) and "learnt" not in r.reason
    ]


def test_a_button_that_the_instruction_means_in_other_letters_keeps_its_name(recorded):
    for t in (t for t in recorded if t.metadata["page"] == "enter-password"):
        for seed in range(5):
            told = reworded(t, seed)
            names = {e.name for s in told.steps for e in s.observation.elements or ()}
            assert "Submit" in names


def test_the_command_writes_canonical_lines_and_pictures_if_asked(tmp_path, capsys):
    out, blobs = tmp_path / "d.jsonl", tmp_path / "pictures"
    code = demonstrations.main(
        ["--pages", "click-test", "--seeds", "0:2", "--out", str(out), "--reworded", "1",
         "--screenshots", str(blobs)]
    )  # fmt: skip
    assert code == 0 and "2 of 2 episodes" in capsys.readouterr().out
    with out.open() as file:
        found = list(load_lines(file))
    assert [t.id for t in found] == [
        "miniwob-click-test-0", "miniwob-click-test-0-w1",
        "miniwob-click-test-1", "miniwob-click-test-1-w1",
    ]  # fmt: skip
    sha = found[0].steps[0].observation.screenshot
    assert (blobs / "blobs" / sha[:2] / sha).read_bytes().startswith(b"\x89PNG")
    assert json.loads(out.read_text().splitlines()[0])["format"] == FORMAT_VERSION


def test_an_unknown_page_is_refused(tmp_path, capsys):
    with pytest.raises(SystemExit):
        demonstrations.main(["--pages", "click-nothing", "--out", str(tmp_path / "x")])
    assert "unknown page 'click-nothing'" in capsys.readouterr().err


def test_an_actor_that_never_ends_runs_out_of_steps():
    with browser.headless() as port:
        game = Game(port, "click-test")
        t = play(game, 0, lambda *_: ("", Wait(), True), actor=Actor.AGENT, max_steps=3)
    assert (len(t.steps), t.outcome, t.reward) == (3, Outcome.OUT_OF_STEPS, 0)


def test_the_mix_of_the_box_is_the_same_every_time_and_holds_every_page(recorded):
    chosen = box.mix(recorded)
    assert [row.id for row in chosen] == [row.id for row in box.mix(recorded)]
    pages = {row.id.split("/")[0] for row in chosen}
    for page in miniwob.PAGES:
        assert any(name.startswith(f"miniwob-{page}-") for name in pages)
    assert set(box.MIX) == set(miniwob.PAGES)
