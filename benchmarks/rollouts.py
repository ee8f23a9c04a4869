"""Episodes per hour, asynchronous beside batch-synchronous: `python -m benchmarks.rollouts`.

Same tasks, seeds, pages, policy and engine in one run. Batch-synchronous is the same engine with a
staleness bound of 0 and an update that takes no time: a batch begins when the last episode of the one
before has ended. Episode lengths have a heavy tail (Pareto). The policy is bound by latency, as a
model on another machine is: each answer holds one of --slots slots for --seconds and costs no
processor here. Environments are real MiniWoB++ pages in real browsers, rows are in a real PostgreSQL.

--chaos plays 500 episodes while browsers are killed (one kill per 20 episodes, each takes all pages
of that browser with it) and counts.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import statistics
import sys
import threading
import time
from typing import Any

from benchmarks.rollout_parts import (
    TASKS,
    Dawdler,
    Watched,
    database,
    killing,
    length,
    resident_mb,
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--episodes", type=int, default=384)
    parser.add_argument("--slots", type=int, default=8)
    parser.add_argument("--seconds", type=float, default=0.25, help="of the policy, per answer")
    parser.add_argument("--batch", type=int, default=16, help="episodes per synchronous batch")
    parser.add_argument("--environments", type=int, default=32, help="pages, in both modes")
    parser.add_argument("--longest", type=int, default=100, help="steps of the longest episodes")
    parser.add_argument("--browsers", type=int, default=2)
    parser.add_argument("--chaos", type=int, nargs="?", const=500, help="episodes; 500 if not said")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that nothing outlives it
    with database() as state:
        from sandbox.providers.browser import Fleet

        per_browser = -(-options.environments // options.browsers)
        with Fleet(options.browsers, state / "browsers", pages=per_browser) as fleet:
            report = chaos(fleet, options) if options.chaos else compare(fleet, options)
    report["load"] = {"cores": os.cpu_count(), "load_average": os.getloadavg()}
    print(json.dumps(report, indent=2))


def compare(fleet: Any, options: argparse.Namespace) -> dict[str, Any]:
    """Play the same episodes in both modes, one after the other."""
    lengths = [
        length(task, seed, most=options.longest) + 1
        for task in TASKS
        for seed in range(options.episodes // len(TASKS))
    ]
    found = {
        name: measure(fleet, options, name=name, staleness=staleness)
        for name, staleness in (("synchronous", 0), ("asynchronous", -1))
    }
    hours = [found[name]["episodes_per_hour"] for name in ("asynchronous", "synchronous")]
    return {
        "policy": f"latency-bound, {options.slots} slots of {options.seconds:g} s per answer",
        "environments": options.environments,
        "batch": options.batch,
        "steps": {
            "median": statistics.median(lengths), "mean": round(statistics.mean(lengths), 1),
            "longest": max(lengths),
        },
        **found,
        "ratio": round(hours[0] / hours[1], 2),
    }  # fmt: skip


def measure(
    fleet: Any, options: argparse.Namespace, *, name: str, staleness: int
) -> dict[str, Any]:
    """Play all episodes in one mode and return its figures."""
    from training.models import Episode
    from training.rollouts import figures, rollouts, worker

    worker.LOOK_S = 0.05  # a batch must not wait for us to look
    rollout = make(options, name, options.episodes, staleness=staleness)
    calls: list[tuple[float, float]] = []

    def policy(seat: Any) -> Dawdler:
        idle = length(seat.task.name, seat.episode.seed, most=options.longest)
        return Dawdler(seat, idle, options.seconds, calls)

    player = worker.Worker(
        name=name, pages=fleet, environments=options.environments, policy_for=policy
    )
    over = threading.Event()
    trainer = threading.Thread(target=train, args=(rollout, options.batch, over), daemon=True)
    trainer.start()
    begun = time.monotonic()
    player.run(over, until_empty=True)
    seconds = time.monotonic() - begun
    over.set()
    trainer.join()
    rollouts.settle(rollout.pk)
    rows = Episode.objects.filter(rollout=rollout, state=Episode.State.DONE)
    last_begun = max(calls[0][0], _last_beginning(rollout, begun))
    return {
        "episodes": rows.count(),
        "rewarded": rows.filter(reward=1.0).count(),
        "attempts_that_broke": sum(rows.values_list("attempts", flat=True)),
        "causes": {bar.label: bar.count for bar in figures.causes(rollout)},
        "seconds": round(seconds, 1),
        "episodes_per_hour": round(rows.count() / seconds * 3600),
        "answers": len(calls),
        "busy_slots": round(busy(calls, begun, begun + seconds, options.slots), 3),
        "busy_slots_until_the_last_began": round(busy(calls, begun, last_begun, options.slots), 3),
    }


def make(options: argparse.Namespace, name: str, episodes: int, **config: Any) -> Any:
    """Create the rollout of `episodes` over TASKS."""
    from agent.models import Deployment
    from training.rollouts import rollouts

    deployment, _ = Deployment.objects.get_or_create(
        name="dawdler", defaults={"kind": "scripted", "reads": "screenshot"}
    )
    return rollouts.create(
        name=name,
        deployment=deployment,
        tasks=[("miniwob", task) for task in TASKS],
        seeds=range(-(-episodes // len(TASKS))),
        config={
            "concurrency": options.environments, "slots": options.slots, "batch": options.batch,
            "max_steps": options.longest + 20, "elements": False, "memory": 500,
            **config,
        },
    )  # fmt: skip


def train(rollout: Any, batch: int, over: threading.Event) -> None:
    """Be a trainer whose updates take no time: one more version for each batch that is finished."""
    from django.db import connection

    from training.errors import WrongState
    from training.rollouts import episodes, rollouts

    cursor, unused = 0, 0
    while not over.wait(0.02):
        rows = episodes.finished(after=cursor, rollout=rollout)
        cursor = rows[-1].sequence or cursor if rows else cursor
        unused += len(rows)
        try:
            while unused >= batch:
                unused -= batch
                rollouts.advance(rollout)
        except WrongState:
            break  # the last batch was the last
    connection.close()


def busy(calls: list[tuple[float, float]], begun: float, ended: float, slots: int) -> float:
    """Return the share of `slots` in use between two moments."""
    used = sum(max(min(end, ended) - max(start, begun), 0.0) for start, end in calls)
    return used / (slots * max(ended - begun, 1e-9))


def _last_beginning(rollout: Any, begun: float) -> float:
    """Return when the last episode was begun, on the monotonic clock of this process."""
    started = rollout.episodes.order_by("-started_at").values_list("started_at", flat=True)[0]
    return time.monotonic() - (time.time() - started.timestamp())


def chaos(fleet: Any, options: argparse.Namespace) -> dict[str, Any]:
    """Play while browsers are killed; every odd seed gives up, so that each reward is foretold."""
    from training.models import Episode
    from training.rollouts import worker

    rollout = make(options, "chaos", options.chaos, attempts=20, staleness=-1)
    memory: list[float] = []
    done = rollout.episodes.filter(state=Episode.State.DONE)

    def finished() -> int:
        count: int = done.count()
        if count >= options.chaos // 10 * (len(memory) + 1):
            memory.append(round(resident_mb(), 1))
        return count

    def policy(seat: Any) -> Dawdler:
        idle = length(seat.task.name, seat.episode.seed, most=12)
        return Dawdler(seat, idle, 0.0, [], gives_up=seat.episode.seed % 2 == 1)

    pages = Watched(fleet)
    player = worker.Worker(
        name="chaos", pages=pages, environments=options.environments, policy_for=policy
    )
    begun = time.monotonic()
    with killing(pages, finished=finished, every=20):
        player.run(threading.Event(), until_empty=True)
    return {"seconds": round(time.monotonic() - begun, 1), "memory_mb_each_tenth": memory,
            "browsers_killed": pages.killed, "fleet": fleet.stats(), **verdict(rollout)}  # fmt: skip


def verdict(rollout: Any) -> dict[str, Any]:
    """Count what chaos may not do: lose an episode, count one twice, reward a crash."""
    rows = list(rollout.episodes.all())
    done = [row for row in rows if row.state == row.State.DONE]
    return {
        "episodes": len(rows),
        "done": len(done),
        "lost": len(rows) - len(done),
        "counted_twice": len(done) - len({row.sequence for row in done}),
        "wrong_reward": sum(row.reward != (0.0 if row.seed % 2 else 1.0) for row in done),
        "attempts_that_broke": sum(row.attempts for row in rows),
        "episodes_that_broke_once_or_more": sum(row.attempts > 0 for row in rows),
        "causes": sorted({failure["cause"] for row in rows for failure in row.failures}),
    }


if __name__ == "__main__":
    main()
