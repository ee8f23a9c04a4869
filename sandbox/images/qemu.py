"""The disk of the Linux machine: Debian with a kernel, Xorg and the desktop's programs.

Built by mmdebstrap into a folder, then written as a file system without mounting anything. The
guest's own code is not in it: that comes on a second disk, so an edit does not cost a new image.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

from sandbox.images import cache
from sandbox.images.packages import DESKTOP, LEFT_OUT, MACHINE, SUITE
from sandbox.provider import ProvisionFailed

PROGRAMS = {
    "mmdebstrap": "mmdebstrap",
    "mkfs.ext4": "e2fsprogs",
    "qemu-img": "qemu-utils",
    "qemu-system-x86_64": "qemu-system-x86",
}
_FILES = Path(__file__).with_name("machine")
_DISK = "12G"  # sparse: what is not written takes no room
_INITRAMFS = ("virtio_pci", "virtio_blk", "ext4")
_DRIVERS_LEFT_OUT = tuple(
    f"/lib/modules/*/kernel/{name}/*"
    for name in (
        *("sound", "drivers/media", "drivers/infiniband", "drivers/net/ethernet", "drivers/isdn"),
        *("drivers/net/wireless", "drivers/gpu/drm/amd", "drivers/gpu/drm/i915", "drivers/staging"),
        *("drivers/gpu/drm/nouveau", "drivers/gpu/drm/radeon", "drivers/scsi", "drivers/iio"),
        *(
            "drivers/usb/serial",
            "drivers/mtd",
            "drivers/edac",
            "drivers/hwmon",
            "fs/xfs",
            "fs/btrfs",
        ),
    )
)
_MASKED = (
    *("apt-daily.timer", "apt-daily-upgrade.timer", "e2scrub_all.timer", "fstrim.timer"),
    *("dpkg-db-backup.timer", "getty@tty1.service", "serial-getty@ttyS0.service"),
    *("systemd-networkd.service", "systemd-timesyncd.service", "systemd-update-utmp.service"),
    *("systemd-hwdb-update.service", "systemd-pstore.service", "getty.target"),
    *("e2scrub_reap.service", "systemd-journal-flush.service", "systemd-rfkill.service"),
    *("systemd-machine-id-commit.service", "sys-kernel-debug.mount", "dev-hugepages.mount"),
)
_BEFORE = """set -eu
mkdir -p "$1/etc/initramfs-tools/conf.d"
echo MODULES=list > "$1/etc/initramfs-tools/conf.d/tandem"
printf '%s\\n' {modules} > "$1/etc/initramfs-tools/modules"
"""
_AFTER = """set -eu
cp -r {files}/. "$1"/
chroot "$1" useradd --uid 1000 --create-home --shell /bin/bash user
chroot "$1" systemctl --quiet enable tandem-session.service tandem-serial.service
chroot "$1" systemctl --quiet mask {masked}
chroot "$1" systemctl --quiet set-default multi-user.target
mkdir -p "$1/opt/tandem"
echo desk > "$1/etc/hostname"
echo '127.0.0.1 localhost desk' > "$1/etc/hosts"
echo '/dev/vda / ext4 defaults,noatime 0 0' > "$1/etc/fstab"
rm -f "$1/var/lib/dbus/machine-id"
ln -s /etc/machine-id "$1/var/lib/dbus/machine-id"
"""


def recipe() -> str:
    """Return the digest of all that the disk is made from."""
    return cache.digest(
        *(SUITE, *DESKTOP, *MACHINE, *LEFT_OUT, *_DRIVERS_LEFT_OUT, *_MASKED, _BEFORE, _AFTER),
        *(*_INITRAMFS, _DISK, _FILES),
    )


def built() -> Path | None:
    """Return the folder of the built image; None if it has to be built first."""
    found = cache.place("qemu", recipe())
    return found if found.is_dir() else None


def build(say: cache.Say) -> Path:
    """Return the folder with `disk.qcow2`, `kernel` and `initrd`; 3 to 8 minutes the first time.

    Raises ProvisionFailed naming what is missing or the step that failed.
    """
    for program, package in PROGRAMS.items():
        if shutil.which(program) is None:
            raise ProvisionFailed(f"{program} is missing: apt-get install {package}")
    if os.geteuid() != 0:
        raise ProvisionFailed(
            "the files of a disk belong to many users: build it as root (sudo -E), once"
        )
    return cache.build(cache.place("qemu", recipe()), lambda part: _make(part, say))


def _make(part: Path, say: cache.Say) -> None:
    root = part / "root"
    packages = ",".join((*DESKTOP, *MACHINE))
    say(f"1/3 Debian {SUITE} with {len(DESKTOP) + len(MACHINE)} packages and what they need")
    _run(
        part,
        [
            *("mmdebstrap", "--variant=minbase", "--mode=root", "--format=directory"),
            *(f"--dpkgopt=path-exclude={glob}" for glob in (*LEFT_OUT, *_DRIVERS_LEFT_OUT)),
            f"--essential-hook={_BEFORE.format(modules=' '.join(_INITRAMFS))}",
            f"--customize-hook={_AFTER.format(files=_FILES, masked=' '.join(_MASKED))}",
            *(f"--include={packages}", SUITE, str(root)),
        ],
    )
    for name, pattern in (("kernel", "vmlinuz-*"), ("initrd", "initrd.img-*")):
        shutil.copyfile(next((root / "boot").glob(pattern)), part / name)
    say("2/3 the file system")
    raw = part / "disk.raw"
    with raw.open("wb") as disk:
        disk.truncate(int(_DISK.removesuffix("G")) << 30)
    _run(part, ["mkfs.ext4", "-q", "-E", "lazy_itable_init=1", "-d", str(root), str(raw)])
    shutil.rmtree(root)
    say("3/3 the disk image")
    disk_path = str(part / "disk.qcow2")
    _run(part, ["qemu-img", "convert", "-f", "raw", "-O", "qcow2", str(raw), disk_path])
    raw.unlink()


def _run(part: Path, command: list[str]) -> None:
    """Run one step; its output is kept beside the image. Raises ProvisionFailed with its last lines."""
    log = part / "build.log"
    with log.open("ab") as out:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=out, stderr=out)
    if done.returncode:
        tail = log.read_text(errors="replace")[-1500:]
        raise ProvisionFailed(f"{command[0]} ended with status {done.returncode}: {tail}")
