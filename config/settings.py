"""The one settings file: every setting that differs between places is one variable, see .env.example."""

from __future__ import annotations

import socket
from datetime import timedelta
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from config import env

BASE_DIR = env.BASE_DIR
STATE_DIR = env.state_folder()

# --- what kind of place this is -------------------------------------------------------------------
PRODUCTION = env.choice("TANDEM_ENV", "local", ("local", "production")) == "production"
DEBUG = env.flag("DEBUG", default=False)
SECRET_KEY = env.service("SECRET_KEY", "" if PRODUCTION else "only-for-tests-and-commands" * 3)
ALLOWED_HOSTS = env.words("ALLOWED_HOSTS", "" if PRODUCTION else "localhost,127.0.0.1,[::1]")
CSRF_TRUSTED_ORIGINS = env.words("CSRF_TRUSTED_ORIGINS")

INSTALLED_APPS = [
    "config",
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "django_htmx",
    "axes",
    "channels",
    "sandbox",
    "agent",
    "annotation",
    "training",
]

MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "config.csp.ContentSecurityPolicyMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "config.nul.NulMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "django_htmx.middleware.HtmxMiddleware",
    "axes.middleware.AxesMiddleware",
]

# Ten wrong passwords for a name from one address: a quarter of an hour without another try.
AUTHENTICATION_BACKENDS = [
    "axes.backends.AxesStandaloneBackend",
    "django.contrib.auth.backends.ModelBackend",
]
AXES_FAILURE_LIMIT = 10
AXES_COOLOFF_TIME = timedelta(minutes=15)
AXES_LOCKOUT_PARAMETERS = [["username", "ip_address"]]
AXES_RESET_ON_SUCCESS = True
AXES_LOCKOUT_TEMPLATE = "429.html"
AXES_DISABLE_ACCESS_LOG = True
AXES_VERBOSE = False

ROOT_URLCONF = "config.urls"
ASGI_APPLICATION = "config.asgi.application"

TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ],
        },
    }
]

# --- PostgreSQL -----------------------------------------------------------------------------------
DATABASE_URL = env.service("DATABASE_URL", "postgres://127.0.0.1:5432/tandem")


def _database(url: str, pool_size: int) -> dict[str, Any]:
    parts = urlsplit(url)
    if parts.scheme not in {"postgres", "postgresql"}:
        raise env.WrongVariable(f"DATABASE_URL: {parts.scheme!r} is not postgres://")
    # Only statements that ask for it are prepared; Django's own never are.
    options: dict[str, Any] = {"connect_timeout": 10, "prepare_threshold": 5}
    if pool_size:
        options["pool"] = {"min_size": 1, "max_size": pool_size, "timeout": 10}
    return {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": parts.path.lstrip("/"),
        "USER": unquote(parts.username or ""),
        "PASSWORD": unquote(parts.password or ""),
        "HOST": parts.hostname or "",
        "PORT": str(parts.port or 5432),
        "OPTIONS": options,
    }


# A pool keeps connections over requests; only the web has one, forked workers must not share it.
DATABASES = {"default": _database(DATABASE_URL, env.integer("DATABASE_POOL", 0))}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

# --- Valkey: Celery's queues and Channels' hints --------------------------------------------------
BROKER_URL = env.service("BROKER_URL", "memory://")
CHANNEL_LAYER_URL = env.service("CHANNEL_LAYER_URL")

# Without an address (tests, commands) hints stay inside the process; rows are the truth anyway.
CHANNEL_LAYERS: dict[str, Any] = {
    "default": {
        "BACKEND": "channels_redis.pubsub.RedisPubSubChannelLayer",
        "CONFIG": {"hosts": [CHANNEL_LAYER_URL]},
    }
    if CHANNEL_LAYER_URL
    else {"BACKEND": "channels.layers.InMemoryChannelLayer"}
}

