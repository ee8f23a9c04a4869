"""The functions that compare a result with an expectation; each returns 0 to 1.

A file is bytes here, None where the computer has none. Names and meanings are OSWorld's; the code is
ours. Two differ from it on purpose: nothing is ever evaluated as code, and a function that can't read
what it was given says 0 instead of raising.
"""

from __future__ import annotations

import csv
import difflib
import io
import json
import re
import sqlite3
import tempfile
import zipfile
import zlib
from collections.abc import Callable, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any, TypeAlias

MOST_COMPARED = 200_000
MOST_SQL = 50_000_000
"""Steps of SQLite's machine, some seconds."""

Metric: TypeAlias = Callable[[Any, Any, Mapping[str, Any]], float]
"""(result, expected, options) -> 0 to 1."""


def _text(value: object) -> str:
    return value.decode(errors="replace") if isinstance(value, bytes) else str(value)


def _lines(value: object) -> list[str]:
    return _text(value).splitlines()


def _expected(rules: object) -> Any:
    return rules.get("expected") if isinstance(rules, Mapping) else rules


def exact_match(result: Any, rules: Any, options: Mapping[str, Any]) -> float:
    """Whether the result equals rules["expected"]; a text also if only its ends' blanks differ."""
    expected = _expected(rules)
    if isinstance(result, str) and isinstance(expected, str):
        return float(result.strip() == expected.strip())
    return float(result == expected)


def match_in_list(result: Any, rules: Any, options: Mapping[str, Any]) -> float:
    return float(result in (_expected(rules) or []))


def is_in_list(result: Any, rules: Any, options: Mapping[str, Any]) -> float:
    if isinstance(result, bytes | str):
        return float(_text(_expected(rules)) in _text(result))
    return float(isinstance(result, list) and _expected(rules) in result)


def literal_match(result: Any, expected: Any, options: Mapping[str, Any]) -> float:
    """Compare as texts, or as lists of texts (options: type, ignore_case)."""
    fold = str.lower if options.get("ignore_case") else str
    if options.get("type", "str") == "list":
        if not isinstance(result, list | tuple) or not isinstance(expected, list | tuple):
            return 0.0
        return float([fold(str(r)) for r in result] == [fold(str(e)) for e in expected])
    return float(result is not None and fold(str(result)) == fold(str(expected)))


def check_include_exclude(result: Any, rules: Any, options: Mapping[str, Any]) -> float:
    """Whether every text of `include` is in the result and none of `exclude`."""
    if result is None:
        return 0.0
    text = _text(result)
    there = all(part in text for part in rules.get("include", []))
    return float(there and not any(part in text for part in rules.get("exclude", [])))


def fuzzy_match(result: Any, rules: Any, options: Mapping[str, Any]) -> float:
    """Return how alike the texts are (difflib's ratio; OSWorld's is rapidfuzz's: close, not equal).

    A text of more than MOST_COMPARED characters is like none: the comparison would take for ever.
    """
    if result is None or len(_text(result)) > MOST_COMPARED:
        return 0.0
    return difflib.SequenceMatcher(None, _text(result), _text(_expected(rules))).ratio()


def file_contains(result: Any, rules: Any, options: Mapping[str, Any]) -> float:
    """Whether a file holds every text of rules["expected"]."""
    if result is None:
        return 0.0
    wanted = _expected(rules) or []
    wanted = [wanted] if isinstance(wanted, str) else wanted
    return float(all(part in _text(result) for part in wanted))


def diff_text_file(result: Any, expected: Any, options: Mapping[str, Any]) -> float:
    """Return the share of equal lines of two files (difflib's ratio over lines)."""
    if result is None or expected is None or len(_text(result)) > MOST_COMPARED:
        return 0.0
    return difflib.SequenceMatcher(None, _lines(result), _lines(expected)).ratio()


def compare_text_file(result: Any, expected: Any, options: Mapping[str, Any]) -> float:
    """Whether two files hold the same text (options: ignore_case, ignore_blanks)."""
    if result is None or expected is None:
        return 0.0
    texts = [_text(result), _text(expected)]
    if options.get("ignore_blanks"):
        texts = [re.sub(r"\s+", " ", text).strip() for text in texts]
    if options.get("ignore_case"):
        texts = [text.lower() for text in texts]
    return float(texts[0] == texts[1])


