"""Start parts as what they need is ready, start again what dies, stop everything together."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from enum import Enum
from pathlib import Path

from config.embedded.leftovers import MARK, adopt_orphans, descendants, end, reap
from config.embedded.parts import ROOT, Part
from config.embedded.service import StartFailed, tail
from config.embedded.state import State

TICK_S = 0.05
LOG_LIMIT = 20 << 20
PAUSE_S = 0.2  # before the first new start; three times as long before each next
DEATHS, WITHIN_S = 5, 120.0  # a part that dies so often stays down


class Phase(Enum):
    WAITING = "waiting"
    STARTING = "starting"
    READY = "ready"
    DOWN = "down"


class Child:
    """A part and the process that plays it now."""

    def __init__(self, part: Part, log: Path) -> None:
        self.part = part
        self.log = log
        self.phase = Phase.WAITING
        self.process: subprocess.Popen[bytes] | None = None
        self.started_at = 0.0
        self.not_before = 0.0
        self.deaths: list[float] = []
        self.probe: Future[bool] | None = None
        self.trouble = ""  # why the last probe could not even ask
        self._offset = 0

    def start(self, root: Path) -> None:
        self.part.prepare()
        if self.log.exists() and self.log.stat().st_size > LOG_LIMIT:
            self.log.replace(self.log.with_suffix(".log.1"))
        account = self.part.account if os.geteuid() == 0 else None
        with self.log.open("ab") as output:
            self._offset = output.tell()
            identity = (
                {"user": account.uid, "group": account.gid, "extra_groups": []} if account else {}
            )
            self.process = subprocess.Popen(
                self.part.command, stdin=subprocess.DEVNULL, stdout=output,
                stderr=subprocess.STDOUT, env={**self.part.environment, MARK: str(root)},
                cwd="/" if account else ROOT, start_new_session=True,
                **identity,  # type: ignore[call-overload]
            )  # fmt: skip
        self.started_at = time.monotonic()
        self.phase = Phase.STARTING
        self.probe, self.trouble = None, ""

    def said(self) -> str:
        """Return what this start has logged so far."""
        with self.log.open("rb") as file:
            file.seek(self._offset)
            return file.read().decode(errors="replace")

    def died(self) -> str | None:
        """Return how the process ended, None while it lives."""
        status = self.process.poll() if self.process else None
        if status is None:
            return None
        if status < 0:
            return f"was killed by {signal.Signals(-status).name}"
        return f"ended with status {status}"


class Supervisor:
    """Runs a plan until it is told to stop."""

    def __init__(self, parts: list[Part], state: State, say: Callable[[str], None]) -> None:
        self.state = state
        self.say = say
        self.children = {part.name: Child(part, state.logs / f"{part.name}.log") for part in parts}
        self.stopping = False
        self.began = time.monotonic()
        self._announced = False
        self._probes = ThreadPoolExecutor(len(parts), thread_name_prefix="probe")

    def run(self, announce: Callable[[], None]) -> None:
        """Start everything, call `announce` once it can be used, and watch until a signal comes.

        Raises StartFailed if a part that all depend on does not come up the first time.
        """
        adopt_orphans()
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, self._asked_to_stop)
        try:
            while not self.stopping:
                for child in self.children.values():
                    self._tend(child)
                if not self._announced and self._usable():
                    self._announced = True
                    announce()
                reap(self._pids())
                time.sleep(TICK_S)
        finally:
            self.stop()

    def _asked_to_stop(self, number: int, frame: object) -> None:
        self.stopping = True

    def _pids(self) -> set[int]:
        return {child.process.pid for child in self.children.values() if child.process}

    def _usable(self) -> bool:
        return all(
            child.phase is Phase.READY for child in self.children.values() if child.part.awaited
        )

    def _tend(self, child: Child) -> None:
        now = time.monotonic()
        if child.phase is Phase.WAITING:
            if now >= child.not_before and all(
                self.children[name].phase is Phase.READY for name in child.part.needs
            ):
                self._start(child)
        elif child.phase is Phase.STARTING:
            self._look(child, now)
        elif child.phase is Phase.READY and not child.part.once:
            how = child.died()
            if how:
                self._mourn(child, how)

    def _start(self, child: Child) -> None:
        try:
            child.start(self.state.root)
        except OSError as error:  # a full disk, no more processes: as if it had died at once
            self._mourn(child, f"can't be started ({error})")

    def _look(self, child: Child, now: float) -> None:
        how = child.died()
        if child.part.once:
            if how == "ended with status 0":
                self._ready(child)
            elif how:
                raise StartFailed(
                    f"{child.part.name} {how}: {_last_words(child)}; log: {child.log}"
                )
        elif how:
            self._mourn(child, how)
            return
        elif child.probe is None:
            child.probe = self._probes.submit(_probe, child)
        elif child.probe.done():
            if (error := child.probe.exception()) is not None:
                child.trouble = f" ({type(error).__name__}: {error})"
            elif child.probe.result():
                self._ready(child)
            child.probe = None
        if child.phase is Phase.STARTING and now - child.started_at > child.part.patience_s:
            how = f"was not ready within {child.part.patience_s:.0f} s{child.trouble}"
            self._mourn(child, how)

    def _ready(self, child: Child) -> None:
        child.phase = Phase.READY
        took = time.monotonic() - child.started_at
        self.say(f"  {child.part.name:<16} ready in {took:5.1f} s")

    def _mourn(self, child: Child, how: str) -> None:
        """Say what died and start it again, later each time; leave it down if that does not help."""
        now = time.monotonic()
        child.deaths = [at for at in child.deaths if now - at < WITHIN_S] + [now]
        # What it left behind would hold its port or its data.
        self._kill(child)
        name, log = child.part.name, child.log
        words = _last_words(child)
        if child.part.layer == 0 and not self._announced and len(child.deaths) >= 2:
            raise StartFailed(f"{name} {how}: {words}; log: {log}")
        if len(child.deaths) >= DEATHS:
            child.phase = Phase.DOWN
            self.say(
                f"  {name} {how}, {DEATHS} times in a row: it stays down. "
                f"Read {log} ({words}), then Ctrl-C and `make run`"
            )
            return
        pause = PAUSE_S * 3 ** (len(child.deaths) - 1)
        child.not_before = now + pause
        child.phase = Phase.WAITING
        self.say(f"  {name} {how}; it starts again in {pause:.1f} s. Log: {log}")

    def _kill(self, child: Child) -> None:
        if child.process is None:
            return
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(child.process.pid, signal.SIGKILL)
        child.process.wait()
        child.process = None  # its number may soon be another's

    def stop(self) -> None:
        """End every part, the last started first, and whatever they have started themselves."""
        self._probes.shutdown(wait=False, cancel_futures=True)
        for layer in sorted({child.part.layer for child in self.children.values()}, reverse=True):
            living = [
                child for child in self.children.values()
                if child.part.layer == layer and child.process and child.process.poll() is None
            ]  # fmt: skip
            for child in living:
                assert child.process is not None
                child.process.send_signal(child.part.stop_signal)
            deadline = time.monotonic() + 10
            while time.monotonic() < deadline and any(child.died() is None for child in living):
                time.sleep(TICK_S)
            for child in living:
                if child.died() is None:
                    self.say(f"  {child.part.name} did not stop in time and was killed")
                self._kill(child)
            if layer > 0:  # desktops, trainers: before the services that they use
                orphans = descendants(os.getpid()) - self._pids()
                services = self._below_services()
                end(orphans - services, patience_s=5)
        end(descendants(os.getpid()), patience_s=5)
        reap(())

    def _below_services(self) -> set[int]:
        found: set[int] = set()
        for child in self.children.values():
            if child.part.layer == 0 and child.process and child.process.poll() is None:
                found |= descendants(child.process.pid)
        return found


def _probe(child: Child) -> bool:
    return child.part.ready(child.said())


def _last_words(child: Child) -> str:
    """Return the last line that says something, for a message of one line."""
    lines = [line.strip() for line in tail(child.log, 20).splitlines() if line.strip()]
    return lines[-1][:200] if lines else "it said nothing"
