# Everything goes through `make setup`, which makes .venv once and again when its inputs change.
PYTHON ?= python3
BIN := .venv/bin
PYTEST := $(BIN)/python -m pytest

.PHONY: help setup demo test lint bench bench-dump golden lock clean

help: ## say what there is
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-12s %s\n", $$1, $$2}'

setup: .venv/.done ## make .venv with .venv/bin/logstore in it

.venv/.done: requirements.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(None if sys.version_info >= (3, 11) else "logstore needs Python 3.11 or newer; try: make PYTHON=python3.11")'
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --no-cache-dir --disable-pip-version-check --require-hashes -r requirements.lock
	$(BIN)/python -m pip install --quiet --no-cache-dir --disable-pip-version-check --no-deps --no-build-isolation --editable .
	$(BIN)/python -m compileall -q logstore tools
	$(BIN)/logstore kernels
	@touch $@

demo: setup ## dump a directory that a real broker wrote
	@$(BIN)/python tests/stories/demo.py

test: setup lint ## check everything (the real Kafka too, where Java and Maven are there)
	$(PYTEST) -q
	NUMBA_DISABLE_JIT=1 $(PYTEST) -q tests/unit tests/properties -k kernel

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

bench-dump: setup ## time the dump against kafka-dump-log on a 1 GiB segment
	$(BIN)/python -m benchmarks.dump_against_kafka

golden: setup ## make the golden directories and their answers again, with the real Kafka
	$(BIN)/python -m tests.kafka.make_golden

lock: setup ## renew requirements.lock
	$(BIN)/python -m pip install --quiet uv
	$(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --extra dev --no-header --output-file requirements.lock pyproject.toml

clean: ## remove what the other targets made
	rm -rf .venv build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis .benchmarks
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
