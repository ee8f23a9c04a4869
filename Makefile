# Every command of the project; `make help` lists them.

PYTHON ?= $(shell for p in python3.11 python3.12 python3.13 python3.14 python3; do \
	$$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && { echo $$p; break; }; done)
VENV := .venv/bin
TYPED := packages/trajectory/trajectory packages/blobs/blobs packages/guest/guest packages/recorder/recorder agent sandbox annotation training experiments
# No browser, no desktop, no model: what `make check` can run in a minute.
QUICK := tests/trajectory tests/blobs tests/contracts/test_blobs.py tests/config tests/test_architecture.py

# Two cores are what the suite is made for.
WORKERS ?= 2

.PHONY: help run stop reset install test check format lint types imports lock

help: ## List the commands.
	@grep -hE '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /|/' | awk -F'|' '{printf "  make %-9s %s\n", $$1, $$2}'

run: install ## Install what is missing, then start all of Tandem; Ctrl-C stops it.
	@exec $(VENV)/python -m config.embedded run

stop: ## Stop a running Tandem, or what a killed one has left.
	@exec $(VENV)/python -m config.embedded stop

reset: ## Forget everything: database, blobs, passwords.
	@exec $(VENV)/python -m config.embedded reset

install: ## Install system packages, .venv and the locked Python packages.
	@test -n "$(PYTHON)" || { echo "Python 3.11 or newer is missing: apt-get install -y python3.11 python3.11-venv"; exit 1; }
	@$(PYTHON) config/install.py

test: install ## Run the whole suite: real services, desktops, browser and model.
	@# End to end, a whole Tandem runs beside each test: those have the machine to themselves.
	$(VENV)/pytest -q -n $(WORKERS) --ignore=tests/e2e; most=$$?; $(VENV)/pytest -q tests/e2e; exit $$(( $$? | most ))

check: install lint types imports ## Lint, types, import rules and the quick tests; under a minute.
	$(VENV)/pytest -q $(QUICK)

lint:
	$(VENV)/ruff check .
	$(VENV)/ruff format --check .

types:
	$(VENV)/mypy $(TYPED) config

imports:
	$(VENV)/lint-imports

format: ## Format the code.
	$(VENV)/ruff check --fix .
	$(VENV)/ruff format .

COMPILE := uv pip compile --python-version 3.11 --no-header --generate-hashes --no-emit-index-url
lock: ## Write the lock files anew; needs uv and UV_FIND_LINKS with a CPU build of torch.
	$(COMPILE) pyproject.toml --all-extras --no-emit-package torch -o requirements.lock
	$(COMPILE) pyproject.toml --extra guest -o requirements-web.lock
	$(COMPILE) requirements-data.in --no-deps -o requirements-data.lock
