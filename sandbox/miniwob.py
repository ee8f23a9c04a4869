"""MiniWoB++ pages as demo tasks: how to start one, how to judge it, and an oracle that solves it.

The pages come from the `miniwob` package, used for its files only (MIT). The oracle reads the same
element list as an element-reading model, so whatever it shows can be learned from what it saw.
"""

from __future__ import annotations

import importlib.util
import json
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple, TypeAlias

from sandbox.families.protocol import NoWay as NoWay
from trajectory import Action, Click, Element, Finish, Hotkey, Step, Type

FOLDER = "/opt/miniwob"
"""Where a sandbox has the package's `html` folder's parent."""

PAGES: tuple[str, ...] = (
    "click-button",
    "click-link",
    "click-test",
    "click-test-2",
    "click-button-sequence",
    "click-dialog",
    "click-dialog-2",
    "click-tab",
    "click-tab-2",
    "click-checkboxes",
    "click-option",
    "click-collapsible-nodelay",
    "click-widget",
    "click-color",
    "focus-text",
    "focus-text-2",
    "enter-text",
    "enter-text-dynamic",
    "enter-password",
    "login-user",
)
"""The demo's click and type tasks: everything that is needed can be named on the page."""

OVER = "Episode over"
"""What the page shows when an episode has ended, whatever came of it."""


def assets() -> Path:
    """Return the installed package's folder, to be shown to sandboxes as FOLDER.

    Raises FileNotFoundError where the package is missing.
    """
    spec = importlib.util.find_spec("miniwob")
    places = list(spec.submodule_search_locations or ()) if spec else []
    if not places or not (Path(places[0]) / "html" / "miniwob").is_dir():
        raise FileNotFoundError("the miniwob package is missing: see requirements-data.lock")
    return Path(places[0])


def url(page: str, *, folder: str | Path = FOLDER) -> str:
    """Return the address of a page below `folder`; ValueError for a page that can't exist."""
    if not re.fullmatch(r"[a-z0-9-]+", page):
        raise ValueError(f"no MiniWoB page can be called {page!r}")
    return f"file://{folder}/html/miniwob/{page}.html"


def start_script(seed: int) -> str:
    """Return JavaScript that starts the episode of `seed`; it gives the utterance.

    It gives null while the page is still loading: evaluate it again. The same seed gives the same
    episode, whatever ran on the page before. Nothing times out; reward, timer and click marks are
    hidden; a click on the cover at the end starts nothing. The yellow line stays visible to people
    but is left out of the element list: it repeats the instruction.
    """
    return f"""(() => {{
  if (typeof core === 'undefined' || document.readyState !== 'complete' || !core.cover_div) return null;
  if (!document.getElementById('tandem-style')) {{
    const style = document.createElement('style');
    style.id = 'tandem-style';
    style.textContent = '#reward-display, #click-canvas {{ display: none !important; }}'
      + '#sync-task-cover {{ cursor: default !important; }}';
    document.head.appendChild(style);
  }}
  core.cover_div.onclick = null;
  core.cover_div.textContent = {json.dumps(OVER)};
  const query = document.getElementById('query');
  if (query) query.setAttribute('aria-hidden', 'true');
  if (core.EP_TIMER !== null) core.endEpisode(0, false, 'restarted');
  if (document.activeElement) document.activeElement.blur();
  core.EPISODE_MAX_TIME = 1e9;
  Math.seedrandom({json.dumps(str(seed))});
  core.setDataMode('train');
  core.startEpisodeReal();
  const said = core.getUtterance();
  return typeof said === 'string' ? said : said.utterance;
}})()"""


def state_script() -> str:
    """Return JavaScript that gives {done, raw_reward, reason, utterance}, or null before a start."""
    return """(() => {
  if (typeof WOB_DONE_GLOBAL === 'undefined' || typeof core === 'undefined') return null;
  const said = core.getUtterance();
  return {
    done: WOB_DONE_GLOBAL, raw_reward: WOB_RAW_REWARD_GLOBAL, reason: WOB_REWARD_REASON || '',
    utterance: typeof said === 'string' ? said : said.utterance,
  };
})()"""


class Judged(NamedTuple):
    """What became of an episode; `reward` is None where the page can't say."""

    reward: float | None
    detail: str
    done: bool


