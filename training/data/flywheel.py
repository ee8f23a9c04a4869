"""The filter V(s) of the data flywheel: what a finished session or episode may teach.

V(s) = 1 goes to the SFT pool, V(s) = 0 to the CT pool; without V(s) it teaches nothing.
The verifier's word is taken before anybody's else, as in UI-TARS-2 (data flywheel).
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
BROKE = "the environment broke: nothing follows from it"
NO_VERIFIER = "it has no verifier, and no reward model in force was asked"
RIGHT = 1.0
"""The reward from which on a session or episode counts as right: partial credit is no demonstration."""


@dataclass(frozen=True, slots=True)
class Route:
    """Where a session or an episode goes, and why; `pool` is None where it is left out.

    `disputed` where the verifier and the reviewer say different things; `spare` where V(s) = 1 and
    it does not go to SFT all the same: too long, enough of its kind are there, or recorded in situ.
    """

    value: Literal[0, 1] | None
    reason: str
    disputed: bool = False
    spare: bool = False

    @property
    def pool(self) -> Pool | None:
        return None if self.value is None else "sft" if self.value and not self.spare else "ct"


def route(
    *, status: str, outcome: str, reward: float | None, verdict: str, in_situ: bool = False
) -> Route:
    """Return V(s) of one session and the reason in words.

    `status`, `outcome`, `reward` are the session's, `verdict` its newest review's ("" without one).
    What people recorded `in_situ` goes to CT, as in UI-TARS-2 (in-situ annotation): it teaches to
    reason, it is no demonstration of a checked task.
    """
    if status == "failed" or outcome == "env_failure":
        return Route(None, BROKE)
    if status in NOT_ENDED:
        return Route(None, NOT_ENDED[status])
    if status not in ("accepted", "rejected"):
        return Route(None, f"its status is {status!r}, which V(s) does not know")
    reviewed = {"accepted": 1, "corrected": 1, "rejected": 0}.get(verdict)
    if reviewed is None:
        return Route(None, "nobody has reviewed it")
    if in_situ:
        reason = f"recorded in situ, the reviewer {verdict} it: thoughts spoken aloud go to CT"
        return Route(1, reason, spare=True) if reviewed else Route(None, reason)
    if reward is None:
        return Route(1 if reviewed else 0, f"the reviewer {verdict} it; it has no verifier")
    right = reward >= RIGHT
    disputed = right != bool(reviewed)
    reason = f"the verifier's reward is {reward:g}"
    if disputed:
        reason += f", though the reviewer {verdict} it"
    return Route(1 if right else 0, reason, disputed)


def route_episode(
    *, state: str, outcome: str, reward: float | None, needed: float = RIGHT
) -> Route:
    """Return V(s) of one episode that a policy played alone; `needed` is what counts as right."""
    if state == "broken" or outcome == "env_failure":
        return Route(None, BROKE)
    if state != "done":
        return Route(None, f"it is {state}")
    if reward is None:
        return Route(None, NO_VERIFIER)
    return Route(1 if reward >= needed else 0, f"the verifier's reward is {reward:g}")


def route_judged(*, judge: str, reward: Literal[0, 1] | None, error: str = "") -> Route:
    """Return V(s) of an episode without a verifier, by what the reward model `judge` said of it."""
    if error:
        return Route(None, f"the answer of reward model {judge} could not be read")
    if reward is None:
        return Route(None, f"reward model {judge} abstains")
    return Route(reward, f"reward model {judge} says {'success' if reward else 'failure'}")
