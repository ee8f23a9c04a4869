"""What a small web app of ours is: a schema, rows from a seed, and pages that change them."""

from __future__ import annotations

import html
import random
import re
import sqlite3
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

Form: TypeAlias = Mapping[str, str]
Page: TypeAlias = Callable[..., str]
"""(database, form, **parts of the path) -> HTML; may raise Redirect or NotFound."""


class Redirect(Exception):
    """Go on at another path of the same site; the first argument is the path."""


class NotFound(Exception):
    """There is no such page or row."""


class Invalid(Exception):
    """What was typed can't be taken; the message is shown to the person."""


@dataclass(slots=True)
class App:
    """One app. `fill` makes the same rows for the same random numbers, on an empty database."""

    name: str
    title: str
    schema: str
    fill: Callable[[sqlite3.Connection, random.Random], None]
    menu: tuple[tuple[str, str], ...]
    routes: list[tuple[str, re.Pattern[str], Page]] = field(default_factory=list)

    def page(self, method: str, path: str) -> Callable[[Page], Page]:
        """Register a page; <name> in `path` is a part that it gets by that name."""
        pattern = re.compile(re.sub(r"<(\w+)>", r"(?P<\1>[^/]+)", path) + "$")

        def register(page: Page) -> Page:
            self.routes.append((method, pattern, page))
            return page

        return register

    def create(self, seed: int) -> sqlite3.Connection:
        """Return a fresh database in memory, filled from `seed`."""
        database = sqlite3.connect(":memory:", check_same_thread=False)
        database.row_factory = sqlite3.Row
        database.executescript(self.schema)
        self.fill(database, random.Random(f"{self.name}/{seed}"))
        database.commit()
        return database

    def answer(self, database: sqlite3.Connection, method: str, path: str, form: Form) -> str:
        """Return the page; raises NotFound, Redirect. What a page changed is kept only if it ends well."""
        for wanted, pattern, page in self.routes:
            match = pattern.match(path)
            if match and wanted == method:
                try:
                    body = page(database, form, **match.groupdict())
                except Redirect:
                    database.commit()
                    raise
                except Invalid as problem:
                    database.rollback()
                    return self.frame(
                        f'<p class="wrong" role="alert">{text(problem)}</p>'
                        "<p><a href='javascript:history.back()'>Back</a></p>"
                    )
                except BaseException:
                    database.rollback()
                    raise
                database.commit()
                return self.frame(body)
        raise NotFound(path)

    def frame(self, body: str) -> str:
        menu = "".join(f'<a href="{path}">{text(label)}</a>' for label, path in self.menu)
        return FRAME.format(title=text(self.title), menu=menu, body=body)


def state(database: sqlite3.Connection) -> dict[str, list[dict[str, Any]]]:
    """Return every table's rows, by primary key: what a check and a difference look at."""
    tables = database.execute(
        "select name from sqlite_master where type = 'table' and name not like 'sqlite_%' order by 1"
    ).fetchall()
    return {
        name: [dict(row) for row in database.execute(f'select * from "{name}" order by rowid')]
        for (name,) in tables
    }


def text(value: object) -> str:
    return html.escape(str(value))


def entry(label: str, name: str, value: object = "", *, kind: str = "text") -> str:
    """Return one labelled input."""
    return (
        f'<label>{text(label)}<input type="{kind}" name="{name}" value="{text(value)}" '
        'autocomplete="off"></label>'
    )


def choice(label: str, name: str, options: tuple[str, ...], value: str = "") -> str:
    """Return one group of radio buttons: a list that pops up is a window that no picture shows."""
    buttons = "".join(
        f'<label class="radio"><input type="radio" name="{name}" value="{text(option)}"'
        f"{' checked' if option == value else ''}>{text(option)}</label>"
        for option in options
    )
    return f"<fieldset><legend>{text(label)}</legend>{buttons}</fieldset>"


def form(path: str, inner: str, submit: str) -> str:
    return (
        f'<form method="post" action="{path}">{inner}<button type="submit">{text(submit)}</button>'
        "</form>"
    )


def required(form: Form, name: str, label: str) -> str:
    """Return what was typed, without its ends' blanks; raises Invalid where nothing was."""
    value = form.get(name, "").strip()
    if not value:
        raise Invalid(f"{label} is missing.")
    return value


FRAME = """<!doctype html><html lang="en"><head><meta charset="utf-8"><base href="./">
<title>{title}</title><style>
* {{ box-sizing: border-box }}
body {{ font: 16px/1.45 "DejaVu Sans", sans-serif; margin: 0; color: #1b2430; background: #f5f7fa }}
header {{ background: #1f3a5f; color: #fff; padding: .7rem 1.5rem; display: flex; gap: 1.5rem; align-items: center }}
header b {{ font-size: 1.15rem }} header a {{ color: #dbe8ff }}
main {{ max-width: 60rem; margin: 1.2rem auto; background: #fff; border: 1px solid #dde3ec; border-radius: 8px; padding: 1.2rem 1.5rem }}
table {{ border-collapse: collapse; width: 100% }} td, th {{ text-align: left; padding: .4rem .6rem; border-bottom: 1px solid #e6ebf2 }}
label {{ display: block; margin: .5rem 0 }} label input[type=text] {{ display: block; width: 22rem; padding: .4rem; font: inherit }}
label.radio {{ display: inline-block; margin-right: 1rem }} fieldset {{ border: 1px solid #dde3ec; border-radius: 6px; margin: .6rem 0 }}
button {{ font: inherit; padding: .45rem 1.1rem; border: 0; border-radius: 6px; background: #1f5fbf; color: #fff; margin: .3rem 0 }}
form.inline {{ display: inline }} .wrong {{ color: #a3211c }} a {{ color: #1557b0 }}
</style></head><body><header><b>{title}</b>{menu}</header><main>{body}</main></body></html>"""
