"""The parts of the experiments: the actor, the arena, the stream, the tables; and one smoke run."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from agent.serving.checkpoint import load
from agent.serving.decoder import open_decoder
from agent.serving.llama import Llama
from agent.serving.processor import Encoded
from experiments import ppo, pretrain, screens, state, stream, tiny
from experiments.arena import Arena, Episode, open_arena
from experiments.measure import measure
from experiments.runs import learnable
from experiments.tasks import SMOKE, WHOLE, Case, cases, endless
from training.data.rows import LeftOut, rows
from training.data.stream_rows import Reader, append

pytestmark = pytest.mark.timeout(300)


@pytest.fixture(scope="module")
def actor(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny.make(tmp_path_factory.mktemp("actor") / "tiny", pretrain.texts(0, 200))


@pytest.fixture(scope="module")
def arena(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Arena]:
    with open_arena(tmp_path_factory.mktemp("arena"), threads=3, pages=6) as opened:
        yield opened


@pytest.fixture(scope="module")
def sampled(arena: Arena, actor: Path) -> dict[str, Episode]:
    arena.load(actor, "tiny-step-0")
    wanted = cases(SMOKE.chosen, range(3))
    return {episode.case.id: episode for episode in arena.sample(wanted, seed=3)}


def test_the_actor_is_served_by_our_own_forward_pass_as_transformers_would(actor: Path):
    decoder, processor, manifest = open_decoder(str(actor), exact=True)
    loaded = load(actor)
    assert isinstance(decoder, Llama)
    assert 0.5e6 < sum(weight.numel() for weight in loaded.model.parameters()) < 3e6
    assert (manifest.dialect, manifest.observation) == ("element", "elements")
    ids = processor.prompt(
        [{"role": "user", "content": 'Task: Press a.\nScreen:\n[1] link "a"'}]
    ).ids
    with torch.inference_mode():
        ours, _ = decoder.start(Encoded(ids), 1)
        theirs = loaded.model(input_ids=torch.tensor([ids])).logits[:, -1]
    assert torch.allclose(ours, theirs, atol=1e-4)


def test_prompts_and_answers_are_short(actor: Path):
    _, processor, _ = open_decoder(str(actor), exact=True)
    made = list(rows(screens.episodes(1, 60), pretrain.FORM))
    assert not [row for row in made if isinstance(row, LeftOut)]
    for row in made:
        assert not isinstance(row, LeftOut)
        answer = processor.target_ids(row.target)
        assert processor.decode(answer) == row.target
        assert len(answer) < 40
    assert [t.instruction for t in screens.episodes(1, 9)] == [
        t.instruction for t in screens.episodes(1, 9)
    ]


def test_oracles_show_tasks_in_words_that_the_actor_can_say(arena: Arena):
    wanted = [Case("miniwob/click-link", 1), Case("miniwob/enter-text", 1), Case("games/lights-out-easy", 1)]  # fmt: skip
    tooled = Case("miniwob/click-button", 2, variant="sdk")
    shown = {episode.case: episode for episode in arena.demonstrate([*wanted, tooled])}
    assert all(episode.solved for episode in shown.values())
    first, second = learnable([shown[tooled].trajectory])
    assert "execute_bash(command='grep " in first.target
    assert "Output: " in second.messages[-1]["content"]


def test_the_arena_samples_with_tokens_and_gives_the_same_again(
    arena: Arena, actor: Path, sampled: dict[str, Episode]
):
    assert len(sampled) == 6
    for episode in sampled.values():
        for step in episode.trajectory.steps:
            assert step.sample is not None
            assert len(step.sample.output_ids) == len(step.sample.output_logprobs) > 0
            assert step.sample.version == "tiny-step-0"
    again = arena.sample(cases(SMOKE.chosen, range(3)), seed=3)
    for episode in again:
        before = sampled[episode.case.id].trajectory
        assert [step.sample.output_ids for step in episode.trajectory.steps if step.sample] == [
            step.sample.output_ids for step in before.steps if step.sample
        ]


def test_stream_lines_are_what_a_trainer_reads(sampled: dict[str, Episode], tmp_path: Path):
    written = [
        stream.tokens(episode, number=n, staleness=0)
        for n, episode in enumerate(sampled.values(), start=1)
    ]
    append(tmp_path, written, end=True)
    reader = Reader(tmp_path)
    assert list(reader.new()) == written
    assert reader.ended
    assert {line.group for line in written} == {
        case.group for case in cases(SMOKE.chosen, range(3))
    }


def test_no_case_begins_beyond_the_staleness_bound():
    gate = stream.Gate(endless(SMOKE.chosen, seed=0, repeats=2), 2, 1, concurrency=100)
    begun = [next(gate) for _ in range(4)]  # (staleness + version + 1) * batch
    assert [case.repeat for case in begun] == [0, 1, 0, 1]
    for _ in begun:
        gate.ended()
    assert gate.room() == 0
    later: list[Case] = []
    waiting = threading.Thread(target=lambda: later.extend(itertools.islice(gate, 2)))
    waiting.start()
    gate.advance(1)
    waiting.join(30)
    assert len(later) == 2
    assert gate.room() == 0
    gate.close()
    assert list(gate) == []


def test_a_cell_is_made_once_and_tables_say_their_intervals(tmp_path: Path):
    made: list[int] = []

    def make() -> state.Cell:
        made.append(1)
        return {"value": len(made)}

    path = tmp_path / "deep" / "cell.json"
    assert state.cell(path, make) == state.cell(path, make) == {"value": 1}
    assert state.percent([True] * 8 + [False] * 2) == "80.0 (49.0 to 94.3)"
    assert state.over_seeds([0.5]) == "50.0 (one seed)"
    assert state.over_seeds([0.4, 0.5, 0.6]) == "50.0 ± 24.8"  # 4.303 * 0.1 / sqrt(3)
    assert state.gain([0, 0], [1, 1]) == "+100.0 (+100.0 to +100.0)"
    assert state.markdown(["a", "b"], [[1, 2]]) == "| a | b |\n| --- | ---: |\n| 1 | 2 |"


def test_measuring_uses_seeds_that_nothing_else_does(arena: Arena, actor: Path):
    found = measure(arena, actor, SMOKE.chosen[:1], seeds=2)
    assert found.tasks == ["miniwob/click-test-2"] * 2
    assert found.seeds == [10_000, 10_001]
    assert len(found.solved(within=1)) == 2


def test_groups_of_tasks_are_parts_of_the_chosen_ones():
    assert not set(WHOLE.chosen) & set(WHOLE.rest)
    assert sorted(t for tasks in WHOLE.groups.values() for t in tasks) == sorted(WHOLE.chosen)
    assert len(WHOLE.chosen) == len(WHOLE.rest) == 10


def test_a_smoke_run_of_ppo_from_nothing_to_its_table(tmp_path: Path, capsys):
    arguments = ["--quick", "--seeds", "1", "--variant", "grpo", "--root", str(tmp_path)]
    assert ppo.main(arguments) == 0
    said = capsys.readouterr().out
    assert "| the start |" in said and "| grpo |" in said
    assert ppo.main(arguments) == 0  # every cell is there: nothing is trained again
    assert capsys.readouterr().out.endswith(said[said.index("| variant |") :])
