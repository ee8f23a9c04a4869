"""Fixtures of the annotation tests."""

from __future__ import annotations

import io
import time
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.utils import timezone
from PIL import Image, ImageDraw

from agent.models import Deployment
from annotation import jobs
from annotation.hand.reduce import Event
from annotation.models import Session, Task
from annotation.session import background, desktops, sessions, steps
from annotation.tasks import tasks
from sandbox.leasing import leases
from sandbox.models import Lease, Sandbox
from sandbox.provider import ActionFailed, ActionResult, DesktopLost, Frame
from trajectory import Action, Element, Outcome


class Hand:
    """Writes the raw input of known actions; time moves only by what each gesture takes."""

    SHIFT, CTRL, ALT, META = 0xFFE1, 0xFFE3, 0xFFE9, 0xFFEB
    ENTER, BACKSPACE = 0xFF0D, 0xFF08

    def __init__(self, *, seq: int = 0, at: float = 100.0) -> None:
        self.events: list[Event] = []
        self.seq, self.at = seq, at
        self.place = (0, 0)

    def _put(self, **values: object) -> None:
        self.seq += 1
        observation = {"screenshot": f"frame-{self.seq}", "width": 1280, "height": 720}
        self.events.append(Event(seq=self.seq, at=self.at, observation=observation, **values))

    def wait(self, seconds: float) -> Hand:
        self.at += seconds
        return self

    def move(self, x: int, y: int, mask: int = 0) -> Hand:
        self.at += 0.01
        self.place = (x, y)
        self._put(x=x, y=y, buttons=mask)
        return self

    def click(self, x: int, y: int, *, bit: int = 0, held: float = 0.05) -> Hand:
        self.move(x, y)
        self.move(x, y, 1 << bit)
        self.at += held
        return self.move(x, y)

    def drag(self, *path: tuple[int, int], bit: int = 0) -> Hand:
        self.move(*path[0])
        for point in path:
            self.move(*point, 1 << bit)
        return self.move(*path[-1])

    def notch(self, bit: int) -> Hand:
        self.at += 0.05
        x, y = self.place
        self._put(x=x, y=y, buttons=1 << bit)
        self._put(x=x, y=y, buttons=0)
        return self

    def key(self, keysym: int, down: bool) -> Hand:
        self.at += 0.02
        self._put(keysym=keysym, down=down)
        return self

    def tap(self, keysym: int) -> Hand:
        return self.key(keysym, True).key(keysym, False)

    def type(self, text: str) -> Hand:
        for character in text:
            code = ord(character)
            keysym = code if code < 0x100 else 0x0100_0000 + code
            if character.isupper():
                self.key(self.SHIFT, True).tap(keysym).key(self.SHIFT, False)
            else:
                self.tap(keysym)
        return self

    def command(self, text: str) -> Hand:
        self.at += 0.02
        self._put(command=text)
        return self

    def chord(self, *keysyms: int) -> Hand:
        for keysym in keysyms:
            self.key(keysym, True)
        for keysym in reversed(keysyms):
            self.key(keysym, False)
        return self


@pytest.fixture
def hand() -> type[Hand]:
    """Return a new scripted hand with hand()."""
    return Hand


class PaperDesktop:
    """A desktop drawn on paper: remembers what was done; tests change what it shows."""

    width, height = 400, 300

    def __init__(self) -> None:
        self.done: dict[str, Action] = {}  # by action_id, as the guest de-duplicates
        self.epochs: list[int] = []
        self.boxes: list[tuple[int, int, int, int]] = [(100, 100, 160, 130)]
        self.lost = False
        self.refuse = ""

    def _alive(self) -> None:
        if self.lost:
            raise DesktopLost("the paper is torn")

    @property
    def actions(self) -> list[Action]:
        return list(self.done.values())

    def health(self) -> dict[str, object]:
        self._alive()
        return {"ready": True}

    def fence(self, epoch: int) -> None:
        self.epochs.append(epoch)

    def observe(self, *, elements: bool = False) -> Frame:
        self._alive()
        image = Image.new("RGB", (self.width, self.height), "white")
        for box in self.boxes:
            ImageDraw.Draw(image).rectangle(box, fill="black")
        file = io.BytesIO()
        image.save(file, "PNG")
        button = Element("button", "ok", (100, 100, 60, 30))
        return Frame(file.getvalue(), 400, 300, (button,) if elements else None, "", time.time())

    def perform(self, action: Action, *, epoch: int, action_id: str) -> ActionResult:
        self._alive()
        if self.refuse:
            raise ActionFailed(self.refuse)
        replayed = action_id in self.done
        self.done[action_id] = action
        return ActionResult(replayed=replayed)

    def settle(self, *, quiet_ms: int = 150, max_ms: int = 2000) -> bool:
        self._alive()
        return True

    def close(self) -> None:
        pass


