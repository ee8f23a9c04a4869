"""The inbox: delete, star, reply, forward."""

from __future__ import annotations

import re
from typing import NamedTuple

from sandbox.families.miniwob.sight import Decision, Script, Sight, quote
from sandbox.families.protocol import NoWay


class Order(NamedTuple):
    """What is to be done with whose mail; `text` is the reply or who gets it."""

    task: str
    by: str
    text: str = ""


PLAIN = (
    ("reply", re.compile(r'Find the email by (.+) and reply to them with the text "(.*)"\.')),
    ("forward", re.compile(r"Find the email by (.+) and forward that email to (.+)\.")),
    ("delete", re.compile(r"Find the email by (.+) and click the trash icon")),
    ("star", re.compile(r"Find the email by (.+) and click the star icon")),
)


def _order(sight: Sight) -> Order:
    """Return the order: from the page's own reading of a free sentence, else from the plain one."""
    fields = sight.js("core.currentFields || null")
    if fields:
        task = fields.get("task", "forward")
        return Order(task, fields["by"], fields.get("message") or fields.get("to") or "")
    for task, pattern in PLAIN:
        if match := pattern.search(sight.said):
            return Order(task, *match.groups())
    raise NoWay(f"nothing to do with a mail in {sight.said!r}")


SENDERS = "all('#main .email-sender').map(e => e.textContent)"


def _mail(sight: Sight) -> Decision:
    order = _order(sight)
    if sight.js("one('#reply') !== null"):
        return sight.form([("one('#reply-text')", order.text, "The reply")],
                          "one('#send-reply')", "the arrow that sends it")  # fmt: skip
    if sight.js("one('#forward') !== null"):
        return sight.form([("one('.forward-sender')", order.text, "The address")],
                          "one('#send-forward')", "the arrow that sends it")  # fmt: skip
    if sight.js("one('#email') !== null"):
        if sight.js("one('#email .email-sender').textContent") != order.by:
            return sight.click("This is another mail, I go back.", "one('#close-email')")
        return sight.click(f"I click {order.task}.", f"one('#email .email-{order.task}')")
    thread = (
        f"all('#main .email-thread').find(t => "
        f"t.querySelector('.email-sender').textContent === {quote(order.by)})"
    )
    if order.task == "forward" and sight.js(
        f"{SENDERS}.filter(n => n === {quote(order.by)}).length > 1"
    ):
        raise NoWay(f"two mails are from {order.by}, and only one of them is meant")
    if order.task in ("delete", "star"):
        icon = "trash" if order.task == "delete" else "star"
        return sight.click(f"This is from {order.by}, I click the {icon}.",
                           f"{thread}.querySelector('.{icon}')")  # fmt: skip
    return sight.click(
        f"This is from {order.by}, I open it.", f"{thread}.querySelector('.email-sender')"
    )


SCRIPTS: dict[str, Script] = {
    f"email-inbox{kind}": _mail
    for kind in (
        "", "-delete", "-forward", "-forward-nl", "-forward-nl-turk", "-important", "-nl-turk",
        "-noscroll", "-reply", "-star-reply",
    )
}  # fmt: skip
