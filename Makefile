# Everything is made inside this checkout: .venv and var.
PYTHON ?= $(shell command -v python3.11 || command -v python3)
PROGRAMMES ?= opal itms
WEEKS ?= 3
FIRST_WEEK ?=
PORT ?= 8080
YEARS ?= 1000
OPAL_RELEASE ?= $(wildcard ../shared/data/opal_2016_release)
PATRONAGE ?= $(wildcard ../shared/data/opal_patronage)
REAL_DATA ?= $(wildcard ../shared/data)
METRO ?= $(wildcard ../shared/data/bangalore_metro/station-hourly.csv.gz)

VENV := .venv
BIN := $(VENV)/bin
EDITABLE := -e . $(foreach extension,$(wildcard extensions/*),-e $(extension))
INSTALLED := $(VENV)/.installed
RELEASE = $(BIN)/python -m turnstile_native.weekly_release \
	$(PROGRAMMES:%=--programme %) $(FIRST_WEEK:%=--first-week %) --weeks $(WEEKS) --port $(PORT)

# Each step of a week and each test of a command is a process of its own: without compiled modules
# it would spend three times its CPU on compiling the same libraries anew.
unexport PYTHONDONTWRITEBYTECODE
# As the product has it: benchmarks import NumPy first, and two threads would wait for each other.
export OPENBLAS_NUM_THREADS ?= 1

# The tests of people at a real Airflow: two of its kind at once, and the tests of one in their order.
SUITE_operations := -n 2 --dist loadfile tests/dags tests/browser

.DEFAULT_GOAL := help
.PHONY: help env env-providers release ui test test-core test-long test-mutants compose-test check checks bench simulate bench-peers bench-utility bench-assessment \
	lock sbom audit clean

help: ## this list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 16

env: $(INSTALLED) ## .venv with everything in requirements.lock

# uv installs in seconds what takes pip minutes. It comes from the lock itself, hashes and all;
# where it does not run, pip does its work. --no-deps: the lock is complete (docs/adr/0002).
$(INSTALLED): requirements.lock pyproject.toml $(wildcard extensions/*/pyproject.toml)
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	awk '/^uv==/ {inside=1} inside {print} inside && !/\\$$/ {exit}' requirements.lock > $(VENV)/uv.lock
	if $(BIN)/python -m pip install --quiet --no-deps --require-hashes -r $(VENV)/uv.lock \
		&& $(BIN)/uv --version; \
	then $(BIN)/uv pip install --python $(BIN)/python --no-deps --require-hashes -r requirements.lock; \
	else $(BIN)/python -m pip install --no-deps --require-hashes -r requirements.lock; fi
	$(BIN)/python -m pip install --quiet --no-deps --no-build-isolation $(EDITABLE)
	touch $@

release: env ## three successive weeks of both programmes through Airflow (PROGRAMMES, WEEKS, FIRST_WEEK, PORT)
	@$(RELEASE)

ui: env ## the same, and Airflow stays until Ctrl-C
	@$(RELEASE) --stay

test: env ## the tests, without the long ones
	$(BIN)/python -m pytest -m "not long" -n 2 --dist loadfile

test-long: env ## crash storms, full stack, fuzzing; SUITE=operations: backfills, approvals, browsers alone
	$(BIN)/python -m pytest -m long --durations=10 $(if $(SUITE),$(SUITE_$(SUITE)))

test-core: env ## the core's tests without extensions (but samples, which make the rows of tests)
	$(BIN)/python tests/support/core_alone.py .venv-core samples
	.venv-core/bin/python -m pytest -m "not long" -n 2 --dist loadfile

test-mutants: env ## small mistakes in what the promise rests on: how many the tests see (MUTANTS="--seed 7 --sample 40")
	$(BIN)/python .ci/mutants.py $(MUTANTS)

compose-test: env ## docker-compose.yaml built, started, destroyed, recovered, upgraded, killed (COMPOSE_TEST=--kills 20)
	$(BIN)/python tests/containers/compose_test.py $(COMPOSE_TEST)

check: env ## lint, types, import rules, unreached definitions, size of rooms, trusted core, what is decided once; says how many seconds it took
	@began=$$(date +%s); $(MAKE) --no-print-directory checks && echo "$$(($$(date +%s) - began)) seconds"

checks: env
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy --strict
	MYPYPATH=include:plugins $(BIN)/mypy --strict $(wildcard plugins/*.py) $(wildcard dags/*.py)
	$(BIN)/lint-imports
	$(BIN)/python .ci/unreached_definitions.py
	$(BIN)/python .ci/code_lines.py
	$(BIN)/python .ci/trusted_core.py
	$(BIN)/python .ci/measures.py
	$(BIN)/python .ci/one_of_each.py

bench: env ## CPU of every step of a week beside the bare work on the same files, and Airflow's part; fails above a limit
	$(BIN)/python benchmarks/airflow_week.py; airflow=$$?; \
		$(BIN)/python benchmarks/week.py --format csv --rows 20000000; csv=$$?; \
		$(BIN)/python benchmarks/week.py && exit $$((airflow + csv))

simulate: env ## a thousand simulated years with faults (YEARS=1000); --planted, --seed N: SIMULATE="--planted"
	$(BIN)/python -W ignore benchmarks/simulated_years.py $(if $(SIMULATE),$(SIMULATE),--years $(YEARS))

env-providers: env ## .venv-providers: Airflow's providers of SFTP, S3, GCS and Azure, and two servers, for tests of landing files
	$(PYTHON) -m venv .venv-providers
	echo $(CURDIR)/$(VENV)/lib/python3.11/site-packages > .venv-providers/lib/python3.11/site-packages/ours.pth
	$(BIN)/uv pip install --python .venv-providers/bin/python "apache-airflow==$$($(BIN)/python -c 'import importlib.metadata as m; print(m.version("apache-airflow"))')" \
		apache-airflow-providers-sftp apache-airflow-providers-amazon apache-airflow-providers-google \
		apache-airflow-providers-microsoft-azure gcp-storage-emulator
	npm install --silent --prefix .venv-providers azurite || echo "no Azurite: its test is skipped"

bench-peers: env ## one marginal by OpenDP's frames, Tumult, PipelineDP, smartnoise-sql, each in an environment of its own
	$(BIN)/python benchmarks/against_peers.py

bench-assessment: env ## faults put into releases: caught or missed, and by which gate
	$(BIN)/python benchmarks/assessment.py faults

bench-utility: env ## error of the published tables at equal privacy
	$(BIN)/python benchmarks/utility.py
	$(BIN)/python benchmarks/utility_estimates.py $(OPAL_RELEASE:%=--opal-release %) \
		$(PATRONAGE:%=--patronage %)
	$(BIN)/python benchmarks/utility_estimates_year.py
	$(if $(OPAL_RELEASE),$(BIN)/python benchmarks/coverage_by_size.py $(OPAL_RELEASE) $(METRO))
	$(if $(OPAL_RELEASE),$(BIN)/python benchmarks/sums_of_places.py $(OPAL_RELEASE) $(METRO))
	$(BIN)/python benchmarks/small_modes.py
	$(BIN)/python benchmarks/flows.py
	$(BIN)/python benchmarks/utility_year.py $(OPAL_RELEASE:%=--opal-release %)
	$(BIN)/python benchmarks/utility_itms.py
	$(BIN)/python benchmarks/utility_itms_estimates.py
	$(BIN)/python benchmarks/utility_real_buses.py $(REAL_DATA:%=--data %)
	$(BIN)/python benchmarks/itms_resolutions.py

LOCKED = $(BIN)/uv pip compile --quiet --universal --python-version 3.11 \
	--override requirements.overrides --generate-hashes --no-annotate --no-header \
	--no-emit-index-url --no-emit-find-links

lock: env ## both locks anew: requirements.lock (all), requirements-runtime.lock (what the image runs)
	$(LOCKED) requirements-dev.in -o requirements.lock
	$(LOCKED) --constraint requirements.lock requirements.in -o requirements-runtime.lock

sbom: env ## the image's packages with their hashes as CycloneDX, on standard output; needs no network
	@$(BIN)/python .ci/bill_of_materials.py

audit: env ## known vulnerabilities of the image's packages, from a copy of a database (ADVISORIES=FOLDER)
	@$(BIN)/python .ci/audit_dependencies.py $(ADVISORIES)

clean: ## remove what these commands made: environment, zones, ledger, Airflow
	rm -rf $(VENV) var .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	find include tests dags plugins benchmarks -name __pycache__ -prune -exec rm -rf {} +
	rm -rf include/turnstile.egg-info extensions/*/*.egg-info
