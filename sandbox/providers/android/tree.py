"""What `uiautomator dump` says is on the screen, as elements. The XML comes from a hostile guest."""

from __future__ import annotations

import re
from xml.parsers import expat

from trajectory import Element

MOST_BYTES = 4 << 20
MOST_ELEMENTS = 2000
MOST_DEPTH = 200
_MOST_TEXT = 2000
_BOUNDS = re.compile(r"\[(-?\d{1,6}),(-?\d{1,6})\]\[(-?\d{1,6}),(-?\d{1,6})\]")

_ROLES = {
    "Button": "button", "ImageButton": "button", "FloatingActionButton": "button",
    "EditText": "textbox", "AutoCompleteTextView": "textbox", "TextView": "text",
    "CheckBox": "checkbox", "RadioButton": "radio", "Switch": "switch", "ToggleButton": "switch",
    "ImageView": "image", "SeekBar": "slider", "ProgressBar": "progressbar", "Spinner": "combobox",
    "WebView": "document", "ListView": "list", "RecyclerView": "list", "TabWidget": "tablist",
}  # fmt: skip
_DEEDS = ("clickable", "long-clickable", "checkable", "scrollable")


class TreeError(ValueError):
    """The dump is no tree that can be read; the message says why."""


def elements(xml: bytes, *, width: int, height: int) -> list[Element]:
    """Return what has a name or can be used and lies on the screen, in the order of the tree.

    Document types and entities are refused, so the text is no longer than what was sent. The
    attributes are those of AOSP's AccessibilityNodeInfoDumper. Raises TreeError.
    """
    if len(xml) > MOST_BYTES:
        raise TreeError(f"the tree has {len(xml)} bytes; at most {MOST_BYTES} are read")
    found: list[Element] = []
    depth = 0

    def start(tag: str, node: dict[str, str]) -> None:
        nonlocal depth
        depth += 1
        if depth > MOST_DEPTH:
            raise TreeError(f"the tree is deeper than {MOST_DEPTH}")
        if tag == "node" and len(found) < MOST_ELEMENTS:
            element = _element(node, width, height)
            if element is not None:
                found.append(element)

    def end(_: str) -> None:
        nonlocal depth
        depth -= 1

    def refuse(*_: object) -> None:
        raise TreeError("the tree has a document type: no device writes one")

    parser = expat.ParserCreate()
    parser.StartElementHandler, parser.EndElementHandler = start, end
    parser.StartDoctypeDeclHandler = refuse
    try:
        parser.Parse(xml, True)
    except expat.ExpatError as error:
        raise TreeError(f"the tree is no XML: {error}") from error
    return found


def _element(node: dict[str, str], width: int, height: int) -> Element | None:
    bounds = _BOUNDS.fullmatch(node.get("bounds", ""))
    if bounds is None:
        return None
    left, top, right, bottom = (int(number) for number in bounds.groups())
    left, top = max(0, left), max(0, top)
    right, bottom = min(width, right), min(height, bottom)
    if right <= left or bottom <= top:
        return None
    kind = node.get("class", "").rpartition(".")[2]
    role = _ROLES.get(kind, kind.lower() or "view")
    text = "" if node.get("password") == "true" else node.get("text", "")
    label = node.get("content-desc", "") or node.get("hint", "")
    if role == "textbox":
        name, value = label or _id(node), text
    else:
        name, value = label or text, ""
    usable = any(node.get(deed) == "true" for deed in _DEEDS)
    if not name and not value:
        if not usable:
            return None
        name = _id(node)
    if "checked" in node and node.get("checkable") == "true":
        value = "on" if node["checked"] == "true" else "off"
    return Element(
        role=role[:60],
        name=name[:_MOST_TEXT],
        box=(left, top, right - left, bottom - top),
        value=value[:_MOST_TEXT],
        focused=node.get("focused") == "true",
    )


def _id(node: dict[str, str]) -> str:
    """Return the last part of a resource id such as com.example:id/search_box, as words."""
    return node.get("resource-id", "").rpartition("/")[2].replace("_", " ")
