"""Opens fields without a mine, empty regions first. It knows the mines: no first click is safe here."""

from __future__ import annotations

from sandbox.games.player import Decision, Look


def decide(look: Look) -> Decision:
    state = look.state
    safe = [
        (field, row, column)
        for row, fields in enumerate(state["fields"])
        for column, field in enumerate(fields)
        if isinstance(field, int) and not state["open"][row][column]
    ]
    number, row, column = min(safe)
    around = f"{number} mines around it" if number else "no mine around it"
    thought = f"The field in row {row + 1}, column {column + 1} holds no mine and has {around}."
    return thought, look.click(f"field-{row}-{column}")
