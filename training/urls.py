"""Addresses of the training pages."""

from django.urls import path

from training.views import checkpoints, datasets, overview, runs

app_name = "training"

urlpatterns = [
    path("training/", overview.overview, name="overview"),
    path("training/datasets/", datasets.datasets, name="datasets"),
    path("training/datasets/new/", datasets.new, name="new-dataset"),
    path("training/datasets/preview/", datasets.preview, name="preview"),
    path("training/datasets/<int:pk>/", datasets.dataset, name="dataset"),
    path("training/datasets/<int:pk>/<str:part>.jsonl", datasets.download, name="download"),
    path("training/runs/", runs.runs, name="runs"),
    path("training/runs/new/", runs.new, name="new-run"),
    path("training/runs/compare/", runs.compare, name="compare"),
    path("training/runs/<int:pk>/", runs.run, name="run"),
    path("training/runs/<int:pk>/panel/", runs.panel, name="panel"),
    path("training/runs/<int:pk>/metrics.json", runs.metrics, name="metrics"),
    path("training/runs/<int:pk>/cancel/", runs.cancel, name="cancel"),
    path("training/runs/<int:pk>/resume/", runs.resume, name="resume"),
    path("training/checkpoints/", checkpoints.checkpoints, name="checkpoints"),
    path("training/checkpoints/<int:pk>/", checkpoints.checkpoint, name="checkpoint"),
    path("training/checkpoints/<int:pk>/promote/", checkpoints.promote, name="promote"),
    path("training/promotions/", checkpoints.promotions, name="promotions"),
    path("training/deployments/<int:pk>/roll-back/", checkpoints.roll_back, name="roll-back"),
]
