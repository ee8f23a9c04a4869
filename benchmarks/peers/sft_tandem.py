"""Our SFT trainer as it is, with marks: `python -m benchmarks.peers.sft_tandem RUN_DIR`."""

from __future__ import annotations

import sys
from typing import Any

from benchmarks.peers.sft_marks import Marks
from training.trainers import job, learner, loop, sft


def main(directory: str) -> None:
    marks = Marks()
    collate, step = loop.collate, learner.Learner.step

    def counted(*given: Any) -> dict[str, Any]:
        return marks.count(collate(*given))

    def marked(self: learner.Learner, rate: float) -> float:
        norm = step(self, rate)
        marks.step()
        return norm

    loop.collate, learner.Learner.step = counted, marked  # type: ignore[method-assign]
    if job.main("sft", sft.Config, sft.train, sft.show, [directory]):
        raise SystemExit(1)
    marks.tell()


if __name__ == "__main__":
    main(sys.argv[1])
