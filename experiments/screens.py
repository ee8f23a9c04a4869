"""Made-up screens with an instruction and its solution: what the base model learns to read from.

No browser and no task of the benchmark: other words, other instructions. They teach the prompt's form,
to find a name among elements, to copy one, and to see what is done already.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, field

from experiments.tasks import TOOL
from training.box.demonstrations import WORDS
from trajectory import Action, Actor, Click, Element, Observation, Shell, Step, Trajectory, Type

NO_PICTURE = "0" * 64
PRESS = (
    "Press {0}.", 'Press "{0}".', "Open {0} now.", "Please go to {0}.", 'Take the {1} "{0}".',
    "Use the {1} {0}.", "Look for {0} and press it.", 'Find the {1} called "{0}".',
)  # fmt: skip
MARK = ("Mark {0}, then press {1}.", "Tick {0}. Press {1} when it is done.", "Choose {0} and {1}.")
WRITE = ('Write "{0}" and press {1}.', "Put {0} into the box, then {1}.", 'Fill in "{0}". {1}!')
NTH = ("Press {1} number {0}.", "Take the {0}. {1}.", "Use {1} {0}.")
ANY = ("Press a {0}.", 'Use any "{0}" here.')


@dataclass(slots=True)
class Screen:
    """A screen that changes as it is worked on, and the steps so far."""

    rng: random.Random
    elements: list[Element] = field(default_factory=list)
    steps: list[Step] = field(default_factory=list)
    output: str = ""

    def add(self, role: str, name: str) -> int:
        """Add an element below the others and return its place in the list."""
        self.elements.append(Element(role, name, (10, 20 * len(self.elements), 100, 16)))
        return len(self.elements) - 1

    def shuffle(self) -> None:
        """Put the elements into another order."""
        self.rng.shuffle(self.elements)
        self.elements = [
            Element(e.role, e.name, (10, 20 * n, 100, 16)) for n, e in enumerate(self.elements)
        ]

    def find(self, name: str) -> int:
        return next(n for n, e in enumerate(self.elements) if e.name == name)

    def do(self, thought: str, action: Action, output: str = "") -> None:
        seen = Observation(NO_PICTURE, 160, 2000, tuple(self.elements), tool_output=self.output)
        self.steps.append(Step(len(self.steps), seen, thought, action, actor=Actor.ORACLE))
        self.output = output

    def click(self, at: int, value: str = "") -> None:
        """Click an element; it is then focused and has `value`."""
        one = self.elements[at]
        self.do(one.name or one.role, Click(*one.centre))
        self.set(at, value or one.value)

    def set(self, at: int, value: str) -> None:
        self.elements = [
            Element(e.role, e.name, e.box, value if n == at else e.value, n == at)
            for n, e in enumerate(self.elements)
        ]


def episodes(seed: int, count: int) -> Iterator[Trajectory]:
    """Yield `count` solved episodes, the same for the same seed."""
    kinds = (_press, _press, _press, _mark, _write, _nth, _any)
    for number in range(count):
        screen = Screen(random.Random(f"screens/{seed}/{number}"))
        instruction = screen.rng.choice(kinds)(screen)
        yield Trajectory(f"made-{seed}-{number}", "made", instruction, tuple(screen.steps))


def _name(rng: random.Random) -> str:
    kind = rng.random()
    if kind < 0.3:
        return "".join(rng.choices("abcdefghjkmnpqrstuvwxyzABCDEFGHIJKLMNPQRSTUVWXYZ23456789",
                                   k=rng.randint(1, 7)))  # fmt: skip
    if kind < 0.4:
        return str(rng.randint(-20, 99))
    text = " ".join(rng.sample(WORDS, rng.choice((1, 1, 1, 2, 3))))
    return text.title() if kind < 0.6 else text.capitalize() if kind < 0.75 else text


def _names(rng: random.Random, count: int) -> list[str]:
    found: dict[str, None] = {}
    while len(found) < count:
        found[_name(rng)] = None
    return list(found)


def _filler(screen: Screen, names: list[str]) -> None:
    for name in names:
        screen.add(screen.rng.choice(("button", "link", "text", "text", "tab", "shape")), name)


def _press(screen: Screen) -> str:
    rng = screen.rng
    names = _names(rng, rng.randint(1, 14))
    _filler(screen, names[1:])
    role = rng.choice(("button", "link", "tab", "shape", "radio", "checkbox"))
    screen.add(role, names[0])
    screen.shuffle()
    said = rng.choice(PRESS).format(names[0], role)
    if rng.random() < 0.15:
        at = screen.find(names[0])
        screen.do(names[0], Shell(f"grep {names[0]}"), f'{at + 1}: {role} "{names[0]}"')
        said = f"{said} {TOOL}"
    screen.click(screen.find(names[0]))
    return said


def _mark(screen: Screen) -> str:
    rng = screen.rng
    names = _names(rng, rng.randint(3, 9))
    done, role = names.pop(), rng.choice(("checkbox", "radio", "button"))
    for name in names:
        screen.add(role, name)
    wanted = rng.sample(
        range(len(names)), 1 if role == "radio" else rng.randint(1, min(4, len(names)))
    )
    last = screen.add("button", done)
    for at in sorted(wanted):
        screen.click(at, "" if role == "button" else "checked")
    screen.click(last)
    return rng.choice(MARK).format(", ".join(names[n] for n in sorted(wanted)), done)


def _write(screen: Screen) -> str:
    rng = screen.rng
    text, done, *others = _names(rng, rng.randint(2, 5))
    _filler(screen, others)
    box = screen.add("textbox", "")
    last = screen.add("button", done)
    screen.click(box)
    screen.do(text, Type(text))
    screen.set(box, text)
    screen.click(last)
    return rng.choice(WRITE).format(text, done)


def _nth(screen: Screen) -> str:
    rng = screen.rng
    role = rng.choice(("button", "link", "textbox", "tab"))
    count = rng.randint(1, 5)
    for name in _names(rng, rng.randint(0, 3)):
        screen.add("text", name)
    for name in _names(rng, count):
        screen.add(role, "" if role == "textbox" else name)
    wanted = rng.randrange(count)
    places = [n for n, e in enumerate(screen.elements) if e.role == role]
    screen.click(places[wanted])
    return rng.choice(NTH).format(wanted + 1, role)


def _any(screen: Screen) -> str:
    rng = screen.rng
    roles = rng.sample(("button", "link", "text", "textbox", "radio", "checkbox", "tab"), 4)
    for name in _names(rng, rng.randint(1, 6)):
        screen.add(rng.choice(roles[1:]), name)
    screen.add(roles[0], _name(rng))
    screen.shuffle()
    screen.click(next(n for n, e in enumerate(screen.elements) if e.role == roles[0]))
    return rng.choice(ANY).format(roles[0])
