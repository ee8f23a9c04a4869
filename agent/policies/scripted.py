"""A policy that answers from a list: for tests, and to try the workbench without a model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from agent.dialects import Dialect, ParseError, frame_of
from agent.policy import Candidate, PolicyError, PolicyMisconfigured, PolicyRequest, distinct
from trajectory import Finish, FormatError, action_from_dict

VERSION = "scripted"


@dataclass(frozen=True, slots=True)
class ScriptedPolicy:
    """Answers the n-th step with the n-th entry of `script`, and finishes after the last.

    An entry is one candidate or a list of them: {"thought", "action": {"type": ...}} or {"raw":
    "Thought: ..."} in the dialect. {"fail": "..."} raises PolicyError.
    """

    script: Sequence[Any]
    dialect: Dialect

    def propose(self, request: PolicyRequest, k: int) -> list[Candidate]:
        """Return the entry for the step after `request.history`."""
        at = request.dropped + len(request.history)
        if at >= len(self.script):
            return [Candidate("The script is over.", Finish(), "", version=VERSION)]
        entry = self.script[at]
        records = entry if isinstance(entry, list) else [entry]
        return distinct([self._candidate(record, request) for record in records])[:k]

    def _candidate(self, record: Mapping[str, Any], request: PolicyRequest) -> Candidate:
        if "fail" in record:
            raise PolicyError(str(record["fail"]))
        if "raw" in record:
            raw = str(record["raw"])
            try:
                parsed = self.dialect.parse(raw, frame_of(request.observation))
            except ParseError as error:
                return Candidate("", None, raw, str(error), version=VERSION)
            return Candidate(parsed.thought, parsed.action, raw, version=VERSION, more=parsed.more)
        try:
            action = action_from_dict(record.get("action"))
        except FormatError as error:
            raise PolicyMisconfigured(
                f"the script's step {request.dropped + len(request.history)}: {error}"
            ) from error
        return Candidate(str(record.get("thought", "")), action, "", version=VERSION)
