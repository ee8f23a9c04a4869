"""Pages with numbers: sums, guesses, cards."""

from __future__ import annotations

import re

from sandbox.families.miniwob.sight import Decision, Script, Sight
from sandbox.families.protocol import NoWay

SUBMIT = "named('button', 'Submit')"


def _answer(sight: Sight, number: int) -> Decision:
    return sight.form([("one('#math-answer')", str(number), "The answer")], SUBMIT, '"Submit"')


def _arithmetic(sight: Sight) -> Decision:
    left, sign, right = str(sight.js("words(one('#math-problem'))")).split()[:3]
    a, b = int(left), int(right)
    return _answer(sight, {"+": a + b, "-": a - b, "x": a * b}[sign])


def _algebra(sight: Sight) -> Decision:
    left, sign, right, _, result = str(sight.js("words(one('#math-problem'))")).split()
    total = int(result)
    if left == "x":
        return _answer(sight, total - int(right) if sign == "+" else total + int(right))
    return _answer(sight, total - int(left) if sign == "+" else int(left) - total)


def _blocks(sight: Sight) -> Decision:
    return _answer(sight, int(sight.js("all('.addition-block').length")))


def _generate(sight: Sight) -> Decision:
    shown = str(sight.js("words(one('#display-number'))"))
    if re.fullmatch(r"\d+", shown) and _wanted(sight.said, int(shown)):
        return sight.click(f"{shown} will do, I submit.", "one('#submit')")
    return sight.click("I need another number.", "one('#generate')")


def _wanted(said: str, number: int) -> bool:
    if match := re.search(r"less than (\d+)", said):
        return number < int(match.group(1))
    if match := re.search(r"greater than (\d+)", said):
        return number > int(match.group(1))
    return number % 2 == (1 if "odd" in said else 0)


def _guess(sight: Sight) -> Decision:
    """Halve what is left after each answer; the answers are kept in mind, the page shows only one."""
    low, high = sight.memory.setdefault("between", [0, 9])
    told = str(sight.js("all('#feedback div').filter(shown).map(words).join(' ')"))
    if match := re.search(r"(lower|higher) than (\d+)", told):
        number = int(match.group(2))
        if match.group(1) == "lower":
            high = min(high, number - 1)
        else:
            low = max(low, number + 1)
        sight.memory["between"] = [low, high]
    if low > high:
        raise NoWay(f"nothing is left to guess after {told!r}")
    return sight.form([("one('#tt')", str((low + high) // 2), "The guess")], SUBMIT, '"Submit"')


def _greatest(sight: Sight) -> Decision:
    """Turn every card once, then take the greatest: what was seen is kept in mind."""
    seen = sight.memory.setdefault("seen", {})
    shown = sight.js("(e => e && [+e.dataset.index, +e.textContent])(one('.card:not(.hidden)'))")
    if shown is not None:
        seen[shown[0]] = shown[1]
    for index in range(3):
        if index not in seen:
            return sight.click(f"I look at card {index + 1}.", f"all('.card')[{index}]")
    best = max(seen, key=lambda index: seen[index])
    if shown is not None and shown[0] == best:
        return sight.click("This is the greatest, I submit.", "one('#submit')")
    return sight.click(f"Card {best + 1} was the greatest.", f"all('.card')[{best}]")


SCRIPTS: dict[str, Script] = {
    "simple-arithmetic": _arithmetic,
    "simple-algebra": _algebra,
    "visual-addition": _blocks,
    "generate-number": _generate,
    "guess-number": _guess,
    "find-greatest": _greatest,
}
