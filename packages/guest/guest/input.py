"""Mouse and keyboard by XTEST. Callers hold the gate: one action at a time."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise

from Xlib import X, display
from Xlib.ext import xtest

from guest.keymap import keysym_of_character, keysym_of_key
from trajectory import Button, Point

_BUTTONS: dict[Button, int] = {"left": 1, "middle": 2, "right": 3, "back": 8, "forward": 9}
_WHEEL_UP, _WHEEL_DOWN, _WHEEL_LEFT, _WHEEL_RIGHT = 4, 5, 6, 7
_MAX_NOTCHES = 100
# Pages start a drag only after several motions, and drop targets answer between them.
_DRAG_STEP_PX = 12
_DRAG_STEP_S = 0.008
# Clients fetch a changed keyboard map when they hear of it; a key pressed sooner may read the old one.
_MAP_SETTLE_S = 0.06
_LOAN_SETTLE_S = 0.2


class Input:
    """One display's mouse and keyboard; remembers what it holds down, so that it can let go."""

    def __init__(self, name: str) -> None:
        self._display = display.Display(name)
        info = self._display.display.info
        self._min_keycode: int = info.min_keycode
        self._max_keycode: int = info.max_keycode
        screen = self._display.screen()
        self._size = (int(screen.width_in_pixels), int(screen.height_in_pixels))
        self._held_keys: list[int] = []
        self._held_buttons: list[int] = []
        self._borrowed: dict[int, int] = {}  # keysym -> spare keycode that we gave it

    # -- mouse -----------------------------------------------------------------------------

    def move(self, x: int, y: int) -> None:
        width, height = self._size
        if not (0 <= x < width and 0 <= y < height):
            raise ValueError(f"({x}, {y}) is outside the screen of {width}x{height}")
        xtest.fake_input(self._display, X.MotionNotify, x=x, y=y)
        self._display.sync()

    def press(self, button: Button) -> None:
        self._button(_BUTTONS[button], down=True)

    def release(self, button: Button) -> None:
        self._button(_BUTTONS[button], down=False)

    def click(self, x: int, y: int, button: Button, count: int, modifiers: Sequence[str]) -> None:
        keysyms = [keysym_of_key(name) for name in modifiers]
        self.move(x, y)
        with self._holding(keysyms):
            for _ in range(count):
                self.press(button)
                self.release(button)

    def hold(self, x: int, y: int, duration_ms: int) -> None:
        self.move(x, y)
        self.press("left")
        try:
            time.sleep(duration_ms / 1000)
        finally:
            self.release("left")

    def drag(self, path: Sequence[Point], button: Button) -> None:
        self.move(*path[0])
        self.press(button)
        try:
            for start, end in pairwise(path):
                for point in _between(start, end):
                    self.move(*point)
                    time.sleep(_DRAG_STEP_S)
        finally:
            self.release(button)

    def scroll(self, x: int, y: int, dx: int, dy: int) -> None:
        if max(abs(dx), abs(dy)) > _MAX_NOTCHES:
            raise ValueError(f"a scroll is counted in notches, at most {_MAX_NOTCHES}")
        self.move(x, y)
        for notches, back, forth in (
            (dy, _WHEEL_UP, _WHEEL_DOWN),
            (dx, _WHEEL_LEFT, _WHEEL_RIGHT),
        ):
            for _ in range(abs(notches)):
                wheel = forth if notches > 0 else back
                self._button(wheel, down=True)
                self._button(wheel, down=False)

    # -- keyboard --------------------------------------------------------------------------

    def key_down(self, name: str) -> None:
        keycode, shifted = self._keycodes([keysym_of_key(name)])[0]
        if shifted:
            self._key(self._shift(), down=True)
        self._key(keycode, down=True)

    def key_up(self, name: str) -> None:
        keycode, shifted = self._keycodes([keysym_of_key(name)])[0]
        self._key(keycode, down=False)
        if shifted:
            self._key(self._shift(), down=False)

    def hotkey(self, names: Sequence[str]) -> None:
        with self._holding([keysym_of_key(name) for name in names]):
            pass

    def type(self, text: str) -> None:
        """Enter `text`, whatever the layout lacks by lending a spare key its character.

        Raises ValueError, before anything is typed, for what no key enters.
        """
        keysyms = [keysym_of_character(c) for c in text.replace("\r\n", "\n")]
        self._caps_lock_off()
        for batch in _batches(keysyms, self._spare_limit()):
            for keycode, shifted in self._keycodes(batch):
                if shifted:
                    self._key(self._shift(), down=True)
                self._key(keycode, down=True)
                self._key(keycode, down=False)
                if shifted:
                    self._key(self._shift(), down=False)
            self._display.sync()

    def let_go(self) -> None:
        """Release every key and button that is still down."""
        for button in reversed(self._held_buttons[:]):
            self._button(button, down=False)
        for keycode in reversed(self._held_keys[:]):
            self._key(keycode, down=False)
        self._display.sync()

    def close(self) -> None:
        self._display.close()

    # -- the wire --------------------------------------------------------------------------

    def _button(self, button: int, *, down: bool) -> None:
        xtest.fake_input(self._display, X.ButtonPress if down else X.ButtonRelease, button)
        self._display.sync()
        _note(self._held_buttons, button, down)

    def _key(self, keycode: int, *, down: bool) -> None:
        xtest.fake_input(self._display, X.KeyPress if down else X.KeyRelease, keycode)
        self._display.flush()
        _note(self._held_keys, keycode, down)

    @contextmanager
    def _holding(self, keysyms: Sequence[int]) -> Iterator[None]:
        pressed: list[int] = []
        try:
            for keycode, shifted in self._keycodes(keysyms):
                if shifted and self._shift() not in pressed:
                    pressed.append(self._shift())
                    self._key(self._shift(), down=True)
                pressed.append(keycode)
                self._key(keycode, down=True)
            self._display.sync()
            yield
        finally:
            for keycode in reversed(pressed):
                self._key(keycode, down=False)
            self._display.sync()

    def _shift(self) -> int:
        keycode: int = self._display.keysym_to_keycode(keysym_of_key("shift"))
        return keycode

    def _caps_lock_off(self) -> None:
        if self._display.screen().root.query_pointer().mask & X.LockMask:
            self.hotkey(["capslock"])

    def _keycodes(self, keysyms: Sequence[int]) -> list[tuple[int, bool]]:
        """Return (keycode, needs shift) for each keysym, lending spare keys where none has it."""
        table = self._table()
        missing = [k for k in dict.fromkeys(keysyms) if k not in table]
        if missing:
            self._lend(missing, kept={table[k][0] for k in keysyms if k in table})
            table = self._table()
        return [table[keysym] for keysym in keysyms]

    def _table(self) -> dict[int, tuple[int, bool]]:
        count = self._max_keycode - self._min_keycode + 1
        rows = self._display.get_keyboard_mapping(self._min_keycode, count)
        found: dict[int, tuple[int, bool]] = {}
        for shifted in (False, True):
            for offset, row in enumerate(rows):
                keysym = int(row[shifted]) if len(row) > int(shifted) else 0
                if keysym:
                    found.setdefault(keysym, (self._min_keycode + offset, shifted))
        return found

    def _spares(self) -> list[int]:
        count = self._max_keycode - self._min_keycode + 1
        rows = self._display.get_keyboard_mapping(self._min_keycode, count)
        ours = set(self._borrowed.values())
        return [
            self._min_keycode + offset
            for offset, row in enumerate(rows)
            if not any(row) or self._min_keycode + offset in ours
        ]

    def _spare_limit(self) -> int:
        return max(1, len(self._spares()))

    def _lend(self, keysyms: Sequence[int], *, kept: set[int]) -> None:
        """Give each keysym a spare keycode of its own, taking back loans that are not in `kept`.

        No keycode changes twice within one batch: a client that reads its map late would see the
        second character for the first press.
        """
        spares = [keycode for keycode in self._spares() if keycode not in kept]
        if len(keysyms) > len(spares):
            raise ValueError("the keyboard has no spare key left to enter this text")
        lent = {keycode: keysym for keysym, keycode in self._borrowed.items()}
        free = sorted(spares, key=lambda keycode: keycode in lent)[: len(keysyms)]
        if any(keycode in lent for keycode in free):
            # What was typed with them just now must have been read before they mean something else.
            self._display.sync()
            time.sleep(_LOAN_SETTLE_S)
        loans = dict(zip(sorted(free), keysyms, strict=True))
        for keycode, keysym in loans.items():
            self._borrowed.pop(lent.get(keycode, 0), None)
            self._borrowed[keysym] = keycode
        # Every request makes every client read its whole map again: one for each run of keycodes.
        for first, run in _runs(loans):
            self._display.change_keyboard_mapping(first, [(keysym, keysym) for keysym in run])
        self._display.sync()
        time.sleep(_MAP_SETTLE_S)


