"""What people type to promote a checkpoint; the verb checks it again."""

from __future__ import annotations

from django import forms

from agent.models import Deployment


class PromoteForm(forms.Form):
    """The deployment that a checkpoint is put behind."""

    deployment = forms.ModelChoiceField(
        Deployment.objects.filter(kind=Deployment.Kind.LOCAL).order_by("-is_partner", "name"),
        empty_label=None,
        help_text="Its next proposal comes from this checkpoint.",
    )
