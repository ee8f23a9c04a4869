# syntax=docker/dockerfile:1
# Targets: web (pages, workers, beat; no torch), desktop (a sandbox host), gpu (policy server, trainers).

FROM python:3.11-slim-bookworm AS base
ENV PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1 PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1 \
    PYTHONPATH=/app:/app/packages/trajectory:/app/packages/guest:/app/packages/blobs \
    DJANGO_SETTINGS_MODULE=config.settings TANDEM_ENV=production TANDEM_STATE=/var/lib/tandem \
    HF_HUB_OFFLINE=1
RUN useradd --system --create-home --uid 10001 tandem \
    && install -d -o tandem -g tandem /var/lib/tandem
WORKDIR /app

FROM base AS web
COPY requirements-web.lock requirements-data.lock ./
RUN pip install --no-deps --require-hashes -r requirements-web.lock \
    && pip install --no-deps --require-hashes -r requirements-data.lock
COPY . .
# Static files need no service and no secret of the place where they will run.
RUN SECRET_KEY=only-while-building python manage.py collectstatic --noinput \
    && python config/wheels.py
USER tandem
EXPOSE 8000
CMD ["python", "-m", "uvicorn", "config.asgi:application", "--host", "0.0.0.0", "--port", "8000", \
     "--ws", "websockets-sansio", "--ws-per-message-deflate", "false", "--proxy-headers"]

FROM web AS desktop
USER root
# The list is config/embedded/packages.py, for the image as for `make run`.
RUN apt-get update \
    && apt-get install -y --no-install-recommends \
       $(python -c "from config.embedded.packages import DESKTOP; print(*DESKTOP)") \
    && rm -rf /var/lib/apt/lists/*
CMD ["python", "manage.py", "sandbox_host", "--stop-desktops-on-exit"]

FROM base AS gpu
COPY requirements.lock requirements-data.lock ./
RUN pip install torch==2.13.0 \
    && pip install --no-deps --require-hashes -r requirements.lock \
    && pip install --no-deps --require-hashes -r requirements-data.lock
COPY . .
USER tandem
ENV TANDEM_MODEL_CACHE=/var/lib/tandem/models
CMD ["python", "-m", "agent.serving", "--host", "0.0.0.0", "--port", "8100", \
     "--state", "/var/lib/tandem/policy", "--checkpoint", "/app/agent/box"]
