"""How many utterances find their action: made recordings with known truth, beside two simple rules.

    python -m benchmarks.alignment [--recordings 40] [--seed 1000]

Every recording is a walk through a made program: clicks on named things, typing, scrolling, chords and
drags, with a voice that speaks before, during or after each action (or not at all), with jitter, pauses,
fillers, and words that the engine heard wrong as often as Whisper base does. The measured recordings use
sentences and names that the constants were not chosen on (`held_out`).
"""

from __future__ import annotations

import argparse
import random
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from annotation.recordings.acts import Act, Spoken
from annotation.recordings.alignment import align
from trajectory import Action, Click, Drag, Hotkey, Scroll, Type

WRONG_WORDS = 0.08  # of all words, as Whisper base hears a made voice
LONG = 1500  # actions: hours of work

KNOWN_NAMES = (
    "Save", "Cancel", "Settings", "Search", "Reports", "Export as PDF", "New folder", "Send", "Inbox",
    "Profile", "Sign in", "Add to cart", "Next page", "Filters", "Download", "Share", "Help", "Close",
    "Insert table", "Calendar", "Notifications", "Privacy", "Language", "Apply", "Sort by price",
)  # fmt: skip
HELD_NAMES = (
    "Archive", "Attachments", "Billing address", "Bookmark", "Compose", "Dark theme", "Delete account",
    "Discount code", "Duplicate slide", "Edit", "Favourites", "Font size", "Gallery", "History",
    "Invoice number", "Layout", "Merge cells", "Mute", "Open recent", "Payment", "Preview", "Print",
    "Quantity", "Rename", "Schedule", "Spelling", "Sync now", "Templates", "Unsubscribe", "Zoom in",
)  # fmt: skip
KNOWN_TEXTS = ("annual report", "hello world", "red shoes", "weather in paris", "meeting at ten")
HELD_TEXTS = (
    "blue running jacket", "flight to lisbon", "quarterly budget", "thank you for the quick answer",
    "machine learning lecture", "second draft", "train timetable", "vegetable soup recipe",
)  # fmt: skip

