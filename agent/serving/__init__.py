"""The policy server: an OpenAI-compatible endpoint for checkpoints on this machine.

A process of its own (`python -m agent.serving`): torch lives here and under `training.trainers`.
"""
