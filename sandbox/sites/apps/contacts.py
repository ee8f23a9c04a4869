"""An address book: people, their groups, a star for the important ones."""

from __future__ import annotations

import random
import sqlite3

from sandbox.sites.app import App, Form, NotFound, Redirect, choice, entry, form, required, text

GROUPS = ("family", "friends", "work")
FIRST = (
    "Ada",
    "Bela",
    "Chidi",
    "Dana",
    "Emil",
    "Farah",
    "Goran",
    "Hana",
    "Ines",
    "Jonas",
    "Kim",
    "Leo",
)
LAST = (
    "Abara",
    "Brandt",
    "Costa",
    "Duval",
    "Eriksen",
    "Fischer",
    "Greco",
    "Hansen",
    "Ito",
    "Jansen",
)
CITIES = ("Bergen", "Cadiz", "Dakar", "Graz", "Hull", "Izmir", "Kyoto", "Lille")


def _fill(database: sqlite3.Connection, rng: random.Random) -> None:
    names = rng.sample([f"{first} {last}" for first in FIRST for last in LAST], 9)
    for name in names:
        number = "".join(rng.choices("0123456789", k=6))
        database.execute(
            "insert into contact (name, phone, city, team, starred) values (?, ?, ?, ?, ?)",
            (name, number, rng.choice(CITIES), rng.choice(GROUPS), int(rng.random() < 0.2)),
        )


APP = App(
    name="contacts",
    title="Contacts",
    schema="""create table contact (
        id integer primary key, name text not null, phone text not null, city text not null,
        team text not null, starred integer not null default 0);""",
    fill=_fill,
    menu=(("All contacts", "list"), ("New contact", "new")),
)


def _one(database: sqlite3.Connection, id: str) -> sqlite3.Row:
    row = database.execute("select * from contact where id = ?", (id,)).fetchone()
    if row is None:
        raise NotFound(id)
    found: sqlite3.Row = row
    return found


@APP.page("GET", "/(list)?")
def everyone(database: sqlite3.Connection, data: Form) -> str:
    rows = database.execute("select * from contact order by name").fetchall()
    lines = "".join(
        f"<tr><td>{'★' if row['starred'] else ''}</td><td><a href='contact/{row['id']}'>"
        f"{text(row['name'])}</a></td><td>{text(row['phone'])}</td><td>{text(row['city'])}</td>"
        f"<td>{text(row['team'])}</td></tr>"
        for row in rows
    )
    head = "<tr><th></th><th>Name</th><th>Phone</th><th>City</th><th>Group</th></tr>"
    return f"<h1>{len(rows)} contacts</h1><table>{head}{lines}</table>"


def _fields(row: sqlite3.Row | None) -> str:
    def old(name: str) -> str:
        return str(row[name]) if row is not None else ""

    return (
        entry("Name", "name", old("name"))
        + entry("Phone", "phone", old("phone"))
        + entry("City", "city", old("city"))
        + choice("Group", "team", GROUPS, old("team"))
    )


@APP.page("GET", "/new")
def new(database: sqlite3.Connection, data: Form) -> str:
    return "<h1>New contact</h1>" + form("new", _fields(None), "Add contact")


@APP.page("POST", "/new")
def add(database: sqlite3.Connection, data: Form) -> str:
    database.execute(
        "insert into contact (name, phone, city, team) values (?, ?, ?, ?)",
        (
            required(data, "name", "Name"), required(data, "phone", "Phone"),
            required(data, "city", "City"), required(data, "team", "Group"),
        ),
    )  # fmt: skip
    raise Redirect("/list")


@APP.page("GET", "/contact/<id>")
def contact(database: sqlite3.Connection, data: Form, id: str) -> str:
    row = _one(database, id)
    star = "Remove star" if row["starred"] else "Add star"
    return (
        f"<h1>{text(row['name'])}</h1>"
        + form(f"contact/{id}", _fields(row), "Save changes")
        + form(f"contact/{id}/star", "", star)
        + form(f"contact/{id}/delete", "", "Delete contact")
    )


@APP.page("POST", "/contact/<id>")
def change(database: sqlite3.Connection, data: Form, id: str) -> str:
    _one(database, id)
    database.execute(
        "update contact set name = ?, phone = ?, city = ?, team = ? where id = ?",
        (
            required(data, "name", "Name"), required(data, "phone", "Phone"),
            required(data, "city", "City"), required(data, "team", "Group"), id,
        ),
    )  # fmt: skip
    raise Redirect("/list")


@APP.page("POST", "/contact/<id>/star")
def star(database: sqlite3.Connection, data: Form, id: str) -> str:
    _one(database, id)
    database.execute("update contact set starred = 1 - starred where id = ?", (id,))
    raise Redirect(f"/contact/{id}")


@APP.page("POST", "/contact/<id>/delete")
def delete(database: sqlite3.Connection, data: Form, id: str) -> str:
    _one(database, id)
    database.execute("delete from contact where id = ?", (id,))
    raise Redirect("/list")
