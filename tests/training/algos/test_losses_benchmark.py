from __future__ import annotations

import torch

from benchmarks.losses import drawn, ours


def test_the_benchmark_measures_what_there_is():
    batch = drawn(2, 128, 0.5, "cpu")
    answers = {name: part(batch) for name, part in ours().items()}
    assert set(answers) == {"gae", "policy_loss", "value_loss"}
    assert all(torch.isfinite(tensor).all() for found in answers.values() for tensor in found)
