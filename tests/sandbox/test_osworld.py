"""OSWorld's JSON: what is read, what can't be done and why, and how it is judged."""

from __future__ import annotations

import io
import json
import sqlite3
import zipfile
from pathlib import Path
from typing import Any

import pytest

from sandbox.families import SetupFailed
from sandbox.families.osworld import OSWorld
from sandbox.osworld import judge, metrics, steps, task
from sandbox.osworld.assets import AssetMissing, Assets
from sandbox.osworld.getters import Place
from sandbox.osworld.support import reasons, tally
from sandbox.osworld.task import BadTask
from sandbox.provider import SandboxSpec
from sandbox.providers.fake import FakeProvider
from tests.sandbox.desktops import new_id

INSTALL = {
    "id": "94d95f96",
    "instruction": "Install it. ",
    "config": [{"type": "execute", "parameters": {"command": ["true"]}}],
    "related_apps": ["os"],
    "evaluator": {
        "func": "check_include_exclude",
        "result": {"type": "vm_command_line", "command": "which spotify"},
        "expected": {"type": "rule", "rules": {"include": ["spotify"], "exclude": ["not found"]}},
    },
}


def made(**changes: Any) -> task.OSWorldTask:
    return task.read({**INSTALL, **changes}, where="x.json")


def why(**changes: Any) -> list[str]:
    found = reasons(made(**changes), Assets(None), installed=lambda program: program == "chromium")
    return [str(reason) for reason in found]


# -- reading -----------------------------------------------------------------------------------


def test_a_task_is_read_as_it_stands() -> None:
    found = made()
    assert (found.id, found.instruction, found.system) == ("94d95f96", "Install it.", "linux")
    assert task.read(found.as_dict(), where="again").as_dict() == found.as_dict()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"id": ""}, "x.json: id"),
        ({"instruction": None}, "x.json: instruction"),
        ({"config": {}, "evaluator": None}, "x.json: evaluator"),
        ({"config": [{"parameters": {}}]}, r"config\[0\]: a step is an object with a type"),
        ({"config": [{"type": "sleep", "parameters": 3}]}, r"config\[0\].parameters"),
        ({"evaluator": {"func": ""}}, "evaluator.func"),
        ({"related_apps": "os"}, "related_apps"),
    ],
)
def test_a_mistake_is_named_by_file_and_field(change: dict[str, Any], message: str) -> None:
    with pytest.raises(BadTask, match=message):
        made(**change)


def test_one_bad_file_leaves_the_others(tmp_path: Path) -> None:
    domain = tmp_path / "os"
    domain.mkdir()
    (domain / "a.json").write_text(json.dumps(INSTALL))
    (domain / "b.json").write_text("{")
    (domain / "c.json").write_text(json.dumps([INSTALL | {"id": "two"}, {"id": "three"}]))
    (tmp_path / "test_all.json").write_text(json.dumps({"os": ["94d95f96"]}))
    found = list(task.read_folder(tmp_path))
    assert [f.id for f in found if not isinstance(f, BadTask)] == ["94d95f96", "two"]
    assert [str(f).split(":")[0] for f in found if isinstance(f, BadTask)] == [
        "b.json",
        "c.json, task 2",
    ]


# -- what can't be done ------------------------------------------------------------------------


def test_a_task_that_can_be_done_has_no_reason_against_it() -> None:
    assert why() == []


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"related_apps": ["gimp"]}, "application: gimp (gimp is not installed)"),
        ({"config": [{"type": "login", "parameters": {}}]}, "account: login"),
        ({"config": [{"type": "history"}]}, "setup step: history"),
        (
            {"config": [{"type": "download", "parameters": {"files": [{"url": "https://h/a", "path": "a"}]}}]},
            "missing file: https://h/a",
        ),
        (
            {"config": [{"type": "chrome_open_tabs", "parameters": {"urls_to_open": ["https://www.drugs.com/x"]}}]},
            "live web: www.drugs.com",
        ),
        ({"evaluator": {"func": "compare_pptx_files"}}, "function: compare_pptx_files"),
        ({"evaluator": {"func": "exact_match", "result": {"type": "vlc_config"}}}, "getter: vlc_config"),
        ({"config": [{"type": "launch", "parameters": {"command": ["powershell", "x"]}}]}, "system: needs Windows"),
        ({"os_type": "Windows"}, "system: needs Windows"),
    ],
)  # fmt: skip
def test_what_is_missing_is_named(change: dict[str, Any], reason: str) -> None:
    assert reason in why(**change)


