"""Addresses of the training pages."""

from django.urls import path

from training.views import (
    checkpoints,
    datasets,
    evaluations,
    launch,
    overview,
    rewards,
    rollouts,
    runs,
)

app_name = "training"

urlpatterns = [
    path("training/", overview.overview, name="overview"),
    path("training/datasets/", datasets.datasets, name="datasets"),
    path("training/datasets/new/", datasets.new, name="new-dataset"),
    path("training/datasets/preview/", datasets.preview, name="preview"),
    path("training/datasets/<int:pk>/", datasets.dataset, name="dataset"),
    path("training/datasets/<int:pk>/<str:part>.jsonl", datasets.download, name="download"),
    path("training/runs/", runs.runs, name="runs"),
    path("training/runs/new/", launch.new, name="new-run"),
    path("training/runs/compare/", runs.compare, name="compare"),
    path("training/runs/<int:pk>/", runs.run, name="run"),
    path("training/runs/<int:pk>/panel/", runs.panel, name="panel"),
    path("training/runs/<int:pk>/metrics.json", runs.metrics, name="metrics"),
    path("training/runs/<int:pk>/rows/", runs.rows, name="run-rows"),
    path("training/runs/<int:pk>/events/", runs.events, name="events"),
    path("training/runs/<int:pk>/cancel/", runs.cancel, name="cancel"),
    path("training/runs/<int:pk>/resume/", runs.resume, name="resume"),
    path("training/rollouts/", rollouts.listing, name="rollouts"),
    path("training/rollouts/new/", rollouts.new, name="new-rollout"),
    path("training/rollouts/<int:pk>/", rollouts.rollout, name="rollout"),
    path("training/rollouts/<int:pk>/panel/", rollouts.panel, name="rollout-panel"),
    path("training/rollouts/<int:pk>/series.json", rollouts.series, name="rollout-series"),
    path("training/rollouts/<int:pk>/episodes/", rollouts.rollout_episodes, name="episodes"),
    path("training/rollouts/<int:pk>/<str:verb>/", rollouts.act, name="rollout-act"),
    path("training/episodes/<int:pk>/", rollouts.episode, name="episode"),
    path("training/pictures/<str:sha>.png", rollouts.picture, name="picture"),
    path("training/checkpoints/", checkpoints.checkpoints, name="checkpoints"),
    path("training/checkpoints/<int:pk>/", checkpoints.checkpoint, name="checkpoint"),
    path("training/checkpoints/<int:pk>/promote/", checkpoints.promote, name="promote"),
    path("training/evaluations/", evaluations.evaluations, name="evaluations"),
    path("training/evaluations/new/", evaluations.new, name="new-evaluation"),
    path("training/evaluations/compare/", evaluations.compare, name="compare-evaluations"),
    path("training/evaluations/<int:pk>/", evaluations.evaluation, name="evaluation"),
    path("training/evaluations/<int:pk>/panel/", evaluations.panel, name="evaluation-panel"),
    path(
        "training/evaluations/<int:pk>/episodes/", evaluations.episodes, name="evaluation-episodes"
    ),
    path("training/evaluations/<int:pk>/cancel/", evaluations.cancel, name="cancel-evaluation"),
    path(
        "training/evaluations/<int:pk>/export.<str:form>",
        evaluations.export,
        name="export-evaluation",
    ),
    path("training/reward-models/", rewards.reward_models, name="reward-models"),
    path("training/reward-models/new/", rewards.new, name="new-reward-model"),
    path("training/reward-models/<int:pk>/", rewards.reward_model, name="reward-model"),
    path("training/reward-models/<int:pk>/calibrate/", rewards.calibrate, name="calibrate"),
    path("training/reward-models/<int:pk>/admit/", rewards.admit, name="admit"),
    path("training/reward-models/<int:pk>/withdraw/", rewards.withdraw, name="withdraw"),
    path("training/calibrations/<int:pk>/", rewards.calibration, name="calibration"),
    path("training/calibrations/<int:pk>/panel/", rewards.panel, name="calibration-panel"),
    path("training/calibrations/<int:pk>/cancel/", rewards.cancel, name="cancel-calibration"),
    path("training/calibrations/<int:pk>/resume/", rewards.resume, name="resume-calibration"),
    path("training/promotions/", checkpoints.promotions, name="promotions"),
    path("training/deployments/<int:pk>/roll-back/", checkpoints.roll_back, name="roll-back"),
]
