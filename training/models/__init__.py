"""The rows of training."""

from training.models.data import Dataset, DatasetEntry
from training.models.iterations import Iteration
from training.models.rewards import Calibration, RewardModel
from training.models.rollouts import Episode, Evaluation, Rollout, RolloutWorker
from training.models.runs import Checkpoint, MergeSource, Metric, MixedDataset, Promotion, Run

__all__ = [
    "Calibration",
    "Checkpoint",
    "Dataset",
    "DatasetEntry",
    "Episode",
    "Evaluation",
    "Iteration",
    "MergeSource",
    "Metric",
    "MixedDataset",
    "Promotion",
    "RewardModel",
    "Rollout",
    "RolloutWorker",
    "Run",
]
