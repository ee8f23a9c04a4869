"""A recording of two hours beside one of six minutes: memory and time of every stage, end to end.

    python -m benchmarks.long_recording [--minutes 120] [--short 6] [--whisper]

Both are made (`long_made`), then read, reduced, redacted (by the interval rules, no pictures read),
prepared for review, confirmed and uploaded by the recorder's own client to a real server (uvicorn,
PostgreSQL), checked, heard, aligned and zipped there. Each stage is a process of its own; `grew` is
its peak less what it had before its work. With `--whisper` the packaged Whisper listens, else a made
ear behind the real decoding. `python -m benchmarks.long_recording --speech` measures Whisper alone.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from benchmarks.long_stages import RECORDER, SERVER, memory
from benchmarks.rollout_parts import database

Found = dict[str, dict[str, Any]]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--minutes", type=float, default=120.0)
    parser.add_argument("--short", type=float, default=6.0)
    parser.add_argument("--whisper", action="store_true", help="let the packaged Whisper listen")
    parser.add_argument("--speech", action="store_true", help="measure Whisper alone, and end")
    asked = parser.parse_args()
    if asked.speech:
        return speech()
    from benchmarks.long_made import write

    with database() as state:
        if asked.whisper:
            os.environ["REAL_EAR"] = "1"
        token = _token()
        found = []
        for minutes in (asked.short, asked.minutes):
            began = time.monotonic()
            folder = write(state / "made", minutes).path
            files = sum(1 for path in folder.rglob("*") if path.is_file())
            print(
                f"{minutes:g} min: {files} files made in {time.monotonic() - began:.0f} s",
                flush=True,
            )
            with server(dict(os.environ)) as (address, pid):
                run = stages(RECORDER, folder, address, token) | stages(SERVER, folder)
                run["the server itself"] = {
                    "before": pid[1], "peak": memory("VmHWM", str(pid[0])), "seconds": 0, "count": files
                }  # fmt: skip
            found.append(run)
    show(found, (asked.short, asked.minutes))


def stages(
    names: Sequence[str], folder: Path, address: str = "", token: str = "",
    env: dict[str, str] | None = None,
) -> Found:  # fmt: skip
    """Run stages of one side, each in a process of its own, and return what they say.

    Raises RuntimeError where one breaks.
    """
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.long_stages", ",".join(names), str(folder), address, token],
        capture_output=True, text=True, env=env, timeout=3600,
    )  # fmt: skip
    if done.returncode:
        raise RuntimeError(f"{done.stderr[-3000:]}")
    return {one["stage"]: one for one in map(json.loads, done.stdout.splitlines())}


@contextmanager
def server(env: dict[str, str]) -> Iterator[tuple[str, tuple[int, int]]]:
    """Tandem's pages on a port of their own; gives the address, the process and its first memory."""
    import httpx

    from config.embedded.service import free_port

    address = f"http://127.0.0.1:{(port := free_port())}"
    with tempfile.TemporaryFile() as log:
        process = subprocess.Popen(
            [
                *(sys.executable, "-m", "uvicorn", "config.asgi:application", "--port", str(port)),
                *("--ws", "websockets-sansio", "--log-level", "warning"),
            ],
            env=env, stdout=log, stderr=log,
        )  # fmt: skip
        try:
            deadline = time.monotonic() + 120
            while True:
                try:
                    httpx.get(f"{address}/accounts/login/", timeout=30)
                    break
                except httpx.HTTPError as error:
                    if process.poll() is not None or time.monotonic() > deadline:
                        log.seek(0)
                        said = log.read().decode(errors="replace")[-2000:]
                        raise RuntimeError(f"the server did not start: {said}") from error
                    time.sleep(0.2)
            yield address, (process.pid, memory("VmRSS", str(process.pid)))
        finally:
            process.terminate()
            process.wait(30)


def show(found: list[Found], minutes: tuple[float, float]) -> None:
    short, long = (f"{m:g} min" for m in minutes)
    print(
        f"| stage | {short} peak | {long} peak | ratio | {short} grew | {long} grew | {long} takes |"
    )
    print("|---|---|---|---|---|---|---|")
    for name in found[0]:
        few, many = (run[name] for run in found)
        grew = [(one["peak"] - one["before"]) / 2**20 for one in (few, many)]
        print(
            f"| {name} | {few['peak'] / 2**20:.0f} MiB | {many['peak'] / 2**20:.0f} MiB"
            f" | {many['peak'] / few['peak']:.2f} | {grew[0]:.1f} MiB | {grew[1]:.1f} MiB"
            f" | {many['seconds']:.1f} s |"
        )


def speech() -> None:
    """How fast the packaged Whisper is: three minutes of speech, and two hours of near silence."""
    import numpy as np

    from agent import speech as engines
    from benchmarks.long_made import NAMES, PIECE_S, RATE, spoken

    with tempfile.TemporaryDirectory() as name:
        engine = engines.load("", keep=Path(name) / "models")
        silence = np.random.default_rng(1).integers(-40, 40, int(PIECE_S * RATE), np.int16)
        said = [
            spoken(f"Now I open {n}, because the numbers of last week are there.") for n in NAMES
        ]
        talk = np.concatenate(
            [x for n in range(200) for x in (said[n % len(said)], silence[: RATE // 2])]
        )
        hush = np.tile(silence, int(7200 / PIECE_S))
        for at in range(60):  # a sentence every two minutes
            hush[at * 120 * RATE :][: len(said[at % 8])] += said[at % 8]
        engine.transcribe(_wav(Path(name) / "warm.wav", said[0]))
        print(
            "| sound | seconds | heard in | share of real time | CPU | words |\n|---|---|---|---|---|---|"
        )
        for what, samples in (("speech", talk[: 180 * RATE]), ("two hours, 60 sentences", hush)):
            path = _wav(Path(name) / "sound.wav", samples)
            began, before = time.monotonic(), time.process_time()
            words = engine.transcribe(path)
            spent, long = time.monotonic() - began, len(samples) / RATE
            print(
                f"| {what} | {long:.0f} | {spent:.1f} s | {spent / long:.3f}"
                f" | {time.process_time() - before:.1f} s | {len(words)} |",
                flush=True,
            )
    print(
        f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}, peak {memory('VmHWM') / 2**20:.0f} MiB"
    )


def _wav(path: Path, samples: Any) -> Path:
    import soundfile

    soundfile.write(path, samples, 16_000)
    return path


def _token() -> str:
    from django.contrib.auth.models import User

    from annotation.recordings import devices

    begun = devices.begin(device_name="long", address="benchmark")
    devices.decide(begun.user_code, by=User.objects.create_user("long"), approve=True)
    return devices.poll(begun.device_code)


if __name__ == "__main__":
    main()
