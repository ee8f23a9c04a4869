"""Loaded before Django's settings: tests see a state folder of their own and no service of the machine."""

from __future__ import annotations

import atexit
import os
import shutil
import sys
import tempfile
from pathlib import Path

STATE = Path(tempfile.mkdtemp(prefix="tandem-tests-"))
STATE.chmod(0o755)  # the database's account passes through it
atexit.register(shutil.rmtree, STATE, ignore_errors=True)

for name in ("DATABASE_URL", "BROKER_URL", "CHANNEL_LAYER_URL", "STORAGE_URL", "POLICY_URL",
             "TANDEM_ENV", "DEBUG", "SECRET_KEY", "SANDBOX_PROVIDER", "TANDEM_POLICY_TOKEN"):  # fmt: skip
    os.environ.pop(name, None)
os.environ["TANDEM_STATE"] = str(STATE)
os.environ["STORAGE_URL"] = f"file://{STATE / 'blobs'}"
os.environ["SECRET_KEY"] = "tests" * 12
os.environ["DJANGO_SETTINGS_MODULE"] = "config.settings"

# Compiling torch and transformers takes several seconds of every process that imports them.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

if "PYTEST_XDIST_WORKER" in os.environ:
    os.environ["OMP_NUM_THREADS"] = "1"  # the other cores have workers of their own
