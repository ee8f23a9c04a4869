"""`manage.py sandbox`: lease a computer by hand, use it, look at it, give it back."""

from __future__ import annotations

import importlib.util
import json
import os
import signal
import subprocess
import sys
import uuid
from datetime import timedelta
from pathlib import Path
from typing import Any

from django.conf import settings
from django.contrib.auth.models import User
from django.core.management.base import BaseCommand, CommandError, CommandParser

from sandbox import attach
from sandbox.capabilities import Terminals
from sandbox.held import held
from sandbox.leasing import leases
from sandbox.models import Lease
from sandbox.operations import listing
from sandbox.provider import DesktopLost, SandboxError, StaleLease

NO_COMPUTER = 75
"""Exit code: none is free, try again later (sysexits' EX_TEMPFAIL)."""
LEASE_GONE = 69
"""Exit code: the lease is over or its computer does not answer (EX_UNAVAILABLE)."""


class Command(BaseCommand):
    help = "Lease a sandbox by hand: lease, exec, shot, shell, release, list, mcp, bench."

    def add_arguments(self, parser: CommandParser) -> None:
        verbs = parser.add_subparsers(dest="verb", required=True)
        verb = verbs.add_parser("lease", help="lease a computer and print the lease's number")
        _wishes(verb)
        verb.add_argument("--minutes", type=int, default=60, help="how long; nothing renews it")
        verb.add_argument("--json", action="store_true")
        verb = verbs.add_parser("exec", help="run a command in a leased computer")
        verb.add_argument("lease", type=int)
        verb.add_argument("--timeout", type=int, default=60, metavar="SECONDS")
        verb.add_argument("--json", action="store_true")
        verb.add_argument("command", nargs="+", help="after --, as the computer's shell reads it")
        verb = verbs.add_parser("shot", help="write a screenshot (PNG)")
        verb.add_argument("lease", type=int)
        verb.add_argument("path", nargs="?", default="-", help="- or nothing: standard output")
        verb = verbs.add_parser("shell", help="open a terminal in it; Ctrl and ] leaves")
        verb.add_argument("lease", type=int)
        verb.add_argument("--command", default="", dest="program", help="instead of a shell")
        verb = verbs.add_parser("release", help="give computers back")
        verb.add_argument("leases", type=int, nargs="+", metavar="lease")
        verb = verbs.add_parser("list", help="list computers with states, causes and leases")
        verb.add_argument("--pool")
        verb.add_argument("--all", action="store_true", help="those that are gone too")
        verb.add_argument("--json", action="store_true")
        verb = verbs.add_parser("mcp", help="serve a leased computer to an MCP client on stdio")
        _wishes(verb)
        verb = verbs.add_parser("bench", help="measure computers: see docs/benchmarks.md")
        verb.add_argument("arguments", nargs="*", help="after --, for benchmarks.sandbox")

    def handle(self, *args: Any, **options: Any) -> None:
        verbs = {
            **{"lease": self._lease, "exec": self._exec, "shot": self._shot, "shell": self._shell},
            **{"release": self._release, "list": self._list, "mcp": self._mcp},
            "bench": self._bench,
        }
        try:
            verbs[options["verb"]](options)
        except leases.NoCapacity as error:
            raise CommandError(str(error), returncode=NO_COMPUTER) from error
        except (leases.LeaseOver, DesktopLost, StaleLease) as error:
            raise CommandError(str(error), returncode=LEASE_GONE) from error
        except SandboxError as error:
            raise CommandError(str(error)) from error

    def _lease(self, options: dict[str, Any]) -> None:
        if not 1 <= options["minutes"] <= 24 * 60:
            raise CommandError("--minutes must be 1 to 1440")
        life = timedelta(minutes=options["minutes"])
        lease = _acquire(options, ttl=life, hard_ttl=life)
        if options["json"]:
            self._json(listing.lease_record(lease))
        else:
            self.stdout.write(str(lease.pk))
            until = lease.expires_at.strftime("%H:%M:%S %Z")
            self.stderr.write(f"{lease.sandbox.name} until {until}")

    def _exec(self, options: dict[str, Any]) -> None:
        if not 1 <= options["timeout"] <= 600:
            raise CommandError("--timeout must be 1 to 600 seconds")
        with held(_lease_of(options["lease"])) as hold:
            result = hold.shell(" ".join(options["command"]), timeout_ms=options["timeout"] * 1000)
        if options["json"]:
            return self._json({"output": result.output, "exit_code": result.exit_code})
        self.stdout.write(result.output, ending="")
        if result.exit_code:
            self.stdout.flush()
            sys.exit(result.exit_code)

    def _shot(self, options: dict[str, Any]) -> None:
        path = options["path"]
        if path == "-" and sys.stdout.isatty():
            raise CommandError("a picture is no text for a terminal: name a file")
        with held(_lease_of(options["lease"])) as hold:
            hold.desktop.settle()
            frame = hold.desktop.observe()
        if path == "-":
            sys.stdout.buffer.write(frame.png)
            sys.stdout.buffer.flush()
            return
        try:
            Path(path).write_bytes(frame.png)
        except OSError as error:
            raise CommandError(f"{path}: {error.strerror}") from error
        self.stdout.write(f"{path}: {frame.width}x{frame.height}")

    def _shell(self, options: dict[str, Any]) -> None:
        with held(_lease_of(options["lease"])) as hold:
            if not isinstance(hold.desktop, Terminals):
                raise CommandError(f"{hold.name} is of a kind without terminals: use exec")
            self.stderr.write(f"{hold.name}: Ctrl and ] leaves")
            code = attach.attach(
                hold.desktop,
                epoch=hold.epoch,
                stdin=sys.stdin.fileno(),
                stdout=sys.stdout.fileno(),
                command=options["program"],
            )
        if code:
            sys.exit(code)

    def _release(self, options: dict[str, Any]) -> None:
        for number in options["leases"]:
            lease = _lease_of(number)
            over = lease.state != Lease.State.ACTIVE
            lease = leases.release(lease, reason="released by hand")
            said = f"was {lease.state} already: {lease.release_reason}" if over else "released"
            self.stdout.write(f"{lease.pk} ({lease.sandbox.name}): {said}")

    def _list(self, options: dict[str, Any]) -> None:
        records = listing.sandboxes(pool=options["pool"], gone=options["all"])
        if options["json"]:
            self._json(records)
        else:
            self.stdout.write(listing.table(records))

    def _mcp(self, options: dict[str, Any]) -> None:
        if importlib.util.find_spec("mcp") is None:
            raise CommandError("MCP needs the mcp package: pip install 'tandem[mcp]'")
        from sandbox.mcp.server import make_server

        # The client ends a server that does not leave by itself: the computer is given back first.
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
        lease = _acquire(options, ttl=leases.TTL, hard_ttl=leases.HARD_TTL)
        try:
            with held(lease, ttl=leases.TTL) as hold:
                make_server(hold).run("stdio")
        finally:
            leases.release(lease, reason="the MCP client left")

    def _bench(self, options: dict[str, Any]) -> None:
        if importlib.util.find_spec("benchmarks.sandbox") is None:
            raise CommandError("benchmarks/ is not here: run this in a checkout of Tandem")
        program = [sys.executable, "-m", "benchmarks.sandbox", *options["arguments"]]
        done = subprocess.run(program, cwd=settings.BASE_DIR, env=os.environ, check=False)
        if done.returncode:
            raise CommandError("benchmarks.sandbox failed: see above", returncode=done.returncode)

    def _json(self, record: object) -> None:
        self.stdout.write(json.dumps(record, indent=2, ensure_ascii=False))