CELERY_BROKER_URL = BROKER_URL
CELERY_TASK_IGNORE_RESULT = True
CELERY_TASK_DEFAULT_QUEUE = "default"
# By what a job waits for: a policy or a desktop, a trainer; everything else is default.
CELERY_TASK_ROUTES = {
    **{
        job: {"queue": "agent"}
        for job in (
            "annotation.jobs.prepare",
            "annotation.jobs.propose",
            "annotation.jobs.execute",
            "annotation.jobs.close",
            "annotation.jobs.advance_recording",
            "annotation.jobs.reword_recording",
            "sandbox.jobs.canary",
            "training.jobs.calibrate",
        )
    },
    "training.jobs.supervise_run": {"queue": "training"},
    "training.jobs.keep_iteration_server": {"queue": "training"},
}
CELERY_TASK_ACKS_LATE = False  # a lost job is found again by its row, a doubled one costs time
CELERY_WORKER_PREFETCH_MULTIPLIER = 1
CELERY_WORKER_HIJACK_ROOT_LOGGER = False
CELERY_BROKER_CONNECTION_RETRY_ON_STARTUP = True
# A verb publishes after its commit: a broker that is away must not hold up the request for long.
CELERY_TASK_PUBLISH_RETRY_POLICY = {"max_retries": 2, "interval_start": 0.1, "interval_max": 0.5}
CELERY_TIMEZONE = "UTC"
# Seconds between two looks; every job of it finds by the rows what there is to do.
CELERY_BEAT_SCHEDULE: dict[str, Any] = {
    job: {"task": job, "schedule": every_s, "options": {"expires": every_s}}
    for job, every_s in {
        "agent.jobs.reconcile": 10.0,
        "annotation.jobs.reap": 5.0,
        "annotation.jobs.reap_recordings": 15.0,
        "sandbox.jobs.reap_leases": 5.0,
        "sandbox.jobs.give_up_silent_hosts": 5.0,
        "sandbox.jobs.canary": 900.0,
        "sandbox.jobs.prune_tickets": 600.0,
        "training.jobs.find_lost_runs": 15.0,
        "training.jobs.erase_withdrawn": 30.0,
        "training.jobs.find_lost_calibrations": 60.0,
        "training.jobs.settle_evaluations": 30.0,
        "training.jobs.reap_episodes": 10.0,
        "training.jobs.advance_iterations": 10.0,
    }.items()
}

# --- blobs ----------------------------------------------------------------------------------------
STORAGE_URL = env.service("STORAGE_URL", f"file://{STATE_DIR / 'blobs'}")

# --- desktops -------------------------------------------------------------------------------------
SANDBOX_PROVIDER = env.text("SANDBOX_PROVIDER") or "local"
SANDBOX_LOCAL_ACCEPTED = env.flag("SANDBOX_LOCAL_ACCEPTED", default=False)
SANDBOX_POOL_SIZE = env.integer("SANDBOX_POOL_SIZE", 1)  # warm computers per host
SANDBOX_MAX = env.integer("SANDBOX_MAX", 4)  # computers per host, leased ones included
METRICS_TOKEN = env.text("METRICS_TOKEN")
SANDBOX_HOST = env.text("SANDBOX_HOST") or socket.gethostname()
# What `manage.py sandbox_ca` makes: who hosts and their callers are to each other.
SANDBOX_TLS = Path(env.text("SANDBOX_TLS") or STATE_DIR / "tls")
# Below it every service of a computer has a host name of its own. Browsers resolve *.localhost themselves.
PREVIEW_HOST = env.text("PREVIEW_HOST") or ("" if PRODUCTION else "localhost")

# --- models ---------------------------------------------------------------------------------------
POLICY_URL = env.service("POLICY_URL", "http://127.0.0.1:8100")
POLICY_TOKEN = env.service("TANDEM_POLICY_TOKEN")
RUNS_DIR = STATE_DIR / "runs"
# whisper:///folder, https://host/v1?model=NAME or known:///folder; unset: the packaged Whisper.
SPEECH_URL = env.text("SPEECH_URL")
SPEECH_TOKEN = env.text("SPEECH_TOKEN")
SPEECH_DIR = STATE_DIR / "speech"  # where the packaged model is put together

