"""Utterances find their actions: on made recordings with known truth, and in the cases one can name."""

from __future__ import annotations

from itertools import pairwise

from agent.speech import Word
from annotation.recordings.acts import Act, Spoken
from annotation.recordings.alignment import align
from annotation.recordings.utterances import PAUSE_S, utterances
from benchmarks.alignment import accuracy, made, nearest, ours, previous_window
from trajectory import Click, Hotkey, Scroll, Type

HELD_OUT = [made(90_000 + seed, held_out=True) for seed in range(30)]


def test_at_least_95_of_100_held_out_utterances_find_their_action() -> None:
    right, total = accuracy(ours, HELD_OUT)
    assert total >= 200
    assert right / total >= 0.95
    for rule in (nearest, previous_window):
        assert right > accuracy(rule, HELD_OUT)[0]


def test_time_decides_where_words_say_nothing() -> None:
    acts = [Act(5, 5.1, Click(1, 1)), Act(15, 15.1, Click(2, 2))]
    said = [Spoken(3, 4, "so this one"), Spoken(13, 14, "and here")]
    assert [pair.act for pair in align(said, acts)] == [0, 1]


def test_words_decide_against_time() -> None:
    acts = [
        Act(5, 5.1, Click(1, 1), "button Save"),
        Act(7, 9, Type("quarterly budget"), "text Search"),
    ]
    after = align([Spoken(5.4, 6.4, "I clicked save and it worked")], acts)
    before = align([Spoken(5.4, 6.4, "I type the quarterly budget")], acts)
    assert (after[0].act, before[0].act) == (0, 1)
    assert after[0].fit > 0.5 and before[0].fit > 0.5


def test_words_that_were_misheard_by_a_letter_still_count() -> None:
    acts = [Act(5, 5.1, Click(1, 1), "link Invoices"), Act(6.5, 6.6, Click(2, 2), "link Customers")]
    assert align([Spoken(3, 4.6, "go to custumers")], acts)[0].act == 1


def test_chinese_finds_its_element_and_its_chord() -> None:
    acts = [
        Act(4, 4.1, Click(1, 1), "按钮 发送"),
        Act(6, 6.1, Hotkey(("ctrl", "c"))),
        Act(8, 9, Scroll(1, 1, 0, 5)),
    ]
    said = [Spoken(2, 3, "点击发送"), Spoken(4.5, 5.5, "我复制一下"), Spoken(6.4, 7.4, "往下滚动")]
    assert [pair.act for pair in align(said, acts)] == [0, 1, 2]


def test_nothing_near_is_no_action_and_no_action_is_none() -> None:
    acts = [Act(5, 5.1, Click(1, 1))]
    assert align([Spoken(300, 301, "long after")], acts)[0].act is None
    assert align([Spoken(1, 2, "hello")], [])[0].act is None
    assert align([], acts) == []


def test_doubt_shows_in_the_fit() -> None:
    acts = [Act(5, 5.1, Click(1, 1)), Act(5.6, 5.7, Click(2, 2))]
    sure = align([Spoken(1, 2, "save it")], [Act(3, 3.1, Click(1, 1), "button Save")])[0]
    unsure = align([Spoken(5.2, 5.5, "hmm")], acts)[0]
    assert sure.fit > 0.99 > unsure.fit
    assert all(0 <= pair.fit <= 1 for pair in (sure, unsure))


def test_two_hours_take_memory_and_time_by_what_is_near() -> None:
    acts = [Act(3.0 * n, 3.0 * n + 0.1, Click(n, n), f"row {n}") for n in range(2400)]
    said = [Spoken(3.0 * n - 1, 3.0 * n - 0.2, f"row {n}") for n in range(2400)]
    found = [pair.act for pair in align(said, acts)]
    assert sum(a == b for a, b in zip(found, range(2400), strict=True)) >= 2390


def test_words_become_utterances_at_pauses_and_sentences() -> None:
    words = [Word("Save.", 0, 1, 1), Word("Now", 1.1, 1.4, 0.5), Word("type", 1.5, 2, 1),
             Word("点", 5, 5.2, 1), Word("击", 5.2, 5.4, 1)]  # fmt: skip
    found = utterances(reversed(words))
    assert [one.text for one in found] == ["Save.", "Now type", "点击"]
    assert found[1].confidence == 0.75
    assert all(b.began - a.ended > 0 for a, b in pairwise(found))
    assert len(utterances([Word("a", n * PAUSE_S / 2, n * PAUSE_S / 2, 1) for n in range(200)])) > 2
