# One command for each thing that people do here; `make help` lists them. Everything lives in .venv and build/.

PYTHON ?= python3.11
VENV := .venv
BIN := $(VENV)/bin
RUN := $(BIN)/python
SUFFIX := $(shell $(PYTHON) -c 'import sysconfig; print(sysconfig.get_config_var("EXT_SUFFIX"))')
ifeq ($(SUFFIX),)
$(error $(PYTHON) does not run; ksched needs Python 3.11 or later with its headers: make PYTHON=/path/to/python)
endif

NATIVE := ksched/_core$(SUFFIX)
NATIVE_SOURCES := setup.py ksched/_core.pyx $(wildcard ksched/_kernels/*)
DEBUG_TREE := build/debug
DEBUG_TESTS := tests/cache tests/plugins

DEMO_NODES ?= 500
DEMO_PODS ?= 3000
DEMO_SEED ?= 1

BENCH ?= medium

.PHONY: help setup build demo test test-plain test-real test-debug soak bench bench-kernels lint format check clean

help: ## this list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed 's/:[^#]*##/#/' | column -t -s '#'

setup: $(VENV)/.installed ## a virtual environment in .venv with ksched and all that its development needs

build: $(NATIVE) ## the native module, where its sources have changed

demo: build ## schedule a made-up cluster on this machine: make demo DEMO_NODES=5000 DEMO_PODS=10000
	$(RUN) -m ksched demo --nodes $(DEMO_NODES) --pods $(DEMO_PODS) --seed $(DEMO_SEED) --json demo.json

test: build ## all tests but the soak
	$(RUN) -m pytest

test-plain: build ## all tests, with the plugins' plain Python forms instead of the native ones
	KSCHED_FORMS=plain $(RUN) -m pytest

test-real: build ## the tests that run on a real etcd and kube-apiserver: make test-real KUBEBUILDER_ASSETS=folder
	$(RUN) -m pytest -m real

test-debug: $(DEBUG_TREE)/.built ## the tests of the native module, built with bounds checks in a tree of its own
	rm -rf $(DEBUG_TREE)/tests && cp -R tests $(DEBUG_TREE)/tests
	cd $(DEBUG_TREE) && $(CURDIR)/$(RUN) -m pytest -p no:cacheprovider $(DEBUG_TESTS)

soak: build ## the slow and full-size tests
	$(RUN) -m pytest -m soak

bench: build ## the project's own workloads: make bench BENCH=small for seconds, medium for results
	$(RUN) -m benchmarks.scheduler_perf --config benchmarks/workloads/$(BENCH) --label-filter $(BENCH)

bench-kernels: build ## the native module's functions and the engine's cycle, timed at growing sizes
	$(RUN) -m benchmarks.kernels

lint: build ## style, types, layers, and the native module's stub
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/stubtest --allowlist tests/project/stubtest.allowlist ksched._core

format: setup ## let the tools lay out the source
	$(BIN)/ruff check --fix-only --quiet
	$(BIN)/ruff format --quiet

check: format lint test ## before every change is handed in

clean: ## away with everything that was built
	rm -rf $(VENV) build dist *.egg-info ksched/_core.c ksched/_core*.so .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis demo.json
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(VENV)/.installed: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check --editable '.[dev]'
	@touch $@

# Installing builds it too, so a first build is often there already. Otherwise all of it is built anew, also when only setup.py with
# its compiler options has changed, of which Cython takes no notice.
$(NATIVE): $(NATIVE_SOURCES) | $(VENV)/.installed
	@if ! test -e $@ || test -n "$$(find $(NATIVE_SOURCES) -newer $@)"; then \
	    echo 'building $@'; \
	    CYTHON_FORCE_REGEN=1 $(RUN) setup.py --quiet build_ext --inplace --force; \
	fi
	@touch $@

# A copy of the package, because the native module is built in place and the checked one must not take the other's.
$(DEBUG_TREE)/.built: $(NATIVE_SOURCES) pyproject.toml $(shell find ksched -name '*.py') | $(VENV)/.installed
	rm -rf $(DEBUG_TREE) && mkdir -p $(DEBUG_TREE)
	cp -R ksched setup.py pyproject.toml README.md LICENSE $(DEBUG_TREE)/
	rm -f $(DEBUG_TREE)/ksched/_core.c $(DEBUG_TREE)/ksched/_core*.so
	cd $(DEBUG_TREE) && KSCHED_DEBUG=1 $(CURDIR)/$(RUN) setup.py --quiet build_ext --inplace
	@touch $@
