# MySQL Databus. `make help` lists the targets. Targets that need the virtual environment set it up first.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
export UV_PYTHON_DOWNLOADS := never
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
UV := $(BIN)/uv
MEMBERS := $(wildcard libs/* services/*)
BENCH := PYTHONPATH=tests $(BIN)/python tests/bench
IMAGES := reader publisher dump-api spark-sink cli
PINNED := $(IMAGES:%=build/sbom/%.py)
export PYSPARK_PYTHON := $(CURDIR)/$(BIN)/python
export PYSPARK_DRIVER_PYTHON := $(PYSPARK_PYTHON)

.PHONY: help setup demo up down test test-slow test-lake test-iceberg lint types fmt test-cluster compose-test chart-test fuzz model faults faults-lake drill golden docs site bench bench-decode bench-select bench-dump bench-downloads bench-formats bench-client bench-pipeline bench-peers bench-scale bench-backfill bench-doubts bench-spark bench-spark-tables bench-spark-merge bench-spark-workers images sbom audit chart lock clean

##@ Main
help: ## List the targets
	@awk 'BEGIN {FS = ":.*## "} /^##@/ {printf "\n%s\n", substr($$0, 5)} /^[a-z-]+:.*## / {printf "  %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

demo: setup ## Run the complete pipeline on a real MariaDB, and compare the lake with it row by row
	$(BIN)/devstack demo

up: setup ## Start servers and services, leave them running, print their URLs
	$(BIN)/devstack up --services mariadb redis kafka

down: ## Stop everything that was started here
	@if [[ -x $(BIN)/devstack ]]; then $(BIN)/devstack down; fi

test: setup ## Run the tests on real servers, but those marked `slow` or `lake`, in four processes (T=path runs one)
	$(BIN)/pytest $(or $(T),-m "not lake and not slow" -n 4 --dist loadfile --no-loadscope-reorder --max-worker-restart 0)

test-slow: setup ## Run slow tests: servers that restart, wheels in environments of their own, long outages, a lake of 200 tables
	$(BIN)/pytest -m slow -o faulthandler_timeout=1200

test-lake: setup ## Run slow tests and rare cases of the lake: types, formats, history, statements, doubts, functions for Spark jobs
	$(BIN)/pytest -m lake tests/integration

test-iceberg: setup ## Run the sink's tests with a lake in Iceberg; `make test` runs most of them only in Delta
	$(BIN)/pytest --table-format iceberg tests/integration/test_spark_{loads,sink,statements,doubts,additions,commands}.py

##@ Development
setup: $(VENV)/installed ## Install everything into .venv from the locked requirements

lint: setup ## Check style
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: setup ## Check types, strictly
	$(BIN)/mypy

fmt: setup ## Format the code, and fix what the linter can fix
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

images: ## Build the images of the services and of the command `databus`
	for image in $(IMAGES); do docker build --build-arg SERVICE=$$image --build-arg VERSION=$(VERSION) -t databus-$$image:$(VERSION) .; done

sbom: $(PINNED) ## List the Python packages of each image in CycloneDX: build/sbom/IMAGE.cdx.json
	for image in $(IMAGES); do $(UV) export --quiet --script build/sbom/$$image.py --format cyclonedx1.5 -o build/sbom/$$image.cdx.json; done

audit: $(PINNED) ## Look for known vulnerabilities of the images' Python packages in the database of osv.dev
	failed=0; for image in $(IMAGES); do echo "$$image:"; $(UV) audit --preview-features audit-command --script build/sbom/$$image.py $(ARGS) || failed=1; done; exit $$failed

VERSION = $(shell sed -n 's/^version = "\(.*\)"/\1/p' pyproject.toml)

chart: ## Lint, render and test the chart with Helm 4 and 3, and validate what it makes (HELMS=helm for one Helm)
	@for tool in $(HELMS) helm-docs $(firstword $(KUBECONFORM)) $(firstword $(HELM_UNITTEST)); do command -v $$tool >/dev/null || \
	  { echo "make chart: $$tool is not on PATH; it needs helm (4), helm3, kubeconform, helm-unittest and helm-docs" >&2; exit 1; }; done
	for helm in $(HELMS); do for values in charts/databus/ci/*.yaml; do \
	  $$helm lint --strict charts/databus -f $$values; \
	  $$helm template databus charts/databus -f $$values | $(KUBECONFORM) $(KUBECONFORM_SKIP); done; done
	$(HELM_UNITTEST) --strict charts/databus
	helm-docs --chart-search-root charts/databus --dry-run 2>/dev/null | diff charts/databus/README.md - || \
	  { echo "make chart: run helm-docs in charts/databus" >&2; exit 1; }
HELMS ?= helm helm3
HELM_UNITTEST ?= $(or $(shell command -v helm-unittest),helm unittest)
KUBECONFORM ?= kubeconform -strict
# kinds of other projects, of which Kubernetes has no schema
KUBECONFORM_SKIP := -skip HTTPRoute,PodMonitor,PrometheusRule,ServiceMonitor,SparkApplication

test-cluster: setup ## Run the sink on a Spark master with two workers, with a lake in a folder and on S3 (T="-k s3a")
	$(BIN)/pytest tests/cluster $(T)

chart-test: setup ## Install the chart in the cluster of kubectl, break and upgrade it under load, and compare all changes; skipped without one
	$(BIN)/pytest tests/chart -x -o faulthandler_timeout=1800

compose-test: setup ## Run the containers of compose.yaml with a shop under load, twice, and compare the lake; skipped without Docker
	$(BIN)/pytest tests/compose -o faulthandler_timeout=1800

fuzz: setup ## Cut binlog streams at every byte, and decode damaged binlogs for two minutes (ARGS="--seconds 600")
	$(BIN)/pytest tests/unit/binlog -k any_cut --every-cut
	PYTHONPATH=tests $(BIN)/python tests/fuzz/decoder.py $(ARGS)

model: setup ## Search models of the hand-over and of backfills for lost or invented rows (ARGS="--backfill --stories 5000")
	PYTHONPATH=tests $(BIN)/python -m model $(ARGS)

faults: setup ## Inject 100 random faults into a pipeline that loads tables, and check every row in Kafka (ARGS="--faults 20 --seed 7 --server mysql")
	PYTHONPATH=tests $(BIN)/python tests/faults/storm.py $(ARGS)

faults-lake: setup ## Change rows and tables at random while services are killed, and compare the lake (ARGS="--rounds 3 --seed 7 --server mysql --partitions 4 --table-format iceberg --cluster")
	PYTHONPATH=tests $(BIN)/python tests/faults/lake.py $(ARGS)

drill: setup ## Inject the faults of a bad night, and show what an operator sees; takes 20 minutes (ARGS="--only kafka redis", ARGS=--write)
	PYTHONPATH=tests $(BIN)/python -m faults.drill $(ARGS)

golden: setup ## Write new binlogs, and from them the golden files and the guide's examples (ARGS=--keep keeps the binlogs)
	PYTHONPATH=tests $(BIN)/python -m golden.write $(ARGS)

docs: setup ## Write the settings, log events, the REST API and the list of decisions in docs from the code
	PYTHONPATH=tests $(BIN)/python -m reference

site: $(VENV)/site ## Build the documentation as a site that can be searched without a server: build/site/index.html
	$(BIN)/sphinx-build --quiet --fresh-env --fail-on-warning --keep-going --jobs auto --conf-dir docs --doctree-dir build/site.cache . build/site
	@cp build/site/README.html build/site/index.html

bench: bench-decode bench-select bench-dump bench-downloads bench-formats bench-client bench-pipeline bench-backfill bench-doubts bench-spark bench-spark-tables bench-spark-merge bench-spark-workers ## Run all benches but bench-peers and bench-scale (bench-results/)

bench-decode: setup ## Measure the decoder (ARGS="--scale 0.1" for a quick look)
	$(BENCH)/decode.py --memory $(ARGS)

bench-select: setup ## Measure a SELECT of whole tables (ARGS="--scale 0.1" for a quick look)
	$(BENCH)/selects.py $(ARGS)

bench-dump: setup ## Measure dumps beside mariadb-dump | zstd and mydumper (ARGS="--scale 0.1 --runs 1" for a quick look)
	$(BENCH)/dump.py $(ARGS)

bench-formats: setup ## Measure the formats' encoders (ARGS="--runs 1" for a quick look)
	$(BENCH)/formats.py $(ARGS)

bench-client: setup ## Measure the client from Kafka to Python objects and to Arrow (ARGS="--scale 0.1 --runs 1" for a quick look)
	$(BENCH)/client.py $(ARGS)

bench-pipeline: setup ## Measure from the binlog to Kafka (ARGS="--scale 0.1 --runs 1" for a quick look, FORMAT=debezium-json)
	$(BENCH)/pipeline.py $(if $(FORMAT),--format $(FORMAT)) $(ARGS)

bench-peers: setup ## Measure Debezium, Maxwell and canal beside ours; takes over an hour (ARGS="--scale 0.1 --runs 1 --only W1s" for a quick look)
	$(BENCH)/peers.py $(ARGS)

bench-scale: setup ## Measure one, two and four pipelines on one source; takes twenty minutes (ARGS="--scale 0.1 --runs 1" for a quick look)
	$(BENCH)/scale.py $(ARGS)

bench-backfill: setup ## Measure a backfill beside a stream (ARGS="--rows 300000 --runs 1" for a quick look)
	$(BENCH)/backfill.py $(ARGS)

bench-downloads: setup ## Download a file of 1 GB from dump-api 200 times at once (ARGS="--clients 50 --seconds 10" for a quick look)
	$(BENCH)/downloads.py $(ARGS)

bench-doubts: setup ## Measure tables in doubt beside a stream (ARGS="--seconds 6 --runs 1" for a quick look)
	$(BENCH)/doubts.py $(ARGS)

bench-spark: setup ## Measure from Kafka to the lake (ARGS="--scale 0.1 --runs 1" for a quick look)
	$(BENCH)/spark.py $(ARGS)

bench-spark-tables: setup ## Measure small batches of many tables to the lake (ARGS="--tables 1 10 --runs 2 --table-format iceberg")
	$(BENCH)/spark_tables.py $(ARGS)

bench-spark-merge: setup ## Measure a batch that changes rows of a small and of a large mirror (ARGS="--rows 100000 --runs 1" for a quick look)
	$(BENCH)/spark_merge.py $(ARGS)

bench-spark-workers: setup ## Measure the sink on a Spark master with one worker and with two (ARGS="--scale 0.1 --runs 1" for a quick look)
	$(BENCH)/spark_workers.py $(ARGS)

lock: $(VENV)/uv ## Update all dependencies and write the lock files in requirements/
	$(UV) lock --upgrade
	$(UV) export $(EXPORT) --all-packages --all-groups --no-group site -o requirements/dev.txt
	$(UV) export $(EXPORT) --only-group site -o requirements/site.txt
	for image in $(IMAGES); do $(UV) export $(EXPORT) --package databus-$$image --no-dev -o requirements/$$image.txt; done
	$(UV) export $(EXPORT) --only-group build -o requirements/build.txt
EXPORT := --quiet --frozen --no-emit-workspace --no-header --format requirements-txt

clean: down ## Remove the virtual environment, builds and the state of local servers
	rm -rf $(VENV) .devstack .mypy_cache .pytest_cache .ruff_cache bench-results build libs/*/build services/*/build
	find libs services -name '*.egg-info' -prune -exec rm -rf {} +

$(VENV)/uv: requirements/dev.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "make setup: install Python 3.11 or later, or name it: make PYTHON=…" >&2; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { echo "make setup: install Python's venv module (python3-venv)" >&2; exit 1; }
	@printf '#include <Python.h>\n#include <zlib.h>\n#include <charconv>\n' | \
	  g++ -std=c++17 -fsyntax-only -I"$$($(PYTHON) -c 'import sysconfig; print(sysconfig.get_path("include"))')" -x c++ - 2>/dev/null || \
	  { echo "make setup: install a C++17 compiler, Python's and zlib's headers (g++, python3-dev, zlib1g-dev)" >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)
	@awk '/^uv==/ {found = 1; print; next} found && /--hash/ {print; next} found {exit}' requirements/dev.txt >$(VENV)/uv.txt
	$(BIN)/pip install --quiet --disable-pip-version-check --require-hashes -r $(VENV)/uv.txt
	@touch $@

$(VENV)/installed: $(VENV)/uv $(wildcard libs/*/pyproject.toml services/*/pyproject.toml libs/*/setup.py libs/*/src/*/*.pyx libs/*/src/*/*.pxd libs/*/src/*/*.hpp)
	$(UV) pip install --quiet --python $(BIN)/python --require-hashes -r requirements/dev.txt
	$(UV) pip install --quiet --python $(BIN)/python --no-deps --no-build-isolation $(MEMBERS:%=-e ./%)
	@touch $@

# the packages of a lock as the requirements of a script, a form that uv can list and audit
build/sbom/%.py: requirements/%.txt $(VENV)/uv
	@mkdir -p $(@D)
	@{ printf '# /// script\n# requires-python = ">=3.11"\n# dependencies = [\n'; \
	  sed -n 's/ \\$$//; s/^[a-z].*==.*/#   "&",/p' $<; printf '# ]\n# ///\n'; } >$@

$(VENV)/site: $(VENV)/installed requirements/site.txt
	$(UV) pip install --quiet --python $(BIN)/python --require-hashes -r requirements/site.txt
	@touch $@
