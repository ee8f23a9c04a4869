"""The exported files, read by the libraries that they are for: datasets, and TRL as it prepares a batch."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from annotation.data import reviews
from annotation.data.exports import export
from annotation.models import Session

PEER = Path(__file__).parents[2] / "var" / "peers" / "trl" / "bin" / "python"
LOADED = """
import json
from datasets import Image, List, load_dataset
from trl.data_utils import is_conversational, prepare_multimodal_messages

def rows(name):
    made = load_dataset("json", data_files=name + ".jsonl", split="train")
    return made.cast_column("images", List(Image(decode=False)))  # Pillow is not there

found = {name: [len(row["messages"]) for row in rows(name)] for name in ("uitars", "steps", "trajectories")}
found["trl"] = []
for row in rows("trl"):
    assert is_conversational(row)
    turns = prepare_multimodal_messages(row["prompt"] + row["completion"], images=row["images"])
    parts = [part for turn in turns for part in turn["content"]]
    shown = [open(part["image"]["path"], "rb").read(4) for part in parts if part["type"] == "image"]
    assert set(shown) == {b"\\x89PNG"}
    found["trl"].append([len(turns), len(shown), parts[-1]["text"]])
print(json.dumps(found))
"""

pytestmark = [
    pytest.mark.skipif(
        not PEER.exists(), reason=f"no TRL: python -m benchmarks.trainer installs it ({PEER})"
    ),
    pytest.mark.timeout(300),
]


def test_datasets_and_trl_load_what_was_exported(
    submitted: Session, reviewer: Any, tmp_path: Path
) -> None:
    reviews.submit(submitted, reviewer=reviewer, verdict="accepted", marks=[])
    done = export([submitted], tmp_path)
    answer = subprocess.run(
        [PEER, "-c", LOADED], cwd=tmp_path, capture_output=True, text=True, timeout=250,
        env={"PATH": os.environ["PATH"], "HF_HUB_OFFLINE": "1", "HF_HOME": str(tmp_path / "hf")},
    )  # fmt: skip
    assert answer.returncode == 0, answer.stderr[-3000:]
    found = json.loads(answer.stdout.splitlines()[-1])
    assert found["steps"] == found["uitars"] == [2, 4, 6] and found["trajectories"] == [6]
    assert done.steps == len(found["trl"]) == 3
    turns, shown, last = found["trl"][-1]
    assert (turns, shown) == (6, 3) and last.startswith("Thought: ")
