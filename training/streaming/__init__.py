"""Streaming RL: trainer, policy server and rollout workers at the same time.

`plan` makes the rollout of a run, `tokens` turns what was played into what a trainer reads,
`servers` keeps a policy server, and `feeder` is what a run's supervisor does at each look.
"""

from training.streaming.plan import begin

__all__ = ["begin"]
