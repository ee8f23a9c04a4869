"""The model in the box: right how often on unseen seeds, and how long k candidates take.

    python -m benchmarks.box_model --seeds 10000:10010

Real Chromium, the real policy server in a process of its own, one request at a time.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import median

from agent.policies.openai import OpenAIPolicy
from agent.policy import PolicyRequest
from sandbox import browser, miniwob
from training.box import evaluate
from training.box.demonstrations import seeds_of
from training.box.episodes import Game


def candidate_times(policy: OpenAIPolicy, k: int, pages: Sequence[str], seed: int) -> list[float]:
    """Return the seconds that k candidates took on the first screen of every page."""
    times = []
    with browser.headless() as port:
        for page in pages:
            game = Game(port, page)
            instruction = game.start(seed)
            request = PolicyRequest(instruction, (), game.observe(), seed=seed)
            begun = time.monotonic()
            policy.propose(request, k)
            times.append(time.monotonic() - begun)
    return times


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.box_model")
    parser.add_argument("--checkpoint", default="agent/box")
    parser.add_argument("--seeds", type=seeds_of, default=range(10_000, 10_005))
    parser.add_argument("-k", type=int, default=3)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args(argv)
    with evaluate.served(options.checkpoint, threads=options.threads) as policy:
        one = candidate_times(policy, 1, miniwob.PAGES, options.seeds[0])
        many = candidate_times(policy, options.k, miniwob.PAGES, options.seeds[0])
    load = os.getloadavg()[0]
    print(f"1 candidate: median {median(one):.2f} s, worst {max(one):.2f} s")
    print(f"{options.k} candidates: median {median(many):.2f} s, worst {max(many):.2f} s")
    print(f"(load average {load:.1f} on {os.cpu_count()} cores)")
    result = evaluate.measure(
        options.checkpoint, miniwob.PAGES, list(options.seeds), threads=options.threads
    )
    result["seconds_one"] = [round(t, 3) for t in one]
    result["seconds_k"] = {"k": options.k, "times": [round(t, 3) for t in many]}
    result["load_average"] = load
    print(f"success {result['success']:.3f}, steps as the oracle {result['step_agreement']:.3f}")
    if options.out:
        options.out.write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
