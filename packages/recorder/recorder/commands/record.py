"""`record`: consent, the task, and then what the person sees while it runs."""

from __future__ import annotations

import argparse
import signal
import sys
import time
from types import FrameType

from recorder.capture import start
from recorder.capture.sound import Level
from recorder.commands.account import connected
from recorder.server.client import Client
from recorder.server.tasks import Offer, chosen, consent, offers
from recorder.session import HOTKEYS, Notices, Session, State, Wish
from recorder.settings import Settings, recordings_folder, settings_folder
from recorder.spool import Consent, SpoolError, Task

_BAR = 20
_SILENT_S = 30.0


def record(options: argparse.Namespace) -> int:
    display = start.display()
    client = connected()
    try:
        agreed = _agree(client)
        if agreed is None:
            print("Nothing is recorded without your consent.")
            return 1
        offer = _offer(client, options)
    finally:
        client.close()
    microphone = None if options.no_sound else options.microphone
    print(f"\n{offer.task.title}\n{offer.task.instruction}\n")
    wish = Wish(display, recordings_folder(), offer.task, offer.kind, agreed, microphone)
    return _run(wish)


def _run(wish: Wish) -> int:
    terminal = _Terminal(listening=wish.microphone is not None)
    session = Session(wish, Notices(terminal.state, terminal.level, terminal.trouble))

    def end(_: int, __: FrameType | None) -> None:
        session.stopped.set()

    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, end)
    for letter, what in HOTKEYS.items():
        print(f"  Ctrl+Alt+{letter.upper()}  {what}")
    terminal.state(State.RECORDING)
    session.stopped.wait()
    session.stop()
    name = session.folder.path.name[:8]
    print(f"\nIt lies on this computer and nowhere else: tandem-recorder review {name}")
    return 0


def _agree(client: Client) -> Consent | None:
    """Show the server's consent text unless this very version was accepted; None for a no."""
    wanted = consent(client)
    settings = Settings.load(settings_folder())
    if settings.consent is not None and settings.consent.version == wanted.version:
        return settings.consent
    print(f"{wanted.text}\n\nDo you agree (version {wanted.version})? [y/N] ", end="", flush=True)
    try:
        said = input().strip().lower()
    except EOFError:
        said = ""
    if said not in ("y", "yes"):
        return None
    agreed = Consent(wanted.version, time.time())
    Settings(settings.server, agreed).save(settings_folder())
    return agreed


def _offer(client: Client, options: argparse.Namespace) -> Offer:
    if options.own:
        return Offer(Task("", options.own[:120], options.own), "demonstration")
    if options.task is None:
        return chosen(client)
    for offer in offers(client):
        if offer.task.id == options.task:
            return offer
    raise SpoolError(f"there is no task {options.task!r}: see `tandem-recorder tasks`")


class _Terminal:
    """One line that says what happens: the state, and how loud the voice is."""

    def __init__(self, *, listening: bool) -> None:
        self._listening = listening
        self._state = State.RECORDING

    def state(self, state: State) -> None:
        self._state = state
        sound = "" if self._listening else "   no sound"
        self._line(f"{state.value.upper()}{sound}")

    def level(self, level: Level) -> None:
        bar = "#" * round(level.peak**0.5 * _BAR)
        silent = f"  silence for {level.silent_s:.0f} s" if level.silent_s > _SILENT_S else ""
        if sys.stdout.isatty():
            self._line(f"{self._state.value.upper()}  [{bar:{_BAR}}]{silent}")

    def trouble(self, what: str) -> None:
        print(f"\n{what}", file=sys.stderr, flush=True)

    def _line(self, text: str) -> None:
        print(f"\r\033[K{text}" if sys.stdout.isatty() else text, end="", flush=True)
        if not sys.stdout.isatty():
            print(flush=True)