def test_a_task_counts_once_per_kind_of_reason(tmp_path: Path) -> None:
    (tmp_path / "t.json").write_text(json.dumps(INSTALL | {"related_apps": ["gimp", "picard"]}))
    family = OSWorld(tmp_path)
    assert "94d95f96" not in [spec.name for spec in family.list()]
    kinds = tally(family.left_out.values())
    assert kinds["application"] == 1


def test_the_file_of_an_address_is_found_by_its_path(tmp_path: Path) -> None:
    url = "https://hub.example/datasets/x/resolve/main/os/94d9/form.docx"
    assert Assets(tmp_path).find(url) is None
    (tmp_path / "94d9").mkdir()
    (tmp_path / "94d9" / "form.docx").write_bytes(b"form")
    assert Assets(tmp_path).read(url) == b"form"
    with pytest.raises(AssetMissing, match=r"other\.docx is not in the assets folder"):
        Assets(tmp_path).read(url.replace("form", "other"))


def test_an_address_reaches_no_file_outside_the_folder(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("s")
    inside = tmp_path / "assets"
    inside.mkdir()
    assert Assets(inside).find("https://h/../secret") is None
    assert Assets(inside).find("https://h/%2e%2e/secret") is None


# -- functions ---------------------------------------------------------------------------------


def _database(tmp_path: Path) -> bytes:
    file = tmp_path / "x.sqlite"
    with sqlite3.connect(file) as database:
        database.execute("create table t (n)")
        database.execute("insert into t values (3)")
    return file.read_bytes()


def _zip(files: dict[str, bytes], *, locked: bool = False) -> bytes:
    """Return an archive; `locked` sets the flag of an encrypted entry, which can't be read."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in files.items():
            archive.writestr(name, data)
    data = bytearray(out.getvalue())
    if locked:
        data[data.index(b"PK\x01\x02") + 8] |= 1
    return bytes(data)


@pytest.mark.parametrize(
    ("name", "result", "expected", "options", "score"),
    [
        ("exact_match", "4\n", {"expected": "4"}, {}, 1),
        ("exact_match", 1.0, {"expected": 1.0}, {}, 1),
        ("exact_match", None, {"expected": "4"}, {}, 0),
        ("match_in_list", "b", {"expected": ["a", "b"]}, {}, 1),
        ("is_in_list", None, {"expected": "a"}, {}, 0),
        ("literal_match", ["A"], ["a"], {"type": "list", "ignore_case": True}, 1),
        ("check_include_exclude", "yes, not found", {"include": ["yes"], "exclude": ["not found"]}, {}, 0),
        ("check_include_exclude", None, {"include": []}, {}, 0),
        ("fuzzy_match", "abcd", {"expected": "abcd"}, {}, 1),
        ("file_contains", b"one two", {"expected": ["two"]}, {}, 1),
        ("file_contains", None, {"expected": ["two"]}, {}, 0),
        ("diff_text_file", b"a\nb", b"a\nc", {}, 0.5),
        ("compare_text_file", b"A  b", b"a b\n", {"ignore_case": True, "ignore_blanks": True}, 1),
        ("compare_python_pure_text", b"if x:\n  y", b"if x:\n\n    y\n", {}, 1),
        ("check_list", b"one\ntwo", {"expect": ["^on"], "unexpect": ["three"]}, {}, 1),
        ("check_list", b"one\ntwo", {"expect": ["^on"], "unexpect": ["two"]}, {}, 0),
        ("check_line_number", b"10:00:00 a\nb\n23:59:59 c", {"expected": "2"}, {}, 1),
        ("check_csv", b"n,s\nAda,x\n", {"expect": [{"n": "Ada"}], "unexpect": [{"s": "y"}]}, {}, 1),
        ("check_json", b'{"a": [{"b": 2}]}', {"expect": [{"key": ["a", "0", "b"], "method": "ge", "ref": 2}]}, {}, 1),
        ("check_json", b'{"a": 1}', {"expect": [{"key": ["b"], "method": "exists"}]}, {}, 0),
        ("check_json", b"{", {"expect": []}, {}, 0),
        ("check_json_settings", b'// mine\n{"a": 1, "b": 2}', {"expected": {"b": 2}}, {}, 1),
        ("check_json_keybindings", b'[{"key": "ctrl+j"}]', {"expected": {"key": "ctrl+j"}}, {}, 1),
        ("check_direct_json_object", {"a": "xyz"}, {"expected": {"a": "y"}, "expect_in_result": True}, {}, 1),
        ("check_direct_json_object", "[]", {"expected": {"a": 1}}, {}, 0),
        ("is_utc_0", "  Time zone: Etc/UTC (UTC, +0000)\n", {}, {}, 1),
        ("check_moved_jpgs", ["b", "a"], {"expected": ["a", "b"]}, {}, 1),
        ("is_expected_tabs", [{"url": "file:///x/"}], {"urls": ["file:///x"]}, {}, 1),
        ("compare_zip_files", b"no zip", b"", {}, 0),
        # What can't be read is wrong, and no broken environment that would be played again.
        ("fuzzy_match", None, {"expected": "None"}, {}, 0),
        ("fuzzy_match", "a" * 1_000_000, {"expected": "a" * 100}, {}, 0),
        ("literal_match", None, "None", {}, 0),
        ("is_in_list", b"one two", {"expected": "two"}, {}, 1),
        ("is_in_list", 3, {"expected": "two"}, {}, 0),
        ("check_csv", b'"' + b"x" * 200_000, {"expect": []}, {}, 0),
        ("check_json", b"[" * 100_000, {"expect": []}, {}, 0),
        ("check_direct_json_object", b"[" * 100_000, {"expected": {}}, {}, 0),
        ("compare_zip_files", _zip({"a": b"x"}, locked=True), _zip({"a": b"x"}), {}, 0),
        ("compare_zip_files", _zip({"a": b"x" * 9_000_000}), _zip({"a": b"x"}), {}, 0),
        ("compare_zip_files", _zip({"a": b"x"}), _zip({"a": b"x"}), {}, 1),
    ],
)  # fmt: skip
def test_a_function_says_how_right_a_result_is(
    name: str, result: Any, expected: Any, options: dict[str, Any], score: float
) -> None:
    assert metrics.METRICS[name](result, expected, options) == score


def test_a_query_judges_and_can_change_nothing(tmp_path: Path) -> None:
    database = _database(tmp_path)
    ask = metrics.METRICS["run_sqlite3"]
    assert ask(database, {"sql": "select count(*) = 1 from t"}, {}) == 1
    assert ask(database, {"sql": "delete from t"}, {}) == 0


def test_a_query_that_never_ends_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metrics, "MOST_SQL", 10_000)
    file = tmp_path / "x.sqlite"
    with sqlite3.connect(file) as database:
        database.execute(
            "create view t as with recursive c(n) as (select 1 union all select n + 1 from c) "
            "select n from c"
        )
    ask = metrics.METRICS["run_sqlite3"]
    assert ask(file.read_bytes(), {"sql": "select count(*) from t"}, {}) == 0


# -- running -----------------------------------------------------------------------------------


@pytest.fixture
def place() -> Place:
    desktop = FakeProvider()
    computer = desktop.connect(desktop.start(SandboxSpec(new_id())))
    computer.fence(1)
    count = iter(range(1000))
    return Place(computer, 1, Assets(None), lambda what: f"t{next(count)}")


def _rule(**rules: Any) -> dict[str, Any]:
    return {"type": "rule", "rules": rules}


def test_a_step_that_fails_is_named_with_its_number(place: Place) -> None:
    with pytest.raises(SetupFailed, match=r"step 2 \(sleep\): 'seconds'"):
        steps.run(
            place, [{"type": "create_folder", "parameters": {"path": "x"}}, {"type": "sleep"}]
        )
    with pytest.raises(SetupFailed, match="there is no step 'dance'"):
        steps.run(place, [{"type": "dance"}])


def test_functions_are_joined_by_and_or(place: Place) -> None:
    place.desktop.write_file("a.txt", b"one", epoch=1)
    evaluator = {
        "func": ["file_contains", "file_contains"],
        "result": {"type": "vm_file", "path": "a.txt"},
        "expected": [_rule(expected=["one"]), _rule(expected=["two"])],
    }
    both = judge.judge(place, evaluator, gave_up=False)
    assert (both.reward, both.detail) == (0, "file_contains: 1, file_contains: 0")
    assert judge.judge(place, evaluator | {"conj": "or"}, gave_up=False).reward == 1
    assert judge.judge(place, evaluator | {"conj": "or"}, gave_up=True).reward == 0


def test_a_task_that_cannot_be_done_wants_to_hear_so(place: Place) -> None:
    assert judge.judge(place, {"func": "infeasible"}, gave_up=True).reward == 1
    assert judge.judge(place, {"func": "infeasible"}, gave_up=False).reward == 0


def test_an_evaluator_that_does_not_add_up_is_no_reward(place: Place) -> None:
    with pytest.raises(SetupFailed, match="2 functions and 1 of expected"):
        judge.judge(
            place, {"func": ["exact_match"] * 2, "expected": [_rule(expected=1)]}, gave_up=False
        )
