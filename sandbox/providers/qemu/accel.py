"""Whether this host runs guests by hardware: found out by booting one.

A KVM device that opens, and a QEMU that says "kvm enabled", are no proof: on some hosts firmware
runs and an ordinary kernel never leaves its decompressor.
"""

from __future__ import annotations

import os
import select
import subprocess
import threading
import time
from dataclasses import dataclass
from pathlib import Path

_DEVICE = Path("/dev/kvm")
_HOST_BOOT = Path("/proc/sys/kernel/random/boot_id")
_PROOF = b"Linux version"
PROBE_S = 10.0


@dataclass(frozen=True, slots=True)
class Accel:
    """How a machine's processor runs: `arguments` for QEMU, `limits` says it to people."""

    kind: str
    arguments: tuple[str, ...]
    limits: str


# Plain "-cpu host" aborts where the host's own hypervisor hides MSR 0x10a.
KVM = Accel("kvm", ("-accel", "kvm", "-cpu", "host,-arch-capabilities"), "KVM")
TCG = Accel(
    "tcg",
    ("-accel", "tcg,thread=multi,tb-size=64", "-cpu", "qemu64"),
    "no KVM on this host: emulated, about ten times slower",
)


def choose(kernel: Path, cache: Path) -> Accel:
    """Return KVM if `kernel` boots by it here, else TCG; probed once for each boot of the host."""
    if not os.access(_DEVICE, os.R_OK | os.W_OK):
        return TCG
    known = cache / f"kvm-{_HOST_BOOT.read_text().strip()}"
    try:
        answer = known.read_text()
    except FileNotFoundError:
        answer = "kvm" if boots(kernel, KVM, seconds=PROBE_S) else "tcg"
        part = known.with_suffix(f".{os.getpid()}-{threading.get_ident()}")
        part.write_text(answer)
        part.replace(known)
    return KVM if answer == "kvm" else TCG


def boots(kernel: Path, accel: Accel, *, seconds: float) -> bool:
    """Whether `kernel` says its first words within `seconds`; nothing of it is left afterwards."""
    machine = subprocess.Popen(
        [
            *("qemu-system-x86_64", "-M", "q35", *accel.arguments, "-m", "128", "-nodefaults"),
            *("-no-reboot", "-display", "none", "-nic", "none", "-serial", "stdio"),
            *("-kernel", str(kernel), "-append", "console=ttyS0 panic=-1"),
        ],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    assert machine.stdout is not None
    said, deadline = b"", time.monotonic() + seconds
    try:
        while _PROOF not in said:
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([machine.stdout], [], [], left)[0]:
                return False
            data = os.read(machine.stdout.fileno(), 4096)
            if not data:
                return False
            said = said[-len(_PROOF) :] + data
        return True
    finally:
        machine.kill()
        machine.wait()
        machine.stdout.close()
