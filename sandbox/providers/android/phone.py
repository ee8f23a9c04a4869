"""One phone that is ours for a while: taken, brought to a known state, and given back.

The phone itself knows no epochs. So the claim lies on it, in a file: who holds it and since which boot.
Every command that changes something first compares that file, on the phone, in the same command. Whoever
was overtaken, or whose phone has started again, can do nothing more.
"""

from __future__ import annotations

import io
import re
import shlex
import time
from contextlib import suppress

from PIL import Image, UnidentifiedImageError

from sandbox.provider import DesktopLost
from sandbox.providers.android import tree
from sandbox.providers.android.adb import Adb, Answer, DeviceGone
from sandbox.providers.android.devices import Device
from sandbox.providers.android.gestures import HOME, WAKEUP
from trajectory import Element

CLAIM = "/data/local/tmp/tandem-claim"
FOLDER = "/sdcard/Tandem"
KEYBOARD = "com.android.adbkeyboard/.AdbIME"
"""The input method that enters any text (github.com/senzhk/ADBKeyBoard), where it is installed."""

_BOOT_ID = "/proc/sys/kernel/random/boot_id"
_TREE = "/data/local/tmp/tandem-tree.xml"
_BOOT_S, _STALE_S = 120.0, 60
_OVERTAKEN = 113
_PNG = b"\x89PNG\r\n\x1a\n"
_MOST_WARNING = 2000

_KNOWN_STATE = (
    f"input keyevent {WAKEUP}",
    "wm dismiss-keyguard",
    "svc power stayon true",
    "settings put global window_animation_scale 0",
    "settings put global transition_animation_scale 0",
    "settings put global animator_duration_scale 0",
    "settings put system accelerometer_rotation 0",
    "settings put system user_rotation 0",
    "wm fixed-to-user-rotation enabled",
    f"input keyevent {HOME}",
    f"rm -rf {FOLDER} && mkdir -p {FOLDER}",
)


class Taken(DeviceGone):
    """Another host holds the phone."""


class Refused(ValueError):
    """The phone did not do what it was told; the message is its own."""


