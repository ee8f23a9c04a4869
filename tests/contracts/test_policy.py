"""What every policy does; the suite runs against each kind that there is."""

import pytest

from agent import policies
from agent.dialects import load as load_dialect
from agent.policies.openai import OpenAIPolicy
from agent.policies.scripted import ScriptedPolicy
from agent.policy import Candidate, PolicyError, PolicyMisconfigured, PolicyRequest
from tests.agent.server import TOKEN, Server
from tests.tiny import tiny_llama
from trajectory import Actor, Click, Element, Finish, Observation, Step, Type

__all__ = ["tiny_llama"]

SEEN = Observation(
    "a" * 64, 200, 100, (Element("button", "ok", (10, 10, 20, 20)),), captured_at=1.0
)
HISTORY = (Step(0, SEEN, "I click.", Click(20, 20), Actor.AGENT),)
SCRIPT = [
    [
        {"thought": "I click.", "action": {"type": "click", "x": 20, "y": 20}},
        {"thought": "I click.", "action": {"type": "click", "x": 20, "y": 20}},
        {"raw": "Thought: I type.\nAction: type(content='a')"},
        {"raw": "no action here"},
    ],
    {"thought": "Done.", "action": {"type": "finish"}},
]


@pytest.fixture(scope="module")
def server(tiny_llama, tmp_path_factory):
    server = Server(tmp_path_factory.mktemp("contract") / "state", tiny_llama).start()
    yield server
    server.stop()


@pytest.fixture(params=["scripted", "openai"])
def policy(request):
    if request.param == "scripted":
        return ScriptedPolicy(SCRIPT, load_dialect("element"))
    return OpenAIPolicy(
        url=request.getfixturevalue("server").url,
        model="tandem",
        token=TOKEN,
        dialect=load_dialect("element"),
        observation_kind="elements",
        pictures=lambda sha: b"",
        max_tokens=24,
        ours=True,
    )


@pytest.mark.parametrize("k", [1, 3])
@pytest.mark.parametrize("history", [(), HISTORY])
def test_one_to_k_candidates_no_two_alike(policy, k, history):
    candidates = policy.propose(PolicyRequest("Click ok.", history, SEEN), k)
    assert 1 <= len(candidates) <= k
    assert all(isinstance(candidate, Candidate) for candidate in candidates)
    keys = [(c.thought, c.action, "" if c.action else c.raw) for c in candidates]
    assert len(set(keys)) == len(keys)


def test_a_candidate_has_an_action_or_says_why_not(policy):
    for candidate in policy.propose(PolicyRequest("Click ok.", (), SEEN), 4):
        if candidate.action is None:
            assert candidate.error and candidate.raw
        else:
            assert candidate.error == ""


def test_every_candidate_names_its_version(policy):
    for candidate in policy.propose(PolicyRequest("Click ok.", (), SEEN), 3):
        assert candidate.version
        if candidate.sample is not None:
            assert candidate.sample.version == candidate.version
            assert len(candidate.sample.output_ids) == len(candidate.sample.output_logprobs) > 0


def test_a_hint_and_a_summary_are_taken(policy):
    request = PolicyRequest("Click ok.", HISTORY, SEEN, hint="the left one", summary="opened it")
    assert policy.propose(request, 1)


# -- the scripted one ------------------------------------------------------------------------------


def test_a_script_is_followed_step_by_step():
    policy = ScriptedPolicy(SCRIPT, load_dialect("element"))
    first = policy.propose(PolicyRequest("x", (), SEEN), 4)
    assert [c.action for c in first] == [Click(20, 20), Type("a"), None]
    assert policy.propose(PolicyRequest("x", HISTORY, SEEN), 4)[0].action == Finish()
    assert policy.propose(PolicyRequest("x", HISTORY * 2, SEEN), 4)[0].action == Finish()


def test_a_script_can_fail_and_can_be_wrong():
    with pytest.raises(PolicyError, match="overloaded"):
        ScriptedPolicy([{"fail": "overloaded"}], load_dialect("box")).propose(
            PolicyRequest("x", (), SEEN), 1
        )
    with pytest.raises(PolicyMisconfigured, match="step 0"):
        ScriptedPolicy([{"action": {"type": "fly"}}], load_dialect("box")).propose(
            PolicyRequest("x", (), SEEN), 1
        )


def test_the_loader_knows_every_kind():
    from agent.models import Deployment

    for kind in Deployment.Kind.values:
        deployment = Deployment(name="d", kind=kind, base_url="http://127.0.0.1:1")
        assert policies.load(deployment, pictures=lambda sha: b"")
    with pytest.raises(PolicyMisconfigured, match="base_url"):
        policies.load(Deployment(name="d", kind="openai"), pictures=lambda sha: b"")
