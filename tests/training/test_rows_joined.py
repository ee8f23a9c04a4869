"""Rows that are exact prefixes of others are read once, and teach the same."""

from __future__ import annotations

import hashlib
import io
from pathlib import Path

import pytest
import torch
from PIL import Image

from agent import dialects
from agent.serving.checkpoint import load
from training.data.rows import PromptFormat, Row, rows
from training.trainers.rows import IGNORE, collate, encode, joined
from training.trainers.sft import summed_loss
from trajectory import Actor, Click, Finish, Observation, Step, Trajectory

pytest_plugins = ["tests.tiny"]
pytestmark = pytest.mark.timeout(300)


def trajectory(folder: Path, steps: int) -> Trajectory:
    made = []
    for n in range(steps):
        file = io.BytesIO()
        Image.new("RGB", (64, 64), (40 * n, 90, 200)).save(file, "PNG")
        sha = hashlib.sha256(file.getvalue()).hexdigest()
        place = folder / "blobs" / sha[:2] / sha
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(file.getvalue())
        action = Click(8 * n, 9) if n < steps - 1 else Finish("done")
        made.append(Step(n, Observation(sha, 64, 64), f"Step {n}.", action, Actor.HUMAN))
    return Trajectory("t", "task", "Click around.", tuple(made))


@pytest.fixture
def encoded(tmp_path: Path, tiny_qwen3_vl: Path):
    assert dialects.load("point", "thousandth")
    form = PromptFormat("point", "screenshot", "thousandth", history_n=3)
    loaded = load(tiny_qwen3_vl)
    lines = [row for row in rows([trajectory(tmp_path, 5)], form) if isinstance(row, Row)]
    records = [
        {"id": r.id, "messages": r.messages, "target": r.target, "images": r.images} for r in lines
    ]
    return loaded, [encode(record, loaded, str(tmp_path)) for record in records], str(tmp_path)


def test_steps_share_a_row_as_long_as_no_screenshot_has_left(encoded):
    _, separate, _ = encoded
    together = joined(separate)
    # Three pictures fit: the fourth step's prompt has lost the first one.
    assert [len(row.spans) for row in together] == [3, 1, 1]
    assert sum(row.learnt for row in together) == sum(row.learnt for row in separate)
    assert sum(row.length for row in together) < 0.7 * sum(row.length for row in separate)


def test_loss_and_gradients_are_those_of_separate_rows(encoded):
    loaded, separate, blobs = encoded
    found = []
    for some in (separate, joined(separate)):
        loaded.model.zero_grad()
        total = torch.zeros(())
        for row in some:  # each by itself: padding is another test's business
            batch = collate([row], loaded, blobs)
            assert int((batch["labels"] != IGNORE).sum()) == row.learnt
            loss = summed_loss(loaded.model, batch)
            loss.backward()
            total += loss.detach()
        gradient = loaded.model.get_input_embeddings().weight.grad.clone()
        found.append((float(total), gradient))
    assert found[1][0] == pytest.approx(found[0][0], rel=1e-5)
    assert torch.allclose(found[1][1], found[0][1], atol=1e-5)


def test_rows_of_different_weight_or_source_stay_apart(encoded):
    _, separate, _ = encoded
    separate[1].weight = 0.5
    assert [len(row.spans) for row in joined(separate)][:2] == [1, 1]
