"""The one settings file; grown by the config owner."""

from pathlib import Path

BASE_DIR = Path(__file__).resolve().parent.parent
SECRET_KEY = "replaced-by-the-config-owner"
DEBUG = True
INSTALLED_APPS = [
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "django_htmx",
    "channels",
    "sandbox",
    "agent",
    "annotation",
    "training",
]
DATABASES = {"default": {"ENGINE": "django.db.backends.postgresql", "NAME": "tandem"}}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
USE_TZ = True
