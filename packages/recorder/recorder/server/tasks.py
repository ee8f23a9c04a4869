"""Tasks and the consent text, as a server gives them."""

from __future__ import annotations

from typing import Any, NamedTuple

from recorder.server.client import Client, ServerError
from recorder.spool import Task
from recorder.spool.folder import Kind

_TEXT = 20_000


class Offer(NamedTuple):
    task: Task
    kind: Kind


class ConsentText(NamedTuple):
    version: str
    text: str


def consent(client: Client) -> ConsentText:
    """Return what a contributor has to agree to; raises ServerError."""
    said = client.ask("GET", "/api/recorder/consent")
    try:
        return ConsentText(str(said["version"]), str(said["text"])[:_TEXT])
    except (KeyError, TypeError):
        raise ServerError("the server's consent has no version and text") from None


def offers(client: Client, kind: Kind | None = None) -> list[Offer]:
    """Return the tasks that one may choose from, of one kind or of all; raises ServerError."""
    said = client.ask("GET", "/api/recorder/tasks")
    if not isinstance(said, list):
        raise ServerError("the server gives no list of tasks")
    found = [_offer(one) for one in said]
    return [offer for offer in found if kind in (None, offer.kind)]


def chosen(client: Client, kind: Kind | None = None, *, another: bool = False) -> Offer:
    """Take the task that the server wants done next, of one kind or of any; raises ServerError.

    `another` passes the one that is kept for this person by, for good.
    """
    wish: dict[str, object] = {"another": another}
    if kind is not None:
        wish["kind"] = kind
    return _offer(client.ask("POST", "/api/recorder/tasks/next", wish))


def _offer(said: Any) -> Offer:
    try:
        task = Task(str(said["id"]), str(said["title"]), str(said["instruction"]))
        kind: Kind = "exploration" if said["kind"] == "exploration" else "demonstration"
        return Offer(task, kind)
    except (KeyError, TypeError):
        raise ServerError(
            "the server gives a task without id, title, instruction or kind"
        ) from None
