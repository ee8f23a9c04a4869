"""The recordings on this computer."""

from __future__ import annotations

import argparse
import time

from recorder.commands.account import connected
from recorder.review import review as open_review
from recorder.server.client import ServerError
from recorder.settings import recordings_folder, settings_folder
from recorder.spool import Folder, SpoolError
from recorder.upload import Sent, send


def show(_: argparse.Namespace) -> None:
    folders = Folder.all(recordings_folder())
    for folder in folders:
        try:
            head = folder.head()
        except SpoolError as error:
            print(f"{folder.path.name[:8]}  broken: {error}")
            continue
        when = time.strftime("%Y-%m-%d %H:%M", time.localtime(head.wall_start))
        print(f"{folder.path.name[:8]}  {when}  {_state(folder):10}  {head.task.title}")
    if not folders:
        print("No recordings on this computer.")


def review(options: argparse.Namespace) -> None:
    folder = Folder.find(recordings_folder(), options.recording)
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
    folder = Folder.find(recordings_folder(), options.recording)
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
    return "confirmed" if (folder.upload / "manifest.json").exists() else "recorded"


def _tell(sent: Sent) -> None:
    share = 100 if not sent.total else sent.done * 100 // sent.total
    print(f"\r{share:3} % of {sent.total / 1e6:.1f} MB", end="", flush=True)
