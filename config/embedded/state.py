"""The state folder: secrets, ports and addresses, made once; who holds it; the demo's passwords."""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import secrets
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from config.embedded.service import Account, StartFailed, can_pass, free_ports, port_taken

SYSTEM_DATA = Path("/var/lib/tandem")
NAMES = ("postgres", "valkey", "policy", *(f"s3-{index}" for index in range(8)))


@dataclass(frozen=True)
class State:
    """Paths below one root; `private` is 0700, its files 0600."""

    root: Path

    @property
    def private(self) -> Path:
        return self.root / "state"

    @property
    def logs(self) -> Path:
        return self.root / "log"

    def prepare(self) -> None:
        """Make the folders; raise StartFailed if that is impossible."""
        try:
            for folder, mode in ((self.root, 0o755), (self.private, 0o700), (self.logs, 0o755)):
                folder.mkdir(parents=True, exist_ok=True)
                folder.chmod(mode)
        except OSError as error:
            raise StartFailed(
                f"{error.filename}: {error.strerror}; set TANDEM_STATE to a folder of yours"
            ) from error

    def services(self, account: Account) -> Path:
        """Return where the services' data lie: here, unless `account` can't pass through to here.

        A checkout below a home of mode 0700 is closed to every account but root, and PostgreSQL
        refuses root; the data then lie in the system's place for such things.
        """
        if can_pass(account, self.root):
            return self.root
        folder = SYSTEM_DATA / hashlib.sha256(str(self.root).encode()).hexdigest()[:12]
        for path in (SYSTEM_DATA, folder):
            path.mkdir(mode=0o755, parents=True, exist_ok=True)
            path.chmod(0o755)
        if not can_pass(account, folder):
            raise StartFailed(
                f"the account {account.name} can reach neither {self.root} nor {folder}: "
                "set TANDEM_STATE to a folder that it can pass through"
            )
        return folder

    def read(self, name: str) -> dict[str, Any]:
        path = self.private / name
        try:
            return dict(json.loads(path.read_text()))
        except FileNotFoundError:
            return {}
        except ValueError as error:
            raise StartFailed(
                f"{path} is damaged ({error}): restore it, or `make reset`"
            ) from error

    def write(self, name: str, content: dict[str, Any]) -> None:
        """Replace a private file whole."""
        partial = self.private / f".{name}.partial"
        descriptor = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "w") as file:
            json.dump(content, file, indent=1)
            file.flush()
            os.fsync(file.fileno())
        partial.replace(self.private / name)

    def secret(self) -> dict[str, str]:
        """Return the secrets, made on the first start."""
        known = self.read("secrets.json")
        wanted = ("postgres", "valkey", "s3-key", "s3", "signing", "policy", "django")
        if any(name not in known for name in wanted):
            for name in wanted:
                known.setdefault(name, secrets.token_urlsafe(50 if name == "django" else 24))
            self.write("secrets.json", known)
        return known

    def ports(self) -> dict[str, int]:
        """Return a port per service: those of the last start, but for any that is taken now."""
        known = self.read("ports.json")
        for name in NAMES:
            if name not in known or port_taken(known[name]):
                (known[name],) = free_ports(1, but=set(known.values()))
        self.write("ports.json", known)
        return known

    def hold(self) -> IO[str]:
        """Return the lock on this folder; raise StartFailed if a running supervisor has it."""
        lock = (self.private / "supervisor").open("a+")
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            lock.seek(0)
            pid = lock.read().strip() or "unknown"
            raise StartFailed(
                f"Tandem runs already with {self.root} (process {pid}): `make stop` ends it"
            ) from error
        lock.seek(0)
        lock.truncate()
        lock.write(str(os.getpid()))
        lock.flush()
        return lock

    def holder(self) -> int | None:
        """Return the process id of the running supervisor, or None."""
        try:
            lock = (self.private / "supervisor").open("r+")
        except FileNotFoundError:
            return None
        with lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                return int(lock.read().strip() or 0) or None
        return None
