"""`tandem-recorder`: sign in, record one's own work, look at it, send it, or delete it."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from recorder.capture.errors import CaptureError
from recorder.commands import account, recordings
from recorder.commands.record import record
from recorder.redact import RedactionError
from recorder.review import EditError
from recorder.server.client import ServerError
from recorder.spool import SpoolError
from recorder.upload import UploadError


def main(arguments: Sequence[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    try:
        return int(options.run(options) or 0)
    except (
        CaptureError, EditError, RedactionError, ServerError, SpoolError, UploadError, OSError,
    ) as error:  # fmt: skip
        print(f"tandem-recorder: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="tandem-recorder", description=__doc__)
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    login = commands.add_parser("login", help="sign in to a Tandem server")
    login.add_argument("server", help="its address, such as https://tandem.example.org")
    login.set_defaults(run=account.login)

    logout = commands.add_parser("logout", help="forget the token of the server")
    logout.set_defaults(run=account.logout)

    tasks = commands.add_parser("tasks", help="show the tasks that one may do")
    _kind(tasks, "only those of one kind")
    tasks.set_defaults(run=account.tasks)

    start = commands.add_parser("record", help="record a task; nothing leaves this computer")
    which = start.add_mutually_exclusive_group()
    which.add_argument("--task", metavar="ID", help="a task of `tasks`; left out: the next one")
    which.add_argument("--own", metavar="TEXT", help="a task of your own, in your words")
    which.add_argument(
        "--another", action="store_true", help="pass the offered task by for good, take the next"
    )
    which.add_argument("--choose", action="store_true", help="choose from a numbered list")
    _kind(start, "a task of this kind; with --own, what yours is")
    start.add_argument("--no-window", action="store_true", help="show only the strip, no window")
    start.add_argument("--no-sound", action="store_true", help="do not listen to the microphone")
    start.add_argument(
        "--microphone", metavar="NAME", default="", help="another than the usual one"
    )
    start.set_defaults(run=record)

    there = commands.add_parser("list", help="show the recordings on this computer")
    there.set_defaults(run=recordings.show)

    review = commands.add_parser("review", help="look at a recording, cut, blur, and confirm it")
    review.add_argument("recording", help="the beginning of its id")
    review.set_defaults(run=recordings.review)

    upload = commands.add_parser("upload", help="send a recording that was confirmed")
    upload.add_argument("recording", help="the beginning of its id")
    upload.set_defaults(run=recordings.upload)

    delete = commands.add_parser("delete", help="delete a recording from this computer")
    delete.add_argument("recording", help="the beginning of its id")
    delete.set_defaults(run=recordings.delete)
    return parser


def _kind(parser: argparse.ArgumentParser, what: str) -> None:
    parser.add_argument(
        "--kind",
        choices=("demonstration", "exploration"),
        help=f"{what}: what you know well shown to others, or a program that is new to you explored",
    )


if __name__ == "__main__":
    raise SystemExit(main())
