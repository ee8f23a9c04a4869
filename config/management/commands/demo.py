"""`manage.py demo`: migrate, and see to it that the demo's people, tasks and model are there."""

from __future__ import annotations

from typing import Any

from django.core.management import call_command
from django.core.management.base import BaseCommand

from config import demo


class Command(BaseCommand):
    help = "Migrate, and make the demo's accounts, tasks and deployment where they are missing."

    def handle(self, *args: Any, **options: Any) -> None:
        call_command("migrate", verbosity=0, interactive=False)
        demo.content()
        demo.deployment()
        self.stdout.write("the demo is there")
