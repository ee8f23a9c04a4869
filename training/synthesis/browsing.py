"""GUI-Browsing: questions with several obfuscated conditions, and chains of them over links.

UI-TARS-2, section 2.5: core attributes, their distinctiveness, the revealing ones dropped, the rest said
more abstractly; chains along hyperlinks; then filters for prior knowledge and one-shot search. There a
model scores distinctiveness; here it is counted: how many pages of the corpus meet a condition.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations, pairwise
from typing import Any

from sandbox.answers import matches, normalised
from sandbox.sites import atlas
from sandbox.sites.atlas import Country
from training.synthesis.general import Made
from training.synthesis.search import Index
from training.synthesis.similar import Seen
from training.synthesis.survey import Dropped
from training.synthesis.writer import Unreadable, Writer

VERSION = "1"
REVEALING = 4
"""A condition that fewer pages meet all but names the page: it is dropped."""
MOST = 5
RECALLS = 2


@dataclass(frozen=True, slots=True)
class Condition:
    """Something that is true of a page, in words; `met` are the names of all pages of which it is."""

    words: str
    met: frozenset[str]

    @property
    def distinctiveness(self) -> float:
        """1 where only one page meets it, towards 0 where all do."""
        return 1 / len(self.met)


ASKED: dict[str, Callable[[Country], str]] = {
    "What is its capital?": lambda c: c.capital,
    "What is its calling code?": lambda c: c.calling_code,
    "What is its internet domain?": lambda c: c.domain,
    "What are its people called (the demonym)?": lambda c: c.demonym,
    "What is its native name?": lambda c: c.native_name,
}
SIZES = (0, 1, 2, 5, 10, 20, 50, 100, 200, 2000)
"""Bounds of a range in millions of people."""
AREAS = (0, 1, 10, 50, 100, 250, 500, 1000, 2500, 20_000)
"""Bounds of a range in thousands of km²."""


def conditions(country: Country) -> list[Condition]:
    """Return what can be said of a country without naming it, revealing things left out."""
    said: list[tuple[str, Callable[[Country], bool]]] = [
        (f"it lies in {country.subregion}", lambda c: c.subregion == country.subregion),
        (
            f"it borders exactly {len(country.neighbours)} countries",
            lambda c: len(c.neighbours) == len(country.neighbours),
        ),
        (
            f"its capital begins with {country.capital[0]}",
            lambda c: c.capital[0] == country.capital[0],
        ),
        (
            f"it lies {'north' if country.latitude >= 0 else 'south'} of the equator",
            lambda c: (c.latitude >= 0) == (country.latitude >= 0),
        ),
        (
            f"its page lists {len(country.languages)} language(s)",
            lambda c: len(c.languages) == len(country.languages),
        ),
        _range(
            country, "it has between {} and {} million people", SIZES, lambda c: c.population / 1e6
        ),
        _range(
            country, "its area is between {} and {} thousand km²", AREAS, lambda c: c.area / 1e3
        ),
    ]
    for currency in country.currencies:
        said.append((f"one can pay with {currency}", lambda c, x=currency: x in c.currencies))  # type: ignore[misc]
    for language in country.languages:
        said.append((f"{language} is one of its languages", lambda c, x=language: x in c.languages))  # type: ignore[misc]
    every = atlas.countries().values()
    found = [Condition(words, frozenset(c.name for c in every if true(c))) for words, true in said]
    return [condition for condition in found if len(condition.met) >= REVEALING]


def _range(
    country: Country, what: str, bounds: Sequence[int], number: Callable[[Country], float]
) -> tuple[str, Callable[[Country], bool]]:
    value = number(country)
    low, high = next((a, b) for a, b in pairwise(bounds) if a <= value < b)
    return what.format(low, high), lambda c: low <= number(c) < high


def identify(
    country: Country, among: frozenset[str], rng: random.Random, *, least: int = 2
) -> list[Condition] | None:
    """Return `least` to MOST conditions that only `country` meets `among` the pages; None if none do.

    Of the smallest sets that do, one by chance.
    """
    known = [c for c in conditions(country) if not among <= c.met]
    for size in range(least, MOST + 1):
        sets = [
            list(some)
            for some in combinations(known, size)
            if frozenset.intersection(among, *(c.met for c in some)) == {country.name}
        ]
        if sets:
            return rng.choice(sets)
    return None


def synthesise(writer: Writer, *, count: int, seed: int, hops: Sequence[int] = (1, 2, 3)) -> Made:
    """Make up to `count` questions, with `hops` countries in a row; what was dropped is listed."""
    made, rng, seen = Made(), random.Random(f"browsing/{seed}"), Seen()
    index = Index({name: _document(c) for name, c in atlas.countries().items()})
    for attempt in range(20 * count):
        if len(made.tasks) == count:
            break
        chain = _chain(hops[attempt % len(hops)], rng)
        task = _question(chain, writer, rng, made.dropped) if chain else None
        if task is None:
            continue
        reason = _too_easy(task, chain[-1], writer, index)
        twin = seen.twin(task["question"], "/".join([*task["hops"], task["question"][-30:]]))
        if reason or twin:
            made.dropped.append(Dropped(task["question"], reason or f"is like {twin!r}"))
            continue
        seen.add(task["question"], "/".join([*task["hops"], task["question"][-30:]]))
        task["name"] = f"atlas-{seed}-{len(made.tasks):02}"
        made.tasks.append(task)
    return made


def _chain(length: int, rng: random.Random) -> list[Country]:
    """Return countries of which each borders the one before; [] where chance led nowhere."""
    every = atlas.countries()
    chain = [rng.choice(list(every.values()))]
    while len(chain) < length:
        around = [n for n in chain[-1].neighbours if n not in {c.name for c in chain}]
        if not around:
            return []
        chain.append(every[rng.choice(around)])
    return chain


def _question(
    chain: Sequence[Country], writer: Writer, rng: random.Random, dropped: list[Dropped]
) -> dict[str, Any] | None:
    everything = frozenset(atlas.countries())
    parts: list[str] = []
    scores: list[float] = []
    for n, country in enumerate(chain):
        among = everything if n == 0 else frozenset(chain[n - 1].neighbours)
        found = [] if len(among) == 1 else identify(country, among, rng, least=2 if n == 0 else 1)
        if found is None:
            dropped.append(Dropped(country.name, "no conditions tell it from the others"))
            return None
        scores += [round(condition.distinctiveness, 3) for condition in found]
        said = [condition.words for condition in found]
        if n:
            parts.append(f"then go on to the one of its neighbours of which is true: {'; '.join(said)}"
                         if said else "then go on to its only neighbour")  # fmt: skip
        else:
            parts += said
    asked = rng.choice(sorted(ASKED))
    answer = ASKED[asked](chain[-1])
    try:
        question = writer.abstract("country", parts, asked)
    except Unreadable as error:
        dropped.append(Dropped("; ".join(parts), f"the writer's answer: {error}"))
        return None
    if any(normalised(c.name) in normalised(question) for c in chain):
        dropped.append(Dropped(question, "names what it asks for"))
        return None
    clicks = [f"{chain[0].name[0]}", chain[0].name, *(c.name for c in chain[1:])]
    return {
        "corpus": "atlas",
        "question": question,
        "accepted": [answer, f"+{answer}"] if "calling" in asked else [answer],
        "plan": [{"click": {"role": "link", "name": name}} for name in clicks],
        "hops": [c.name for c in chain],
        "provenance": {
            "pipeline": f"browsing-{VERSION}",
            "writer": writer.version,
            "conditions": parts,
            "distinctiveness": scores,
            "memory_asked": writer.version if writer.remembers else "",
        },
    }


def _too_easy(task: dict[str, Any], target: Country, writer: Writer, index: Index) -> str:
    """Return why a question needs no browsing; "" if it does."""
    for _ in range(RECALLS if writer.remembers else 0):
        try:
            said = writer.recall(task["question"])
        except Unreadable:
            continue
        if matches(said, task["accepted"]):
            return "is answered from memory"
    if index.best(task["question"]) == target.name:
        return "is answered by one search"
    return ""


def _document(country: Country) -> str:
    return " ".join([country.name, *(f"{label} {text}" for label, text in atlas.facts(country))])
