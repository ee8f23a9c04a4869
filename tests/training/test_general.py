"""General data: what is read, what is refused by file and line, and the rows of it."""

from __future__ import annotations

import json

import pytest

from training.data import datasets, general
from training.data.general import BrokenConversation, read, rows
from training.errors import EmptyDataset, Erased, NameTaken, WrongState

ASKED = {"role": "user", "content": "What is 2 + 2?"}
SAID = {"role": "assistant", "content": "4"}
AGAIN = {"role": "user", "content": "And 3 + 3?"}
SIX = {"role": "assistant", "content": "6"}


def line(**record) -> bytes:
    return json.dumps(record).encode() + b"\n"


def test_loss_is_on_the_last_reply_unless_the_messages_say_otherwise():
    plain = line(messages=[{"role": "system", "content": "Be brief."}, ASKED, SAID, AGAIN, SIX])
    flagged = line(messages=[ASKED, SAID | {"loss": True}, AGAIN, SIX | {"loss": True}])
    apart = line(messages=[ASKED, SAID, AGAIN], target="6")
    found = list(rows(read([plain, b"\n", flagged, apart], file="f"), name="chat"))
    assert [(row.id, row.target, len(row.messages)) for row in found] == [
        ("chat/0", "6", 4), ("chat/1/1", "4", 1), ("chat/1", "6", 3), ("chat/2", "6", 3),
    ]  # fmt: skip
    assert all(row.loss is True for row in found)
    assert all("loss" not in message for row in found for message in row.messages)


def test_for_continual_pre_training_a_conversation_is_one_row_with_loss_on_all_of_it():
    flagged = line(messages=[ASKED, SAID | {"loss": True}, AGAIN, SIX])
    (row,) = rows(read([flagged], file="f"), name="chat", whole=True)
    assert (row.id, row.target, row.loss, len(row.messages)) == ("chat/0", "6", "all", 3)


@pytest.mark.parametrize(
    ("broken", "says"),
    [
        (b"{", "no JSON"),
        (b"\xff\xfe", "UTF-8"),
        (b"[1]", "object with messages"),
        (line(messages=[]), "not empty"),
        (line(messages=[ASKED]), "must be the assistant's"),
        (line(messages=[SAID]), "no message of the user"),
        (
            line(messages=[ASKED, {"role": "tool", "content": "x"}, SAID]),
            "message 2: the role 'tool'",
        ),
        (line(messages=[ASKED, {"role": "system", "content": "x"}, SAID]), "only the first"),
        (line(messages=[{"role": "user", "content": [{"type": "image"}]}, SAID]), "no pictures"),
        (line(messages=[ASKED, SAID | {"loss": "yes"}]), "true or false"),
        (line(messages=[ASKED | {"loss": True}, SAID]), "only the assistant's"),
        (line(messages=[ASKED, SAID | {"loss": False}]), "no message has loss"),
        (line(messages=[ASKED], target=" "), "message 2: content"),
        (b"[" * 100_000, "nested too deeply"),
    ],
)
def test_what_can_not_be_used_is_named_by_file_and_line(broken, says):
    with pytest.raises(BrokenConversation, match=f"^chat.jsonl, line 2: .*{says}"):
        list(read([line(messages=[ASKED, SAID]), broken], file="chat.jsonl"))


@pytest.mark.django_db
def test_an_import_is_frozen_like_any_dataset_and_comes_back_as_it_was():
    lines = [
        line(messages=[ASKED, SAID | {"loss": True}, AGAIN, SIX]),
        line(messages=[ASKED, SAID]),
    ]
    one = datasets.import_general(name="one", file="a.jsonl", lines=lines, by=None)
    two = datasets.import_general(name="two", file="b.jsonl", lines=lines, by=None)
    assert (one.pool, one.trajectories, one.steps) == ("general", 2, 2)
    assert one.sha256 == two.sha256
    assert list(datasets.conversations(one)) == list(general.read(lines, file="a"))
    with pytest.raises(WrongState, match="conversations"):
        list(datasets.trajectories(one))
    with pytest.raises(NameTaken, match="'one'"):
        datasets.import_general(name="one", file="a.jsonl", lines=lines, by=None)
    with pytest.raises(EmptyDataset, match=r"c\.jsonl"):
        datasets.import_general(name="three", file="c.jsonl", lines=[b"\n"], by=None)
    type(one).objects.filter(pk=one.pk).update(erased_at=one.frozen_at)
    with pytest.raises(Erased, match="fresh dataset"):
        list(datasets.conversations(one))
