"""Two processes with uneven shares of a batch learn what one would."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.training.algos.ranks import ROWS, update

ROOT = Path(__file__).resolve().parents[3]


def test_the_number_of_processes_changes_nothing(tmp_path):
    command = [sys.executable, "-m", "tests.training.algos.ranks", str(tmp_path / "store")]
    environment = os.environ | {"GLOO_SOCKET_IFNAME": "lo", "OMP_NUM_THREADS": "1"}
    processes = [
        subprocess.Popen(
            [*command, str(rank), "2"],
            cwd=ROOT, env=environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )
        for rank in range(2)
    ]  # fmt: skip
    try:
        ended = [process.communicate(timeout=90) for process in processes]
    finally:
        for process in processes:
            process.kill()
    assert [process.returncode for process in processes] == [0, 0], ended
    together = json.loads(ended[0][0])
    alone = update(slice(0, ROWS), lambda tensor: tensor)
    for name, numbers in alone.items():
        assert together[name] == pytest.approx(numbers, rel=1e-10, abs=1e-12)
