"""Oracle demonstrations of MiniWoB pages, as canonical trajectories.

    python -m training.box.demonstrations --pages click-button,enter-text --seeds 0:200 --out X.jsonl

Only episodes with the full reward are kept. Some begin with a wrong action on purpose, marked as
not to be learnt, so that the oracle shows the repair; some are kept a second time in other words.
"""

from __future__ import annotations

import argparse
import dataclasses
import random
import re
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from sandbox import browser, miniwob
from training.box.episodes import Decide, Game, picture_folder, play
from trajectory import (
    Action,
    Actor,
    Click,
    Element,
    Observation,
    Step,
    Trajectory,
    Type,
    dump_lines,
)

RECOVERY_SHARE = 0.25
REPAIRABLE = {
    "click-checkboxes": ("checkbox",),
    "click-option": ("radio",),
    "click-tab-2": ("text",),
    "enter-text": ("textbox", "text"),
    "enter-password": ("textbox",),
    "login-user": ("textbox",),
}
"""Pages on which one wrong click does not end the episode, and what may be clicked."""


def demonstrate(
    pages: Sequence[str], seeds: Iterable[int], *, screenshots: Path | None = None
) -> Iterator[Trajectory]:
    """Yield the solved episodes of every page and seed, in that order."""
    seeds = list(seeds)
    keep = picture_folder(screenshots) if screenshots else None
    with browser.headless() as port:
        for page in pages:
            game = Game(port, page, picture=keep)
            for seed in seeds:
                try:
                    trajectory = play(game, seed, demonstrator(page, seed), actor=Actor.ORACLE)
                except miniwob.NoWay as error:
                    print(f"{page} {seed}: {error}, left out", file=sys.stderr)
                    continue
                if trajectory.reward == 1:
                    yield trajectory
                else:
                    print(f"{trajectory.id}: not solved, left out", file=sys.stderr)


def demonstrator(page: str, seed: int) -> Decide:
    """Return the oracle of `page`, on some seeds with a wrong first action."""
    rng = random.Random(f"wrong/{page}/{seed}")
    astray = page in REPAIRABLE and rng.random() < RECOVERY_SHARE

    def decide(
        instruction: str, steps: Sequence[Step], observation: Observation
    ) -> tuple[str, Action, bool]:
        elements = observation.elements or ()
        right = miniwob.oracle(page, instruction, elements, miniwob.past(steps))
        if astray and not steps:
            others = [
                e for e in elements
                if e.role in REPAIRABLE[page] and Click(*e.centre) != right[1]
            ]  # fmt: skip
            if others:
                wrong = rng.choice(others)
                return (
                    f"I try {wrong.role} {wrong.name}.".replace(" .", "."),
                    Click(*wrong.centre),
                    False,
                )
        return (*right, True)

    return decide


# -- other words -------------------------------------------------------------------------------

VOCABULARY = (
    "save open close new file edit view help print search send reply forward delete archive copy "
    "paste cut undo redo settings profile home back continue start stop pause play download upload "
    "share export import refresh apply accept decline confirm browse add remove sign in out log "
    "register subscribe account inbox drafts folder documents music pictures video report invoice "
    "order cart checkout payment address phone email name city country date time monday tuesday "
    "friday january march summer winter north south red green large small first last daily weekly "
    "total price tax note list table chart image page panel menu tools format insert window zoom "
    "about contact support news blog team project task calendar meeting event ticket travel hotel"
)
WORDS = VOCABULARY.split()

KINDS = ("button", "link", "checkbox", "radio", "tab", "textbox", "textarea")

WAYS: tuple[tuple[re.Pattern[str], tuple[str, ...]], ...] = (
    (
        re.compile(r'^Click on the "(.+)" button\.$'),
        (
            'Press the "{0}" button.', 'Click "{0}".', "Click the button labelled {0}.",
            'Please push "{0}".', "Use the {0} button.",
        ),
    ),
    (
        re.compile(r'^Click on the link "(.+)"\.$'),
        ('Open the link "{0}".', 'Follow "{0}".', "Click the {0} link.", 'Go to "{0}".'),
    ),
    (
        re.compile(r"^Select (.+) and click Submit\.$"),
        ("Choose {0}, then submit.", "Tick {0} and press Submit.", "Select {0} and submit."),
    ),
    (
        re.compile(r'^Enter "(.+)" into the text field and press Submit\.$'),
        (
            'Type "{0}" in the field and submit.', 'Fill in "{0}" and press Submit.',
            'Write "{0}" into the text box, then click Submit.',
        ),
    ),
    (
        re.compile(r"^Click on (Tab #\d)\.$"),
        ("Open {0}.", "Switch to {0}.", "Go to the tab {0}."),
    ),
)  # fmt: skip


