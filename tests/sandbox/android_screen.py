"""The screen of a simulated phone: a few apps that react to taps, typing and swipes. No Android."""

from __future__ import annotations

import base64
import io
from dataclasses import dataclass, field
from xml.sax.saxutils import quoteattr

from PIL import Image, ImageDraw

WIDTH, HEIGHT = 360, 640
HOME, NOTES, SETTINGS, GALLERY, WEB = "home", "notes", "settings", "gallery", "web"
COMPONENTS = {
    "com.example.notes/.MainActivity": NOTES,
    "com.android.settings/.Settings": SETTINGS,
    "com.example.gallery/.Main": GALLERY,
    "com.android.chrome/.Main": WEB,
}
_TITLES = {NOTES: "Notes", SETTINGS: "Settings", GALLERY: "Gallery", WEB: "Web"}
_SWITCHES = [f"Option {n}" for n in range(1, 21)]
_TOP, _ROW = 80, 50
_COLOURS = ("#b03a2e", "#239b56", "#2874a6", "#d4ac0d", "#7d3c98")


@dataclass
class Node:
    """One view: `box` is (left, top, right, bottom)."""

    kind: str
    box: tuple[int, int, int, int]
    text: str = ""
    desc: str = ""
    id: str = ""
    clickable: bool = True
    focused: bool = False
    checked: bool | None = None
    password: bool = False


@dataclass
class Phone:
    """What the phone shows and holds; every gesture comes in by `input`, as on a real one."""

    app: str = HOME
    recents: bool = False
    note: str = ""
    focused: bool = False
    url: str = ""
    picture: int = 0
    offset: int = 0
    on: set[str] = field(default_factory=set)
    log: list[str] = field(default_factory=list)
    down: tuple[int, int] | None = None
    keyboard: bool = False

    def nodes(self) -> list[Node]:
        if self.recents:
            return [Node("TextView", (20, 40, 340, 80), text="Recent apps", clickable=False)]
        if self.app == HOME:
            return [
                Node("TextView", (20 + 85 * n, 500, 95 + 85 * n, 580), text=title)
                for n, title in enumerate(_TITLES.values())
            ]
        title = Node("TextView", (0, 30, WIDTH, 70), text=_TITLES[self.app], clickable=False)
        return [title, *getattr(self, f"_{self.app}")()]

    def _notes(self) -> list[Node]:
        field = Node("EditText", (20, 90, 340, 300), self.note, id="com.example:id/note_text")
        field.focused = self.focused
        secret = Node("EditText", (20, 320, 340, 360), "hunter2", desc="PIN", password=True)
        return [field, secret, Node("Button", (20, 380, 160, 430), text="Clear")]

    def _settings(self) -> list[Node]:
        rows = []
        for n, name in enumerate(_SWITCHES):
            top = _TOP + n * _ROW - self.offset
            if top + _ROW > _TOP and top < HEIGHT:
                row = Node("Switch", (0, top, WIDTH, top + _ROW), text=name)
                row.checked = name in self.on
                rows.append(row)
        return rows

    def _gallery(self) -> list[Node]:
        return [Node("ImageView", (0, 80, WIDTH, HEIGHT), desc=f"Picture {self.picture + 1}")]

    def _web(self) -> list[Node]:
        return [Node("TextView", (10, 90, 350, 130), text=self.url, clickable=False)]

    # -- what a finger and keys do -----------------------------------------------------------

    def tap(self, x: int, y: int) -> None:
        hit = [n for n in self.nodes() if n.box[0] <= x < n.box[2] and n.box[1] <= y < n.box[3]]
        self.recents = False
        if not hit:
            return
        node = hit[-1]
        if self.app == HOME:
            self.open(next(app for app, title in _TITLES.items() if title == node.text))
        elif node.kind == "EditText":
            self.focused = True
        elif node.text == "Clear":
            self.note = ""
        elif node.kind == "Switch":
            self.on ^= {node.text}

    def swipe(self, x1: int, y1: int, x2: int, y2: int) -> None:
        if (x1, y1) == (x2, y2):
            return
        if self.app == SETTINGS:
            most = _TOP + len(_SWITCHES) * _ROW - HEIGHT
            self.offset = max(0, min(most, self.offset + y1 - y2))
        elif self.app == GALLERY and abs(x1 - x2) > 50:
            self.picture = (self.picture + (1 if x1 > x2 else -1)) % len(_COLOURS)

    def open(self, app: str) -> None:
        self.app, self.recents, self.focused = app, False, app == NOTES and self.focused

    def enter(self, text: str) -> None:
        if self.app == NOTES and self.focused:
            self.note += text

    def key(self, code: int) -> None:
        if code == 3 or (code == 4 and not self.recents):
            self.open(HOME)
        self.recents = code == 187
        if code == 66:
            self.enter("\n")
        elif code == 62:
            self.enter(" ")
        elif code == 67 and self.focused:
            self.note = self.note[:-1]

    # -- what it shows -----------------------------------------------------------------------

    def png(self) -> bytes:
        picture = Image.new("RGB", (WIDTH, HEIGHT), "#f4f4f4" if self.app != HOME else "#1c2833")
        draw = ImageDraw.Draw(picture)
        draw.rectangle((0, 0, WIDTH, 20), "#000000")
        if self.app == GALLERY:
            draw.rectangle((0, 80, WIDTH, HEIGHT), _COLOURS[self.picture])
        for node in self.nodes():
            left, top, right, bottom = node.box
            fill = "#ffffff" if node.clickable and node.kind != "ImageView" else None
            outline = "#ff8800" if node.focused else "#555555"
            draw.rectangle((left, top, right - 1, bottom - 1), fill, outline)
            mark = "[x] " if node.checked else "[ ] " if node.checked is not None else ""
            shown = "*****" if node.password else mark + node.text
            draw.text((left + 6, top + 6), shown.encode("ascii", "backslashreplace"), "#111111")
        out = io.BytesIO()
        picture.save(out, "PNG", compress_level=1)
        return out.getvalue()

    def xml(self) -> str:
        rows = [
            "<?xml version='1.0' encoding='UTF-8' standalone='yes' ?><hierarchy rotation=\"0\">"
        ]
        rows.append(f'<node class="android.widget.FrameLayout" bounds="[0,0][{WIDTH},{HEIGHT}]">')
        for node in self.nodes():
            left, top, right, bottom = node.box
            values = {
                "class": f"android.widget.{node.kind}", "text": node.text,
                "content-desc": node.desc, "resource-id": node.id,
                "clickable": str(node.clickable).lower(), "focused": str(node.focused).lower(),
                "checkable": str(node.checked is not None).lower(),
                "checked": str(bool(node.checked)).lower(),
                "password": str(node.password).lower(),
                "bounds": f"[{left},{top}][{right},{bottom}]",
            }  # fmt: skip
            rows.append(f"<node {' '.join(f'{k}={quoteattr(v)}' for k, v in values.items())} />")
        return "".join([*rows, "</node></hierarchy>"])


