"""Who plays in the arena: a checkpoint in this process, or a task's oracle in few words."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from agent.dialects import DialectError, ParseError, frame_of, load
from agent.policy import Candidate, PolicyRefused, PolicyRequest
from agent.render import render_request
from agent.serving.engine import Engine
from agent.serving.generate import Sampling
from agent.serving.processor import PromptError
from experiments.tasks import Case
from sandbox import families
from sandbox.families import NoWay
from sandbox.provider import Desktop
from trajectory import Action, Click, Finish, Observation, Sample, Shell, Type

DIALECT = load("element")
MAX_TOKENS = 48


@dataclass(slots=True)
class Sampler:
    """Samples from the engine of this process: the policy server without its HTTP.

    Two cores have nothing left for a server that is asked over a socket some hundred times a second.
    """

    engine: Engine
    temperature: float = 1.0

    def propose(self, request: PolicyRequest, k: int) -> list[Candidate]:
        """Return one sample with its token ids and log-probs; raises PolicyRefused."""
        messages = render_request(request, dialect=DIALECT, observation_kind="elements")
        sampling = Sampling(max_tokens=MAX_TOKENS, temperature=self.temperature, seed=request.seed)
        try:
            answer = self.engine.submit(messages, sampling, picture=_no_picture).result()
        except PromptError as error:
            raise PolicyRefused(str(error)) from error
        drawn, raw = answer.samples[0], answer.texts[0]
        sample = Sample(
            tuple(answer.prompt_ids), tuple(drawn.ids), tuple(drawn.logprobs), answer.version
        )
        try:
            parsed = DIALECT.parse(raw, frame_of(request.observation))
        except ParseError as error:
            return [Candidate("", None, raw, str(error), sample, answer.version)]
        return [
            Candidate(parsed.thought, parsed.action, raw, sample=sample, version=answer.version)
        ]


@dataclass(slots=True)
class OraclePolicy:
    """The oracle of a case as far as the element dialect can say it; its thought names the target."""

    case: Case
    desktop: Desktop

    def __post_init__(self) -> None:
        family, task = families.task(self.case.task)
        self._oracle = family.oracle(task, self.case.seed)

    _oracle: Any = None

    def propose(self, request: PolicyRequest, k: int) -> list[Candidate]:
        """Return what the oracle does; raises PolicyRefused where it can't be said or known."""
        frame = frame_of(request.observation)
        # What the shell found was only looked up: the page's oracle has not seen that step.
        acted = tuple(step for step in request.history if not isinstance(step.action, Shell))
        try:
            _, action = self._oracle.decide(self.desktop, acted)
            written = DIALECT.write(action, frame)
        except (NoWay, DialectError) as error:
            raise PolicyRefused(f"{self.case.id}: {error}") from error
        name = target(action, request.observation)
        if self.case.variant == "sdk" and name and not request.observation.tool_output:
            return [Candidate(name, Shell(f"grep {name}"), "")]
        return [Candidate(name, DIALECT.parse(f"Action: {written}", frame).action, written)]


def target(action: Action, observation: Observation) -> str:
    """Return what an action aims at, in the words of the screen, as a whole thought."""
    match action:
        case Click(x=x, y=y):
            around = [
                e
                for e in observation.elements or ()
                if e.box[0] <= x < e.box[0] + e.box[2] and e.box[1] <= y < e.box[1] + e.box[3]
            ]
            best = min(around, key=lambda e: e.box[2] * e.box[3], default=None)
            return "" if best is None else " ".join((best.name or best.role).split())[:40]
        case Type(text=text):
            return text
        case Finish(answer=answer):
            return answer
        case _:
            return ""


def _no_picture(part: Mapping[str, Any]) -> Any:
    raise PromptError("this actor reads elements")
