"""`python -m config.embedded [run|stop|reset]`: the whole of Tandem on this machine."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import sys
import time
from pathlib import Path

from config import env
from config.embedded import checks
from config.embedded.leftovers import end, marked
from config.embedded.parts import Plan, plan, setup_is_done
from config.embedded.service import StartFailed, unprivileged
from config.embedded.state import State
from config.embedded.supervisor import Supervisor


def say(line: str) -> None:
    with contextlib.suppress(OSError):  # a closed terminal or pipe is no reason to stop
        print(line, flush=True)


def run(state: State) -> None:
    """Start everything and stay until Ctrl-C."""
    began = time.monotonic()
    checks.python_packages()
    checks.system_packages()
    state.prepare()
    checks.disk(state.root)
    lock = state.hold()
    with lock:
        left = marked(state.root)
        if left:
            end(left, patience_s=5)
            say(f"Ended {len(left)} processes that an earlier start had left.")
        made = plan(state, dict(os.environ))
        state.write("services.json", made.addresses)
        for note in made.notes:
            say(note)
        say(f"Starting Tandem; state in {state.root}, logs in {state.logs}")

        def usable() -> None:
            setup_is_done(state)
            announce(made, state, time.monotonic() - began)

        Supervisor(made.parts, state, say).run(usable)
        say("Stopped.")


def announce(made: Plan, state: State, took_s: float) -> None:
    say(f"\nTandem is ready after {took_s:.1f} s: {made.url}/")
    for name, password in state.read("demo.json").items():
        say(f"  {name:<10} {password}")
    say("Ctrl-C stops all of it; the next `make run` goes on where this one ended.\n")


def stop(state: State) -> None:
    """End the supervisor of this state folder, or what a killed one has left."""
    pid = state.holder()
    if pid is not None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGTERM)
        deadline = time.monotonic() + 60
        while state.holder() is not None and time.monotonic() < deadline:
            time.sleep(0.1)
        if state.holder() is not None:
            raise StartFailed(f"process {pid} does not stop: `kill -9 {pid}`, then `make stop`")
    left = marked(state.root)
    end(left, patience_s=10)
    say("Stopped." if pid or left else "Nothing was running.")


def reset(state: State) -> None:
    """Forget everything: the database, the blobs, the demo's passwords."""
    if not (state.private / "secrets.json").exists():
        raise StartFailed(f"{state.root} holds no state of Tandem: nothing to reset")
    stop(state)
    names = (
        "postgres", "valkey", "s3", "blobs", "spool", "tasks", "tls", "log", "policy", "runs",
        "sandboxes", "state",
    )  # fmt: skip
    for folder in {state.root, state.services(unprivileged())}:
        for name in names:
            shutil.rmtree(folder / name, ignore_errors=True)
            if (folder / name).exists():
                raise StartFailed(f"{folder / name} can't be removed: remove it, then `make reset`")
    say(f"Everything in {state.root} is forgotten.")


COMMANDS = {"run": run, "stop": stop, "reset": reset}


def main(arguments: list[str]) -> int:
    name = arguments[0] if arguments else "run"
    if name not in COMMANDS or len(arguments) > 1:
        print(f"say one of: {', '.join(COMMANDS)}", file=sys.stderr)
        return 2
    try:
        COMMANDS[name](State(Path(env.state_folder())))
    except KeyboardInterrupt:  # before the supervisor listens: nothing runs yet
        return 130
    except (StartFailed, env.WrongVariable) as error:
        print(f"Tandem cannot start: {error}" if name == "run" else str(error), file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