def run_input(phone: Phone, words: list[str]) -> tuple[int, str]:
    """Do what `input WORDS` does; return (exit code, what it prints)."""
    phone.log.append(" ".join(words))
    kind, rest = words[0], words[1:]
    if kind == "tap":
        phone.tap(int(rest[0]), int(rest[1]))
    elif kind == "swipe":
        x1, y1, x2, y2 = map(int, rest[:4])
        phone.swipe(x1, y1, x2, y2)
    elif kind == "text":
        text = rest[0].replace("%s", " ")
        if not text.isascii():  # AOSP: the virtual keyboard's map has no such key
            return 255, "Exception occurred while executing 'text': java.lang.NullPointerException"
        phone.enter(text)
    elif kind == "keyevent":
        for code in rest:
            phone.key(int(code))
    elif kind == "keycombination":
        if rest == ["113", "29"]:
            phone.note = ""
    elif kind == "motionevent":
        x, y = int(rest[1]), int(rest[2])
        if rest[0] == "DOWN":
            phone.down = (x, y)
        elif rest[0] == "UP" and phone.down is not None:
            near = abs(phone.down[0] - x) + abs(phone.down[1] - y) < 10
            phone.tap(x, y) if near else phone.swipe(*phone.down, x, y)
            phone.down = None
    else:
        return 1, f"Error: Unknown command: {kind}"
    return 0, ""


def run_am(phone: Phone, words: list[str]) -> tuple[int, str]:
    """Do what `am WORDS` does."""
    phone.log.append("am " + " ".join(words))
    if words[:2] == ["start", "-n"]:
        app = COMPONENTS.get(words[2])
        if app is None:
            return 0, f"Error type 3\nError: Activity class {{{words[2]}}} does not exist."
        phone.open(app)
    elif words[0] == "start":
        phone.open(WEB)
        phone.url = words[words.index("-d") + 1]
    elif words[0] == "broadcast" and phone.keyboard:
        phone.enter(base64.b64decode(words[words.index("msg") + 1]).decode())
    return 0, ""
