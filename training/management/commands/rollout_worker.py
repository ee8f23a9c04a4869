"""`manage.py rollout_worker`: play the episodes of rollouts on this machine."""

from __future__ import annotations

import logging
import os
import secrets
import signal
import socket
import threading
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandParser

from sandbox.providers.browser import Fleet
from training.rollouts.worker import Worker


class Command(BaseCommand):
    help = "Play the episodes of rollouts in this machine's browsers, until SIGTERM."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--name", default="", help="of this worker; made up if not given")
        parser.add_argument("--browsers", type=int, default=2)
        parser.add_argument("--environments", type=int, default=16, help="episodes at once")

    def handle(self, *args: Any, **options: Any) -> None:
        logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")
        stopping = threading.Event()
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: stopping.set())
        name = (
            options["name"] or f"{socket.gethostname()[:60]}:{os.getpid()}:{secrets.token_hex(3)}"
        )
        browsers, environments = options["browsers"], options["environments"]
        state = settings.STATE_DIR / "rollouts"
        with Fleet(browsers=browsers, state=state, pages=-(-environments // browsers)) as fleet:
            worker = Worker(name=name, pages=fleet, environments=environments)
            self.stdout.write(f"rollout worker {name}: {environments} episodes at once")
            self.stdout.flush()
            worker.run(stopping)
