"""What every driver of the browser benchmark does with its environment; standard library only.

A driver prints "ready", waits for a line, runs whole episodes for as long as that line says (seconds),
prints one JSON object, waits for another line while its memory is read, and ends.
"""

import json
import statistics
import sys
import time

PLACE = 5, 5
ACTIONS = ("click", "wait") * 3
SEEDS = 1_000_000


def ready():
    """Tell that the environment is up; return the seconds to run for."""
    print("ready", flush=True)
    return float(sys.stdin.readline())


def run(env, seconds, first_seed=0):
    """Run episodes, at least one, of one reset and six steps; return the figures, times in ms.

    `env` has reset(seed), click(x, y) and wait(); each returns when the observation is there.
    """
    times = {"reset": [], "click": [], "wait": []}
    began = time.perf_counter()
    steps = episodes = 0
    while not episodes or time.perf_counter() - began < seconds:
        timed(times["reset"], env.reset, (first_seed + episodes) % SEEDS)
        for kind in ACTIONS:
            if kind == "click":
                timed(times["click"], env.click, *PLACE)
            else:
                timed(times["wait"], env.wait)
            steps += 1
        episodes += 1
    seconds = time.perf_counter() - began
    medians = {f"{kind}_ms": 1000 * statistics.median(values) for kind, values in times.items()}
    return {"steps": steps, "episodes": episodes, "seconds": seconds, **medians}


def timed(times, call, *args):
    """Call and note how long it took."""
    began = time.perf_counter()
    call(*args)
    times.append(time.perf_counter() - began)


def report(figures):
    """Hand the figures over and stay up until the parent has read the memory."""
    print(json.dumps(figures), flush=True)
    sys.stdin.readline()
