"""`manage.py sandbox_host`: own the computers of this machine."""

from __future__ import annotations

import logging
import os
import platform
import signal
import threading
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser

from sandbox import pool
from sandbox.gateway.server import GatewayFailed, Server
from sandbox.host import HostProcess, hosts
from sandbox.models import Host, Pool
from sandbox.provider import SandboxError


class Command(BaseCommand):
    help = "Start, watch, reset and end the computers of this machine, until SIGTERM."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--name", default=settings.SANDBOX_HOST)
        parser.add_argument(
            "--providers",
            default=settings.SANDBOX_PROVIDER,
            help="the kinds of computers that this host can start, with commas; a kind other than "
            "SANDBOX_PROVIDER has a pool of its name",
        )
        parser.add_argument(
            "--slots", type=int, default=settings.SANDBOX_MAX, help="computers that it can carry"
        )
        parser.add_argument(
            "--memory", type=int, default=_memory_mb(), help="MiB for computers; 0: do not count"
        )
        parser.add_argument(
            "--address",
            default="",
            help="HOST:PORT at which other machines reach this host's gateway; none if not said",
        )
        parser.add_argument(
            "--listen", default="", help="where the gateway listens, if not at --address"
        )
        parser.add_argument(
            "--drain",
            action="store_true",
            help="tell the host of this name to start nothing more, and end; leases run on",
        )
        parser.add_argument(
            "--undrain", action="store_true", help="let a draining host start computers again"
        )
        parser.add_argument(
            "--stop-desktops-on-exit",
            action="store_true",
            help="end the computers too; otherwise the next host of this name goes on with them",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")
        if options["drain"] or options["undrain"]:
            self._turn(options["name"], drain=options["drain"])
            return
        providers = [name.strip() for name in options["providers"].split(",") if name.strip()]
        stopping = threading.Event()
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: stopping.set())
        try:
            host = HostProcess(
                name=options["name"],
                providers=providers,
                slots=options["slots"],
                memory_mb=options["memory"],
                cpus=float(os.cpu_count() or 0),
                address=options["address"],
                versions={"python": platform.python_version(), "kernel": platform.release()},
            )
            host.hold_name()
            host.join()
            for provider in providers:
                default = provider == settings.SANDBOX_PROVIDER
                pool.configure(
                    name=Pool.DEFAULT if default else provider,
                    provider=provider,
                    warm=settings.SANDBOX_POOL_SIZE,
                    most=settings.SANDBOX_MAX,
                )
            self._run(host, stopping, options)
        except (SandboxError, GatewayFailed) as error:
            raise CommandError(str(error)) from error

    def _run(self, host: HostProcess, stopping: threading.Event, options: dict[str, Any]) -> None:
        listen = options["listen"] or options["address"]
        gateway = (
            Server(host=host.name, listen=listen, folder=settings.SANDBOX_TLS) if listen else None
        )
        if gateway is not None:
            gateway.start()
        self.stdout.write(
            f"sandbox host {host.name}: {options['providers']}, room for {options['slots']}"
            + (f", gateway at {listen}" if gateway else "")
        )
        self.stdout.flush()
        try:
            host.run(stopping)
        finally:
            if gateway is not None:
                gateway.stop()
        if options["stop_desktops_on_exit"]:
            host.stop_all()

    def _turn(self, name: str, *, drain: bool) -> None:
        row = Host.objects.filter(name=name).first()
        if row is None:
            raise CommandError(f"no sandbox host called {name} has ever joined this database")
        if drain:
            hosts.drain(row, by="command")
            left = pool.of_host(name).count()
            self.stdout.write(f"{name} is draining: {left} computers left on it")
        else:
            hosts.undrain(row, by="command")
            self.stdout.write(f"{name} starts computers again")


def _memory_mb() -> int:
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // (1 << 20)