class Phone:
    """A claimed phone; `width` and `height` are those of its picture. Raises DeviceGone throughout."""

    def __init__(self, adb: Adb, *, nonce: str, owner: str) -> None:
        self.adb = adb
        self.serial = adb.serial
        self._nonce, self._owner = nonce, owner
        self._claim = ""
        self.any_text = False
        self.width = self.height = 0

    # -- taking and giving back --------------------------------------------------------------

    def take(self, device: Device) -> None:
        """Claim the phone and bring it to its known state; raises Taken, DeviceGone with the stage."""
        if ":" in self.serial:
            self.adb.host("connect", self.serial)
        self.adb.device("wait-for-device", timeout_s=20)
        if device.snapshot:
            said = self.adb.device("emu", "avd", "snapshot", "load", device.snapshot, timeout_s=60)
            if "KO" in said:
                raise DeviceGone(f"{self.serial}: snapshot {device.snapshot!r}: {said.strip()}")
        self._wait_for_boot()
        self._write_claim()
        # Older Androids lack some of these; what matters is checked below.
        self.run("; ".join(_KNOWN_STATE), timeout_s=60)
        if "mDreamingLockscreen=true" in self.adb.shell("dumpsys window").text:
            raise DeviceGone(f"{self.serial} is locked: remove its PIN or pattern")
        self._choose_keyboard()
        with Image.open(io.BytesIO(self.png())) as picture:
            self.width, self.height = picture.size

    def renew(self) -> None:
        """Say that the claim is still alive; raises DeviceGone if it is not ours any more."""
        self.do(f"touch {CLAIM}")

    def give_back(self) -> None:
        """Leave the phone at its home screen without a claim; fine if it is gone."""
        with suppress(DesktopLost, Refused):
            keyboard = "ime reset; " if self.any_text else ""
            self.do(f"{keyboard}input keyevent {HOME}; rm -rf {FOLDER}; rm -f {CLAIM}")

    def _wait_for_boot(self) -> None:
        deadline = time.monotonic() + _BOOT_S
        while (said := self.adb.shell("getprop sys.boot_completed").text.strip()) != "1":
            if time.monotonic() > deadline:
                raise DeviceGone(
                    f"{self.serial} did not finish booting: boot_completed is {said!r}"
                )
            time.sleep(0.5)

    def _write_claim(self) -> None:
        boot = self.adb.shell(f"cat {_BOOT_ID}").text.strip()
        held = self.adb.shell(
            f"cat {CLAIM} 2>/dev/null && echo $(($(date +%s) - $(stat -c %Y {CLAIM})))"
        ).text.split()
        if len(held) == 4:
            _, owner, since, age = held
            # Our own host's claim is a dead one: this process holds the device's lock.
            fresh = owner != self._owner and since == boot and int(age) < _STALE_S
            if fresh:
                raise Taken(f"{self.serial} is held by another host ({owner})")
        self._claim = f"{self._nonce} {self._owner} {boot}"
        self.adb.shell(f"echo {shlex.quote(self._claim)} > {CLAIM}")

    def _choose_keyboard(self) -> None:
        if KEYBOARD in self.adb.shell("ime list -a -s").text.split():
            self.do(f"ime enable {KEYBOARD} && ime set {KEYBOARD}")
            self.any_text = True

    # -- doing and looking -------------------------------------------------------------------

    def run(self, command: str, *, timeout_s: float = 15.0, most: int = 1 << 20) -> Answer:
        """Run `command` if the phone is still ours; raises DeviceGone."""
        guard = f'[ "$(cat {CLAIM}) $(cat {_BOOT_ID})" = {shlex.quote(self._guarded)} ]'
        answer = self.adb.shell(
            f"{guard} || exit {_OVERTAKEN}\n{command}", timeout_s=timeout_s, most=most
        )
        if answer.code == _OVERTAKEN:
            raise DeviceGone(f"{self.serial} was claimed by another, or has started again since")
        return answer

    def do(self, command: str) -> str:
        """Run `command`; raises DeviceGone, and Refused where the phone says that it failed."""
        answer = self.run(command)
        text = answer.text.strip()
        if answer.code != 0 or re.search(r"^(Error|Exception)\b", text, re.MULTILINE):
            raise Refused(f"{command[:80]}: {text[-300:] or f'exit code {answer.code}'}")
        return text

    @property
    def _guarded(self) -> str:
        return f"{self._claim} {self._claim.rpartition(' ')[2]}"

    def png(self) -> bytes:
        """Return the screen as PNG; raises DeviceGone if what comes is none."""
        out = self.adb.picture()
        # A phone of several screens warns first.
        start = out.find(_PNG, 0, _MOST_WARNING)
        if start < 0:
            raise DeviceGone(f"{self.serial}: screencap gave no picture: {out[:100]!r}")
        return out[start:]

    def elements(self) -> list[Element]:
        """Return the elements on the screen; raises Refused while it never comes to rest."""
        answer = self.run(
            f"uiautomator dump {_TREE} >/dev/null && cat {_TREE}", most=tree.MOST_BYTES
        )
        if answer.code != 0:
            raise Refused(f"uiautomator gave no tree: {answer.text.strip()[-200:]}")
        try:
            return tree.elements(answer.output, width=self.width, height=self.height)
        except tree.TreeError as error:
            raise Refused(str(error)) from error


def pixels(png: bytes, size: tuple[int, int]) -> Image.Image:
    """Return the decoded picture; raises DeviceGone if it is none, or not of `size`."""
    try:
        picture = Image.open(io.BytesIO(png))
        if picture.size != size:
            raise DeviceGone(f"the screen turned to {picture.size}: its apps must stay upright")
        return picture.convert("RGB")
    except (UnidentifiedImageError, Image.DecompressionBombError, OSError, SyntaxError) as error:
        raise DeviceGone(f"the phone's picture can't be read: {error}") from error
