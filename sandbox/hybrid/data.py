"""What a task's page offers, and the right answer; all from the seed, without a computer."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass

MONTHS = ("january", "february", "march", "april", "may", "june")
REGIONS = ("north", "south", "east", "west")
GOODS = (
    "lamp", "desk", "chair", "shelf", "clock", "rug", "mirror", "vase", "sofa", "stool", "bench", "frame",
)  # fmt: skip
CITIES = ("Lisbon", "Oslo", "Turin", "Ghent", "Lyon", "Cork", "Graz", "Malmo", "Porto", "Split")


@dataclass(frozen=True, slots=True)
class Case:
    """One episode: files by name, which of them counts, the question and its answer.

    `command` solves it in a shell that stands in the folder of downloads.
    """

    title: str
    files: dict[str, str]
    wanted: str
    question: str
    answer: str
    command: str


def orders(seed: int) -> Case:
    """Sum the amounts of one region in one month's orders."""
    rng = random.Random(f"orders/{seed}")
    files, sums = {}, {}
    for month in MONTHS:
        rows = ["order,region,goods,amount"]
        sums[month] = dict.fromkeys(REGIONS, 0)
        for number in range(12):
            region, amount = rng.choice(REGIONS), rng.randrange(5, 95)
            sums[month][region] += amount
            rows.append(f"{1000 + number},{region},{rng.choice(GOODS)},{amount}")
        files[f"orders-{month}.csv"] = "\n".join(rows) + "\n"
    month = rng.choice(MONTHS)
    region = max(REGIONS, key=lambda r: (sums[month][r] > 0, rng.random()))
    name = f"orders-{month}.csv"
    return Case(
        "Orders by month", files, name,
        f"What do the orders of the region {region} in {month.capitalize()} add up to?",
        str(sums[month][region]),
        f"awk -F, '$2==\"{region}\" {{s+=$4}} END {{print s}}' {name}",
    )  # fmt: skip


def visits(seed: int) -> Case:
    """Count the failed requests of one server's log."""
    rng = random.Random(f"visits/{seed}")
    files, failed = {}, {}
    for server in ("alpha", "beta", "gamma", "delta"):
        lines, bad = [], 0
        for minute in range(16):
            status = rng.choice((200, 200, 200, 304, 404, 500))
            bad += status == 500
            lines.append(
                f"12:{minute:02} GET /{rng.choice(GOODS)} {status} {rng.randrange(9, 900)}ms"
            )
        files[f"{server}.log"] = "\n".join(lines) + "\n"
        failed[server] = bad
    server = rng.choice(sorted(failed))
    return Case(
        "Logs by server", files, f"{server}.log",
        f"How many requests of the server {server} ended with status 500?",
        str(failed[server]), f"grep -c ' 500 ' {server}.log || true",
    )  # fmt: skip


def stock(seed: int) -> Case:
    """Find the goods of which one branch has most."""
    rng = random.Random(f"stock/{seed}")
    files, most = {}, {}
    for city in rng.sample(CITIES, 5):
        counts = dict(zip(rng.sample(GOODS, 9), rng.sample(range(3, 90), 9), strict=True))
        lines = [f"{goods}\t{count}" for goods, count in counts.items()]
        files[f"stock-{city.lower()}.tsv"] = "goods\tcount\n" + "\n".join(lines) + "\n"
        most[city] = max(counts, key=lambda goods: counts[goods])
    city = rng.choice(sorted(most))
    name = f"stock-{city.lower()}.tsv"
    return Case(
        "Stock by branch", files, name,
        f"Of which goods does the branch in {city} have most? Answer with the one word of the list.",
        most[city], f"tail -n +2 {name} | sort -t \"$(printf '\\t')\" -k2 -n | tail -n 1 | cut -f 1",
    )  # fmt: skip


CASES: dict[str, Callable[[int], Case]] = {"orders": orders, "visits": visits, "stock": stock}


def page(case: Case) -> str:
    """Return the page that offers the files, self-contained."""
    rows = "".join(
        f'<li><a href="files/{name}" download>{name}</a><span>{len(text)} bytes</span></li>'
        for name, text in sorted(case.files.items())
    )
    return PAGE.replace("{title}", case.title).replace("{rows}", rows)


PAGE = """<!doctype html><html lang="en"><meta charset="utf-8"><title>{title}</title>
<style>
body { font: 16px/1.5 "DejaVu Sans", sans-serif; margin: 3rem auto; max-width: 44rem; color: #1c2430; }
h1 { font-size: 1.6rem } ul { list-style: none; padding: 0 }
li { display: flex; justify-content: space-between; border-bottom: 1px solid #d8dee8; padding: .7rem .2rem }
a { color: #1557b0 } span { color: #667 }
</style>
<h1>{title}</h1><p>Click a file to save it in your Downloads.</p><ul>{rows}</ul></html>
"""
