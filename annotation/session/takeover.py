"""A person's hand on the mouse: control, and the steps that its input becomes.

The relay writes down what the hand does. The input is reduced to steps when control is given back,
when the session ends or expires, or when the reaper finds that nobody is there any more.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from typing import Any

from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import Max

from annotation import hints
from annotation.errors import Busy
from annotation.hand.reduce import Event, HandStep, reduce
from annotation.models import Decision, Session, Step
from annotation.session import endings, fencing, proposals, steps
from sandbox.leasing import leases
from sandbox.models import InputEvent, Lease
from trajectory import Actor, Hotkey

log = logging.getLogger(__name__)


def take_over(session: Session, *, fence: int, by: User) -> Session:
    """Give the author mouse and keyboard; the open proposal goes stale. Raises StaleFence, Busy."""
    with transaction.atomic():
        row = fencing.hold(session, fence=fence)
        fencing.active(row)
        if row.controller == Session.Controller.HUMAN:
            return row
        steps.nothing_chosen(row)
        lease = row.lease
        if lease is None or lease.state != Lease.State.ACTIVE:
            raise Busy("the computer is gone: another one is being prepared, then take over")
        endings.stale_open(row)
        newest = InputEvent.objects.filter(lease=lease).aggregate(seq=Max("seq"))["seq"]
        row.controller = Session.Controller.HUMAN
        row.taken_over_at = time.time()
        row.input_seq = newest or 0
        row.save(update_fields=["controller", "taken_over_at", "input_seq"])
        try:
            leases.give_control(lease, human=True)
        except leases.LeaseOver as over:  # at this moment
            raise Busy(f"the computer is gone: {over}") from over
        hints.changed(row.pk, "control")
        return row


def hand_back(session: Session, *, fence: int, by: User) -> list[Step]:
    """Take mouse and keyboard back; return the steps that the hand did, and ask the policy again."""
    with transaction.atomic():
        row = fencing.hold(session, fence=fence)
        fencing.active(row)
        if row.controller != Session.Controller.HUMAN:
            raise Busy("the agent has control already")
        done = absorb(row)
        proposals.ask(row)
        return done


def absorb(session: Session) -> list[Step]:
    """End a held session's takeover: its input becomes steps, its lease takes no more input.

    Does nothing if nobody has taken over, so that whoever comes second finds it done.
    """
    if session.controller != Session.Controller.HUMAN:
        return []
    lease = session.lease
    if lease is not None:
        leases.give_control(lease, human=False)
    rows = InputEvent.objects.filter(lease=lease, seq__gt=session.input_seq).order_by("seq")
    events = [_event(row) for row in rows]
    reduction = reduce(events)
    for note in reduction.dropped:
        log.warning("session %s: input without an action: %s", session.pk, note)
    fallback = _last_seen(session)
    done, seen_from = [], 0.0
    for hand in without_chord(reduction.steps):
        done.append(_append(session, hand, fallback, seen_from))
        seen_from = hand.ended_at
    session.controller = Session.Controller.AGENT
    session.taken_over_at = None
    if events:
        session.input_seq = events[-1].seq
    session.save(update_fields=["controller", "taken_over_at", "input_seq"])
    hints.changed(session.pk, "control")
    return done


def without_chord(hand_steps: Sequence[HandStep]) -> Sequence[HandStep]:
    """Leave out the Ctrl and Alt of the chord that handed back: the page kept only its last key."""
    end = len(hand_steps)
    while end and isinstance(chord := hand_steps[end - 1].action, Hotkey):
        if not {"ctrl", "alt"}.issuperset(chord.keys):
            break
        end -= 1
    return hand_steps[:end]


def _append(session: Session, hand: HandStep, fallback: dict[str, Any], seen_from: float) -> Step:
    """Write one step of a hand; it gets no loss, and says so, without a picture of its moment.

    A picture from before `seen_from`, when the action before it ended, does not show what that did.
    """
    observation, error = hand.observation, ""
    if observation is None:
        observation, error = fallback, "no picture from just before this action"
    elif observation.get("captured_at", seen_from) < seen_from:
        error = "the picture is older than the action before this one"
    step = steps.append(
        session,
        observation=observation,
        screenshot=observation["screenshot"],
        thought="",
        action=hand.action,
        actor=Actor.HUMAN,
        state=Step.State.EXECUTED,
        error=error,
        trainable=not error,
    )
    Decision.objects.create(
        step=step,
        kind=Decision.Kind.TAKEN_OVER,
        by=session.author,
        active_ms=round(max(hand.ended_at - hand.at, 0) * 1000),
    )
    return step


def _last_seen(session: Session) -> dict[str, Any]:
    """Return the newest observation of the session, for input that came without a picture."""
    point = session.decision_points.exclude(observation=None).order_by("-pk").first()
    if point is not None and point.observation is not None:
        return point.observation
    return {"screenshot": "", "width": 0, "height": 0}


def _event(row: InputEvent) -> Event:
    return Event(
        seq=row.seq,
        at=row.at,
        x=row.x,
        y=row.y,
        buttons=row.buttons,
        keysym=row.keysym,
        down=row.down,
        command=row.text,
        observation=row.observation,
    )
