from pathlib import Path

from django.apps import AppConfig
from django.conf import settings


class SandboxConfig(AppConfig):
    name = "sandbox"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        """Tell the families, which know no settings, where an admin keeps tasks and their files."""
        from sandbox.families import browsing, osworld, web

        tasks, assets = settings.OSWORLD_TASKS, settings.OSWORLD_ASSETS
        osworld.FAMILY.use(Path(tasks or osworld.OWN), Path(assets) if assets else None)
        web.FAMILY.folder = browsing.FAMILY.folder = Path(settings.SYNTHESISED_TASKS)
