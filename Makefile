# Every target makes .venv itself, from the hash-pinned lists in requirements/. Needed: make, and Python 3.11 or newer;
# for the studio's page npm, too.

# The first interpreter that is new enough; override with `make PYTHON=/path/to/python test`.
PYTHON ?= $(shell for python in python3 python3.14 python3.13 python3.12 python3.11; do \
	$$python -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$python && break; done)

VENV := .venv
BIN := $(VENV)/bin
# One stamp per content of the lists: a changed list installs again, an unchanged one costs nothing, and a .venv
# that was made in another way is completed, never deleted.
STAMP := $(VENV)/.installed-$(shell cat requirements/dev.txt pyproject.toml | cksum | cut -d ' ' -f 1)
UV := $(shell command -v uv 2>/dev/null)
NPM := $(shell command -v npm 2>/dev/null)
# At a terminal an installation says how far it is; it takes half a minute.
QUIET := $(shell test -t 2 || echo --quiet)
PAGE := app/studio/page

# More arguments for the test runner: make test PYTEST_ARGS='-k certs'
PYTEST_ARGS ?=
# Each process of the tests on a control plane has a control plane of its own, of about 2 GiB; most of its time it
# waits. tests/e2e/conftest.py says which tests run in one process, and which come first.
E2E_PROCESSES ?= -n 4 --dist loadscope --no-loadscope-reorder
# make e2e KUBERNETES=1.30.14 runs them on the API server, controllers and scheduler of another release.
KUBERNETES ?= $(MODELHOOKS_E2E_KUBERNETES)
# They replay what Metacontroller did within seconds, so nothing runs beside them.
TRACES := tests/e2e/test_traces.py
export MODELHOOKS_E2E_KUBERNETES := $(KUBERNETES)
# Tests start a hundred processes; without bytecode each of them compiles everything that it imports.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help demo test unit browser e2e node-test world-test engines-check mutants lint types studio format generate generated docs bench \
	bench-cluster soak wheel lock clean distclean venv

help: ## list the targets
	@sed -n 's/^\([a-z0-9-]*\):[^#]*## /\1|/p' $(MAKEFILE_LIST) | while IFS='|' read -r name text; do \
		printf '  make %-13s %s\n' "$$name" "$$text"; done

demo: $(STAMP) ## run the service here and drive the examples through it; no cluster, no Go, no Docker
	$(BIN)/modelhooks demo examples manifests/llmaz-runtimes

test: unit browser ## all tests; those that need Go, npm or Chromium where they are at hand
	$(BIN)/python -m tests.e2e.binaries
	$(BIN)/python -m pytest -m e2e $(E2E_PROCESSES) --ignore=$(TRACES) tests/e2e $(PYTEST_ARGS)
	$(BIN)/python -m pytest -m e2e $(TRACES) $(PYTEST_ARGS)

# make unit COVERAGE=1 also measures which lines of app/ the tests reach; below the floor in pyproject.toml it fails.
unit: $(STAMP) ## the tests that need no cluster
	$(BIN)/python -m pytest -m 'not e2e and not browser and not node' -n auto --dist worksteal $(if $(COVERAGE),--cov=app --cov-report=) $(PYTEST_ARGS)

# MODELHOOKS_BROWSER=required makes what is missing a failure.
browser: $(STAMP) $(if $(NPM),studio) ## the tests of the studio's page, in Chromium
	$(BIN)/python -m pytest -m browser -n 2 --dist worksteal tests/studio/browser $(PYTEST_ARGS)

e2e: $(STAMP) ## only the tests on a real control plane; they must run
	MODELHOOKS_E2E=required $(BIN)/python -m tests.e2e.binaries
	MODELHOOKS_E2E=required $(BIN)/python -m pytest -m e2e $(E2E_PROCESSES) --ignore=$(TRACES) tests/e2e $(PYTEST_ARGS)
	MODELHOOKS_E2E=required $(BIN)/python -m pytest -m e2e $(TRACES) $(PYTEST_ARGS)

node-test: $(STAMP) ## the tests on a node: kubelet, containerd, real images; as root on Linux, or it says why not
	$(BIN)/python -m tests.node -m 'node and not world' $(PYTEST_ARGS)

world-test: $(STAMP) ## the tests beside real controllers and gateways of other projects; they must run
	$(BIN)/python -m tests.world.programs
	MODELHOOKS_E2E=required MODELHOOKS_WORLD=required $(BIN)/python -m pytest -m 'e2e and world' tests/world $(PYTEST_ARGS)
	MODELHOOKS_WORLD=required $(BIN)/python -m tests.node -m world $(PYTEST_ARGS)

