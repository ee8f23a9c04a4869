"""The policy of an episode: its deployment, sampled as the rollout says."""

from __future__ import annotations

import copy
import dataclasses
import zlib

from agent import deployments
from agent.memory import ByChat, InWords, Memory
from agent.policies.openai import OpenAIPolicy
from agent.policy import Policy, PolicyMisconfigured
from annotation.session import pictures
from training.models import Episode, Rollout
from training.rollouts.config import RolloutConfig


def policy_of(episode: Episode, config: RolloutConfig) -> Policy:
    """Return the policy that plays `episode`; raises PolicyMisconfigured.

    Its answers are real samples at the rollout's temperature, with their token ids and
    log-probabilities where the server gives them.
    """
    deployment = copy.copy(episode.rollout.deployment)
    deployment.temperature = config.temperature
    policy = deployments.policy(deployment, pictures=pictures.read)
    if isinstance(policy, OpenAIPolicy):
        policy = dataclasses.replace(policy, sampled=config.temperature > 0, top_p=config.top_p)
    return policy


def memory_of(policy: Policy, config: RolloutConfig) -> Memory:
    """Return what of an episode goes into its prompts; raises PolicyMisconfigured."""
    measure = getattr(policy, "measure", None)
    if config.memory_tokens and measure is None:
        raise PolicyMisconfigured("this policy counts no tokens: set memory_tokens to 0")
    chat = getattr(policy, "chat", None)
    if config.summaries and chat is None:
        raise PolicyMisconfigured("this policy writes no summaries: set summaries to false")
    return Memory(
        steps=config.memory,
        summariser=ByChat(chat) if config.summaries and chat is not None else InWords(),
        budget=config.memory_tokens,
        measure=measure,
    )


def sampling_seed(episode: Episode) -> int:
    """Return the seed of the samples: another for each repeat, the same for another attempt.

    An evaluation samples alike whenever it is made; collecting twice gives other samples.
    """
    place = f"{episode.family}/{episode.task}/{episode.seed}/{episode.repeat}"
    if episode.rollout.purpose == Rollout.Purpose.COLLECT:
        place = f"{episode.rollout_id}:{place}"
    return zlib.crc32(place.encode()) & 0x3FFFFFFF
