# The commands of the project: `make help` lists them.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
WORKERS ?= 4
LOCKED := --universal --python-version 3.11 --generate-hashes --no-header --no-annotate --quiet

# what Python compiles, and pytest rewrites, is kept: the tests start hundreds of processes
export PYTHONDONTWRITEBYTECODE :=

.DEFAULT_GOAL := help
.PHONY: help setup lock demo test test-all test-dates check audit bench fuzz e2e assets ecosystem kafka wheel krew manifests clean

help: ## list the commands
	@awk -F ':.*## ' '/^[a-z][a-z0-9-]*:.*## / {printf "  make %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: $(READY) ## make .venv and install what requirements.lock names, by hash

$(READY): requirements.lock pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "podscaler needs Python 3.11 or newer: make PYTHON=python3.12 ...")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	$(BIN)/python -m compileall -q src
	touch $(READY)

demo: $(READY) ## watch a web service being scaled up and down, with the reasons (about two minutes)
	$(BIN)/podscaler demo

test: $(READY) ## the tests that need no special machine, without those that are marked slow
	$(BIN)/python -m pytest -n $(WORKERS) --dist loadfile -m "not real and not slow" tests

test-all: $(READY) ## the others that need no special machine
	$(BIN)/python -m pytest -n $(WORKERS) --dist loadfile -m "slow and not real" tests

check: $(READY) ## lint, types, layers, size budgets, class names
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python tools/size_budgets.py src tests benchmarks tools
	$(BIN)/python tools/class_names.py src CONTRIBUTING.md

kafka: ## a Kafka broker for the tests, from Maven Central, into a cache (needs Maven)
	mvn -q -B -f tests/contract/kafka_broker.xml dependency:copy-dependencies -DoutputDirectory=$(HOME)/.cache/podscaler/kafka

audit: $(READY) ## known vulnerabilities of the locked dependencies (asks PyPI; fails where it has no answer)
	set -e; for lock in requirements.lock deploy/requirements.lock deploy/build.lock; do \
	  $(BIN)/pip-audit --strict --require-hashes --disable-pip --progress-spinner off -r $$lock || { \
	    echo "$$lock: not found free of known vulnerabilities: there are some, or PyPI's service did not answer" >&2; exit 1; }; \
	done

bench: $(READY) ## the benchmarks, as tables
	$(BIN)/python -m benchmarks

fuzz: export FUZZ_OPERATIONS := $(OPERATIONS)
fuzz: export FUZZ_EXAMPLES := $(or $(EXAMPLES),2000)
fuzz: $(READY) ## 2,000 odd requests of each operation of the API (over an hour; OPERATIONS=regex, SEED=number)
	seed=$${SEED:-$$(date +%s)}; echo "SEED=$$seed"; $(BIN)/python -m pytest -q -n 2 --hypothesis-seed=$$seed tests/fuzz

test-dates: $(READY) ## the quicker tests on other days, in other time zones and locales (needs a C compiler)
	$(BIN)/python tools/other_dates.py

e2e: export MAY_SKIP_DATES := 1
e2e: $(READY) test-dates ## the end-to-end tests alone, with a minute of kill -9 under load
	PODSCALER_CHURN_S=60 $(BIN)/python -m pytest -n 2 --dist loadfile tests/e2e tests/conformance/test_kubectl_transcripts.py

.PHONY: upstream-e2e
upstream-e2e: $(READY) ## Kubernetes' own end-to-end tests of autoscaling against `up` (hours; FOCUS=regex, CONTROLLER=ours|upstream)
	$(BIN)/python tools/upstream_e2e.py $(if $(FOCUS),--focus '$(FOCUS)') $(addprefix --controller ,$(CONTROLLER))

soak: $(READY) ## 2,000 autoscalers under faults for SOAK_MINUTES (30), then ten minutes of churn on both control planes
	$(BIN)/python -m benchmarks.soak
	CHURN_S=600 $(BIN)/python -m pytest -n 2 --dist load tests/e2e/planes/test_planes_churn.py

assets: ## build etcd, the real control plane, kubectl and client-go's informers once into a cache (needs Go; minutes)
	$(PYTHON) tools/build_assets.py

ecosystem: ## build KEDA, Argo Rollouts, kube-state-metrics and VPA's recommender once into the same cache (needs Go; some ten minutes)
	$(PYTHON) tools/build_assets.py ecosystem

lock: ## renew requirements.lock and those of the image from pyproject.toml (needs uv)
	uv pip compile pyproject.toml --group dev $(LOCKED) -o requirements.lock
	uv pip compile pyproject.toml --extra tracing --extra sources $(LOCKED) -c requirements.lock -o deploy/requirements.lock
	echo hatchling | uv pip compile - $(LOCKED) -c requirements.lock -o deploy/build.lock

wheel: $(READY) ## build the wheel and its bill of materials (CycloneDX) into dist/
	$(BIN)/python -m hatchling build --target wheel --directory dist
	$(BIN)/python tools/sbom.py dist

krew: wheel ## the kubectl plugin for krew: archive and manifest into dist/ (RELEASE_URL=https://...)
	$(BIN)/python tools/krew_archive.py dist $(or $(RELEASE_URL),$(error RELEASE_URL=https://... is the address of the release's files))

manifests: $(READY) ## renew what deploy/ holds twice from the Helm chart (needs make assets)
	$(BIN)/python tools/grafana_boards.py
	$(BIN)/python tools/deploy_manifests.py

clean: ## remove .venv and caches
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis dist build
