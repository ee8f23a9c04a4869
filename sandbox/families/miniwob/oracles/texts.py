"""Pages about text: finding it, copying it, changing it, styling it."""

from __future__ import annotations

import re

from sandbox.families.miniwob.oracles.clicks import quoted
from sandbox.families.miniwob.oracles.dragging import text_ends
from sandbox.families.miniwob.sight import Decision, Script, Sight
from sandbox.families.protocol import NoWay
from trajectory import Hotkey, Scroll

SUBMIT = "named('button', 'Submit')"
COPY, PASTE, ALL = Hotkey(("ctrl", "c")), Hotkey(("ctrl", "v")), Hotkey(("ctrl", "a"))


def _copy(sight: Sight, source: str) -> Decision:
    """Copy the text of `source` into the answer field and submit."""
    text, entered = sight.js(f"[{source}.value, one('#answer-input').value]")
    if entered == text:
        return sight.click("The text is in the field, I submit.", SUBMIT)
    done = sight.actions(Hotkey)
    if COPY not in done:
        if sight.js(f"document.activeElement !== {source}"):
            return sight.click("I click the text that is to be copied.", source)
        if ALL not in done:
            return "I select all of it.", ALL
        return "I copy it.", COPY
    if sight.js("document.activeElement !== one('#answer-input')"):
        return sight.click("I click the field for the copy.", "one('#answer-input')")
    if PASTE not in done:
        return "I paste it.", PASTE
    # The clipboard was somebody else's: by hand then.
    todo = sight.field("one('#answer-input')", text, "The field")
    if todo is None:
        raise NoWay("the text can't be copied")
    return todo


def _copy_one(sight: Sight) -> Decision:
    return _copy(sight, "one('#to-copy')")


def _copy_nth(sight: Sight) -> Decision:
    match = re.search(r"(\d)(?:st|nd|rd)", sight.said)
    if match is None:
        raise NoWay(f"no text area is named in {sight.said!r}")
    return _copy(sight, f"one('#text-{match.group(1)}')")


def _answer(sight: Sight, text: str, field: str = "one('#answer-input')") -> Decision:
    return sight.form([(field, text, "The field")], SUBMIT, '"Submit"')


def _case(sight: Sight) -> Decision:
    name = quoted(sight)
    text = name.upper() if "upper case" in sight.said else name.lower()
    return _answer(sight, text, "one('#tt')")


def _nth_word(sight: Sight) -> Decision:
    match = re.search(r"(\d+)(?:st|nd|rd|th) word", sight.said)
    if match is None:
        raise NoWay(f"no word is named in {sight.said!r}")
    words = str(sight.js("one('#area p').textContent")).split()
    return _answer(sight, re.sub(r"[^a-zA-Z]", "", words[int(match.group(1)) - 1]))


def _letters(sight: Sight) -> Decision:
    return _answer(sight, str(sight.js("one('#captcha').textContent")), "one('#tt')")


def _scrolled(sight: Sight, target: str, down: bool) -> Decision | None:
    """Return the next turn of the wheel over `target`; None where its end is in sight."""
    left, top, height, whole = sight.js(
        f"(e => [(r => [r.left + r.width / 2, r.top + r.height / 2])(e.getBoundingClientRect()),"
        f" e.scrollTop, e.clientHeight, e.scrollHeight])({target})"
    )
    if (down and top + height >= whole - 2) or (not down and top <= 2):
        return None
    x, y = sight.at(left)
    way = "down" if down else "up"
    return f"There is more text, I scroll {way}.", Scroll(x, y, dy=3 if down else -3)


def _scroll_read(sight: Sight) -> Decision:
    todo = _scrolled(sight, "one('#text-area')", True)
    if todo is not None and not sight.js("one('#answer-input').value"):
        return todo
    last = str(sight.js("one('#text-area').value")).split()[-1]
    return _answer(sight, re.sub(r"[^a-zA-Z0-9]", "", last))


def _scroll_to(sight: Sight) -> Decision:
    todo = _scrolled(sight, "one('#text-area')", "bottom" in sight.said)
    return todo or sight.click("This is the end, I submit.", SUBMIT)


def _agreement(sight: Sight) -> Decision:
    if sight.said.startswith("Click the cancel"):
        return sight.click("I click Cancel.", "one('#cancel')")
    if sight.js("one('#name').disabled"):
        todo = _scrolled(sight, "one('#text-area')", True)
        if todo is None:
            raise NoWay("the text is at its end and nothing can be entered")
        return todo
    name, button = re.findall(r'"([^"]+)"', sight.said)[:2]
    return sight.form(
        [("one('#name')", name, "The name")], f"one('#{button.lower()}')", f'"{button}"'
    )


