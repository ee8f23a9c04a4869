"""What an oracle sees and what it answers: JavaScript looks, canonical actions act.

Places are asked for in CSS pixels of the viewport and answered in pixels of the frame, so that the
same oracle plays in a page of its own and in a browser on a desktop.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeAlias

from sandbox.families.protocol import NoWay
from sandbox.provider import Desktop
from trajectory import Action, Click, Drag, Finish, Hotkey, Move, Scroll, Step, Type, Wait

Decision: TypeAlias = tuple[str, Action]
Place: TypeAlias = tuple[float, float]

# one, all: elements by selector, or an element as it is. named: those with exactly this text.
# mid: the middle of what can be seen of an element. aim: {at} if a click there hits it, else {over, dy}
# for the wheel, else null.
_PRELUDE = """
  const one = (s) => typeof s === 'string' ? document.querySelector(s) : s;
  const all = (s) => Array.from(document.querySelectorAll(s));
  const words = (e) => (e.innerText === undefined ? e.textContent : e.innerText).replace(/\\s+/g, ' ').trim();
  const shown = (e) => !!e && e.checkVisibility({visibilityProperty: true}) && e.getClientRects().length > 0;
  const named = (s, text) => all(s).find((e) => shown(e) && words(e) === text);
  const holds = (e, hit) => !!hit && (e === hit || e.contains(hit)
    || (!!e.labels && Array.from(e.labels).some((l) => l.contains(hit))));
  const spots = (r) => [[.5, .5], [.25, .5], [.75, .5], [.5, .25], [.5, .75], [.1, .5], [.9, .5]]
    .map(([x, y]) => [r.left + r.width * x, r.top + r.height * y]);
  const hit = (e) => {
    for (const r of e.getClientRects())
      for (const p of spots(r)) if (holds(e, document.elementFromPoint(p[0], p[1]))) return p;
    return null;
  };
  const scrolls = (e) => {
    for (let n = e.parentElement; n; n = n.parentElement) {
      const style = getComputedStyle(n);
      if (n.scrollHeight > n.clientHeight + 1 && (/auto|scroll/.test(style.overflowY)
          || n === document.scrollingElement || n.tagName === 'SELECT')) return n;
    }
    return null;
  };
  const aim = (s) => {
    const e = one(s);
    if (!e) return null;
    const at = hit(e);
    if (at) return {at};
    const box = scrolls(e);
    if (!box) return null;
    const root = box === document.scrollingElement;
    const r = root ? {left: 0, top: 0, width: innerWidth, height: innerHeight} : box.getBoundingClientRect();
    const top = Math.max(0, r.top), bottom = Math.min(innerHeight, r.top + r.height);
    const own = e.getBoundingClientRect();
    return {over: [r.left + r.width / 2, (top + bottom) / 2],
            dy: own.top + own.height / 2 > (top + bottom) / 2 ? 1 : -1};
  };