MUTANTS ?= 100
SEED ?= 1
ENGINES ?= build/engines
engines-check: $(STAMP) ## the corpus of command lines against the engines' own parsers, about 700 MB of packages
	mkdir -p $(ENGINES)
	for package in vllm==0.20.0 vllm==0.33.0 sglang==0.5.15.post1 sglang==0.5.23; do \
	  $(BIN)/python -m pip download --quiet --no-deps --python-version 3.11 --only-binary :all: --dest $(ENGINES) $$package || exit 1; done
	test -d $(ENGINES)/llamacpp || $(BIN)/python -c "from pathlib import Path; from tests.node.debian import unpack; \
	  work = Path('$(ENGINES)/apt'); work.mkdir(exist_ok=True); unpack('sid', ['llama.cpp-tools'], Path('$(ENGINES)/llamacpp'), work.resolve())"
	$(BIN)/python -m tools.enginescheck $(ENGINES)/*.whl $(ENGINES)/llamacpp

# make mutants MUTANTS=300 SEED=2 changes another sample; all are about 17,000, which take hours. See CONTRIBUTING.
mutants: $(STAMP) ## whether the tests notice changes of the code: a random sample of them, and which nobody notices
	$(BIN)/python -m tools.mutants build/mutants --sample $(MUTANTS) --seed $(SEED)

lint: $(STAMP) generated $(if $(NPM),types) ## style, types, layers, and generated files that are up to date
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo --no-cache

types: $(PAGE)/node_modules/.package-lock.json
	cd $(PAGE) && npm run --silent check

studio: app/studio/static/index.html ## the page of `modelhooks studio`, in app/studio/static (needs npm)

app/studio/static/index.html: $(PAGE)/node_modules/.package-lock.json $(PAGE)/build.mjs $(wildcard $(PAGE)/src/*)
	cd $(PAGE) && npm run --silent build

# No package runs anything while it is installed.
$(PAGE)/node_modules/.package-lock.json: $(PAGE)/package.json $(PAGE)/package-lock.json
	@test -n '$(NPM)' || { echo 'make studio needs npm (Node.js 18 or newer)' >&2; exit 1; }
	cd $(PAGE) && npm ci --ignore-scripts --no-audit --no-fund --loglevel=error
	@touch $@

generated: $(STAMP)
	$(BIN)/python -m tools.generate --check

format: $(STAMP) ## let ruff correct what it can
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

generate: $(STAMP) ## write what comes from the types: crds/, metacontroller/, docs/fields/, the webhook configuration
	$(BIN)/python -m tools.generate

docs: $(STAMP) ## the documentation as a site, in build/site; a warning is an error
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet

bench: $(STAMP) ## measure against a bare ASGI echo
	$(BIN)/python -m tests.bench

# make bench-cluster N=500,1000,2000 M=100 BENCH_ARGS='--family llmkube'
N ?= 500
M ?= 1
BENCH_ARGS ?=
bench-cluster: $(STAMP) ## many services on a real control plane, beside a hook that costs nothing; minutes for each number
	$(BIN)/python -m tests.e2e.binaries
	$(BIN)/python -m tests.bench.cluster $(N) --namespaces $(M) $(BENCH_ARGS)

soak: $(STAMP) ## the loads of an ordinary and of a bad day, for ten minutes; every answer is compared
	$(BIN)/python -m tests.bench.soak

wheel: $(STAMP) studio ## the package as a wheel with the studio's page, in dist/
	$(BIN)/python -m pip wheel --quiet --no-deps --no-build-isolation --wheel-dir dist .

lock: ## resolve the dependencies of pyproject.toml anew (needs uv)
	@test -n '$(UV)' || { echo 'make lock needs uv (pip install uv)' >&2; exit 1; }
	$(LOCK) pyproject.toml -o requirements/runtime.txt
	$(LOCK) pyproject.toml --extra cluster --group dev -c requirements/runtime.txt -o requirements/dev.txt
	$(LOCK) --group build -c requirements/dev.txt -o requirements/build.txt
	$(LOCK) --group node -o requirements/node.txt
	$(LOCK) --group mutants -c requirements/dev.txt -o requirements/mutants.txt

# The lists hold for every platform, and name no index.
LOCK := uv pip compile --quiet --upgrade --universal --python-version 3.11 --generate-hashes \
	--no-emit-index-url --no-emit-find-links --custom-compile-command 'make lock'

clean: ## remove what tools and tests left, and end nodes of this tree's tests
	@test ! -d build/node || $(or $(PYTHON),python3) tests/node/clean.py build/node
	rm -rf build dist .mypy_cache .pytest_cache .ruff_cache .hypothesis app/studio/static
	find app tests -name __pycache__ -type d -prune -exec rm -rf {} +

distclean: clean ## clean, and remove .venv and what npm installed
	rm -rf $(VENV) $(PAGE)/node_modules

venv: $(STAMP) ## only make .venv

ifneq ($(UV),)
$(STAMP):
	@test -x $(BIN)/python || $(UV) venv --quiet --python '$(or $(PYTHON),3.11)' $(VENV)
	@echo 'installing the pinned packages into $(VENV)'
	@$(UV) pip install $(QUIET) --python $(BIN)/python --require-hashes -r requirements/dev.txt
	@$(UV) pip install --quiet --python $(BIN)/python --no-deps --no-build-isolation -e .
	@rm -f $(VENV)/.installed-* && touch $@
else
$(STAMP):
	@test -x $(BIN)/python || test -n '$(PYTHON)' || { echo 'Python 3.11 or newer is needed; set PYTHON=...' >&2; exit 1; }
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV) || { rm -rf $(VENV); \
		echo 'No virtual environment could be made. On Debian and Ubuntu: apt-get install python3-venv' >&2; exit 1; }
	@$(BIN)/python -m pip --version >/dev/null 2>&1 || $(BIN)/python -m ensurepip
	@echo 'installing the pinned packages into $(VENV)'
	@$(BIN)/python -m pip install $(QUIET) --disable-pip-version-check --no-deps --require-hashes -r requirements/dev.txt
	@PYTHONWARNINGS=ignore $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	@rm -f $(VENV)/.installed-* && touch $@
endif
