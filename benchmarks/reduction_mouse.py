"""What a made hand does with its mouse, as events, with the jitter of a real one."""

from __future__ import annotations

import random
from dataclasses import dataclass, field

from trajectory import (
    Action,
    Click,
    Drag,
    KeyDown,
    KeyUp,
    LongPress,
    Point,
    Scroll,
)
from trajectory import recording as rec

WIDTH, HEIGHT = 1280, 720


@dataclass
class Mouse:
    """Writes the events of gestures; every gesture is a method that returns the actions it means."""

    rng: random.Random
    events: list[rec.Event] = field(default_factory=list)
    t: float = 1.0
    at: Point = (100, 100)
    picture: int = 0
    late: list[tuple[float, str]] = field(default_factory=list)

    def sleep(self, least: float, most: float) -> None:
        self.t += self.rng.uniform(least, most)

    def move(self, x: int, y: int) -> None:
        self.at = (x, y)
        self.events.append(rec.Moved(self.t, x, y))

    def frame(self, *, changed: bool = True) -> None:
        self.picture += changed
        self.events.append(
            rec.FrameTaken(self.t, self.t - 0.03, f"{self.picture:064x}", WIDTH, HEIGHT)
        )

    def go(self, *, far: bool = True) -> Point:
        """Move to a new place, along a few points, and settle there."""
        x, y = self.rng.randint(40, WIDTH - 41), self.rng.randint(40, HEIGHT - 41)
        if far and abs(x - self.at[0]) + abs(y - self.at[1]) < 60:
            x = (x + WIDTH // 2) % (WIDTH - 80) + 40
        x0, y0 = self.at
        for n in range(1, 6):
            self.sleep(0.008, 0.02)
            self.move(x0 + (x - x0) * n // 5, y0 + (y - y0) * n // 5)
        self.sleep(0.05, 0.2)
        return self.at

    def press(self, button: rec.Button = "left") -> None:
        self.events.append(rec.Pressed(self.t, *self.at, button))

    def release(self, button: rec.Button = "left") -> None:
        self.events.append(rec.Released(self.t, *self.at, button))

    def down(self, key: str, text: str = "", *, repeat: bool = False) -> None:
        self.events.append(rec.KeyPressed(self.t, key, text, repeat))

    def up(self, key: str) -> None:
        self.events.append(rec.KeyReleased(self.t, key))

    def tap(self, key: str, text: str = "") -> None:
        self.down(key, text)
        self.sleep(0.03, 0.1)
        self.up(key)
        self.sleep(0.03, 0.15)

    def tremble(self, most: int) -> None:
        x, y = self.at
        self.move(x + self.rng.randint(-most, most), y + self.rng.randint(-most, most))

    # -- the mouse -------------------------------------------------------------------------------

    def click(self) -> list[Action]:
        place, button = self.go(), self.rng.choice(["left", "left", "right", "middle"])
        self.press(button)
        self.sleep(0.04, 0.3)
        if self.rng.random() < 0.4:
            self.tremble(4)
        self.release(button)
        return [Click(*place, button)]

    def clicks(self) -> list[Action]:
        place, count = self.go(), self.rng.choice([2, 3])
        for n in range(count):
            self.sleep(0.05, 0.2) if n else None
            if n:
                self.move(place[0] + self.rng.randint(-2, 2), place[1] + self.rng.randint(-2, 2))
            self.press()
            self.sleep(0.03, 0.12)
            self.release()
        return [Click(*place, count=count)]

    def two_clicks(self) -> list[Action]:
        """Click twice at one place, but slowly; or quickly, but at two places."""
        place, far = self.go(), self.rng.random() < 0.5
        second = (place[0] + 9, place[1] - 3) if far else place
        self.press()
        self.sleep(0.04, 0.1)
        self.release()
        self.sleep(*((0.05, 0.15) if far else (0.55, 0.9)))
        self.move(*second)
        self.press()
        self.sleep(0.04, 0.1)
        self.release()
        return [Click(*place), Click(*second)]

    def held_click(self) -> list[Action]:
        place = self.go()
        keys = tuple(self.rng.sample(["ctrl", "shift", "alt"], self.rng.choice([1, 1, 2])))
        for key in keys:
            self.down(key)
            self.sleep(0.05, 0.3)
        times = self.rng.choice([1, 2])
        actions: list[Action] = []
        for n in range(times):
            if n:
                self.sleep(0.1, 0.3)
                place = self.go()
            self.press()
            self.sleep(0.04, 0.12)
            self.release()
            actions.append(Click(*place, modifiers=keys))
        self.sleep(0.03, 0.2)
        for key in keys:
            self.up(key)
        return actions

    def drag(self) -> list[Action]:
        start, button = self.go(), self.rng.choice(["left", "left", "left", "right"])
        keys = self.rng.choice([(), (), ("ctrl",), ("shift", "alt")])
        for key in keys:
            self.down(key)
            self.sleep(0.03, 0.2)
        self.press(button)
        path, (x, y) = [start], start
        length = self.rng.choice([1, 3, 12, 60])
        for n in range(length):
            self.sleep(0.008, 0.1)
            x, y = x + self.rng.randint(3, 9), y + self.rng.choice([-4, 1, 5])
            if n == 0:
                x += 7
            self.move(x, y)
            path.append((x, y))
        self.sleep(0.02, 0.6)
        self.release(button)
        self.sleep(0.02, 0.1)
        for key in reversed(keys):
            self.up(key)
        return [
            *(KeyDown(key) for key in keys),
            Drag(tuple(path), button),
            *(KeyUp(key) for key in reversed(keys)),
        ]

    def long_press(self) -> list[Action]:
        place, began = self.go(), self.t
        self.press()
        self.sleep(0.82, 2.0)
        self.tremble(3)
        self.release()
        return [LongPress(*place, round((self.t - began) * 1000))]

    def scroll(self) -> list[Action]:
        """Turn the wheel in bursts: further, back, across; with a pause between equal ones."""
        place = self.go()
        keys = self.rng.choice([(), (), (), ("ctrl",)])
        for key in keys:
            self.down(key)
            self.sleep(0.03, 0.2)
        actions: list[Action] = []
        before: tuple[int, int] | None = None
        turned_at = place
        for _ in range(self.rng.randint(1, 3)):
            way = self.rng.choice([(0, 1), (0, -1), (1, 0), (-1, 0)])
            if way == before:
                self.sleep(1.05, 1.6)
            count = self.rng.randint(1, 9)
            for n in range(count):
                self.sleep(0.02, 0.4) if n else self.sleep(0.02, 0.3)
                if self.rng.random() < 0.3 and not keys:
                    self.move(
                        place[0] + self.rng.randint(-4, 4), place[1] + self.rng.randint(-4, 4)
                    )
                turned_at = turned_at if n else self.at
                self.events.append(rec.Scrolled(self.t, *self.at, *way))
            before = way
            turn = Scroll(*turned_at, way[0] * count, way[1] * count)
            actions += [*map(KeyDown, keys), turn, *map(KeyUp, reversed(keys))]
        for key in keys:
            self.sleep(0.02, 0.1)
            self.up(key)
        self.sleep(1.05, 1.2)
        return actions

    def lost_release(self) -> list[Action]:
        self.go()
        self.press("middle")
        self.sleep(0.05, 0.1)
        self.events.append(rec.Paused(self.t))
        self.sleep(1.0, 30.0)
        self.events.append(rec.Resumed(self.t))
        return []  # nobody knows what became of it

    def lost_press(self) -> list[Action]:
        self.release("back")
        self.up("x")
        return []
