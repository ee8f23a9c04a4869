"""The gate and the ledger without a desktop."""

from __future__ import annotations

import threading

import pytest

from guest.errors import ActionFailed, StaleLease
from guest.fencing import Gate, Ledger, Result
from guest.keymap import keysym_of_character, keysym_of_key
from trajectory.keys import NAMED_KEYS


def test_the_epoch_never_falls() -> None:
    gate, released = Gate(), []
    assert gate.raise_to(5, released=lambda: released.append(1)) == 5
    assert gate.raise_to(3, released=lambda: released.append(2)) == 5
    assert released == [1]
    with pytest.raises(StaleLease, match="epoch 4 is not this computer's epoch 5"):
        gate.check(4)


def test_raising_the_epoch_waits_for_the_action_under_way() -> None:
    gate, order = Gate(1), []
    inside, go_on = threading.Event(), threading.Event()

    def act() -> None:
        with gate.entered(1):
            inside.set()
            assert go_on.wait(10)
            order.append("action ended")

    def fence() -> None:
        gate.raise_to(2, released=lambda: None)
        order.append("fenced")

    threads = [threading.Thread(target=act)]
    threads[0].start()
    assert inside.wait(10)
    threads.append(threading.Thread(target=fence))
    threads[1].start()
    go_on.set()
    for thread in threads:
        thread.join(10)
    assert order == ["action ended", "fenced"]
    with pytest.raises(StaleLease), gate.entered(1):
        pytest.fail("an old action entered")


def test_the_first_result_is_kept_and_shared() -> None:
    ledger, done = Ledger(), []

    def work() -> Result:
        done.append(1)
        return Result("out", 3)

    assert ledger.once("a", work) == (Result("out", 3), False)
    assert ledger.once("a", work) == (Result("out", 3), True)
    assert ledger.once("b", work)[1] is False
    assert len(done) == 2


def test_a_failure_is_kept_and_a_stale_refusal_is_not() -> None:
    ledger = Ledger()

    def fail(error: Exception) -> Result:
        raise error

    for _ in range(2):
        with pytest.raises(ActionFailed):
            ledger.once("a", lambda: fail(ActionFailed("no")))
    with pytest.raises(StaleLease):
        ledger.once("b", lambda: fail(StaleLease("old")))
    assert ledger.once("b", Result) == (Result(), False)


def test_the_oldest_results_are_forgotten() -> None:
    ledger = Ledger(kept=2)
    for name in "abc":
        ledger.once(name, Result)
    assert ledger.once("c", Result)[1] is True
    assert ledger.once("a", Result)[1] is False


def test_every_named_key_has_a_keysym() -> None:
    assert len({keysym_of_key(name) for name in NAMED_KEYS}) == len(NAMED_KEYS)
    assert keysym_of_key("Return") == keysym_of_key("enter") == keysym_of_character("\n")
    assert keysym_of_character("é") == 0xE9
    assert keysym_of_character("你") == 0x01004F60
    with pytest.raises(ValueError, match="nosuch"):
        keysym_of_key("nosuch")
