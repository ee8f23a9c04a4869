"""What is found on pictures, by kind and size of the letters; what it costs; what is painted for nothing.

`python -m benchmarks.redaction [--quick] [--draw N]`. Needs `tandem-recorder[redact,ocr]`, DejaVu fonts, and
Chromium for half of the screens (they are left out without it). Secrets are drawn by chance, by
Pillow and by Chromium, light and dark, 10 to 14 px high, among ordinary lines. The rules were
mended on draw 0: any other tells what they are worth. Then a made recording
of typing, a scroll, a dialog and two windows is read picture by picture, only where it changed, and
every picture as a whole, in one run.
"""

from __future__ import annotations

import argparse
import os
import resource
import time
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from benchmarks.redaction_screens import (
    KINDS,
    SIZES,
    Screen,
    by_chromium,
    by_pillow,
    ordinary,
    work,
)
from recorder.redact import Detectors, Read, detectors, hidden, reader


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a fifth of the screens")
    parser.add_argument("--draw", type=int, default=0, help="other secrets on other screens")
    options = parser.parse_args()
    many = 1 if options.quick else 5
    found_by, reads = detectors(), reader()
    print(f"{reads.name}, {os.cpu_count()} CPUs, load {os.getloadavg()[0]:.1f}")
    first = 1000 * options.draw
    screens = [*by_pillow(many, first), *by_chromium(many, first)]
    recall(screens, reads, found_by)
    false(list(ordinary(many)), reads, found_by)
    cost(list(work(many)), reads.name)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"memory of all this at most {peak:.0f} MiB")


def recall(screens: Sequence[Screen], reads: Any, found_by: Detectors) -> None:
    """Count a secret as found if a place that is painted over covers all but its edges."""
    found, of = Counter[tuple[str, str]](), Counter[tuple[str, str]]()
    missed: list[str] = []
    for screen in screens:
        lines = reads.read(screen.pixels, None)
        places = list(hidden(lines, found_by))
        for secret in screen.secrets:
            for key in (
                (secret.kind, f"{secret.px} px"),
                (secret.kind, screen.by),
                (secret.kind, "all"),
            ):
                of[key] += 1
                found[key] += covered(secret.box, places)
            if not covered(secret.box, places):
                near = [line.text for line in lines if abs(line.box[1] - secret.box[1]) < 12]
                missed.append(
                    f"  {secret.kind}, {secret.px} px, {screen.by}: {secret.text} read as {near}"
                )
    columns = [*(f"{px} px" for px in SIZES), *sorted({s.by for s in screens}), "all"]
    print(f"\nrecall on {len(screens)} screens\n{'kind':14}" + "".join(f"{c:>16}" for c in columns))
    for kind in [*KINDS, "any"]:
        cells = []
        for column in columns:
            kinds = KINDS if kind == "any" else [kind]
            n, m = sum(of[k, column] for k in kinds), sum(found[k, column] for k in kinds)
            cells.append(f"{m}/{n} {100 * m / max(1, n):5.1f}%")
        print(f"{kind:14}" + "".join(f"{c:>16}" for c in cells))
    print("\n".join(["missed:", *missed[:40]]))


def covered(box: tuple[int, int, int, int], places: Sequence[tuple[int, int, int, int]]) -> bool:
    """Whether 90 % of the width of a box is painted over, at its middle."""
    left, top, width, height = box
    middle = top + height // 2
    over = np.zeros(width, bool)
    for x, y, w, h in places:
        if y <= middle < y + h:
            over[max(0, x - left) : max(0, x + w - left)] = True
    return bool(over.mean() >= 0.9)


def false(screens: Sequence[Screen], reads: Any, found_by: Detectors) -> None:
    """Print what is painted over on screens that show nothing to hide."""
    count, wrong = 0, []
    for screen in screens:
        lines = reads.read(screen.pixels, None)
        places = hidden(lines, found_by)
        count += len(lines)
        wrong += [f"  {places[line.box]}: {line.text}" for line in lines if line.box in places]
    print(
        f"\npainted for nothing: {len(wrong)} of {count} lines on {len(screens)} ordinary screens"
    )
    print("\n".join(wrong[:30]))


def cost(pictures: Sequence[np.ndarray[Any, Any]], name: str) -> None:
    """Compare reading only what changed with reading each picture whole; each with a fresh reader."""
    once = timed(pictures, changed_only=True)
    whole = timed(pictures, changed_only=False)
    ratio = sum(whole) / max(1e-9, sum(once))
    high, wide = pictures[0].shape[:2]
    print(f"\n{len(pictures)} pictures of {wide}x{high}, {name}")
    for what, times in (("where it changed", once), ("as a whole", whole)):
        ordered = sorted(times)
        print(
            f"{what:18} {sum(times) / len(times):6.2f} s a picture, median {ordered[len(ordered) // 2]:.2f}, "
            f"most {ordered[-1]:.2f}, in all {sum(times):.1f} s"
        )
    print(f"ratio {ratio:.1f}x")


def timed(pictures: Sequence[np.ndarray[Any, Any]], *, changed_only: bool) -> list[float]:
    times, before = [], None
    by: Any = reader()
    by.read(pictures[0][:200, :200].copy(), None)  # the models are loaded
    for pixels in pictures:
        if not changed_only:
            by = again(by)
        began = time.perf_counter()
        lines = by.read(pixels, before if changed_only else None)
        times.append(time.perf_counter() - began)
        before = Read(pixels, lines)
    return times


def again(by: Any) -> Any:
    """Return the same models without what they have read before."""
    return type(by)(by.engine, by.name)


if __name__ == "__main__":
    main()