def verdict(state: object) -> Judged:
    """Judge what `state_script` gave: 1 for a full raw reward, 0 for anything less.

    An episode that has not ended gets 0: the task is not done. No state means that the page is not a
    MiniWoB page any more: no reward follows from it.
    """
    if not isinstance(state, Mapping):
        return Judged(None, "the page in front is no MiniWoB episode", False)
    if not state.get("done"):
        return Judged(0.0, "the episode has not ended", False)
    raw = float(state.get("raw_reward", 0))
    reason = str(state.get("reason") or "")
    detail = f"raw reward {raw:g}" + (f": {reason}" if reason else "")
    return Judged(1.0 if raw >= 1 else 0.0, detail, True)


# -- the oracle --------------------------------------------------------------------------------

Decision: TypeAlias = tuple[str, Action]
Past: TypeAlias = Sequence[tuple[str, Action, Element | None]]
"""What was done so far: thought, action, and the element that it hit."""


def past(steps: Sequence[Step]) -> list[tuple[str, Action, Element | None]]:
    """Return steps as the oracle wants them: with the element that each one hit."""
    found = []
    for step in steps:
        hit = None
        if isinstance(step.action, Click):
            place = (step.action.x, step.action.y)
            elements = step.observation.elements or ()
            hit = next((e for e in elements if e.centre == place), None)
        found.append((step.thought, step.action, hit))
    return found


class Scene(NamedTuple):
    """What a page's script decides on."""

    instruction: str
    elements: Sequence[Element]
    past: Past

    def quoted(self) -> list[str]:
        return re.findall(r'"([^"]*)"', self.instruction)

    def find(self, *roles: str, name: str | None = None) -> Element:
        for element in self.elements:
            if element.role in roles and (name is None or element.name == name):
                return element
        wanted = " or ".join(roles) + ("" if name is None else f" {name!r}")
        raise NoWay(f"no {wanted} on the screen for {self.instruction!r}")

    def click(self, element: Element, why: str = "") -> Decision:
        name = f'the "{element.name}" {element.role}' if element.name else f"the {element.role}"
        x, y = element.centre
        return why or f"I click {name}.", Click(x, y)

    def fill(self, fields: Sequence[tuple[Element, str]], submit: Element) -> Decision:
        """Bring every field to its text, one after the other, then press `submit`.

        The thought names the field's state first: what to do follows from it.
        """
        for element, text in fields:
            shown = "•" * len(text) if set(element.value) == {"•"} else text
            if element.value == shown:
                continue
            called = f'"{element.name}"' if element.name else "The field"
            if not element.focused:
                return self.click(element, f"{called} is not focused, I click it.")
            if element.value:
                return f"{called} is wrong, I select its text.", Hotkey(("ctrl", "a"))
            return f'{called} is focused, I type "{text}".', Type(text)
        return self.click(submit, f'All is filled in, I click "{submit.name}".')


def _button(scene: Scene) -> Decision:
    return scene.click(scene.find("button", name=scene.quoted()[0]))


def _link(scene: Scene) -> Decision:
    return scene.click(scene.find("link", name=scene.quoted()[0]))


def _only_button(scene: Scene) -> Decision:
    return scene.click(scene.find("button"))


def _one(scene: Scene) -> Decision:
    return scene.click(scene.find("button", name="ONE"))


def _one_two(scene: Scene) -> Decision:
    hit = [e.name for _, a, e in scene.past if e is not None and isinstance(a, Click)]
    return scene.click(scene.find("button", name="TWO" if "ONE" in hit else "ONE"))


def _dialog(scene: Scene) -> Decision:
    close = scene.find("button", name="Close")
    return scene.click(close, "The Close button is the x.")


def _dialog_2(scene: Scene) -> Decision:
    wanted = scene.quoted()[0]
    return _dialog(scene) if wanted == "x" else scene.click(scene.find("button", name=wanted))


def _tab(scene: Scene) -> Decision:
    match = re.search(r"Tab #\d", scene.instruction)
    if match is None:
        raise NoWay(f"no tab is named in {scene.instruction!r}")
    return scene.click(scene.find("tab", name=match.group()))


def _tab_2(scene: Scene) -> Decision:
    wanted = scene.quoted()[0]
    if any(e.role == "link" and e.name == wanted for e in scene.elements):
        return scene.click(scene.find("link", name=wanted))
    tabs = [e for e in scene.elements if e.role == "tab"]
    front = next((n for n, e in enumerate(tabs) if e.value == "selected"), -1)
    tried = {e.name for _, _, e in scene.past if e is not None}
    for element in tabs[front + 1 :] + tabs[: front + 1]:
        if element.value != "selected" and element.name not in tried:
            return scene.click(element, f'No "{wanted}" here, I open {element.name}.')
    raise NoWay(f"no tab has a link {wanted!r}")


