"""How often a checkpoint is right on MiniWoB episodes that it has not seen, in a real Chromium.

    python -m training.box.evaluate --checkpoint agent/box --seeds 10000:10020 --out metrics.json

The checkpoint is served by our own policy server and asked through the same policy, prompt and
parser as at an annotator's side; only its first candidate (greedy) counts.
"""

from __future__ import annotations

import argparse
import json
import os
import secrets
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path

import httpx

from agent import dialects
from agent.policies.openai import OpenAIPolicy
from agent.policy import PolicyRequest
from sandbox import browser, miniwob
from training.box.demonstrations import seeds_of
from training.box.episodes import Game, Unsupported, play
from trajectory import Action, Actor, Observation, Step

UNSEEN = range(10_000, 10_010)
MAX_STEPS = 14


class ServerFailed(Exception):
    """The policy server did not come up; the message has its log's end."""


class Unreadable(Exception):
    """The model's first candidate is no action."""


@dataclass(slots=True)
class Score:
    """What a checkpoint did on one page.

    `success`: episodes with the full reward. `agreed` of `compared`: steps on which the first
    candidate was the oracle's action in the same state. `unreadable`: replies that are no action.
    `impossible`: seeds left out, because what has to be clicked lies under something else.
    """

    episodes: int = 0
    success: int = 0
    steps: int = 0
    agreed: int = 0
    compared: int = 0
    unreadable: int = 0
    impossible: int = 0
    seconds: list[float] = field(default_factory=list)
    failed_seeds: list[int] = field(default_factory=list)