def compare_python_pure_text(result: Any, expected: Any, options: Mapping[str, Any]) -> float:
    """Whether two programs are the same but for indentation and blank lines."""
    if result is None or expected is None:
        return 0.0
    left, right = ([line.strip() for line in _lines(x) if line.strip()] for x in (result, expected))
    return float(left == right)


def check_list(result: Any, rules: Any, options: Mapping[str, Any]) -> float:
    """Whether each regex of `expect` is found in some line, and none of `unexpect` in any."""
    if result is None:
        return 0.0
    lines = _lines(result)

    def found(pattern: str) -> bool:
        return any(re.search(pattern, line) for line in lines)

    right = all(found(pattern) for pattern in rules.get("expect", []))
    return float(right and not any(found(pattern) for pattern in rules.get("unexpect", [])))


def check_line_number(result: Any, rules: Any, options: Mapping[str, Any]) -> float:
    """Whether as many lines hold a time (HH:MM:SS) as expected."""
    if result is None:
        return 0.0
    stamped = sum(
        1 for line in _lines(result) if re.search(r"([01]\d|2[0-3]):[0-5]\d:[0-5]\d", line)
    )
    return float(str(stamped) == str(_expected(rules)))


def check_csv(result: Any, rules: Any, options: Mapping[str, Any]) -> float:
    """Whether each record of `expect` agrees with some row, and no row with one of `unexpect`."""
    if result is None:
        return 0.0
    try:
        rows = list(csv.DictReader(io.StringIO(_text(result))))
    except csv.Error:
        return 0.0

    def agrees(record: Mapping[str, str]) -> bool:
        return any(all(row.get(k) == v for k, v in record.items()) for row in rows)

    right = all(agrees(record) for record in rules.get("expect", []))
    return float(right and not any(agrees(record) for record in rules.get("unexpect", [])))


def check_json(result: Any, rules: Any, options: Mapping[str, Any]) -> float:
    """Whether the value under each `key` path of `expect` passes, and none of `unexpect` does.

    Methods: eq, ne, le, lt, ge, gt, re, in, not_in, str_list_eq, exists.
    """
    try:
        document = json.loads(_text(result))
    except (ValueError, RecursionError):
        return 0.0
    right = all(_rule_holds(document, rule) for rule in rules.get("expect", []))
    return float(
        right and not any(_rule_holds(document, rule) for rule in rules.get("unexpect", []))
    )


def _rule_holds(document: Any, rule: Mapping[str, Any]) -> bool:
    value = document
    for key in rule.get("key", []):
        try:
            value = value[int(key) if isinstance(value, list) else key]
        except (KeyError, IndexError, TypeError, ValueError):
            return False
    method, ref = str(rule.get("method", "eq")), rule.get("ref")
    try:
        match method:
            case "exists":
                return True
            case "eq":
                return bool(value == ref)
            case "ne":
                return bool(value != ref)
            case "le" | "lt" | "ge" | "gt":
                a, b = float(value), float(str(ref))
                return {"le": a <= b, "lt": a < b, "ge": a >= b, "gt": a > b}[method]
            case "re":
                return re.search(str(ref), str(value)) is not None
            case "in":
                return value in (ref or [])
            case "not_in":
                return value not in (ref or [])
            case "str_list_eq":
                return [str(v) for v in value] == [str(r) for r in ref or []]
    except (TypeError, ValueError, re.error):
        return False
    return False


def check_json_settings(result: Any, rules: Any, options: Mapping[str, Any]) -> float:
    """Whether a settings file (comments allowed) holds every key of rules["expected"] with its value."""
    try:
        settings = json.loads(re.sub(r"^\s*//.*$", "", _text(result), flags=re.M))
    except (ValueError, RecursionError):
        return 0.0
    wanted = _expected(rules) or {}
    return float(
        isinstance(settings, dict) and all(settings.get(k) == v for k, v in wanted.items())
    )


def check_json_keybindings(result: Any, rules: Any, options: Mapping[str, Any]) -> float:
    """Whether a list of key bindings holds the expected one."""
    try:
        bindings = json.loads(re.sub(r"^\s*//.*$", "", _text(result), flags=re.M))
    except (ValueError, RecursionError):
        return 0.0
    return float(isinstance(bindings, list) and _expected(rules) in bindings)