@pytest.fixture
def desktop(db: None, monkeypatch: pytest.MonkeyPatch) -> PaperDesktop:
    """One computer in the pool; every lease of it shows the same paper."""
    paper = PaperDesktop()

    def connect(lease: Lease) -> PaperDesktop:
        row = Lease.objects.get(pk=lease.pk)
        if row.state != Lease.State.ACTIVE:
            raise leases.LeaseOver("over")
        paper.fence(row.epoch)
        return paper

    monkeypatch.setattr(leases, "connect", connect)
    desktops._connected.clear()
    add_computer()
    return paper


def add_computer() -> Sandbox:
    """Put one more ready computer into the pool."""
    return Sandbox.objects.create(
        name=f"paper-{Sandbox.objects.count()}",
        provider="fake",
        host="here",
        state=Sandbox.State.READY,
        ready_at=timezone.now(),
    )


class Queue(list[tuple[Any, int]]):
    """What would run in the background: tests run it when they want it."""

    def run(self, *, rounds: int = 20) -> None:
        """Run until nothing is left; what verbs add is run as well."""
        for _ in range(rounds):
            if not self:
                return
            verb, row_id = self.pop(0)
            verb(row_id)
        raise AssertionError("the background does not come to rest")


@pytest.fixture(autouse=True)
def queue(monkeypatch: pytest.MonkeyPatch) -> Queue:
    """Collect what verbs leave to threads and to Celery, in order."""
    waiting = Queue()
    monkeypatch.setattr(background, "soon", lambda verb, pk: waiting.append((verb, pk)))
    monkeypatch.setattr(jobs, "soon", lambda job, pk: waiting.append((job.run, pk)))
    return waiting


@pytest.fixture
def partner(db: None) -> Deployment:
    """A policy that clicks the button, then says that it is done."""
    click = [
        {"thought": "I press ok.", "action": {"type": "click", "x": 130, "y": 115}},
        {
            "thought": "I press elsewhere.",
            "action": {"type": "click", "x": 20, "y": 20},
        },
    ]
    return Deployment.objects.create(
        name="scripted", kind="scripted", is_partner=True, candidates=2, script=[click] * 10
    )


@pytest.fixture
def task(db: None) -> Task:
    return tasks.create(external_id="ok", instruction="Press ok.", domain="web")


@pytest.fixture
def session(
    annotator: User,
    task: Task,
    partner: Deployment,
    desktop: PaperDesktop,
    queue: Queue,
) -> Session:
    """An active session with proposals on the table."""
    started = sessions.start(user=annotator)
    queue.run()
    started.refresh_from_db()
    return started


@pytest.fixture
def make_computer(db: None) -> Any:
    """Put one more ready computer into the pool with make_computer()."""
    return add_computer


@pytest.fixture
def submitted(session: Session, annotator: User, queue: Queue) -> Session:
    """Two accepted clicks, then finished."""
    for _ in range(2):
        point = steps.current(session)
        assert point is not None
        steps.decide(
            session, fence=session.fence, decision_point=point, by=annotator, proposal_rank=1,
            thought="I press ok.", action={"type": "click", "x": 130, "y": 115},
            seen=point.screenshot,
        )  # fmt: skip
        queue.run()
    sessions.finish(session, fence=session.fence, by=annotator, outcome=Outcome.FINISHED)
    queue.run()
    session.refresh_from_db()
    return session
