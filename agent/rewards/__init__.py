"""Outcome reward models: whether an episode succeeded, where no program can tell. No Django here.

One protocol, four kinds: the verifier's verdict, a reference answer, a model that reads the episode, and
several of them that must agree. `question` and `reply` are what passes between us and a judging model.
"""

from agent.rewards.chat import Chat, OpenAIChat, Said
from agent.rewards.ensemble import EnsembleModel
from agent.rewards.generative import GenerativeModel
from agent.rewards.protocol import Evidence, Judgement, Reward, RewardModel
from agent.rewards.reference import ReferenceModel
from agent.rewards.verifier import VerifierModel

__all__ = [
    "Chat", "EnsembleModel", "Evidence", "GenerativeModel", "Judgement", "OpenAIChat",
    "ReferenceModel", "Reward", "RewardModel", "Said", "VerifierModel",
]  # fmt: skip