def check_direct_json_object(result: Any, rules: Any, options: Mapping[str, Any]) -> float:
    """Whether an object has the expected values; expect_in_result: each as a part of what is there."""
    if isinstance(result, bytes | str):
        try:
            result = json.loads(_text(result))
        except (ValueError, RecursionError):
            return 0.0
    wanted = _expected(rules)
    if not isinstance(result, Mapping) or not isinstance(wanted, Mapping):
        return 0.0
    if rules.get("expect_in_result"):
        return float(all(str(v) in str(result.get(k, "")) for k, v in wanted.items()))
    return float(all(result.get(k) == v for k, v in wanted.items()))


def run_sqlite3(result: Any, rules: Any, options: Mapping[str, Any]) -> float:
    """Return what the query rules["sql"] gives on a database file, as a truth value."""
    if not isinstance(result, bytes):
        return 0.0
    with tempfile.TemporaryDirectory(prefix="tandem-sqlite-") as folder:
        file = Path(folder, "db.sqlite")
        file.write_bytes(result)
        try:
            # Read-only: a task's query judges, it must not change what it judges.
            with closing(sqlite3.connect(f"file:{file}?mode=ro", uri=True)) as database:
                # A table of theirs may be a view that never ends.
                database.set_progress_handler(lambda: 1, MOST_SQL)
                row = database.execute(str(rules.get("sql", ""))).fetchone()
        except sqlite3.Error:
            return 0.0
    return float(bool(row and row[0]))


def compare_zip_files(result: Any, expected: Any, options: Mapping[str, Any]) -> float:
    """Whether two archives hold the same names with the same bytes."""
    try:
        left, right = (zipfile.ZipFile(io.BytesIO(x)) for x in (result, expected))
        with left, right:
            names = sorted(left.namelist())
            # Sizes first: no more is unpacked than what is expected has.
            same = _sizes(left) == _sizes(right)
            return float(same and all(left.read(n) == right.read(n) for n in names))
    except (zipfile.BadZipFile, zlib.error, TypeError, OSError, EOFError, RuntimeError):
        return 0.0  # NotImplementedError, of an odd compression, is a RuntimeError


def _sizes(archive: zipfile.ZipFile) -> list[tuple[str, int]]:
    return sorted((entry.filename, entry.file_size) for entry in archive.infolist())


def is_utc_0(result: Any, rules: Any, options: Mapping[str, Any]) -> float:
    """Whether what timedatectl prints names a time zone of UTC+0."""
    zone = next((line for line in _lines(result) if "Time zone:" in line), "")
    return float(zone.rstrip().endswith("+0000)"))


def check_moved_jpgs(result: Any, rules: Any, options: Mapping[str, Any]) -> float:
    """Whether a folder's listing holds exactly the expected names."""
    return float(isinstance(result, list) and sorted(result) == sorted(_expected(rules) or []))


def is_expected_tabs(result: Any, rules: Any, options: Mapping[str, Any]) -> float:
    """Whether the open tabs are the expected addresses, in any order, a last slash aside."""
    wanted = rules.get("urls") or rules.get("expected") or []
    open_tabs = [str(tab.get("url", "")).rstrip("/") for tab in result or []]
    return float(sorted(open_tabs) == sorted(str(url).rstrip("/") for url in wanted))


def is_expected_active_tab(result: Any, rules: Any, options: Mapping[str, Any]) -> float:
    """Whether the page in front has the expected address."""
    url = result.get("url", "") if isinstance(result, Mapping) else result
    return float(str(url).rstrip("/") == str(rules.get("url", "")).rstrip("/"))


METRICS: dict[str, Metric] = {
    metric.__name__: metric
    for metric in (
        exact_match, match_in_list, is_in_list, literal_match, check_include_exclude, fuzzy_match,
        file_contains, diff_text_file, compare_text_file, compare_python_pure_text, check_list,
        check_line_number, check_csv, check_json, check_json_settings, check_json_keybindings,
        check_direct_json_object, run_sqlite3, compare_zip_files, is_utc_0, check_moved_jpgs,
        is_expected_tabs, is_expected_active_tab,
    )
}  # fmt: skip

INFEASIBLE = "infeasible"
"""The function of a task that can't be done: right is whoever says so."""
