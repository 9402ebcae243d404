# Every command of the project. `make` alone lists them.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready

.DEFAULT_GOAL := help
.PHONY: help setup demo up test test-fast check docs format bench chaos lock clean

help: ## list the commands
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*##/\t/' | expand -t 12

setup: $(READY) ## install Strandline and what it needs into .venv

# hatchling comes with the lock, so that installing Strandline itself asks no network for a builder.
$(READY): requirements.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(0 if (3, 11) <= sys.version_info < (3, 14) else "Strandline needs Python 3.11 to 3.13; name one: make setup PYTHON=python3.12")'
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@echo "Installing into $(VENV) (about 1 GB; the first time takes a minute or two)"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check uv==0.13.9
	@$(BIN)/uv pip install --quiet --python $(BIN)/python --require-hashes -r requirements.lock
	@$(BIN)/uv pip install --quiet --python $(BIN)/python --no-deps --no-build-isolation -e .
	@touch $(READY)

demo: $(READY) ## start the services, import a sample of mail and chat, ask three questions, stop again
	@$(BIN)/strandline demo

up: $(READY) ## start services, server and workers here; Ctrl-C ends server and workers
	@$(BIN)/strandline up

test: $(READY) ## all tests, with the real Kafka, Neo4j and Weaviate (started if none are named)
	$(BIN)/python -m pytest -m "not chaos and not bench"

test-fast: $(READY) ## tests that need no services
	$(BIN)/python -m pytest -m "not connected and not chaos and not bench"

check: $(READY) ## format, lint, types, layers, generated files
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python -m strandline.generated --check
	@! grep -nE 'https?://|index-url' requirements.lock || (echo "requirements.lock names an address; run make lock" >&2; exit 1)

docs: $(READY) ## write the generated documents anew
	$(BIN)/python -m strandline.generated

format: $(READY) ## format the code and mend what ruff can
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

bench: $(READY) ## measure; writes docs/measurements.md
	$(BIN)/python -m tests.bench

chaos: $(READY) ## kill services and workers at random under load, then prove that nothing is lost
	$(BIN)/python -m pytest -m chaos --timeout 1800

lock: ## resolve the dependencies anew into requirements.lock (hashes, no index address)
	$(BIN)/uv pip compile --quiet --universal --python-version 3.11 --all-extras --generate-hashes --no-emit-index-url --no-header pyproject.toml -o requirements.lock

clean: ## remove what builds and tests leave in the checkout
	rm -rf $(VENV) .mypy_cache .pytest_cache .ruff_cache .import_linter_cache .hypothesis dist
