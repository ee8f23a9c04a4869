"""Continual pre-training: `python -m training.trainers.ct RUN_DIR [--dry-run]`.

Plain language modelling on all text of the rows (rows with `"loss": "all"`): instruction, what was
seen as text, thoughts and actions, those of failed attempts too, which teach how interfaces answer
though not what to do. Pictures are context. UI-TARS-2 (arXiv 2509.02544, data flywheel) sends there
what is not good enough for SFT. Loop, resume and configuration are those of SFT.
"""

from __future__ import annotations

import dataclasses

from training.trainers.job import main
from training.trainers.sft import Config as SftConfig
from training.trainers.sft import show, train


@dataclasses.dataclass(frozen=True, slots=True)
class Config(SftConfig):
    """What a run is trained with: gently, and every row once."""

    epochs: float = 1.0
    learning_rate: float = 5e-5


if __name__ == "__main__":
    raise SystemExit(main("ct", Config, train, show))
