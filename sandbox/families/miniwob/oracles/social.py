"""The posts: reply, repost, like, share, and what a post's menu has."""

from __future__ import annotations

import re

from sandbox.families.miniwob.sight import Decision, Script, Sight, quote
from sandbox.families.protocol import NoWay


def _post(user: str) -> str:
    return f"all('.media').filter(m => m.querySelector('.username').textContent === {quote(user)})"


def _one(sight: Sight) -> Decision:
    match = re.search(r'For the user (\S+), click on the "(.+)" button', sight.said)
    if match is None:
        raise NoWay(f"nothing to click in {sight.said!r}")
    user, label = match.groups()
    kind = sight.js(f"Object.keys(ACTIONS).find(k => ACTIONS[k] === {quote(label)})")
    post = f"{_post(user)}[0]"
    if kind in ("reply", "retweet", "like"):
        return sight.click(
            f"I click {label} on the post by {user}.", f"{post}.querySelector('.{kind}')"
        )
    if not sight.js(f"shown({post}.querySelector('ul'))"):
        return sight.click(
            f"I open the menu of the post by {user}.", f"{post}.querySelector('.more')"
        )
    return sight.click(f"I click {label}.", f"{post}.querySelector('li.{kind}')")


def _several(sight: Sight) -> Decision:
    match = re.search(r'Click the "(\w+)" button on (all|\d+) posts? by (\S+) and then', sight.said)
    if match is None:
        raise NoWay(f"nothing to click in {sight.said!r}")
    label, count, user = match.groups()
    icon = label.lower()
    buttons = f"{_post(user)}.map(m => m.querySelector('.{icon}'))"
    on = sight.js(f"{buttons}.map(b => b.classList.contains('active'))")
    wanted = len(on) if count == "all" else int(count)
    if sum(on) == wanted:
        return sight.click("These are all, I submit.", "one('#submitRow button')")
    if sum(on) > wanted:
        return sight.click("This is one too many.", f"{buttons}[{on.index(True)}]")
    return sight.click(
        f"This is a post by {user}, I click {label}.", f"{buttons}[{on.index(False)}]"
    )


SCRIPTS: dict[str, Script] = {
    "social-media": _one,
    "social-media-all": _several,
    "social-media-some": _several,
}
