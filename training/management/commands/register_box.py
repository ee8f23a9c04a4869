"""`manage.py register_box`: make the shipped checkpoint a row, or bring that row up to date."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand

from training.weights.checkpoints import register_box


class Command(BaseCommand):
    help = "Register the checkpoint that Tandem ships with."

    def handle(self, *args: Any, **options: Any) -> None:
        box = register_box()
        self.stdout.write(f"{box.version}: {box.uri}")