@contextmanager
def served(checkpoint: str, *, threads: int = 2) -> Iterator[OpenAIPolicy]:
    """Serve a checkpoint on a free port of the loopback for as long as the context lasts."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    token = secrets.token_hex(16)
    with tempfile.TemporaryDirectory(prefix="tandem-serving-") as state:
        log = Path(state) / "log.txt"
        with log.open("wb") as output:
            server = subprocess.Popen(
                [sys.executable, "-m", "agent.serving", "--port", str(port), "--state", state,
                 "--checkpoint", checkpoint, "--threads", str(threads)],
                stdout=output, stderr=output, env={**os.environ, "TANDEM_POLICY_TOKEN": token},
            )  # fmt: skip
        try:
            _wait_ready(server, f"http://127.0.0.1:{port}/health", log)
            yield OpenAIPolicy(
                url=f"http://127.0.0.1:{port}", model="", token=token,
                dialect=dialects.load("element"), observation_kind="elements",
                pictures=_no_picture, max_tokens=96, ours=True, timeout_s=120.0,
            )  # fmt: skip
        finally:
            server.terminate()
            server.wait(20)


def _no_picture(sha256: str) -> bytes:
    raise ValueError("a model that reads elements asks for no picture")


def _wait_ready(server: subprocess.Popen[bytes], address: str, log: Path) -> None:
    deadline = time.monotonic() + 180
    while time.monotonic() < deadline:
        if server.poll() is not None:
            break
        try:
            health = httpx.get(address, timeout=5).json()
        except (httpx.HTTPError, ValueError):
            health = {}
        if health.get("status") == "ok":
            return
        if health.get("status") == "failed":
            raise ServerFailed(str(health.get("error")))
        time.sleep(0.1)
    raise ServerFailed(f"the policy server is not ready:\n{log.read_text()[-2000:]}")


def evaluate(
    policy: OpenAIPolicy, pages: Sequence[str], seeds: Sequence[int], *, misses: bool = False
) -> Iterator[tuple[str, Score]]:
    """Play every page and seed with the policy's first candidate; yield each page's score.

    `misses` prints every step on which the policy did something else than the oracle.
    """
    with browser.headless() as port:
        for page in pages:
            game, score = Game(port, page), Score()
            for seed in seeds:
                _play_one(policy, game, seed, score, misses)
            yield page, score


def _play_one(policy: OpenAIPolicy, game: Game, seed: int, score: Score, misses: bool) -> None:
    def decide(
        instruction: str, steps: Sequence[Step], observation: Observation
    ) -> tuple[str, Action, bool]:
        begun = time.monotonic()
        first = policy.propose(PolicyRequest(instruction, tuple(steps), observation), 1)[0]
        score.seconds.append(time.monotonic() - begun)
        score.steps += 1
        try:
            right = miniwob.oracle(
                game.name, instruction, observation.elements or (), miniwob.past(steps)
            )
        except miniwob.NoWay:
            right = None
        if right is not None:
            score.compared += 1
            score.agreed += first.action == right[1]
            if misses and first.action != right[1]:
                print(f"{game.name} {seed}, step {len(steps)}: {first.raw!r}, not {right[1]}")
        if first.action is None:
            raise Unreadable(first.raw)
        return first.thought, first.action, False

    instruction = game.start(seed)
    try:
        miniwob.oracle(game.name, instruction, game.observe().elements or (), [])
    except miniwob.NoWay:
        score.impossible += 1
        return
    score.episodes += 1
    try:
        reward = play(game, seed, decide, actor=Actor.AGENT, max_steps=MAX_STEPS).reward
    except Unreadable:
        score.unreadable += 1
        reward = 0.0
    except Unsupported:
        reward = 0.0
    if reward == 1:
        score.success += 1
    else:
        score.failed_seeds.append(seed)


def summary(
    scores: dict[str, Score], *, checkpoint: str, seeds: Sequence[int]
) -> dict[str, object]:
    """Return what metrics.json holds: per page, and over all episodes."""
    seconds = sorted(s for score in scores.values() for s in score.seconds)
    agreed = sum(score.agreed for score in scores.values())
    compared = sum(score.compared for score in scores.values())
    episodes = sum(score.episodes for score in scores.values())
    return {
        "format": 1,
        "benchmark": "MiniWoB++ in headless Chromium, first candidate, greedy",
        "observation": "elements",
        "checkpoint": checkpoint,
        "seeds": [seeds[0], seeds[-1] + 1],
        "episodes": episodes,
        "success": sum(score.success for score in scores.values()) / episodes,
        "step_agreement": agreed / max(1, compared),
        "seconds_per_decision": {
            "median": round(seconds[len(seconds) // 2], 3),
            "p95": round(seconds[int(len(seconds) * 0.95)], 3),
        },
        "pages": {
            page: {
                **{k: v for k, v in asdict(score).items() if k != "seconds"},
                "rate": score.success / score.episodes,
            }
            for page, score in scores.items()
        },
    }


def measure(
    checkpoint: str,
    pages: Sequence[str],
    seeds: Sequence[int],
    *,
    threads: int = 2,
    misses: bool = False,
) -> dict[str, object]:
    """Serve a checkpoint, play all pages with it and return the summary; one line per page is printed."""
    scores: dict[str, Score] = {}
    with served(checkpoint, threads=threads) as policy:
        for page, score in evaluate(policy, pages, seeds, misses=misses):
            scores[page] = score
            print(
                f"{page:28} {score.success}/{score.episodes} episodes, "
                f"{score.agreed}/{score.compared} steps as the oracle", flush=True,
            )  # fmt: skip
    return summary(scores, checkpoint=checkpoint, seeds=seeds)


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m training.box.evaluate")
    parser.add_argument("--checkpoint", default="agent/box")
    parser.add_argument("--pages", default=",".join(miniwob.PAGES), help="names, by commas")
    parser.add_argument("--seeds", type=seeds_of, default=UNSEEN, help="A:B, B not included")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--misses", action="store_true", help="print every step that differs")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args(argv)
    result = measure(
        options.checkpoint,
        options.pages.split(","),
        list(options.seeds),
        threads=options.threads,
        misses=options.misses,
    )
    print(f"success {result['success']:.3f}, steps as the oracle {result['step_agreement']:.3f}")
    if options.out:
        options.out.write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
