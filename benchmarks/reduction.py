"""How many actions come out exactly as they were meant, ours and by AgentNetTool's rules.

`python -m benchmarks.reduction [--actions N] [--seed S]`. An action counts as exact where all that
came out of its gesture is all that was meant by it: kind, place, button, keys, path, text, times.
"""

from __future__ import annotations

import argparse
import time
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Sequence

from benchmarks import reduction_peer
from benchmarks.reduction_events import Gesture, generate
from trajectory import Action
from trajectory.hand import reduce

AIM = 0.995


def score(
    gestures: Sequence[Gesture], steps: Iterable[tuple[float, Action]]
) -> tuple[Counter[str], list[tuple[Gesture, list[Action]]]]:
    """Return how many actions of each kind of gesture are exact, and the gestures that are not."""
    starts = [gesture.began for gesture in gestures]
    came: list[list[Action]] = [[] for _ in gestures]
    for began, action in steps:
        came[max(0, bisect_right(starts, began) - 1)].append(action)
    exact: Counter[str] = Counter()
    wrong = []
    for gesture, actions in zip(gestures, came, strict=True):
        if actions == gesture.actions:
            exact[gesture.kind] += len(actions)
        else:
            wrong.append((gesture, actions))
    return exact, wrong


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--actions", type=int, default=5000)
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args()
    events, gestures = generate(asked.actions, asked.seed)
    meant: Counter[str] = Counter()
    for gesture in gestures:
        meant[gesture.kind] += len(gesture.actions)
    began = time.perf_counter()
    steps = list(reduce(events))
    took = time.perf_counter() - began
    ours, wrong = score(gestures, [(step.began, step.action) for step in steps])
    peer, _ = score(gestures, reduction_peer.reduce(events))
    total = sum(meant.values())
    print(f"{len(events)} events, {total} actions, {len(events) / took:,.0f} events/s\n")
    print("| gesture | actions | ours | AgentNetTool's rules |\n|---|---|---|---|")
    for kind in sorted(kind for kind in meant if meant[kind]):
        print(f"| {kind} | {meant[kind]} | {ours[kind] / meant[kind]:.1%} | {peer[kind] / meant[kind]:.1%} |")  # fmt: skip
    rate = sum(ours.values()) / total
    print(f"| all | {total} | {rate:.2%} | {sum(peer.values()) / total:.2%} |")
    for gesture, actions in wrong[:5]:
        print(f"\n{gesture.kind} at {gesture.began:.3f}: {gesture.actions}\n  came out: {actions}")
    if rate < AIM:
        raise SystemExit(f"{rate:.2%} exact, below the aim of {AIM:.1%}")


if __name__ == "__main__":
    main()
