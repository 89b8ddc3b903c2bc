# Two commands matter: `make demo` and `make test`. Both set up what they need first.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready

.PHONY: setup demo test tests test-long test-clients test-docker test-install lint unit integration mutants drill soak bench bench-debezium clean

setup: $(READY)

demo: $(READY)
	@PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/cdc-sandbox demo

# With the sum of CPU seconds at the end, of which CONTRIBUTING.md says how many there may be.
test: $(READY)
	@$(BIN)/python -m tests.harness.cpu_seconds $(MAKE) --no-print-directory tests

# Linters use one core for most of their time; make of before 4.0 can't keep the two outputs apart.
tests: $(READY)
	$(MAKE) --jobs 2 $(if $(filter output-sync,$(.FEATURES)),--output-sync=target) lint unit
	$(MAKE) integration

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/shellcheck docker/install.sh

# Compiled tests are kept, also where the environment says not to: to compile them takes each process longer than to
# import them.
unit integration: export PYTHONDONTWRITEBYTECODE :=

unit: $(READY)
	$(BIN)/pytest --numprocesses 2 tests/unit

# One of the three processes has the Spark session for most of the time.
integration: $(READY)
	CDC_REQUIRE_INTEGRATION=1 $(BIN)/pytest --numprocesses 3 --dist loadgroup tests/integration tests/spark

# The tests that are marked `long`, and how many of what the random tests try; CONTRIBUTING.md says what each is. They
# take far longer, and print their seeds.
LONG := CDC_LONG=1 CDC_SEED=$${CDC_SEED:-$$(date +%s)} CDC_KILLS=300 CDC_POINT_KILLS=200 CDC_ROW_FILTER_ROUNDS=60 CDC_NETWORK_ROUNDS=100 CDC_DDL_ROUNDS=7 CDC_RANDOM_TABLES=1000 CDC_RANDOM_KEYS=5000 CDC_NATIVE_ROUNDS=60 \
	CDC_KEYLESS_ROWS=20000 CDC_JSON_CHANGES=2000 \
	CDC_RANDOM_DEEDS=6000 CDC_TYPED_DEEDS=2000 CDC_TYPED_TABLES=1000 CDC_LAKE_DEEDS=600 CDC_LAKE_KILLS=50 CDC_LAKE_TABLES=1000 CDC_SEEDED_DEEDS=1000 CDC_SEED_KILLS=50 CDC_LEADING_RECORDS=4000 CDC_FOLD_SEEDS=20 CDC_FOLDED_DEEDS=3000 CDC_DAMAGED_RECORDS=20000 CDC_DAMAGE=100000 \
	CDC_LARGE_ROWS=10000000 CDC_LARGE_ROW_MB=200 CDC_HUGE_ROW_MB=990 CDC_DIGESTED_STREAMS=50 CDC_STATE_STREAMS=50 CDC_STATE_CUTS=5 \
	CDC_COPIED_TABLES=24 CDC_COPIED_HISTORIES=40 CDC_COPY_KILLS=200 CDC_TABLES=10000 CDC_AWAY_SECONDS=200 CDC_LEADER_SETTINGS=all

test-long: lint unit
	$(LONG) $(MAKE) integration
	for roles in "leader follower" leader follower; do \
	  CDC_TESTS_ON_80="$$roles" CDC_REQUIRE_INTEGRATION=1 $(BIN)/pytest --numprocesses 3 --dist loadgroup \
	    tests/integration/producer tests/integration/consumer tests/integration/pair \
	    --deselect tests/integration/pair/test_cases.py || exit 1; \
	done
	CDC_HISTORIES=2000 $(BIN)/pytest tests/unit/producer/sink/test_simulation.py
	$(BIN)/python bench/audit.py --keys 2000000

# Tools of others at work on a leader with the pair and a native replica beside it: docs/other-tools.md. It fetches them.
test-clients: $(READY)
	CDC_REQUIRE_INTEGRATION=1 $(BIN)/pytest -s tests/clients

# What is in docker/, on a Docker engine. Where none answers it says so, and ends with exit status 2.
test-docker: $(READY)
	$(BIN)/pytest --durations 5 tests/docker

# The wheel in an empty environment, and the programs with the oldest and the newest packages that pyproject.toml allows.
test-install: $(READY)
	$(BIN)/pytest -s --durations 5 tests/install

# Changes the code in a thousand ways, and shows which of them no unit test notices: docs/design/mutation-testing.md.
# ONLY='cdc.consumer.plan.planner*' tries those of one module.
mutants: $(READY)
	$(BIN)/pip install --quiet --editable '.[mutants]'
	nice -n 19 $(BIN)/mutmut run --max-children 2 $(ONLY)
	$(BIN)/python tests/mutants.py
	$(BIN)/python tests/expression_mutants.py

# Kills servers and programs under load, and prints how long nothing arrived: docs/operations.md. DRILLS=leader,brokers
# runs some of the drills, KILLS=10 fewer kills.
drill: $(READY)
	$(BIN)/python -m bench.drills $(DRILLS) $(if $(KILLS),--kills $(KILLS))

# A workload of hours that is judged while it runs: docs/design/exactly-once.md. The next piece in the same FOLDER goes on
# where the last one ended; MINUTES=100 sets the length of a piece.
soak: $(READY)
	$(BIN)/python -m tests.soak $(or $(FOLDER),build/soak) $(if $(MINUTES),--minutes $(MINUTES))

# The last line compares the ratios with bench/ratios.json, and fails if one fell by more than 10 %.
bench: export CDC_BENCH_RATIOS = build/ratios.jsonl
bench: $(READY)
	@mkdir -p build && rm -f $(CDC_BENCH_RATIOS)
	$(BIN)/python bench/producer.py
	$(BIN)/python bench/consumer.py
	$(BIN)/python bench/table_copy.py
	$(BIN)/python bench/audit.py
	$(BIN)/python bench/table_on_spark.py
	$(BIN)/python bench/seed.py
	$(BIN)/python bench/lake.py
	$(BIN)/python bench/ratios.py $(CDC_BENCH_RATIOS)

# Debezium with its JDBC sink, which it fetches, and cdc on one leader: prints the tables of docs/comparison.md.
# QUESTIONS=types,ddl asks some of the questions.
bench-debezium: $(READY)
	$(BIN)/python -m bench.debezium $(if $(QUESTIONS),--questions $(QUESTIONS))

$(READY): pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit("Python 3.11 or newer is needed, this is %d.%d: set PYTHON=" % sys.version_info[:2] if sys.version_info < (3, 11) else 0)'
	@echo "Setting up $(VENV): PySpark, mysql-replication, confluent-kafka and the rest from the package index (about 550 MB)"
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --editable '.[spark,dev]'
	@# As of an installed package: Python would compile each module at each start where PYTHONDONTWRITEBYTECODE is set.
	$(BIN)/python -m compileall -q cdc
	@touch $(READY)

clean:
	rm -rf $(VENV) build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis mutants
