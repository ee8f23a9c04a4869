from django.apps import AppConfig


class TandemConfig(AppConfig):
    name = "config"
    label = "config"
    verbose_name = "Tandem"
