"""The folder that a sandbox of this host shares with it: what is in it, whose it is, when it is ready.

FOLDER/run holds the two sockets and `ready`, FOLDER/etc the files that name the sandbox's user. The
sandbox may write to the run folder only while it starts.
"""

from __future__ import annotations

import os
import random
import secrets
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from sandbox.provider import DesktopLost, ProvisionFailed
from sandbox.providers import records
from sandbox.screen.des import encrypt_block

_SCRAMBLE = bytes((0xE8, 0x4A, 0xD6, 0x60, 0xC4, 0x72, 0x1A, 0xE0))
"""What every VNC program knows and ciphers its password file with: hidden from a glance, no more."""

_LOOK_EVERY_S = 0.005
_ASK_EVERY_S = 0.25


@contextmanager
def begun(folder: Path, clear: Callable[[], None]) -> Iterator[None]:
    """Make the folder of a sandbox that is being started; `clear` it away if that fails.

    Raises ProvisionFailed, also for a guest that was lost meanwhile.
    """
    try:
        folder.mkdir(parents=True, mode=0o700)
    except FileExistsError:
        raise ProvisionFailed(f"a sandbox {folder.name} exists already: stop it first") from None
    try:
        yield
    except BaseException as error:
        clear()
        if isinstance(error, DesktopLost):
            raise ProvisionFailed(f"{folder.name}: the guest: {error}") from error
        raise


def fill(folder: Path, *, owner: int | None, uid: int) -> str:
    """Put what a sandbox starts with into its folder; return the password of its screen.

    `owner` is its user outside (None: the caller), `uid` the same one as it sees itself.
    """
    password = secrets.token_urlsafe(6)  # 8 characters: VNC heeds no more
    run, etc = folder / "run", folder / "etc"
    run.mkdir(mode=0o700)
    etc.mkdir(mode=0o755)
    (run / "rfb.passwd").touch(mode=0o600)
    (run / "rfb.passwd").write_bytes(encrypt_block(_SCRAMBLE, password.encode()))
    (etc / "passwd").write_text(f"user:x:{uid}:{uid}:User:/home/user:/bin/bash\n")
    (etc / "group").write_text(f"user:x:{uid}:\n")
    (etc / "hosts").write_text("127.0.0.1 localhost desk\n")
    (etc / "machine-id").write_text(f"{secrets.token_hex(16)}\n")
    if owner is not None:
        os.chown(run, owner, owner)
        os.chown(run / "rfb.passwd", owner, owner)
    return password


@contextmanager
def own_uid(first: int, count: int) -> Iterator[int]:
    """Give a user of `count` ones from `first` on that no process has, to this start alone.

    Of starts at the same moment, also in other processes of the host, each gets another: whoever
    holds the socket of a user's name holds the user until its processes run. Raises ProvisionFailed.
    """
    for uid in random.SystemRandom().sample(range(first, first + count), count):
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as held:
            try:
                held.bind(f"\0tandem-user-{uid}")
            except OSError:  # another start has it
                continue
            if uid in records.uids_in_use():
                continue
            yield uid
            return
    raise ProvisionFailed(f"all {count} user ids for sandboxes are in use")


def wait_until_ready(
    folder: Path, ended: Callable[[], str], log: Callable[[], str], *, seconds: float
) -> None:
    """Wait until the guest serves; from then on the sandbox can't write to its run folder.

    `ended` says why it has ended, "" while it runs. Raises ProvisionFailed with the end of `log`.
    """
    run = folder / "run"
    begin = asked = time.monotonic()
    while not (run / "ready").exists():
        now = time.monotonic()
        if now - begin > seconds:
            raise ProvisionFailed(f"{folder.name} was not ready within {seconds:g} s: {log()}")
        if now - asked > _ASK_EVERY_S:
            asked = now
            if why := ended():
                raise ProvisionFailed(f"{folder.name} ended while starting: {why}: {log()}")
        time.sleep(_LOOK_EVERY_S)
    if os.geteuid() == 0:
        # It can't put anything else, such as a link, where the host looks for sockets.
        os.chown(run, 0, 0)
        run.chmod(0o711)