# --- recordings -----------------------------------------------------------------------------------
RECORDING_REFINER = env.text("RECORDING_REFINER")  # the Deployment that puts spoken words in order
# Where parts of uploads wait until a file is whole; several web hosts share it.
RECORDING_SPOOL = Path(env.text("RECORDING_SPOOL") or STATE_DIR / "spool")
# What /recorder/ offers; config/wheels.py builds them.
RECORDER_WHEELS = BASE_DIR / "var" / "recorder"

# --- people ---------------------------------------------------------------------------------------
DEMO = not PRODUCTION  # the sign-in page names the demo's accounts
LOGIN_URL = "/accounts/login/"
LOGIN_REDIRECT_URL = "/"
LOGOUT_REDIRECT_URL = "/accounts/login/"
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": f"django.contrib.auth.password_validation.{name}"}
    for name in (
        "UserAttributeSimilarityValidator",
        "MinimumLengthValidator",
        "CommonPasswordValidator",
        "NumericPasswordValidator",
    )
]
SESSION_COOKIE_HTTPONLY = True
SESSION_COOKIE_SAMESITE = "Lax"
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = env.flag("SECURE_COOKIES", default=PRODUCTION)
SECURE_CONTENT_TYPE_NOSNIFF = True
SECURE_REFERRER_POLICY = "same-origin"
X_FRAME_OPTIONS = "DENY"
if PRODUCTION:
    SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https")
    SECURE_SSL_REDIRECT = env.flag("SECURE_SSL_REDIRECT", default=True)
    SECURE_HSTS_SECONDS = env.integer("SECURE_HSTS_SECONDS", 31_536_000)
    SECURE_HSTS_INCLUDE_SUBDOMAINS = True
    SECURE_HSTS_PRELOAD = True

# --- tasks from folders ---------------------------------------------------------------------------
# Folders on every machine that runs tasks: theirs, and the files that they download.
OSWORLD_TASKS = env.text("OSWORLD_TASKS")
OSWORLD_ASSETS = env.text("OSWORLD_ASSETS")
# Where `manage.py synthesise` puts made tasks, and the families find them beside our own.
SYNTHESISED_TASKS = env.text("SYNTHESISED_TASKS") or str(env.state_folder() / "tasks")

# --- static files ---------------------------------------------------------------------------------
STATIC_URL = "/static/"
STATIC_ROOT = BASE_DIR / "staticfiles"
STATICFILES_DIRS = [BASE_DIR / "static"]
_static = (
    "whitenoise.storage.CompressedManifestStaticFilesStorage"
    if PRODUCTION
    else "django.contrib.staticfiles.storage.StaticFilesStorage"
)
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {"BACKEND": _static},
}
# Locally files are served from where they lie: no collectstatic, a reload shows an edit.
WHITENOISE_USE_FINDERS = WHITENOISE_AUTOREFRESH = not PRODUCTION
# .mjs is what some vendored modules are called; a browser refuses a module of another type.
WHITENOISE_MIMETYPES = {".mjs": "text/javascript"}

# --- language, time, logs -------------------------------------------------------------------------
LANGUAGE_CODE = "en-us"
TIME_ZONE = "UTC"
USE_I18N = False
USE_TZ = True
DATA_UPLOAD_MAX_MEMORY_SIZE = 20 * 1024 * 1024  # an imported list of tasks
DATA_UPLOAD_MAX_NUMBER_FIELDS = 20_000  # a review has four for every step

LOGGING: dict[str, Any] = {
    "version": 1,
    "disable_existing_loggers": False,
    "filters": {"about": {"()": "sandbox.logs.AboutFilter"}},
    "formatters": {
        "line": {"format": "{asctime} {levelname} {name}:{about} {message}", "style": "{"},
        "json": {
            "()": "pythonjsonlogger.json.JsonFormatter",
            "format": "{asctime}{levelname}{name}{message}",
            "style": "{",
        },
    },
    "handlers": {
        "console": {
            "class": "logging.StreamHandler",
            "formatter": env.choice("LOG_FORMAT", "line", ("line", "json")),
            "filters": ["about"],
        }
    },
    "root": {"handlers": ["console"], "level": env.text("LOG_LEVEL") or "INFO"},
    "loggers": {"django.request": {"level": "ERROR"}, "httpx": {"level": "WARNING"}},
}
