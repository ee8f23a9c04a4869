"""The stream between feeder and trainer: whole lines, in order, whoever is killed when."""

from __future__ import annotations

from pathlib import Path

import pytest

from training.data.stream_rows import (
    NoSamples,
    Reader,
    TokenEpisode,
    TokenStep,
    append,
    last_sequence,
    of_trajectory,
)
from trajectory import Actor, Click, Observation, Outcome, Sample, Step, Trajectory


def episode(n: int) -> TokenEpisode:
    step = TokenStep([1, 2, 3], [4, 5], [-0.1, -0.2], "run-step-0")
    return TokenEpisode(f"episode-{n}-1", n, n, "miniwob/click#1", "click", 1.0, "ended", 0, [step])


def test_what_is_appended_is_read_once_and_in_order(tmp_path: Path) -> None:
    reader = Reader(tmp_path)
    assert list(reader.new()) == []
    append(tmp_path, [episode(1), episode(2)])
    assert list(reader.new()) == [episode(1), episode(2)]
    append(tmp_path, [episode(3)], end=True)
    assert [e.sequence for e in reader.new()] == [3]
    assert reader.ended and list(reader.new()) == []


@pytest.mark.parametrize("cut", [1, 5, 60])
def test_a_line_cut_short_does_not_count_and_is_written_again(tmp_path: Path, cut: int) -> None:
    append(tmp_path, [episode(1), episode(2)])
    file = tmp_path / "stream.jsonl"
    file.write_bytes(file.read_bytes()[:-cut])
    assert [e.sequence for e in Reader(tmp_path).new()] == [1]
    assert last_sequence(tmp_path) == 1
    append(tmp_path, [episode(2)])
    assert [e.sequence for e in Reader(tmp_path).new()] == [1, 2]


def trajectory(sample: Sample | None, error: str = "") -> Trajectory:
    observation = Observation("0" * 64, 160, 210, elements=())
    step = Step(0, observation, "t", Click(1, 2), Actor.AGENT, error=error, sample=sample)
    return Trajectory("episode-7-1", "click", "Click.", (step,), Outcome.ENDED, reward=1.0)


def test_a_trajectory_gives_the_tokens_that_were_sampled() -> None:
    sample = Sample((1, 2), (3, 4), (-0.5, -0.25), "v1")
    made = of_trajectory(
        trajectory(sample, "the reply can't be read: no Action"),
        episode=7, sequence=9, group="g", reward=0.0,
    )  # fmt: skip
    assert made.tokens == 2 and made.steps[0].logprobs == [-0.5, -0.25]
    assert not made.steps[0].readable


def test_a_step_without_its_tokens_is_named() -> None:
    with pytest.raises(NoSamples, match="episode-7-1/0"):
        of_trajectory(trajectory(None), episode=7, sequence=9, group="g", reward=0.0)
