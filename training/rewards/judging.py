"""Asking a reward model in force about episodes, and remembering what it said.

An answer is kept in the blob store under all that it depends on: asking again costs nothing, gives
the same V(s), and a freeze that was killed goes on where it was.
"""

from __future__ import annotations

import json

from agent import rewards
from agent.policy import PolicyError
from agent.rewards import Judgement
from annotation.session import pictures
from sandbox.families import checksum
from training.errors import BadConfig, Refused
from training.models import Episode, RewardModel
from training.rewards import reward_models
from training.rewards.calibrations import references_of, trajectory_of


class NoAnswer(Refused):
    """A reward model gave no reply; that says nothing about the episode."""


class Judge:
    """One reward model in force; with `ask` false it only says what it has said before."""

    def __init__(self, row: RewardModel, *, ask: bool = True) -> None:
        self.name, self.unasked = row.name, 0
        self._row, self._ask = row, ask
        self._prefix = f"judgements/{reward_models.fingerprint(row)}"
        self._known = set(pictures.store().list_keys(f"{self._prefix}/"))
        self._model: rewards.RewardModel | None = None

    @classmethod
    def named(cls, name: str, *, ask: bool = True) -> Judge:
        """Return the reward model of that name; raises BadConfig where it may not gate data."""
        if errors := cls.wrong(name):
            raise BadConfig(errors)
        return cls(RewardModel.objects.get(name=name), ask=ask)

    @staticmethod
    def wrong(name: str) -> dict[str, str]:
        """Return why the reward model of that name may not gate data, by the field "judge"."""
        row = RewardModel.objects.filter(name=name).first()
        if row is None:
            return {"judge": f"there is no reward model called {name!r}"}
        if not reward_models.in_force(row):
            return {"judge": f"{name} is not in force: calibrate it and admit it first"}
        return {}

    def say(self, episode: Episode) -> Judgement | None:
        """Return what it says of an episode, None where it has yet to be asked.

        Raises NoAnswer, and BlobError or FormatError for an episode that can't be read.
        """
        references = references_of(episode)
        key = f"{self._prefix}/{checksum(episode.trajectory, list(references))}.json"
        if key in self._known:
            record = json.loads(pictures.store().get_object(key))
            return Judgement(record["reward"], record["reason"], error=record["error"])
        if not self._ask:
            self.unasked += 1
            return None
        if self._model is None:
            self._model = reward_models.build(self._row)
        try:
            said = self._model.judge(trajectory_of(episode), references=references)
        except PolicyError as error:
            raise NoAnswer(
                f"reward model {self.name} gave no answer about episode {episode.pk}: {error}; "
                "freeze again once it is back, what it has said is remembered"
            ) from error
        record = {
            "reward": said.reward,
            "reason": said.reason,
            "error": said.error,
            "raw": said.raw,
        }
        pictures.store().put_object(key, json.dumps(record).encode())
        self._known.add(key)
        return said