# Sentences by when they are said; {} is the name or the text. "bare" ones name nothing.
KNOWN: dict[str, dict[str, tuple[str, ...]]] = {
    "click": {
        "before": ("now i click on {}", "i need {} here", "let me open {}", "so {} is what i want"),
        "during": ("clicking {}", "pressing {} now"),
        "after": ("i clicked {} and it opened", "okay {} is open"),
        "bare": ("let me click here", "this one i think", "so i press that"),
    },
    "type": {
        "before": ("i am going to type {}", "i have to enter {}"),
        "during": ("typing {}", "{}"),
        "after": ("i typed {}", "okay that is {} entered"),
        "bare": ("let me fill this in", "now i write it down"),
    },
    "scroll": {
        "before": ("i scroll {} to see more", "it must be further {}"),
        "during": ("scrolling {}",),
        "after": ("i scrolled {} and there it is",),
        "bare": ("where is it",),
    },
    "chord": {
        "before": ("i {} this", "let me {} it"),
        "during": ("{} with the keyboard",),
        "after": ("so that is done i did {}",),
        "bare": ("and the shortcut",),
    },
    "drag": {
        "before": ("i drag {} over there", "let me move {}"),
        "during": ("dragging {}",),
        "after": ("i moved {} to the side",),
        "bare": ("and drag it over",),
    },
}
HELD: dict[str, dict[str, tuple[str, ...]]] = {
    "click": {
        "before": (
            "i think the thing i am looking for is under {}", "{} should do it", "maybe {} has it",
            "next i will choose {}", "there is {} so i go for that", "we want {} don't we",
        ),
        "during": ("{} yes", "and hitting {}", "so here i select {}"),
        "after": ("that was {} and the dialog came up", "right {} worked", "i picked {} because it fits"),
        "bare": ("hmm where do i go now", "perhaps this does something", "i try the first one"),
    },
    "type": {
        "before": ("the box wants {} i guess", "we look for {}", "so i put in {}"),
        "during": ("{} like this", "writing {} here"),
        "after": ("i wrote {} there", "good now it says {}"),
        "bare": ("this field is empty so i fill it", "it asks me for something"),
    },
    "scroll": {
        "before": ("the rest is probably {} the page", "going {} a bit"),
        "during": ("further {}", "scroll scroll {}"),
        "after": ("i went {} and found the list",),
        "bare": ("not visible yet",),
    },
    "chord": {
        "before": ("i have to {} that first", "time to {}"),
        "during": ("quickly {}",),
        "after": ("okay {} is done with the keys",),
        "bare": ("using the keyboard for this",),
    },
    "drag": {
        "before": ("{} belongs somewhere else so i move it", "i pull {} to the left"),
        "during": ("moving {} across",),
        "after": ("i dropped {} in the right place",),
        "bare": ("this has to be over there",),
    },
}  # fmt: skip
FILLERS = ("um", "okay", "so", "well", "hmm", "right", "let me see", "uh")
CHORDS = (
    (("ctrl", "c"), "copy"), (("ctrl", "v"), "paste"), (("ctrl", "s"), "save"), (("ctrl", "z"), "undo"),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Made:
    """One made recording: `truth[i]` is the index of the act that `said[i]` means."""

    said: tuple[Spoken, ...]
    acts: tuple[Act, ...]
    truth: tuple[int, ...]


def made(seed: int, *, held_out: bool) -> Made:
    """Return one recording of 8 to 20 actions; the same seed gives the same."""
    rng = random.Random(seed)
    sentences = HELD if held_out else KNOWN
    t, acts, said, truth = rng.uniform(1, 4), [], [], []
    for at in range(rng.randint(8, 20)):
        kind, action, element, named, lasts = _act(rng, held_out)
        when = rng.choices(("before", "during", "after", "none"), (55, 20, 15, 10))[0]
        text = _sentence(rng, sentences[kind], when, named) if when != "none" else ""
        long = _seconds(rng, text)
        think = rng.choice((rng.uniform(0.3, 1.0), rng.uniform(1.0, 4.0), rng.uniform(4.0, 9.0)))
        if when == "before":
            # Some pause between the word and the deed; with a long pause two utterances.
            began = t + rng.uniform(0.1, think)
            done = began + long + max(-0.4, rng.gauss(0.7, 0.6))
        elif when == "during":
            began = t + think + rng.uniform(-0.3, 0.4)
            done = t + think
        else:
            done = t + think
            began = done + lasts + max(0.05, rng.gauss(0.7, 0.5))
        acts.append(Act(done, done + lasts, action, element))
        t = done + lasts
        if text:
            spoken = Spoken(began, began + long, _misheard(rng, text, held_out))
            said.append((spoken, at))
            if when == "after":
                t = max(t, began + long + rng.uniform(0.0, 0.8))
            elif rng.random() < 0.15:
                # Somebody goes on about the same thing after a pause.
                more = _sentence(rng, sentences[kind], "after", named)
                began = max(spoken.ended, t) + rng.uniform(0.3, 1.2)
                said.append(
                    (Spoken(began, began + _seconds(rng, more), _misheard(rng, more, held_out)), at)
                )
                t = began + _seconds(rng, more)
    said.sort(key=lambda pair: pair[0].began)
    truth = [at for _, at in said]
    return Made(tuple(one for one, _ in said), tuple(acts), tuple(truth))


def joined(seed: int, *, actions: int, held_out: bool) -> Made:
    """Return one recording of at least `actions` actions: made ones, one behind the other."""
    said: list[Spoken] = []
    acts: list[Act] = []
    truth: list[int] = []
    began = 0.0
    while len(acts) < actions:
        one = made(seed, held_out=held_out)
        truth += [len(acts) + at for at in one.truth]
        said += [replace(s, began=began + s.began, ended=began + s.ended) for s in one.said]
        acts += [replace(a, began=began + a.began, ended=began + a.ended) for a in one.acts]
        began, seed = max(acts[-1].ended, said[-1].ended) + 2.0, seed + 1
    return Made(tuple(said), tuple(acts), tuple(truth))


def nearest(said: Sequence[Spoken], acts: Sequence[Act]) -> list[int | None]:
    """The first simple rule: the action nearest in time."""
    return [
        min(
            range(len(acts)),
            key=lambda at: max(acts[at].began - one.ended, one.began - acts[at].ended, 0.0),
        )
        for one in said
    ]


def previous_window(said: Sequence[Spoken], acts: Sequence[Act]) -> list[int | None]:
    """The second: everything from the end of the action before up to this one belongs to this one."""
    return [
        next((at for at, act in enumerate(acts) if act.ended >= one.began), len(acts) - 1)
        for one in said
    ]


def ours(said: Sequence[Spoken], acts: Sequence[Act]) -> list[int | None]:
    return [pair.act for pair in align(said, acts)]


def accuracy(
    rule: Callable[[Sequence[Spoken], Sequence[Act]], list[int | None]], corpus: Sequence[Made]
) -> tuple[int, int]:
    """Return how many utterances found their action, and of how many."""
    right = total = 0
    for one in corpus:
        found = rule(one.said, one.acts)
        right += sum(a == b for a, b in zip(found, one.truth, strict=True))
        total += len(one.truth)
    return right, total


def _act(rng: random.Random, held_out: bool) -> tuple[str, Action, str, str, float]:
    kind = rng.choices(("click", "type", "scroll", "chord", "drag"), (55, 18, 12, 9, 6))[0]
    name = rng.choice(HELD_NAMES if held_out else KNOWN_NAMES)
    x, y = rng.randrange(1200), rng.randrange(700)
    match kind:
        case "click":
            return kind, Click(x, y), f"button {name}", name.lower(), rng.uniform(0.05, 0.2)
        case "type":
            text = rng.choice(HELD_TEXTS if held_out else KNOWN_TEXTS)
            return kind, Type(text), f"text {name}", text, rng.uniform(1.5, 5.0)
        case "scroll":
            dy = rng.choice((-5, 5, 8))
            return kind, Scroll(x, y, 0, dy), "", "down" if dy > 0 else "up", rng.uniform(0.3, 2.0)
        case "chord":
            keys, word = rng.choice(CHORDS)
            return kind, Hotkey(keys), "", word, 0.2
        case _:
            path = ((x, y), (x + 50, y + 40))
            return kind, Drag(path), f"list item {name}", name.lower(), rng.uniform(0.5, 1.5)


def _sentence(
    rng: random.Random, sentences: dict[str, tuple[str, ...]], when: str, named: str
) -> str:
    if when != "after" and rng.random() < 0.12:
        when = "bare"
    text = rng.choice(sentences[when]).replace("{}", named)
    return f"{rng.choice(FILLERS)} {text}" if rng.random() < 0.35 else text


def _seconds(rng: random.Random, text: str) -> float:
    return max(0.3, len(text.split()) * rng.uniform(0.26, 0.42))


def _misheard(rng: random.Random, text: str, held_out: bool) -> str:
    pool = [
        word for name in (HELD_NAMES if held_out else KNOWN_NAMES) for word in name.lower().split()
    ]
    pool += ["and", "the", "hit", "free", "then"]
    return " ".join(
        rng.choice(pool) if rng.random() < WRONG_WORDS else word for word in text.split()
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--recordings", type=int, default=40)
    parser.add_argument("--seed", type=int, default=1000)
    parser.add_argument(
        "--known", action="store_true", help="the wording the constants were chosen on"
    )
    asked = parser.parse_args()
    corpus = [made(asked.seed + at, held_out=not asked.known) for at in range(asked.recordings)]
    print("| rule | right | of | share |\n|---|---|---|---|")
    for name, rule in (
        ("time and content, whole recording", ours),
        ("nearest in time", nearest),
        ("window before the action", previous_window),
    ):
        right, total = accuracy(rule, corpus)
        print(f"| {name} | {right} | {total} | {right / total:.1%} |")
    long = joined(asked.seed, actions=LONG, held_out=not asked.known)
    spent = time.process_time()
    right, total = accuracy(ours, [long])
    spent = time.process_time() - spent
    hours = long.acts[-1].ended / 3600
    print(
        f"| the same, one recording of {len(long.acts)} actions in {hours:.1f} h, {spent:.1f} s of CPU"
        f" | {right} | {total} | {right / total:.1%} |"
    )


if __name__ == "__main__":
    main()