def _names(scene: Scene) -> list[str]:
    match = re.search(r"Select (.*) and click Submit", scene.instruction)
    if match is None:
        raise NoWay(f"nothing to select in {scene.instruction!r}")
    return [] if match.group(1) == "nothing" else match.group(1).split(", ")


def _checkboxes(scene: Scene) -> Decision:
    names = _names(scene)
    for element in scene.elements:
        if element.role == "checkbox" and (element.value == "checked") != (element.name in names):
            verb = "clear" if element.value == "checked" else "check"
            return scene.click(element, f'I {verb} "{element.name}".')
    return scene.click(scene.find("button", name="Submit"), 'All are right, I click "Submit".')


def _option(scene: Scene) -> Decision:
    radio = scene.find("radio", name=_names(scene)[0])
    if radio.value != "checked":
        return scene.click(radio, f'I choose "{radio.name}".')
    return scene.click(scene.find("button", name="Submit"), 'It is chosen, I click "Submit".')


def _collapsible(scene: Scene) -> Decision:
    section = scene.find("tab")
    if section.value != "selected":
        return scene.click(section, f'I expand "{section.name}".')
    return scene.click(scene.find("button", name="Submit"), 'It is open, I click "Submit".')


def _widget(scene: Scene) -> Decision:
    role = {"text": "textbox"}.get(scene.quoted()[0], scene.quoted()[0])
    return scene.click(scene.find(role), f"I click a {role}.")


def _colour(scene: Scene) -> Decision:
    match = re.search(r"on the (\w+) colored", scene.instruction)
    if match is None:
        raise NoWay(f"no colour in {scene.instruction!r}")
    return scene.click(scene.find("shape", name=f"{match.group(1)} box"))


def _focus(scene: Scene) -> Decision:
    return scene.click(scene.find("textbox"), "I click the text field.")


def _focus_nth(scene: Scene) -> Decision:
    match = re.search(r"(\d)(?:st|nd|rd)", scene.instruction)
    fields = [e for e in scene.elements if e.role == "textbox"]
    if match is None or int(match.group(1)) > len(fields):
        raise NoWay(f"no such text field for {scene.instruction!r}")
    return scene.click(fields[int(match.group(1)) - 1], f"I click text field {match.group(1)}.")


def _enter(scene: Scene) -> Decision:
    field = scene.find("textbox")
    return scene.fill([(field, scene.quoted()[0])], scene.find("button", name="Submit"))


def _password(scene: Scene) -> Decision:
    fields = [e for e in scene.elements if e.role == "textbox"]
    wanted = scene.quoted()[0]
    return scene.fill([(f, wanted) for f in fields], scene.find("button", name="Submit"))


def _login(scene: Scene) -> Decision:
    user, password = scene.quoted()[:2]
    fields = [
        (scene.find("textbox", name="Username"), user),
        (scene.find("textbox", name="Password"), password),
    ]
    return scene.fill(fields, scene.find("button", name="Login"))


SCRIPTS: dict[str, Callable[[Scene], Decision]] = {
    "click-button": _button,
    "click-link": _link,
    "click-test": _only_button,
    "click-test-2": _one,
    "click-button-sequence": _one_two,
    "click-dialog": _dialog,
    "click-dialog-2": _dialog_2,
    "click-tab": _tab,
    "click-tab-2": _tab_2,
    "click-checkboxes": _checkboxes,
    "click-option": _option,
    "click-collapsible-nodelay": _collapsible,
    "click-widget": _widget,
    "click-color": _colour,
    "focus-text": _focus,
    "focus-text-2": _focus_nth,
    "enter-text": _enter,
    "enter-text-dynamic": _enter,
    "enter-password": _password,
    "login-user": _login,
}


def oracle(page: str, instruction: str, elements: Sequence[Element], past: Past) -> Decision:
    """Return the next (thought, action) of a demonstrator for `page`; Finish when it is over.

    It decides from what is on the screen, so it also repairs what somebody else did wrong. The
    same screen always gives the same words: a small model has none to spare on wording. Raises NoWay
    where it can't go on.
    """
    if any(e.role == "text" and e.name == OVER for e in elements):
        return "The episode is over, I finish.", Finish()
    return SCRIPTS[page](Scene(instruction, elements, past))
