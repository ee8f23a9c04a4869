"""`record`: consent, the task, and then what the person sees while it runs."""

from __future__ import annotations

import argparse
import signal
import threading
import time
from types import FrameType

from recorder.capture import start
from recorder.commands.account import connected, plain
from recorder.commands.terminal import Terminal
from recorder.server.client import Client
from recorder.server.tasks import Offer, chosen, consent, offers
from recorder.session import HOTKEYS, Notices, Session, State, Wish
from recorder.settings import Settings, recordings_folder, settings_folder
from recorder.spool import Consent, SpoolError, Task

_TITLE = 120


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
    print(plain(f"\n{offer.kind}: {offer.task.title}\n{offer.task.instruction}\n"), flush=True)
    return _run(
        Wish(
            display, recordings_folder(), offer.task, offer.kind, agreed, microphone,
            window=not options.no_window,
        )
    )  # fmt: skip


def _run(wish: Wish) -> int:
    terminal = Terminal(listening=wish.microphone is not None)
    ended = threading.Event()

    def end(_: int, __: FrameType | None) -> None:
        ended.set()

    # Before it begins: who is told to end in its first moment leaves a whole recording as well.
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, end)

    def state(now: State) -> None:
        terminal.state(now)
        if now is State.STOPPED:
            ended.set()

    session = Session(wish, Notices(state, terminal.level, terminal.trouble))
    keys = "".join(f"  Ctrl+Alt+{letter.upper()}  {what}\n" for letter, what in HOTKEYS.items())
    terminal.say(keys.rstrip())
    terminal.state(session.state)
    ended.wait()
    session.stop()
    name = session.folder.path.name[:8]
    terminal.say(f"\nIt lies on this computer and nowhere else: tandem-recorder review {name}")
    return 0


def _agree(client: Client) -> Consent | None:
    """Show the server's consent text unless this very version was accepted; None for a no."""
    wanted = consent(client)
    settings = Settings.load(settings_folder())
    if settings.consent is not None and settings.consent.version == wanted.version:
        return settings.consent
    print(
        plain(f"{wanted.text}\n\nDo you agree (version {wanted.version})? [y/N] "),
        end="",
        flush=True,
    )
    if _said().lower() not in ("y", "yes"):
        return None
    agreed = Consent(wanted.version, time.time())
    Settings(settings.server, agreed).save(settings_folder())
    return agreed


def _offer(client: Client, options: argparse.Namespace) -> Offer:
    if options.own:
        return Offer(Task("", options.own[:_TITLE], options.own), options.kind or "demonstration")
    if options.choose:
        return _choose(offers(client, options.kind))
    if options.task is None:
        return chosen(client, options.kind, another=options.another)
    for offer in offers(client, options.kind):
        if offer.task.id == options.task:
            return offer
    kind = f" of kind {options.kind}" if options.kind else ""
    raise SpoolError(f"there is no task {options.task!r}{kind}: see `tandem-recorder tasks`")


def _choose(found: list[Offer]) -> Offer:
    """Show a numbered list and return what the person says; the number may as well come from a pipe."""
    if not found:
        raise SpoolError('no task waits for you: record work of your own with --own "..."')
    for number, offer in enumerate(found, 1):
        print(plain(f"{number:3}  {offer.kind:13}  {offer.task.title}"))
    print(f"Which one, 1 to {len(found)}? ", end="", flush=True)
    said = _said()
    if not (said.isascii() and said.isdigit() and 1 <= int(said[:9]) <= len(found)):
        raise SpoolError(f"{said!r} is no number from 1 to {len(found)}: nothing is recorded")
    return found[int(said) - 1]


def _said() -> str:
    try:
        return input().strip()
    except EOFError:
        return ""
