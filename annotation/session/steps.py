"""Verbs of Step: what a person decides becomes a row first, and is done on the desktop after.

Between the two, and at any other line, the process may die: the reaper finds the row `chosen` and
does it with the same action_id, which the guest performs once.
"""

from __future__ import annotations

import uuid
from typing import Any

from django.contrib.auth.models import User
from django.db import transaction
from django.utils import timezone

from annotation import hints, storable
from annotation.errors import (
    AlreadyDecided,
    BadInput,
    Busy,
    MissingThoughts,
    NotYours,
    StaleFence,
    StaleScreen,
)
from annotation.models import Decision, DecisionPoint, Proposal, Session, Step
from annotation.session import (
    background,
    desktops,
    endings,
    fencing,
    pictures,
    proposals,
    recovery,
    screens,
)
from blobs import BlobError
from sandbox.provider import DesktopLost, SandboxError, StaleLease
from trajectory import (
    Action,
    Actor,
    AskUser,
    FormatError,
    action_from_dict,
    action_to_dict,
    is_terminal,
    observation_to_dict,
)

# The picture must have stood still this long before the policy looks, and at most so long.
QUIET_MS = 40
SETTLE_MS = 2000


def current(session: Session) -> DecisionPoint | None:
    """Return the newest decision point; its status says what the page should show."""
    return session.decision_points.order_by("-pk").first()


def request_proposals(session: Session, *, fence: int, hint: str = "") -> DecisionPoint:
    """Ask the policy (again), with a hint for it if given; raises StaleFence, Busy, NotYours."""
    with transaction.atomic():
        row = fencing.hold(session, fence=fence)
        fencing.active(row)
        if row.controller == Session.Controller.HUMAN:
            raise Busy("you have control: hand it back first")
        nothing_chosen(row)
        endings.stale_open(row)
        point = proposals.ask(row, hint=hint)
        assert point is not None  # the open one has just been closed, under the lock
        hints.changed(row.pk, "proposals")
        return point


def decide(
    session: Session,
    *,
    fence: int,
    decision_point: DecisionPoint,
    by: User,
    proposal_rank: int | None,
    thought: str,
    action: dict[str, Any],
    seen: str,
    active_ms: int = 0,
) -> Step:
    """Choose what to do now and do it. `seen` is the sha256 of the picture the page showed.

    `proposal_rank` None: neither thought nor action came from a proposal (override). Returns the
    step as soon as it is written down (state `chosen`); the page hears "step" and then "proposals".
    Raises StaleFence (the text is kept as a draft), StaleScreen (a new round has begun),
    AlreadyDecided, Busy, MissingThoughts, BadInput.
    """
    chosen = _parsed(action)
    try:
        _still_there(session, decision_point, chosen, seen)
        with transaction.atomic():
            row = fencing.hold(session, fence=fence)
            fencing.active(row)
            step = _choose(row, decision_point, by, proposal_rank, thought, chosen, active_ms)
            if is_terminal(chosen):
                _thoughts_complete(row)
                endings.begin_by(row, chosen)
                background.soon(endings.close, row.pk)
            else:
                background.soon(execute, step.pk)
            hints.changed(row.pk, "step")
            return step
    except (StaleFence, StaleScreen):
        fencing.keep_draft(session, {"thought": thought, "action": action})
        raise


def execute(step_id: int) -> None:
    """Do a chosen step on the desktop, write down how it went, and ask for the next proposals."""
    step = Step.objects.select_related("session__lease__sandbox").get(pk=step_id)
    action = action_from_dict(step.action)
    if step.state != Step.State.CHOSEN or is_terminal(action):
        return
    error, output = "", ""
    try:
        if not isinstance(action, AskUser):  # a question is answered by the next decision
            with desktops.of(step.session) as desktop:
                epoch = desktops.lease_of(step.session).epoch
                output = desktop.perform(action, epoch=epoch, action_id=step.action_id).output
                desktop.settle(quiet_ms=QUIET_MS, max_ms=SETTLE_MS)
    except (DesktopLost, StaleLease) as loss:
        recovery.lost(step.session, cause=str(loss))
        return
    except SandboxError as failure:  # a second try would be told the same: the guest remembers
        error = str(failure)
    with transaction.atomic():
        session = fencing.hold(step.session)
        done = Step.objects.filter(pk=step.pk, state=Step.State.CHOSEN).update(
            state=Step.State.FAILED if error else Step.State.EXECUTED,
            error=storable.text(error),
            output=storable.text(output),
            executed_at=timezone.now(),
        )
        if not done:
            return
        point = None
        if session.status == Session.Status.ACTIVE and not session.outcome:
            point = proposals.open_point(session)
        hints.changed(session.pk, "step")
    if point is not None:
        proposals.propose(point.pk)


def missing_thoughts(session: Session) -> list[Step]:
    """Return the steps done by hand that still need a thought."""
    return list(
        session.steps.filter(thought="", decision__kind=Decision.Kind.TAKEN_OVER).order_by("index")
    )


def set_thought(step: Step, *, by: User, thought: str) -> Step:
    """Write the author's thought of a step; not once the session waits for or has its verdict."""
    open_states = (*Session.LIVE, Session.Status.RETURNED, Session.Status.EXPIRED)
    with transaction.atomic():
        session = fencing.hold(step.session)
        if session.author_id != by.pk or session.status not in open_states:
            raise NotYours("only the author may write thoughts, and only before the review")
        Step.objects.filter(pk=step.pk).update(thought=thought.strip())
        hints.changed(session.pk, "step")
    step.refresh_from_db()
    return step


