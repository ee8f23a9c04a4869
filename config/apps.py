from django.apps import AppConfig


class TandemConfig(AppConfig):
    name = "config"
    label = "config"
    verbose_name = "Tandem"

    def ready(self) -> None:
        from config import deploy_checks  # noqa: F401  registers them