def _note(held: list[int], code: int, down: bool) -> None:
    if down and code not in held:
        held.append(code)
    elif not down and code in held:
        held.remove(code)


def _between(start: Point, end: Point) -> Iterator[Point]:
    steps = max(2, max(abs(end[0] - start[0]), abs(end[1] - start[1])) // _DRAG_STEP_PX)
    for step in range(1, steps + 1):
        yield (
            start[0] + (end[0] - start[0]) * step // steps,
            start[1] + (end[1] - start[1]) * step // steps,
        )


def _runs(loans: dict[int, int]) -> Iterator[tuple[int, list[int]]]:
    """Yield (first keycode, keysyms) for each run of neighbours; `loans` is sorted by keycode."""
    first, run = 0, list[int]()
    for keycode, keysym in loans.items():
        if run and keycode != first + len(run):
            yield first, run
            run = []
        if not run:
            first = keycode
        run.append(keysym)
    if run:
        yield first, run


def _batches(keysyms: Sequence[int], distinct: int) -> Iterator[list[int]]:
    """Cut `keysyms` so that no part holds more than `distinct` different ones beyond ASCII."""
    batch: list[int] = []
    seen: set[int] = set()
    for keysym in keysyms:
        rare = keysym > 0x7E
        if rare and keysym not in seen and len(seen) == distinct:
            yield batch
            batch, seen = [], set()
        if rare:
            seen.add(keysym)
        batch.append(keysym)
    if batch:
        yield batch
