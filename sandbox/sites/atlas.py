"""A small encyclopaedia of linked pages: every country of the packaged data set, on a page of its own.

The facts are those of the `countryinfo` package (MIT), as old and as right as they are there: a task
asks what the page says.
"""

from __future__ import annotations

import html
import importlib.util
import json
import os
import shutil
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from sandbox.families.protocol import checksum

VERSION = "1"


class AtlasMissing(FileNotFoundError):
    """The package with the facts is not installed."""


@dataclass(frozen=True, slots=True)
class Country:
    """One page's facts. `area` in km², `latitude` in degrees; `neighbours` are names of other pages."""

    name: str
    capital: str
    region: str
    subregion: str
    population: int
    area: float
    latitude: float
    currencies: tuple[str, ...]
    languages: tuple[str, ...]
    calling_code: str
    domain: str
    demonym: str
    native_name: str
    provinces: int
    neighbours: tuple[str, ...]

    @property
    def file(self) -> str:
        return (
            "".join(c if c.isascii() and c.isalnum() else "-" for c in self.name.lower()) + ".html"
        )


@cache
def countries() -> Mapping[str, Country]:
    """Return every country with complete facts, by name; raises AtlasMissing."""
    spec = importlib.util.find_spec("countryinfo")
    places = list(spec.submodule_search_locations or ()) if spec else []
    if not places:
        raise AtlasMissing("the countryinfo package is missing: see requirements-data.lock")
    records = [
        json.loads(path.read_text(encoding="utf-8"))
        for path in sorted(Path(places[0], "data").glob("*.json"))
    ]
    whole = [r for r in records if _complete(r)]
    names = {r["ISO"]["alpha3"]: r["name"] for r in whole}
    return {r["name"]: _country(r, names) for r in sorted(whole, key=lambda r: str(r["name"]))}


def _complete(record: Mapping[str, object]) -> bool:
    wanted = ("capital", "region", "subregion", "population", "area", "latlng", "currencies")
    more = ("languages", "callingCodes", "tld", "demonym", "nativeName")
    return all(record.get(key) for key in (*wanted, *more))


def _country(record: Mapping[str, object], names: Mapping[str, str]) -> Country:
    r: dict[str, object] = dict(record)

    def texts(key: str) -> tuple[str, ...]:
        value = r.get(key)
        return tuple(str(v) for v in value) if isinstance(value, list) else ()

    return Country(
        name=str(r["name"]),
        capital=str(r["capital"]),
        region=str(r["region"]),
        subregion=str(r["subregion"]),
        population=int(str(r["population"])),
        area=float(str(r["area"])),
        latitude=float(texts("latlng")[0]),
        currencies=texts("currencies"),
        languages=texts("languages"),
        calling_code=texts("callingCodes")[0],
        domain=texts("tld")[0],
        demonym=str(r["demonym"]),
        native_name=str(r["nativeName"]),
        provinces=len(texts("provinces")),
        neighbours=tuple(sorted(names[code] for code in texts("borders") if code in names)),
    )


def facts(country: Country) -> list[tuple[str, str]]:
    """Return what a country's page says, as (label, text)."""
    return [
        ("Capital", country.capital),
        ("Region", f"{country.region}, {country.subregion}"),
        ("Population", f"{country.population:,}"),
        ("Area", f"{country.area:,.0f} km²"),
        ("Latitude", f"{abs(country.latitude):g}° {'north' if country.latitude >= 0 else 'south'}"),
        ("Currencies", ", ".join(country.currencies)),
        ("Languages", ", ".join(country.languages)),
        ("Calling code", f"+{country.calling_code}"),
        ("Internet domain", country.domain),
        ("Demonym", country.demonym),
        ("Native name", country.native_name),
        ("Provinces", str(country.provinces)),
    ]


@cache
def data_checksum() -> str:
    return checksum(VERSION, [[*facts(c), ("n", c.neighbours)] for c in countries().values()])


@cache
def folder() -> Path:
    """Return the folder of the pages, written when it is first asked for on this machine."""
    place = Path(tempfile.gettempdir(), f"tandem-atlas-{os.getuid()}-{data_checksum()[:16]}")
    if not (place / "index.html").exists():
        made = Path(tempfile.mkdtemp(prefix="tandem-atlas-"))
        for name, page in _pages().items():
            (made / name).write_text(page, encoding="utf-8")
        try:
            made.rename(place)
        except OSError:  # somebody else was faster, with the same pages
            shutil.rmtree(made)
    return place


def start() -> str:
    """Return the address of the first page."""
    return f"{folder().as_uri()}/index.html"


def _pages() -> dict[str, str]:
    every = countries().values()
    letters = sorted({c.name[0] for c in every})
    pages = {
        "index.html": _frame("Atlas", "<p>Countries by their first letter:</p>" + _links(
            [(letter, f"letter-{letter.lower()}.html") for letter in letters]
        ))
    }  # fmt: skip
    for letter in letters:
        own = [(c.name, c.file) for c in every if c.name[0] == letter]
        pages[f"letter-{letter.lower()}.html"] = _frame(f"Countries with {letter}", _links(own))
    for country in every:
        rows = "".join(
            f"<tr><th>{label}</th><td>{html.escape(text)}</td></tr>"
            for label, text in facts(country)
        )
        around = _links([(name, countries()[name].file) for name in country.neighbours])
        pages[country.file] = _frame(
            country.name,
            f"<table>{rows}</table><h2>Neighbours</h2>{around or '<p>None.</p>'}",
        )
    return pages


def _links(links: list[tuple[str, str]]) -> str:
    items = "".join(f'<li><a href="{file}">{html.escape(name)}</a></li>' for name, file in links)
    return f"<ul>{items}</ul>" if links else ""


def _frame(title: str, body: str) -> str:
    return (
        '<!doctype html><html lang="en"><meta charset="utf-8">'
        f"<title>{html.escape(title)} · Atlas</title><style>{STYLE}</style>"
        f'<p class="home"><a href="index.html">Atlas</a></p><h1>{html.escape(title)}</h1>{body}</html>'
    )


STYLE = """body { font: 15px/1.35 "DejaVu Sans", sans-serif; margin: 1rem 2rem; color: #1d2430 }
h1 { font-size: 1.5rem; margin: .3rem 0 .6rem } h2 { font-size: 1.1rem; margin: .8rem 0 .3rem }
ul { columns: 4; margin: .2rem 0; padding-left: 1.2rem } a { color: #1557b0 }
th { text-align: left; padding: .15rem 1.5rem .15rem 0; color: #556 } td { padding: .15rem 0 }
.home { margin: 0 }"""
