"""Our sites: one database per episode, a check that asks for exactly one change, pages that link up."""

from __future__ import annotations

import json
import re
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path

import pytest

from sandbox.answers import normalised
from sandbox.families import load
from sandbox.families.web import Web
from sandbox.provider import SandboxSpec
from sandbox.providers.fake import FakeProvider
from sandbox.sites import atlas, change, specs
from sandbox.sites.apps import APPS
from sandbox.sites.server import Instance, server
from tests.sandbox.desktops import new_id


def post(site: Instance, path: str, **form: str) -> tuple[int, str]:
    data = urllib.parse.urlencode(form).encode()
    try:
        with urllib.request.urlopen(site.url + path, data=data, timeout=10) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


@pytest.mark.parametrize("name", APPS)
def test_a_seed_gives_the_same_rows_and_another_gives_others(name: str) -> None:
    one, again, other = (server().open(APPS[name], seed) for seed in (3, 3, 4))
    assert one.begun == again.begun != other.begun
    assert one.url != again.url


def test_what_one_episode_does_no_other_sees() -> None:
    one, other = (server().open(APPS["tickets"], 1) for _ in range(2))
    assert post(one, "ticket/2/comment", body="Seen")[0] == 200
    assert change.between(other.begun, other.state()) == {}
    assert change.between(one.begun, one.state()) == {
        "comment": {"came": [{"ticket": 2, "body": "Seen"}], "went": []}
    }
    server().close(one)
    assert post(one, "ticket/2/comment", body="x")[0] == 404


def test_bad_input_is_told_and_changes_nothing() -> None:
    shop = server().open(APPS["shop"], 1)
    status, page = post(shop, "product/1", amount="many")
    assert (status, "Amount must be a number from 1 to" in page) == (200, True)
    assert "Your cart is empty" in post(shop, "cart", name="A", address="B", delivery="post")[1]
    assert post(shop, "product/99", amount="1")[0] == 404
    assert change.between(shop.begun, shop.state()) == {}


def test_an_order_takes_the_goods_from_the_shelf() -> None:
    shop = server().open(APPS["shop"], 1)
    post(shop, "product/2", amount="3")
    post(shop, "cart", name="Rosa Klein", address="4 Mill Lane", delivery="courier")
    done = change.between(shop.begun, shop.state())
    assert set(done) == {"placed", "line", "product"}
    assert done["line"]["came"] == [{"placed": 1, "product": 2, "amount": 3}]


def test_what_is_typed_is_shown_as_text() -> None:
    contacts = server().open(APPS["contacts"], 1)
    post(contacts, "new", name="<script>alert(1)</script>", phone="1", city="x", team="work")
    assert (
        "<script>alert" not in post(contacts, "new", name="B", phone="1", city="x", team="work")[1]
    )


def test_only_the_whole_change_and_nothing_else_is_rewarded(tmp_path: Path) -> None:
    record = {
        "name": "one", "site": "tickets", "data_seed": 1, "instruction": "Comment.", "plan": [],
        "change": {"comment": {"came": [{"ticket": 1, "body": "Seen"}], "went": []}},
        "provenance": {},
    }  # fmt: skip
    specs.write(tmp_path / "web-x.jsonl", [record])
    family = Web(tmp_path)
    task = next(spec for spec in family.list() if spec.name == "one")
    provider = FakeProvider()
    desktop = provider.connect(provider.start(SandboxSpec(new_id())))
    desktop.fence(1)
    assert family.verify(desktop, task, 0).reward is None
    family.setup(desktop, task, 0, epoch=1)
    site = family._open[desktop]
    assert family.verify(desktop, task, 0)[:3] == (0.0, "nothing changed", False)
    post(site, "ticket/1/comment", body="Seen")
    assert family.verify(desktop, task, 0)[:3] == (1.0, "comment: 1 came, 0 went", True)
    post(site, "ticket/1/comment", body="Seen")
    assert family.verify(desktop, task, 0).reward == 0


def test_a_broken_line_is_named(tmp_path: Path) -> None:
    (tmp_path / "web-bad.jsonl").write_text('{"name": "x"}\n')
    with pytest.raises(specs.BadSpec, match=r"web-bad\.jsonl, line 1: site: must be str"):
        Web(tmp_path).list()


def test_every_link_of_the_atlas_leads_to_a_page() -> None:
    folder = atlas.folder()
    pages = {path.name: path.read_text() for path in folder.glob("*.html")}
    assert len(pages) > 200
    for page in pages.values():
        assert set(re.findall(r'href="([^"]+)"', page)) <= set(pages)


def test_every_question_can_be_answered_from_its_pages() -> None:
    family = load("browsing")
    records = family._records()
    assert len(records) == len(list(family.list())) >= 40
    for record in records.values():
        last = atlas.countries()[record["hops"][-1]]
        page = (atlas.folder() / last.file).read_text()
        assert any(normalised(a) in normalised(page) for a in record["accepted"])
        for before, after in zip(record["hops"], record["hops"][1:], strict=False):
            assert after in atlas.countries()[before].neighbours
        assert not any(name in record["question"] for name in record["hops"])


def test_what_is_shipped_says_where_it_comes_from() -> None:
    for name in ("web", "browsing"):
        for spec in load(name).list():
            assert spec.provenance["pipeline"] and spec.provenance["writer"], spec.id
            json.dumps(spec.as_dict())