def append(
    session: Session,
    *,
    observation: dict[str, Any],
    screenshot: str,
    thought: str,
    action: Action,
    actor: Actor,
    state: str,
    model_version: str = "",
    error: str = "",
    trainable: bool = True,
) -> Step:
    """Write the next step of a held session."""
    return Step.objects.create(
        session=session,
        index=session.steps.count(),
        observation=observation,
        screenshot=screenshot,
        thought=thought.strip(),
        action=action_to_dict(action),
        actor=actor,
        model_version=model_version,
        action_id=uuid.uuid4().hex,
        state=state,
        error=error,
        trainable=trainable,
        executed_at=None if state == Step.State.CHOSEN else timezone.now(),
    )


def nothing_chosen(session: Session) -> None:
    """Raise Busy while a step of a held session is being done."""
    if session.steps.filter(state=Step.State.CHOSEN).exists():
        raise Busy("a step is being done at this moment: try again when it has")


def edit_kind(proposal: Proposal | None, *, thought: str, action: Action) -> str:
    """Return what a person did with a proposal, a Decision.Kind."""
    if proposal is None or proposal.action is None:
        return Decision.Kind.OVERRIDDEN
    same_thought = proposal.thought.strip() == thought.strip()
    same_action = action_from_dict(proposal.action) == action
    match same_thought, same_action:
        case True, True:
            return Decision.Kind.ACCEPTED
        case False, True:
            return Decision.Kind.EDITED_THOUGHT
        case True, False:
            return Decision.Kind.EDITED_ACTION
        case _:
            return Decision.Kind.EDITED


def _parsed(action: dict[str, Any]) -> Action:
    try:
        return action_from_dict(action)
    except FormatError as error:
        raise BadInput(f"action: {error}") from None


def _still_there(session: Session, point: DecisionPoint, action: Action, seen: str) -> None:
    """Raise StaleScreen, and begin a new round, if the target changed since the proposal."""
    if seen != point.screenshot:
        raise AlreadyDecided("the page shows an older picture: reload it")
    places = screens.places(action)
    if not places or not point.screenshot:
        return
    try:
        with desktops.of(session) as desktop:
            now = desktop.observe().png
        before = pictures.read(point.screenshot)
    except (DesktopLost, StaleLease) as loss:
        recovery.lost(session, cause=str(loss))
        raise Busy("the desktop was lost: a new one is being prepared, then decide again") from loss
    except SandboxError as failure:
        raise Busy(f"the desktop could not be looked at, nothing was sent: {failure}") from failure
    except BlobError as failure:
        raise Busy(
            f"the picture that this was proposed on can't be read, nothing was sent: {failure}; "
            "decide again, or ask the model again"
        ) from failure
    place = screens.changed(before, now, places)
    if place is None:
        return
    with transaction.atomic():
        row = fencing.hold(session)
        stale = row.decision_points.filter(pk=point.pk).exclude(status=DecisionPoint.Status.DECIDED)
        if stale.update(status=DecisionPoint.Status.STALE):
            proposals.ask(row, hint=point.hint)
            hints.changed(row.pk, "proposals")
    raise StaleScreen(
        f"the screen changed around ({place[0]}, {place[1]}) since this was proposed: "
        "nothing was sent, new proposals are coming"
    )


def _choose(
    session: Session,
    point: DecisionPoint,
    by: User,
    rank: int | None,
    thought: str,
    action: Action,
    active_ms: int,
) -> Step:
    """Write step and decision of a held session in its transaction."""
    if session.controller == Session.Controller.HUMAN:
        raise Busy("you have control: hand it back first")
    nothing_chosen(session)
    decidable = (
        DecisionPoint.Status.REQUESTED, DecisionPoint.Status.READY, DecisionPoint.Status.FAILED
    )  # fmt: skip
    newest = current(session)
    if newest is None or newest.pk != point.pk or newest.status not in decidable:
        raise AlreadyDecided("this step has been decided: reload the page")
    proposal = None
    if rank is not None:
        proposal = newest.proposals.filter(rank=rank).first()
        if proposal is None:
            raise BadInput(f"proposal: there is no number {rank}")
    kind = edit_kind(proposal, thought=thought, action=action)
    observation, screenshot = newest.observation, newest.screenshot
    if observation is None:
        observation, screenshot = observed(session)
    by_agent = kind in (Decision.Kind.ACCEPTED, Decision.Kind.EDITED_THOUGHT)
    step = append(
        session,
        observation=observation,
        screenshot=screenshot,
        thought=thought,
        action=action,
        actor=Actor.AGENT if by_agent else Actor.HUMAN,
        state=Step.State.CHOSEN,
        model_version=proposal.model_version if proposal else "",
    )
    Decision.objects.create(
        step=step,
        decision_point=newest,
        proposal=proposal,
        kind=kind,
        by=by,
        active_ms=max(active_ms, 0),
    )
    newest.status = DecisionPoint.Status.DECIDED
    newest.save(update_fields=["status"])
    session.active_ms += max(active_ms, 0)
    session.draft = {}
    session.save(update_fields=["active_ms", "draft"])
    return step


def observed(session: Session) -> tuple[dict[str, Any], str]:
    """Look now: the policy failed before it had looked."""
    try:
        with desktops.of(session) as desktop:
            frame = desktop.observe(elements=True)
        screenshot = pictures.put(frame.png)
    except DesktopLost as loss:
        raise Busy("the desktop does not answer: wait for the new one") from loss
    except (SandboxError, BlobError) as failure:
        raise Busy(f"no picture of the screen could be had: {failure}; try again") from failure
    return observation_to_dict(screens.observation(frame, screenshot)), screenshot


def _thoughts_complete(session: Session) -> None:
    """Raise MissingThoughts where a hand's steps have no reason yet."""
    if missing := missing_thoughts(session):
        raise MissingThoughts([step.index for step in missing])
