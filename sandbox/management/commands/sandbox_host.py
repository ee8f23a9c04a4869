"""`manage.py sandbox_host`: own the computers of this machine."""

from __future__ import annotations

import logging
import signal
import threading
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import connection

from sandbox.host import Host

# Any constant of ours: it keeps this lock apart from other advisory locks of the database.
_LOCK_SPACE = 0x7A4D


class Command(BaseCommand):
    help = "Start, watch, reset and end the computers of this machine, until SIGTERM."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--name", default=settings.SANDBOX_HOST)
        parser.add_argument("--provider", default=settings.SANDBOX_PROVIDER)
        parser.add_argument("--warm", type=int, default=settings.SANDBOX_POOL_SIZE)
        parser.add_argument("--max", type=int, default=settings.SANDBOX_MAX)
        parser.add_argument(
            "--stop-desktops-on-exit",
            action="store_true",
            help="end the computers too; otherwise the next host adopts them",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")
        self._only_one(options["name"])
        stopping = threading.Event()
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: stopping.set())
        host = Host(
            name=options["name"],
            provider=options["provider"],
            warm=options["warm"],
            most=options["max"],
        )
        self.stdout.write(
            f"sandbox host {host.name}: {host.provider_name}, {host.warm} warm, at most {host.most}"
        )
        self.stdout.flush()
        host.run(stopping)
        if options["stop_desktops_on_exit"]:
            host.stop_all()

    def _only_one(self, name: str) -> None:
        """Two hosts of one name would end each other's computers; the lock goes with the process."""
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_try_advisory_lock(%s, hashtext(%s))", [_LOCK_SPACE, name])
            if not cursor.fetchone()[0]:
                raise CommandError(f"a sandbox host called {name} runs already on this database")