def _table(sight: Sight) -> Decision:
    match = re.search(r"value of (.+) into the text field", sight.said)
    key = match.group(1) if match else ""
    return _answer(sight, _cell(sight, key), "one('#tt')")


def _cell(sight: Sight, key: str) -> str:
    for name, value in sight.js("all('#tab tr').map(r => all_cells(r))".replace(
            "all_cells(r)", "Array.from(r.cells).map(c => c.textContent)")):  # fmt: skip
        if name == key:
            return str(value)
    raise NoWay(f"the table has no {key!r}")


def _table_two(sight: Sight) -> Decision:
    fields = []
    for number in (1, 2):
        key = str(sight.js(f"one('#ll{number}').dataset.key"))
        fields.append((f"one('#tt{number}')", _cell(sight, key), f'"{key}"'))
    return sight.form(fields, SUBMIT, '"Submit"')


def _editor(sight: Sight) -> Decision:
    """Select the text in the editor, then press the style or choose the colour, then submit."""
    bold = sight.js("all('#query .bold').map(words)")
    whole = bold[0] == "everything"
    style = {"bold": "bold", "italics": "italic", "underlined": "underline"}.get(bold[1])
    text = str(sight.js("editor.getText()")).rstrip("\n")
    at = 0 if whole else _word_at(text, bold[0])
    length = len(text) if whole else len(bold[0])
    styled = sight.js(f"editor.getFormat({at}, {length})")
    if styled:
        return sight.click("The text has its style, I submit.", "one('#subbtn')")
    if sight.js("one('.ql-color.ql-picker').classList.contains('ql-expanded')"):
        return sight.click(
            f"I choose {bold[1]}.",
            f"(c => all('.ql-color .ql-picker-item').find(e => c.includes(e.dataset.value)))"
            f"(COLOR_MAP['{bold[1]}'])",
        )
    chosen = sight.js("(r => r && [r.index, r.length])(editor.getSelection())")
    if chosen != [at, length]:
        if whole and chosen is not None:
            return "I select everything.", ALL
        if whole:
            return sight.click("I click into the text.", "one('.ql-editor p')")
        ends = text_ends(sight, "one('.ql-editor')", at, at + length)
        return sight.drag(f'I select "{bold[0]}".', ends)
    if style:
        return sight.click(f"I press {style}.", f"one('button.ql-{style}')")
    return sight.click("I open the colours.", "one('.ql-color .ql-picker-label')")


def _word_at(text: str, word: str) -> int:
    """Return where `word` begins, as one of the words between blanks."""
    at = 0
    for part in text.split(" "):
        if part == word:
            return at
        at += len(part) + 1
    raise NoWay(f"{word!r} is not in {text!r}")


def _terminal(sight: Sight) -> Decision:
    """List the files, then remove the right one, key by key: the page reads keys, not text."""
    bold = str(sight.js("one('#query .bold').textContent"))
    files = sight.js("currentFiles")
    fits = [f for f in files if ("." not in f if bold == "no file extension" else f.endswith(bold))]
    if not fits:
        raise NoWay(f"no file fits {sight.said!r}")
    if sight.js("document.activeElement !== one('#terminal-target')"):
        return sight.click("I click the terminal.", "one('#terminal')")
    listed = sight.js("all('.command').some(e => e.textContent === 'ls')"
                      " && one('#active-input').textContent !== 'ls'")  # fmt: skip
    command = f"rm {fits[0]}" if listed else "ls"
    entered = str(sight.js("one('#active-input').textContent"))
    if entered == command:
        return sight.keys(f'"{command}" stands there, I press Enter.', "enter")
    if not command.startswith(entered):
        return sight.keys("This is not what I want, I take the last letter away.", "backspace")
    letter = command[len(entered)]
    return sight.keys(
        f'I type "{command}": {letter!r} is next.', "space" if letter == " " else letter
    )


SCRIPTS: dict[str, Script] = {
    "copy-paste": _copy_one,
    "copy-paste-2": _copy_nth,
    "enter-text-2": _case,
    "find-word": _nth_word,
    "text-transform": _letters,
    "scroll-text": _scroll_read,
    "scroll-text-2": _scroll_to,
    "sign-agreement": _agreement,
    "read-table": _table,
    "read-table-2": _table_two,
    "text-editor": _editor,
    "terminal": _terminal,
}
