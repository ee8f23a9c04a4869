"""What words are likely beside an action: verbs of its kind, the name under it, what is typed. Pure."""

from __future__ import annotations

import re

from annotation.recordings.acts import Act
from trajectory import (
    Click,
    Drag,
    Hotkey,
    LongPress,
    Navigate,
    NavigateBack,
    OpenApp,
    Scroll,
    Shell,
    Type,
    Wait,
)


def _listed(text: str) -> frozenset[str]:
    return frozenset(text.split())


FILLERS = _listed(
    "um uh er hmm mm ah oh okay ok well so like right yeah yes no let me see i we it that this the a an "
    "to of and then now is in on at my you will going gonna want need just here there for with first "
    "next next's us do be have has was are what would should can could think looks good great"
)

KINDS: dict[str, frozenset[str]] = {
    "click": _listed(
        "click clicked clicking press pressed pressing tap select selected selecting choose chose pick "
        "picked hit open opened button link tab menu icon checkbox box check tick 点击 选择 打开 点"
    ),
    "type": _listed(
        "type typed typing enter entered entering write wrote writing fill filled filling input put "
        "search name text field address password into 输入 填写 搜索"
    ),
    "scroll": _listed(
        "scroll scrolled scrolling down up further bottom top below lower page 滚动 下 上"
    ),
    "drag": _listed("drag dragged dragging move moved moving pull drop slide slider resize 拖动"),
    "hotkey": _listed("press pressed shortcut key keyboard control hit 按"),
    "open": _listed("open opened opening start launch go goes visit site page back return 打开"),
    "wait": _listed("wait waiting loading loads load moment second 等"),
    "shell": _listed("run command terminal shell execute"),
}
CHORDS: dict[str, tuple[str, ...]] = {
    "ctrl+c": ("copy", "copied", "复制"),
    "ctrl+v": ("paste", "pasted", "粘贴"),
    "ctrl+x": ("cut",),
    "ctrl+s": ("save", "saved", "saving", "保存"),
    "ctrl+z": ("undo", "undone", "撤销"),
    "ctrl+a": ("select", "all", "everything", "全选"),
    "ctrl+f": ("find", "search"),
    "ctrl+t": ("tab", "new"),
    "ctrl+w": ("close", "closed"),
    "ctrl+p": ("print",),
    "enter": ("enter", "submit", "confirm", "return", "回车"),
    "escape": ("escape", "cancel", "close", "dismiss"),
    "backspace": ("delete", "remove", "backspace", "erase"),
    "delete": ("delete", "remove"),
    "tab": ("tab", "next"),
}


def words(text: str) -> list[str]:
    """Return the words of a text, lower case, without endings; Han characters in pairs and alone."""
    found: list[str] = []
    for part in re.findall(r"[a-z0-9]+|[\u4e00-\u9fff]+", text.lower()):
        if part[0] >= "\u4e00":
            found += list(part)
            found += [part[at : at + 2] for at in range(len(part) - 1)]
        else:
            found.append(stem(part))
    return found


def stem(word: str) -> str:
    """Return an English word without the commonest endings: good enough to compare."""
    for ending in ("ing", "ed", "es", "s"):
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            word = word[: -len(ending)]
            break
    return word[:-1] if len(word) > 3 and word[-1] == word[-2] else word


def kind_of(act: Act) -> str:
    """Return which list of KINDS belongs to an action; "" where none does."""
    match act.action:
        case Click() | LongPress():
            return "click"
        case Type():
            return "type"
        case Scroll():
            return "scroll"
        case Drag():
            return "drag"
        case Hotkey():
            return "hotkey"
        case Navigate() | NavigateBack() | OpenApp():
            return "open"
        case Wait():
            return "wait"
        case Shell():
            return "shell"
        case _:
            return ""


def names_of(act: Act) -> set[str]:
    """Return the words that name what the action is about: its element, its text, its keys."""
    found = set(words(act.element))
    match act.action:
        case Type(text=text):
            found.update(words(text[:500]))
        case Hotkey(keys=keys):
            chord = "+".join(key.lower() for key in keys)
            found.update(stem(word) for word in CHORDS.get(chord, ()))
            found.update(word for key in keys for word in words(key))
        case Scroll(dy=dy) if dy:
            found.add("down" if dy > 0 else "up")
        case Click(button="right"):
            found.add("right")
        case Click(count=2):
            found.add("double")
        case Navigate(url=url):
            found.update(words(url))
        case OpenApp(name=name):
            found.update(words(name))
        case Shell(command=command):
            found.update(words(command[:500]))
        case _:
            pass
    return found


VERBS = {kind: frozenset(stem(word) for word in listed) for kind, listed in KINDS.items()}
"""Words that go with a kind of action, as `words` gives them."""
EMPTY = frozenset(stem(word) for word in FILLERS)
"""Words that say nothing about which action is meant."""
PAST = _listed(
    "clicked opened typed entered selected pressed scrolled saved copied pasted done worked went "
    "appeared moved dragged chose picked wrote filled closed loaded was"
)
"""Words of somebody who speaks about what has just been done; not stemmed."""
AHEAD = _listed("will going gonna next let now need want should first then")
"""Words of somebody who speaks about what comes; not stemmed."""
