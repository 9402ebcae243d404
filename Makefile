# Every command of the project. `make` alone lists them.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready

.DEFAULT_GOAL := help
.PHONY: help setup lock demo test check docs bench chaos up clean

help: ## list the commands
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*##/\t/' | expand -t 12

setup: $(READY) ## install Strandline and what it needs into .venv

$(READY): requirements.lock pyproject.toml
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check uv==0.13.9
	@$(BIN)/uv pip install --quiet --python $(BIN)/python --require-hashes -r requirements.lock
	@$(BIN)/uv pip install --quiet --python $(BIN)/python --no-deps --no-build-isolation-package none -e .
	@touch $(READY)

lock: ## resolve the dependencies anew into requirements.lock (hashes, no index address)
	$(BIN)/uv pip compile --quiet --universal --python-version 3.11 --all-extras --generate-hashes --no-emit-index-url --no-header pyproject.toml -o requirements.lock

clean: ## remove what builds and tests leave in the checkout
	rm -rf $(VENV) .mypy_cache .pytest_cache .ruff_cache .import_linter_cache .hypothesis dist
