"""What a page has stored, to be put back later: the same page in the same state, on any fleet."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sandbox.provider import ActionFailed
from sandbox.providers.browser.target import Target

_READ = """(() => {
  const all = (name) => { try { return {...window[name]} } catch (refused) { return {} } };
  return {url: location.href, local: all('localStorage'), session: all('sessionStorage')};
})()"""


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A page's address, cookies, and its origin's localStorage and sessionStorage.

    What only lives in the page's memory is not in it; nor are IndexedDB and caches.
    """

    url: str
    cookies: tuple[Mapping[str, Any], ...]
    local: Mapping[str, str]
    session: Mapping[str, str]


def take(target: Target) -> Checkpoint:
    """Return what the page has stored. Raises ActionFailed, DesktopLost."""
    found = target.evaluate(_READ)
    if not isinstance(found, dict):
        raise ActionFailed("the page gave no storage")
    cookies = target.call("Network.getCookies")["cookies"]
    return Checkpoint(str(found["url"]), tuple(cookies), found["local"], found["session"])


def put(target: Target, checkpoint: Checkpoint) -> None:
    """Open the checkpoint's address with its storage in place before the page's scripts run.

    Raises ActionFailed, DesktopLost.
    """
    target.call("Network.clearBrowserCookies")
    if checkpoint.cookies:
        target.call("Network.setCookies", {"cookies": [_cookie(one) for one in checkpoint.cookies]})
    source = f"""(() => {{
  if (location.href !== {json.dumps(checkpoint.url)}) return;
  for (const [name, items] of [['localStorage', {json.dumps(dict(checkpoint.local))}],
                               ['sessionStorage', {json.dumps(dict(checkpoint.session))}]]) {{
    try {{ window[name].clear() }} catch (refused) {{ continue }}
    for (const [key, value] of Object.entries(items)) window[name].setItem(key, value);
  }}
}})()"""
    added = target.call("Page.addScriptToEvaluateOnNewDocument", {"source": source})
    try:
        target.navigate("about:blank")  # the old document must not store anything any more
        target.navigate(checkpoint.url)
    finally:
        target.call("Page.removeScriptToEvaluateOnNewDocument", added)


def _cookie(cookie: Mapping[str, Any]) -> dict[str, Any]:
    kept = ("name", "value", "domain", "path", "secure", "httpOnly", "sameSite", "expires")
    return {key: cookie[key] for key in kept if key in cookie and cookie[key] != -1}
