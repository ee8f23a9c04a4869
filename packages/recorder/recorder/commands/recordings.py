"""The recordings on this computer."""

from __future__ import annotations

import argparse
import time

from recorder.commands.account import connected, plain
from recorder.review import review as open_review
from recorder.server.client import ServerError
from recorder.settings import recordings_folder, settings_folder
from recorder.spool import Folder, SpoolError
from recorder.spool.ending import ending, length
from recorder.upload import Sent, send


def show(_: argparse.Namespace) -> None:
    folders = Folder.all(recordings_folder())
    for folder in folders:
        try:
            head, state = folder.head(), _state(folder)
        except SpoolError as error:
            print(f"{folder.path.name[:8]}  broken: {error}")
            continue
        when = time.strftime("%Y-%m-%d %H:%M", time.localtime(head.wall_start))
        print(plain(f"{folder.path.name[:8]}  {when}  {state:10}  {head.task.title}"))
    if not folders:
        print("No recordings on this computer.")


def review(options: argparse.Namespace) -> None:
    folder = _ended(options)
    if ending(folder) == "cut off":
        print(f"It was cut off after {length(folder):.0f} s: what was written until then is here.")
    open_review(folder, settings_folder() / "never.toml", print)


def upload(options: argparse.Namespace) -> None:
    folder = Folder.find(recordings_folder(), options.recording)
    client = connected()
    try:
        send(folder, client, tell=_tell)
    except ServerError as error:
        print(f"\nStopped: {error}. The same command goes on from here.")
        raise
    finally:
        client.close()
    print("\nThe server has all of it.")


def delete(options: argparse.Namespace) -> int:
    folder = _ended(options)
    print(f"Delete {folder.path.name} from this computer for good? [y/N] ", end="", flush=True)
    if not _yes():
        return 1
    folder.delete()
    print("Deleted here. What was uploaded is withdrawn on the server's page.")
    return 0


def _yes() -> bool:
    try:
        return input().strip().lower() in ("y", "yes")
    except EOFError:
        return False


def _state(folder: Folder) -> str:
    end = ending(folder)
    if end == "running":
        return "recording"
    if (folder.upload / "manifest.json").exists():
        return "confirmed"
    return "recorded" if end == "whole" else end


def _ended(options: argparse.Namespace) -> Folder:
    """Return the recording that is meant, unless it is being made at this moment."""
    folder = Folder.find(recordings_folder(), options.recording)
    if ending(folder) == "running":
        raise SpoolError(f"{folder.path.name[:8]} is being recorded: stop it first, Ctrl+Alt+S")
    return folder


def _tell(sent: Sent) -> None:
    share = 100 if not sent.total else sent.done * 100 // sent.total
    print(f"\r{share:3} % of {sent.total / 1e6:.1f} MB", end="", flush=True)
