"""An issue tracker: tickets with a state, a priority, an assignee and comments."""

from __future__ import annotations

import random
import sqlite3

from sandbox.sites.app import App, Form, NotFound, Redirect, choice, entry, form, required, text

PRIORITIES = ("low", "normal", "high")
STATES = ("open", "waiting", "closed")
PEOPLE = ("nobody", "mara", "niko", "olga", "pavel")
THINGS = (
    "login page",
    "invoice export",
    "search box",
    "mail digest",
    "map view",
    "photo upload",
    "dark theme",
    "backup job",
)
TROUBLES = (
    "is slow",
    "shows an error",
    "loses data",
    "has a typo",
    "ignores settings",
    "looks broken",
)


def _fill(database: sqlite3.Connection, rng: random.Random) -> None:
    for title in rng.sample([f"The {a} {b}" for a in THINGS for b in TROUBLES], 8):
        database.execute(
            "insert into ticket (title, state, priority, assignee) values (?, ?, ?, ?)",
            (title, rng.choice(STATES[:2]), rng.choice(PRIORITIES), rng.choice(PEOPLE)),
        )


APP = App(
    name="tickets",
    title="Tickets",
    schema="""create table ticket (
        id integer primary key, title text not null, state text not null,
        priority text not null, assignee text not null);
    create table comment (
        id integer primary key, ticket integer not null references ticket, body text not null);""",
    fill=_fill,
    menu=(("All tickets", "list"), ("Report a problem", "new")),
)


def _one(database: sqlite3.Connection, id: str) -> sqlite3.Row:
    row = database.execute("select * from ticket where id = ?", (id,)).fetchone()
    if row is None:
        raise NotFound(id)
    found: sqlite3.Row = row
    return found


@APP.page("GET", "/(list)?")
def every(database: sqlite3.Connection, data: Form) -> str:
    lines = "".join(
        f"<tr><td>{row['id']}</td><td><a href='ticket/{row['id']}'>{text(row['title'])}</a></td>"
        f"<td>{row['state']}</td><td>{row['priority']}</td><td>{text(row['assignee'])}</td></tr>"
        for row in database.execute("select * from ticket order by id")
    )
    head = "<tr><th>No.</th><th>Title</th><th>State</th><th>Priority</th><th>Assignee</th></tr>"
    return f"<h1>Tickets</h1><table>{head}{lines}</table>"


@APP.page("GET", "/new")
def new(database: sqlite3.Connection, data: Form) -> str:
    inner = entry("Title", "title") + choice("Priority", "priority", PRIORITIES, "normal")
    return "<h1>Report a problem</h1>" + form("new", inner, "Create ticket")


@APP.page("POST", "/new")
def create(database: sqlite3.Connection, data: Form) -> str:
    done = database.execute(
        "insert into ticket (title, state, priority, assignee) values (?, 'open', ?, 'nobody')",
        (required(data, "title", "Title"), required(data, "priority", "Priority")),
    )
    raise Redirect(f"/ticket/{done.lastrowid}")


@APP.page("GET", "/ticket/<id>")
def ticket(database: sqlite3.Connection, data: Form, id: str) -> str:
    row = _one(database, id)
    comments = "".join(
        f"<li>{text(comment['body'])}</li>"
        for comment in database.execute("select * from comment where ticket = ?", (id,))
    )
    inner = (
        choice("State", "state", STATES, row["state"])
        + choice("Priority", "priority", PRIORITIES, row["priority"])
        + choice("Assignee", "assignee", PEOPLE, row["assignee"])
    )
    return (
        f"<h1>{row['id']}. {text(row['title'])}</h1>"
        + form(f"ticket/{id}", inner, "Update ticket")
        + f"<h2>Comments</h2><ul>{comments}</ul>"
        + form(f"ticket/{id}/comment", entry("Comment", "body"), "Add comment")
    )


@APP.page("POST", "/ticket/<id>")
def update(database: sqlite3.Connection, data: Form, id: str) -> str:
    _one(database, id)
    database.execute(
        "update ticket set state = ?, priority = ?, assignee = ? where id = ?",
        (
            required(data, "state", "State"), required(data, "priority", "Priority"),
            required(data, "assignee", "Assignee"), id,
        ),
    )  # fmt: skip
    raise Redirect(f"/ticket/{id}")


@APP.page("POST", "/ticket/<id>/comment")
def comment(database: sqlite3.Connection, data: Form, id: str) -> str:
    _one(database, id)
    database.execute(
        "insert into comment (ticket, body) values (?, ?)", (id, required(data, "body", "Comment"))
    )
    raise Redirect(f"/ticket/{id}")