"""

_FRAME = """(() => {
  const ratio = window.devicePixelRatio || 1;
  const scale = WIDTH / window.screen.width;
  const side = Math.max(0, (window.outerWidth * scale - window.innerWidth * ratio) / 2);
  const bar = Math.max(0, window.outerHeight * scale - window.innerHeight * ratio - side);
  return [window.screenX * scale + side, window.screenY * scale + bar, ratio];
})()"""


class Frame(NamedTuple):
    """Where the viewport's top left is in the frame, and the frame's pixels per CSS pixel."""

    left: float
    top: float
    ratio: float


class Sight:
    """One look at the page, with what was done before it and what the oracle keeps in mind."""

    def __init__(
        self, desktop: Desktop, steps: Sequence[Step], seed: int, memory: dict[str, Any]
    ) -> None:
        self.desktop, self.steps, self.seed, self.memory = desktop, steps, seed, memory
        self._frame: Frame | None = None

    # -- looking ---------------------------------------------------------------------------------

    def js(self, expression: str) -> Any:
        """Return the JSON value of `expression`; the helpers of the prelude are at hand."""
        return self.desktop.evaluate(f"(() => {{{_PRELUDE} return ({expression}); }})()")

    @property
    def said(self) -> str:
        """The instruction, as the page says it."""
        found = self.desktop.evaluate(
            "(() => { const s = core.getUtterance(); return s.utterance || s; })()"
        )
        return str(found)

    def frame(self) -> Frame:
        if self._frame is None:
            if hasattr(self.desktop, "navigate"):
                self._frame = Frame(0, 0, 1)
            else:
                found = self.desktop.evaluate(_FRAME.replace("WIDTH", str(self.desktop.width)))
                self._frame = Frame(*(float(n) for n in found))  # type: ignore[attr-defined]
        return self._frame

    def at(self, place: Place) -> tuple[int, int]:
        """Return a place of the viewport in pixels of the frame."""
        frame = self.frame()
        # Cut, not rounded: a middle of n.5 and the last pixel of a box stay inside.
        return int(frame.left + place[0] * frame.ratio), int(frame.top + place[1] * frame.ratio)

    def actions(self, kind: type[Action]) -> list[Action]:
        return [step.action for step in self.steps if isinstance(step.action, kind)]

    # -- acting ----------------------------------------------------------------------------------

    def tap(
        self, why: str, place: Place, *, count: int = 1, modifiers: tuple[str, ...] = ()
    ) -> Decision:
        x, y = self.at(place)
        return why, Click(x, y, count=count, modifiers=modifiers)

    def click(
        self, why: str, target: str, *, count: int = 1, modifiers: tuple[str, ...] = ()
    ) -> Decision:
        """Click the element that `target` (JavaScript) gives, turning the wheel until it is seen."""
        found = self.js(f"aim({target})")
        if found is None:
            raise NoWay(f"{target} is not on the page for {self.said!r}")
        if "at" in found:
            return self.tap(why, found["at"], count=count, modifiers=modifiers)
        x, y = self.at(found["over"])
        return "What I need is further on, I scroll.", Scroll(x, y, dy=found["dy"])

    def drag(self, why: str, path: Sequence[Place]) -> Decision:
        return why, Drag(tuple(self.at(place) for place in path))

    def move(self, why: str, place: Place) -> Decision:
        return why, Move(*self.at(place))

    def field(self, target: str, text: str, called: str) -> Decision | None:
        """Return what brings the field that `target` gives to `text`; None if it holds it."""
        state = self.js(f"(e => e && [e.value, e === document.activeElement])(one({target}))")
        if state is None:
            raise NoWay(f"there is no field {target}")
        value, focused = state
        if value == text:
            return None
        if not focused:
            return self.click(f"{called} is not focused, I click it.", target)
        selected = bool(self.steps) and self.steps[-1].action == Hotkey(("ctrl", "a"))
        if value and not selected:
            return f"{called} holds something else, I select it.", Hotkey(("ctrl", "a"))
        return f'{called} is ready, I type "{text}".', Type(text)

    def form(self, fields: Sequence[tuple[str, str, str]], submit: str, called: str) -> Decision:
        """Fill (target, text, name) one after the other, then click what `submit` gives."""
        for target, text, name in fields:
            todo = self.field(target, text, name)
            if todo is not None:
                return todo
        return self.click(f"All is filled in, I click {called}.", submit)

    def wait(self, why: str, duration_ms: int = 300) -> Decision:
        return why, Wait(duration_ms)

    def keys(self, why: str, *keys: str) -> Decision:
        return why, Hotkey(keys)


Script: TypeAlias = Callable[[Sight], Decision]


class PageOracle:
    """Solves one episode of one page by its script."""

    def __init__(self, script: Script, seed: int) -> None:
        self.script, self.seed = script, seed
        self._memory: dict[str, Any] = {}

    def decide(self, desktop: Desktop, steps: Sequence[Step]) -> Decision:
        if desktop.evaluate("typeof WOB_DONE_GLOBAL === 'undefined' || WOB_DONE_GLOBAL"):
            return "The episode is over, I finish.", Finish()
        return self.script(Sight(desktop, steps, self.seed, self._memory))


def quote(text: str) -> str:
    """Return `text` as a JavaScript string."""
    return json.dumps(text)
