"""The apps of a phone by the names that people and models call them."""

from __future__ import annotations

import re

from sandbox.providers.android.phone import Phone, Refused

_LAUNCHERS = "-a android.intent.action.MAIN -c android.intent.category.LAUNCHER"
_COMPONENT = re.compile(r"^\s*([A-Za-z][\w.]*/[\w.$]+)\s*$", re.MULTILINE)
_PACKAGE = re.compile(r"[A-Za-z]\w*(\.\w+)+")
# adb has no way to ask for labels: these differ from the last word of their package.
_LABELS = {
    "clock": ("deskclock",),
    "phone": ("dialer",),
    "messages": ("messaging", "mms"),
    "gmail": ("gm",),
    "maps": ("maps",),
    "files": ("documentsui", "files", "nbu.files"),
    "calculator": ("calculator", "calculator2"),
    "play store": ("vending",),
    "photos": ("photos", "gallery3d", "gallery"),
    "browser": ("chrome", "browser", "browser2"),
}


def find(phone: Phone, name: str) -> str:
    """Return the component (package/activity) of the app called `name`; raises Refused naming apps."""
    listed = phone.do(f"cmd package query-activities --components {_LAUNCHERS}")
    components = list(dict.fromkeys(_COMPONENT.findall(listed)))
    word = name.strip().lower()
    for component in components:
        if component.partition("/")[0].lower() == word or component.lower() == word:
            return component
    wanted = (*_LABELS.get(word, ()), word.replace(" ", ""))
    for last in wanted:
        for component in components:
            package = component.partition("/")[0].lower()
            if package == last or package.endswith(f".{last}"):
                return component
    known = ", ".join(sorted({c.partition("/")[0] for c in components}))
    raise Refused(f"no app {name!r}; there are: {known[:1000]}")


def is_package(word: str) -> bool:
    """Whether `word` looks like a package or one of its activities."""
    package, _, activity = word.partition("/")
    return bool(_PACKAGE.fullmatch(package)) and (not activity or not re.search(r"\s", activity))
