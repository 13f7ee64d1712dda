# Needs Python 3.11 and pip. The first target that needs anything else installs it into .venv.

PYTHON ?= $(shell python3.11 -c "" 2>/dev/null && echo python3.11 || echo python3)
VENV := .venv
BIN := $(VENV)/bin
CORE := $(VENV)/.core
INSTALLED := $(VENV)/.installed
WARM := $(VENV)/.warm
WORKERS ?= 3
MINUTES ?= 10

ifndef G3NN_DATA
ifneq ($(wildcard ../shared/data/planetoid/.),)
export G3NN_DATA := $(abspath ../shared/data/planetoid)
endif
endif

# Python keeps what it has compiled: otherwise every process that a test starts compiles torch again.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help test check ready units slow fuzz demo docs lint style types format release lock clean

help: ## show this list
	@sed -n 's/^\([a-z]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | expand -t 10

# Kernels are compiled while pip installs what only tests need, and types are checked while tests run.
test: ## check style and types, run the tests that take a few seconds each
	@$(MAKE) --no-print-directory -j2 ready
	@$(MAKE) --no-print-directory style
	@$(MAKE) --no-print-directory -j2 types units

check: ## everything: make test, and long trainings, browsers, kills, tutorials, wheels
	@$(MAKE) --no-print-directory test UNITS=

ready: $(INSTALLED) $(WARM)

PYTEST := OMP_NUM_THREADS=1 NUMBA_NUM_THREADS=1 $(BIN)/python -m pytest -n $(WORKERS) --dist loadfile --no-loadscope-reorder --max-worker-restart=0 --durations=40 --durations-min=8

# What is left out of `make test`. Each worker imports and collects all tests, so everything is one run.
UNITS := -m "not slow"

units: $(INSTALLED)
	$(PYTEST) $(UNITS)

slow: $(INSTALLED)
	$(PYTEST) -m slow

fuzz: $(INSTALLED) ## damaged inputs for every reader, for MINUTES=10
	OMP_NUM_THREADS=1 NUMBA_NUM_THREADS=1 $(BIN)/python tests/fuzz/fuzz.py --minutes $(MINUTES)

demo: $(CORE) ## label Citeseer from two tables: a short tour
	$(BIN)/python examples/demo.py

docs: $(INSTALLED) ## build the documentation into build/docs; open build/docs/index.html
	$(BIN)/sphinx-build -W --keep-going -n -q docs build/docs

lint: style types ## check style and types

style: $(INSTALLED)
	$(BIN)/ruff check
	$(BIN)/ruff format --check

types: $(INSTALLED)
	$(BIN)/mypy

format: $(INSTALLED) ## rewrite the code in the project's style
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

release: $(INSTALLED) ## wheel, sdist, bill of materials and checksums, in dist
	$(BIN)/python tools/licences.py --check
	rm -rf build dist
	SOURCE_DATE_EPOCH=$$(git log -1 --format=%ct) $(BIN)/python -m build --no-isolation
	$(BIN)/python tools/sbom.py > dist/g3nn.cdx.json
	cd dist && sha256sum * > SHA256SUMS

lock: $(INSTALLED) ## requirements.lock from constraints.txt
	$(PIP_INSTALL) uv
	PATH="$(abspath $(BIN)):$$PATH" $(BIN)/python tools/lock.py

clean: ## remove build products and caches; keeps .venv
	rm -rf build dist .mypy_cache .pytest_cache .ruff_cache .hypothesis .coverage src/*.egg-info
	find src tests benchmarks examples \( -name __pycache__ -o -name '*.nb[ic]' \) -prune -exec rm -rf {} + 2>/dev/null || true

# The build tool is pinned in the constraints too, so builds are not isolated.
PIP_INSTALL := $(BIN)/python -m pip install --disable-pip-version-check --no-compile --quiet -c constraints.txt

$(CORE): pyproject.toml constraints.txt | $(BIN)/python
	$(PIP_INSTALL) setuptools
	$(PIP_INSTALL) --no-build-isolation -e .
	touch $@

# It only saves time, so nothing depends on how it ends.
$(WARM): $(CORE)
	-OMP_NUM_THREADS=1 NUMBA_NUM_THREADS=1 $(BIN)/python tools/warm.py
	touch $@

$(INSTALLED): $(CORE)
	$(PIP_INSTALL) --no-build-isolation -e '.[dev]'
	touch $@

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)
