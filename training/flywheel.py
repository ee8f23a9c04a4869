"""The filter V(s) of the data flywheel: what a finished session may teach.

V(s) = 1 goes to the SFT pool, V(s) = 0 to the CT pool; a session without V(s) teaches nothing.
The verifier's word is taken before the reviewer's, as in UI-TARS-2 (data flywheel).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Pool = Literal["sft", "ct"]

NOT_ENDED = {
    "preparing": "it has not begun",
    "active": "it is still going on",
    "submitted": "it waits for a reviewer",
    "returned": "it is back with its author",
    "expired": "its author went away before finishing it",
}


@dataclass(frozen=True, slots=True)
class Route:
    """Where a session goes, and why; `pool` is None where it is left out.

    `disputed` where the verifier and the reviewer say different things.
    """

    value: Literal[0, 1] | None
    reason: str
    disputed: bool = False

    @property
    def pool(self) -> Pool | None:
        return None if self.value is None else "sft" if self.value else "ct"


def route(*, status: str, outcome: str, reward: float | None, verdict: str) -> Route:
    """Return V(s) of one session and the reason in words.

    `status`, `outcome`, `reward` are the session's, `verdict` its newest review's ("" without one).
    A reward counts as right from 1 upwards: partial credit is not a demonstration.
    """
    if status == "failed" or outcome == "env_failure":
        return Route(None, "the environment broke: nothing follows from it")
    if status in NOT_ENDED:
        return Route(None, NOT_ENDED[status])
    if status not in ("accepted", "rejected"):
        return Route(None, f"its status is {status!r}, which V(s) does not know")
    reviewed = {"accepted": 1, "corrected": 1, "rejected": 0}.get(verdict)
    if reviewed is None:
        return Route(None, "nobody has reviewed it")
    if reward is None:
        return Route(1 if reviewed else 0, f"the reviewer {verdict} it; it has no verifier")
    right = reward >= 1
    disputed = right != bool(reviewed)
    reason = f"the verifier's reward is {reward:g}"
    if disputed:
        reason += f", though the reviewer {verdict} it"
    return Route(1 if right else 0, reason, disputed)