def reworded(trajectory: Trajectory, seed: int) -> Trajectory:
    """Return the same episode with other names on the screen, and perhaps another instruction.

    A name is replaced wherever it stands: in the instruction, on every screen, in thoughts and in
    typed text. Names that a page counts on ("Tab #1", "Submit" in an instruction) may change too,
    consistently, so that a model learns to read instead of to remember.
    """
    rng = random.Random(f"words/{trajectory.id}/{seed}")
    names = dict.fromkeys(
        e.name
        for step in trajectory.steps
        for e in step.observation.elements or ()
        if e.role in KINDS and len(e.name) > 1 and e.name != "Close" and "#" not in e.name
    )
    for step in trajectory.steps:
        if isinstance(step.action, Type):
            names[step.action.text] = None
    taken: set[str] = set(names)
    change: dict[str, str] = {}
    instruction = _in_other_words(trajectory.instruction, rng)
    for name in names:
        # "press login" means the button "Login": another name for it would not be found.
        meant = name.lower() in instruction.lower() and name not in instruction
        if not meant and rng.random() < 0.7:
            change[name] = _fresh(rng, taken)
            taken.add(change[name])
    if not change:
        return dataclasses.replace(
            trajectory, id=f"{trajectory.id}-w{seed}", instruction=instruction
        )
    longest_first = sorted(change, key=len, reverse=True)
    pattern = re.compile("|".join(rf"(?<!\w){re.escape(n)}(?!\w)" for n in longest_first))

    def swap(text: str) -> str:
        return pattern.sub(lambda match: change[match.group()], text)

    def element(e: Element) -> Element:
        if set(e.value) == {"•"}:
            typed = [s.action.text for s in trajectory.steps if isinstance(s.action, Type)]
            whole = next((t for t in typed if len(t) == len(e.value)), "")
            return dataclasses.replace(
                e, name=swap(e.name), value="•" * len(swap(whole)) or e.value
            )
        return dataclasses.replace(e, name=swap(e.name), value=swap(e.value))

    steps = []
    for step in trajectory.steps:
        action = step.action
        if isinstance(action, Type):
            action = Type(swap(action.text), action.submit)
        seen = tuple(element(e) for e in step.observation.elements or ())
        steps.append(
            dataclasses.replace(
                step,
                observation=dataclasses.replace(step.observation, elements=seen),
                thought=swap(step.thought),
                action=action,
            )
        )
    return dataclasses.replace(
        trajectory,
        id=f"{trajectory.id}-w{seed}",
        instruction=swap(instruction),
        steps=tuple(steps),
        metadata={**trajectory.metadata, "reworded": str(seed)},
    )


def _fresh(rng: random.Random, taken: set[str]) -> str:
    while True:
        words = rng.sample(WORDS, rng.choice((1, 1, 2, 2, 3)))
        kind = rng.random()
        if kind < 0.15:
            text = "".join(rng.choices("abcdefghjkmnpqrstuvwxyzABCDEFGHJKLMNPQRSTUVWXYZ23456789",
                                       k=rng.randint(3, 8)))  # fmt: skip
        else:
            text = " ".join(words)
            text = text.title() if kind < 0.4 else text.capitalize() if kind < 0.7 else text
        if text not in taken:
            return text


def _in_other_words(instruction: str, rng: random.Random) -> str:
    for pattern, ways in WAYS:
        match = pattern.match(instruction)
        if match and rng.random() < 0.6:
            return rng.choice(ways).format(*match.groups())
    return instruction


def seeds_of(text: str) -> range:
    """Read "A:B" as the seeds from A up to but not including B."""
    first, _, end = text.partition(":")
    return range(int(first), int(end)) if end else range(int(first), int(first) + 1)


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m training.box.demonstrations")
    parser.add_argument("--pages", default=",".join(miniwob.PAGES), help="names, by commas")
    parser.add_argument("--seeds", type=seeds_of, default=range(0, 100), help="A:B, B not included")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--reworded", type=float, default=0.0, help="share kept in other words too")
    parser.add_argument(
        "--screenshots", type=Path, help="folder for PNG blobs; none are taken without"
    )
    options = parser.parse_args(argv)
    pages = options.pages.split(",")
    if unknown := [p for p in pages if p not in miniwob.PAGES]:
        parser.error(f"unknown page {unknown[0]!r}; known: {', '.join(miniwob.PAGES)}")
    begun, kept, steps = time.monotonic(), 0, 0
    options.out.parent.mkdir(parents=True, exist_ok=True)
    with options.out.open("w", encoding="utf-8") as out:
        for trajectory in demonstrate(pages, options.seeds, screenshots=options.screenshots):
            versions = [trajectory]
            if random.Random(trajectory.id).random() < options.reworded:
                versions.append(reworded(trajectory, 1))
            for line in dump_lines(versions):
                out.write(line)
            kept += 1
            steps += len(trajectory.steps)
    spent = time.monotonic() - begun
    print(f"{kept} of {len(pages) * len(options.seeds)} episodes, {steps} steps in {spent:.0f} s")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