def _wishes(parser: CommandParser) -> None:
    parser.add_argument("--pool", help="which pool; default: the default pool")
    parser.add_argument("--wait", type=float, default=0.0, metavar="SECONDS", help="for a free one")
    parser.add_argument("--user", help="whose lease it is; default: nobody's")
    parser.add_argument("--purpose", choices=Lease.Purpose.values, default=Lease.Purpose.AGENT)


def _acquire(options: dict[str, Any], *, ttl: timedelta, hard_ttl: timedelta) -> Lease:
    owner = None
    if name := options["user"]:
        owner = User.objects.filter(username=name, is_active=True).first()
        if owner is None:
            raise CommandError(f"there is no active user {name!r}")
    if not 0 <= options["wait"] <= 3600:
        raise CommandError("--wait must be 0 to 3600 seconds")
    return leases.acquire(
        owner=owner,
        purpose=options["purpose"],
        idempotency_key=f"by-hand-{uuid.uuid4().hex}",
        pool=options["pool"],
        ttl=ttl,
        hard_ttl=hard_ttl,
        wait_s=options["wait"],
    )


def _lease_of(number: int) -> Lease:
    lease = Lease.objects.select_related("sandbox").filter(pk=number).first()
    if lease is None:
        raise CommandError(f"there is no lease {number}: see manage.py sandbox list")
    return lease
