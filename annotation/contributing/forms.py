"""Forms of the pages on what contributors are asked for; each says beside the field what is wrong."""

from __future__ import annotations

from typing import Any

from django import forms

from annotation.contributing import scores
from annotation.models import Application, Function, Project, Query


class ProjectForm(forms.ModelForm):
    """Weights, the writer of queries, and how long things are kept."""

    class Meta:
        model = Project
        fields = (
            "coverage_weight", "engagement_weight", "penetration_weight",
            "frequency_weight", "benefit_weight", "transfer_weight",
            "writer", "synthesizer", "offer_hours", "retain_days",
        )  # fmt: skip
        labels = {
            "coverage_weight": "Industry coverage",
            "engagement_weight": "User engagement",
            "penetration_weight": "Market penetration",
            "frequency_weight": "Usage frequency",
            "benefit_weight": "User benefit",
            "transfer_weight": "Transferability",
            "writer": "Deployment that writes queries",
            "synthesizer": "Deployment that writes thoughts where nothing was said",
            "offer_hours": "Hours that a task is kept for a contributor",
            "retain_days": "Days until recordings that were not accepted are deleted",
        }

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for name in ("writer", "synthesizer"):
            deployments = self.fields[name]
            assert isinstance(deployments, forms.ModelChoiceField)
            deployments.empty_label = "none"


class ApplicationForm(forms.ModelForm):
    """An application with its three scores and where they are from."""

    class Meta:
        model = Application
        fields = (
            "name", "coverage", "coverage_source", "engagement", "engagement_source",
            "penetration", "penetration_source",
        )  # fmt: skip
        labels = {
            "coverage": "Industry coverage",
            "engagement": "User engagement",
            "penetration": "Market penetration",
        } | {f"{name}_source": "Source" for name in ("coverage", "engagement", "penetration")}


class FunctionForm(forms.ModelForm):
    """A function and its place in the tree of its application."""

    class Meta:
        model = Function
        fields = ("name", "parent", "frequency", "benefit", "transfer")
        labels = {
            "parent": "Below",
            "frequency": "Usage frequency",
            "benefit": "User benefit",
            "transfer": "Transferability",
        }

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        places = Function.objects.filter(application=self.instance.application)
        parent = self.fields["parent"]
        assert isinstance(parent, forms.ModelChoiceField)
        parent.queryset = places.exclude(pk=self.instance.pk)
        parent.empty_label = "(the application itself)"


class QueryForm(forms.ModelForm):
    """A query, its level, its other applications and its difficulty by the rubric."""

    class Meta:
        model = Query
        fields = ("text", "level", "kind", "also", *Query.RUBRIC, "wanted")
        labels = {
            "text": "What the person is asked to do",
            "also": "Other applications (multi-app)",
            "kind": "Recorded as",
            "wanted": "Recordings wanted",
        }
        widgets = {"text": forms.Textarea(attrs={"rows": 3}), "also": forms.CheckboxSelectMultiple}

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for name, (label, meanings) in scores.RUBRIC.items():
            choices = [(at, f"{at} · {words}") for at, words in enumerate(meanings)]
            self.fields[name] = forms.TypedChoiceField(
                coerce=int, choices=choices, label=label, initial=0
            )
        also = self.fields["also"]
        assert isinstance(also, forms.ModelMultipleChoiceField)
        also.queryset = Application.objects.exclude(pk=self.instance.function.application_id)
