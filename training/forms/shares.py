"""A form's field of rows that are ticked and weighed: datasets that are mixed, checkpoints that are merged."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from django import forms
from django.template.loader import render_to_string


class Shares(forms.Widget):
    """A table in which rows are ticked and given a weight; works without a script."""

    def __init__(self, one: str, empty: str) -> None:
        super().__init__()
        self.one, self.empty = one, empty
        self.rows: list[tuple[int, str, str]] = []  # pk, name, what is said of it

    def render(self, name: str, value: Any, attrs: Any = None, renderer: Any = None) -> Any:
        chosen = value or {}
        rows = [
            {
                "pk": pk,
                "name": label,
                "note": note,
                "ticked": pk in chosen,
                "weight": chosen.get(pk),
            }
            for pk, label, note in self.rows
        ]
        context = {"name": name, "rows": rows, "one": self.one, "empty": self.empty}
        return render_to_string("training/_shares.html", context | {"id": (attrs or {}).get("id")})

    def value_from_datadict(self, data: Any, files: Any, name: str) -> dict[int, str]:
        """Return what was typed by pk of what was ticked; a weight typed is as good as a tick."""
        getlist = getattr(data, "getlist", lambda key: data.get(key) or [])
        ticked = {int(pk) for pk in getlist(name) if str(pk).isdecimal()}
        typed = {pk: str(data.get(f"{name}-{pk}", "")).strip() for pk, _, _ in self.rows}
        return {pk: text for pk, text in typed.items() if text or pk in ticked}

    def id_for_label(self, id_: str | None) -> str:
        return ""  # the label is the table's caption


class SharesField(forms.Field):
    """Rows with weights; gives [(row, weight or None)]."""

    def __init__(self, rows: Iterable[Any], widget: Shares, **options: Any) -> None:
        super().__init__(required=False, widget=widget, **options)
        self.by_pk = {row.pk: row for row in rows}

    def clean(self, value: Any) -> list[tuple[Any, float | None]]:
        found = []
        for pk, text in (value or {}).items():
            row = self.by_pk[pk]
            try:
                found.append((row, float(text) if text != "" else None))
            except ValueError:
                raise forms.ValidationError(
                    f"{text!r}, the weight of {row}, is not a number"
                ) from None
        return found
