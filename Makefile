# Every command of the project. `make help` prints them.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
ARGS ?=

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

help: ## Print this list.
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-14s %s\n", $$1, $$2}'

demo: $(STAMP) controlplane ## Show the whole life of an incident. ARGS="--yes --json FILE" asks nothing and writes FILE.
	$(BIN)/praxis demo $(ARGS)

test: check packages controlplane ## Run everything: lint, types, generated files, then all tests. ARGS go to pytest.
	$(BIN)/python -m pytest $(ARGS)

chaos: $(STAMP) controlplane ## Kill, break, cancel and pause the controller wherever it waits in Executing. ARGS="--runs N --seed S".
	PYTHONPATH=operator:. $(BIN)/python -m tests.chaos $(ARGS)

model: $(STAMP) ## Explore what two operators and all faults can do, in every order. ARGS="--faults 3 --kills 2" goes further.
	$(BIN)/python -m tests.model $(ARGS)

faults: $(STAMP) controlplane ## Spoil what passes between operators and the API server. ARGS="--runs N --seed S".
	PYTHONPATH=operator:. $(BIN)/python -m tests.faults $(ARGS)

check: $(STAMP) ## Lint, types, import contracts, generated files.
	$(BIN)/ruff format --check operator tests hack
	$(BIN)/ruff check operator tests hack
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo
	$(BIN)/praxis render all --check

mutants: $(STAMP) controlplane ## Take out each guard of invariants 1 to 6, and name the test that notices. ARGS="-k NAME" chooses.
	$(BIN)/python -m tests.mutants $(ARGS)

crds: $(STAMP) ## Render crds/, manifests/, the README diagram and docs/configuration.md from the code.
	$(BIN)/praxis render all

format: $(STAMP) ## Format the code and fix what can be fixed.
	$(BIN)/ruff format operator tests hack
	$(BIN)/ruff check --fix operator tests hack

controlplane: $(STAMP) ## Build kube-apiserver, etcd and kubectl into the cache; 9 minutes the first time.
	$(BIN)/python -m praxis.controlplane.build

packages: ## Install the Debian packages that the tests use: Alertmanager and Prometheus.
	hack/debian-packages

lock: $(STAMP) ## Resolve the dependencies anew into requirements/.
	$(BIN)/uv pip compile -q --upgrade --generate-hashes --no-header --no-emit-index-url --python-version 3.11 pyproject.toml -o requirements/runtime.txt
	$(BIN)/uv pip compile -q --upgrade --generate-hashes --no-header --no-emit-index-url --python-version 3.11 --extra dev pyproject.toml -o requirements/dev.txt

install: $(STAMP) ## Install the project and its tools into .venv.

$(STAMP): requirements/dev.txt pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit("PRAXIS needs Python 3.11 or newer; set PYTHON=/path/to/python3.11") if sys.version_info < (3, 11) else None'
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@echo "installing into $(VENV) …"
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/dev.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-build-isolation --no-deps -e .
	@touch $@

clean: ## Remove the environment and what tools left in the tree; the cache of binaries stays.
	rm -rf $(VENV) .mypy_cache .pytest_cache .ruff_cache .hypothesis .import_linter_cache build dist

.PHONY: help demo test chaos model faults mutants check crds format controlplane packages lock install clean
