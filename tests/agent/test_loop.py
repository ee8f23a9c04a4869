"""The loop by itself: what it yields, how it ends, and whose fault a failure is."""

import pytest

from agent.dialects import load
from agent.loop import UNREADABLE, ActionRefused, Ended, EnvironmentFailure, UnreadablePolicy, run
from agent.memory import Memory
from agent.policies.scripted import ScriptedPolicy
from agent.policy import Candidate, PolicyError
from trajectory import (
    Click,
    Element,
    Fail,
    Finish,
    Observation,
    Outcome,
    Recall,
    Summary,
    Type,
    Wait,
)

SEEN = Observation("a" * 64, 100, 100, (Element("button", "ok", (0, 0, 50, 50)),))


class Paper:
    """An environment of paper: notes what is done, and fails when told to."""

    def __init__(self, fail_at=None, refuse_at=None):
        self.done, self.fail_at, self.refuse_at = [], fail_at, refuse_at

    def observe(self):
        if len(self.done) == self.fail_at:
            raise EnvironmentFailure("the guest is gone")
        return SEEN

    def act(self, action):
        self.done.append(action)
        if len(self.done) - 1 == self.refuse_at:
            raise ActionRefused("outside the screen")


def _policy(*actions):
    names = {Click: "click", Type: "type", Finish: "finish", Fail: "fail", Wait: "wait"}
    from trajectory import action_to_dict

    assert all(type(action) in names for action in actions)
    return ScriptedPolicy(
        [{"thought": str(n), "action": action_to_dict(a)} for n, a in enumerate(actions)],
        load("element"),
    )


def _drive(*arguments, **options):
    steps, episode = [], run(*arguments, **options)
    while True:
        try:
            steps.append(next(episode))
        except StopIteration as end:
            return steps, end.value


def test_an_episode_ends_where_the_policy_says_so():
    paper = Paper()
    steps, outcome = _drive("x", paper, _policy(Click(1, 1), Type("a"), Finish("42")), max_steps=9)
    assert outcome is Outcome.FINISHED
    assert [step.action for step in steps] == [Click(1, 1), Type("a"), Finish("42")]
    assert paper.done == [Click(1, 1), Type("a")]
    assert [step.index for step in steps] == [0, 1, 2]
    assert {step.model_version for step in steps} == {"scripted"}


def test_giving_up_and_running_out_are_other_outcomes():
    assert _drive("x", Paper(), _policy(Fail("no")), max_steps=9)[1] is Outcome.FAILED
    steps, outcome = _drive("x", Paper(), _policy(*[Wait()] * 5), max_steps=3)
    assert outcome is Outcome.OUT_OF_STEPS and len(steps) == 3


def test_a_refused_action_is_on_the_step_and_the_loop_goes_on():
    steps, outcome = _drive("x", Paper(refuse_at=0), _policy(Click(1, 1), Wait()), max_steps=5)
    assert steps[0].error == "outside the screen" and steps[1].error == ""
    assert outcome is Outcome.FINISHED


def test_a_broken_environment_is_not_an_outcome():
    episode = run("x", Paper(fail_at=1), _policy(Wait(), Wait()), max_steps=5)
    assert next(episode).action == Wait()
    with pytest.raises(EnvironmentFailure, match="gone"):
        next(episode)


def test_a_policy_that_fails_or_can_not_be_read_is_named():
    failing = ScriptedPolicy([{"fail": "busy"}], load("element"))
    with pytest.raises(PolicyError, match="busy"):
        next(run("x", Paper(), failing, max_steps=1))
    mumbling = ScriptedPolicy([{"raw": "hm"}], load("element"))
    with pytest.raises(UnreadablePolicy, match="Action"):
        next(run("x", Paper(), mumbling, max_steps=1))


def test_where_every_reply_counts_an_unreadable_one_is_a_step_that_does_nothing():
    paper = Paper()
    mumbling = ScriptedPolicy([{"raw": "hm"}], load("element"))
    episode = run("x", paper, mumbling, max_steps=1, every_reply=True)
    step = next(episode)
    assert step.action == Wait(0) and step.error.startswith(UNREADABLE)
    assert paper.done == []


def test_old_steps_become_a_summary():
    class Watching:
        def __init__(self):
            self.requests = []

        def propose(self, request, k):
            self.requests.append(request)
            return [Candidate("", Click(1, 1), "", pictures=1, prompt_tokens=7)]

    policy = Watching()
    memory = Memory(steps=2, together=1)
    steps, _ = _drive("x", Paper(), policy, max_steps=4, memory=memory)
    assert [len(request.history) for request in policy.requests] == [0, 1, 2, 2]
    assert policy.requests[-1].summary == 'Step 1: click button "ok"'
    assert [step.recall.since for step in steps] == [0, 0, 0, 1]
    assert steps[-1].recall == Recall(
        1, 1, 'Step 1: click button "ok"', (Summary(0, 0, 'click button "ok"', "words"),), 7
    )


def test_a_script_goes_on_when_a_memory_forgets():
    policy = _policy(*[Click(n, 1) for n in range(5)])
    steps, outcome = _drive("x", Paper(), policy, max_steps=9, memory=Memory(steps=1, together=1))
    assert [step.action for step in steps] == [*[Click(n, 1) for n in range(5)], Finish()]
    assert outcome is Outcome.FINISHED


def test_a_task_that_is_over_ends_the_episode_with_its_last_step():
    class Game(Paper):
        def act(self, action):
            super().act(action)
            if len(self.done) == 2:
                raise Ended

    steps, outcome = _drive(
        "x", Game(), _policy(Click(1, 1), Click(2, 2), Click(3, 3)), max_steps=9
    )
    assert outcome is Outcome.ENDED
    assert [step.action for step in steps] == [Click(1, 1), Click(2, 2)]
    assert steps[-1].error == ""
