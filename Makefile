# Everything goes through `make setup`, which makes .venv once and again when its inputs change.
PYTHON ?= python3
BIN := .venv/bin
PYTEST := $(BIN)/python -m pytest
# Python and pytest keep what they compile and rewrite beside the sources, also where the environment forbids it.
export PYTHONDONTWRITEBYTECODE :=
LONG := -o faulthandler_timeout=0  # merely long is no fault

.PHONY: help setup demo test test-slow test-long test-unit test-properties test-kafka test-spark test-spark-versions test-interpreted test-oldest-spark test-shipping test-wheel kafka-diff prove-log prove-silence prove-faults prove-crashes prove-bytes prove-exactly-once soak lint bench bench-compare bench-docs bench-dump golden wheel release docs reference lock clean prove-interrupts

help: ## say what there is
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-12s %s\n", $$1, $$2}'

setup: .venv/.done ## make .venv with .venv/bin/logstore in it

.venv/.done: requirements.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(None if sys.version_info >= (3, 11) else "logstore needs Python 3.11 or newer; try: make PYTHON=python3.11")'
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --no-cache-dir --disable-pip-version-check --require-hashes -r requirements.lock
	$(BIN)/python -m pip install --quiet --no-cache-dir --disable-pip-version-check --no-deps --no-build-isolation --editable .
	@# type checkers follow paths, and no import hooks of an editable installation
	@echo "$(CURDIR)" > "$$($(BIN)/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/logstore-checkout.pth"
	$(BIN)/python -m compileall -q logstore tools spark_dumps
	$(BIN)/logstore doctor --compile
	@touch $@

demo: setup ## dump a directory that a real broker wrote
	@$(BIN)/python tests/stories/demo.py

# Four at a time, since JVMs leave processors idle; in memory, where there is enough of it.
SHM := $(shell [ "$$(df -Pk /dev/shm 2> /dev/null | awk 'END {print int($$4)}')" -ge 4194304 ] && echo TMPDIR=/dev/shm)
PARALLEL := -q -p no:cacheprovider -n 4 --dist loadfile --no-loadscope-reorder
SAMPLE := $(PARALLEL) -m "not long"

test: setup lint ## check everything in five minutes, by samples (the real Kafka too, where Java and Maven are there)
	$(SHM) $(PYTEST) $(PARALLEL) -m "not long and not slow"
	@$(MAKE) --no-print-directory test-oldest-spark

test-slow: setup ## check what takes seconds of a processor each, and interpreted kernels, as CI does too (five minutes)
	$(SHM) $(PYTEST) $(PARALLEL) -m "slow and not long"
	@$(MAKE) --no-print-directory test-interpreted

test-long: setup lint ## check everything whole, from a fresh seed (hours; LOGSTORE_SEED=…: again)
	@export LOGSTORE_LONG=1 LOGSTORE_SEED=$${LOGSTORE_SEED:-$$(od -An -N4 -tx4 /dev/urandom | tr -d ' ')}; \
	echo "LOGSTORE_SEED=$$LOGSTORE_SEED"; \
	$(SHM) $(PYTEST) $(PARALLEL) $(LONG) --hypothesis-seed=$$LOGSTORE_SEED && \
	NUMBA_DISABLE_JIT=1 $(PYTEST) $(PARALLEL) $(LONG) --hypothesis-seed=$$LOGSTORE_SEED tests/unit tests/properties -k kernel

test-unit test-properties test-kafka test-spark: test-%: setup
	$(SHM) $(PYTEST) $(SAMPLE) tests/$*

SPARK_VERSIONS := 4.0.5 4.1.4 4.2.1 4.3.0
SPARKS := $(SPARK_VERSIONS:%=.spark/%/pyspark)
.spark/%/pyspark: | .venv/.done
	$(BIN)/python -m pip install --quiet --no-cache-dir --no-deps --no-build-isolation --target .spark/$* pyspark==$*

test-spark-versions: setup $(SPARKS) ## hold each version of Spark to the answers of the installed one (2 GB of downloads, into .spark)
	LOGSTORE_SPARK_VERSIONS=.spark $(PYTEST) -q -p no:cacheprovider tests/spark/test_versions.py

# The Python part of Spark 4.0, without a JVM, plans, reads and writes: five seconds of a processor.
OLDEST_CLIENT := .spark/client/4.0.4
$(OLDEST_CLIENT)/pyspark: | .venv/.done
	$(BIN)/python -m pip install --quiet --no-cache-dir --no-deps --no-build-isolation --target $(@D) pyspark-client==$(notdir $(@D))

test-oldest-spark: setup $(OLDEST_CLIENT)/pyspark
	LOGSTORE_REQUIRE_ORACLE=0 PYTHONPATH=$(CURDIR)/$(OLDEST_CLIENT) $(SHM) $(PYTEST) -q -p no:cacheprovider -m "not long" \
	  tests/spark/test_tables.py tests/spark/test_committed.py tests/spark/test_writing.py \
	  -k "test_tables or test_committed or one_transaction or every_column or topics or killed or staging"

test-shipping: wheel $(SPARKS) ## try each way to a cluster on each version of Spark, and kill executors and drivers (2 GB of downloads, half an hour)
	LOGSTORE_SPARK_VERSIONS=.spark LOGSTORE_WHEEL=$$(ls dist/*.whl) $(PYTEST) -q $(LONG) -p no:cacheprovider tests/spark/test_shipping.py tests/spark/test_killed_jobs.py

test-interpreted: setup
	NUMBA_DISABLE_JIT=1 $(SHM) $(PYTEST) $(SAMPLE) tests/unit tests/properties -k kernel

prove-log: setup ## hold 10,000 random logs to the real Kafka, as written and as opened again (an hour)
	LOGSTORE_ORACLE_CASES=10000 $(PYTEST) -q $(LONG) tests/kafka/test_append_against_kafka.py tests/kafka/test_written_logs_open_in_kafka.py

prove-silence: setup ## audit 1,000 directories that brokers and logs of each Kafka wrote at random (an hour; LOGSTORE_SILENCE_DIRECTORIES=…)
	$(BIN)/python -m tests.silence.prove

prove-faults: setup ## plant 300 kinds of faults in directories of real brokers, and audit them (20 minutes; LOGSTORE_PLANTED_CASES=…)
	$(BIN)/python -m tests.planted.prove

prove-crashes: setup ## stop logs, cleaning, stores, transactions and recoveries before system calls, at 1,000,000 points (two hours; LOGSTORE_CRASH_POINTS=…)
	$(BIN)/python -m tests.crash.prove
	LOGSTORE_CRASH_CASES=100 $(PYTEST) -q $(LONG) tests/crash/test_store_is_interrupted.py tests/kafka/test_crashes_against_kafka.py

prove-bytes: setup ## give 1 GiB of damaged bytes to each compiled parser of logs, and some to the others, before a guard page (half an hour; LOGSTORE_HOSTILE_BYTES=…)
	$(BIN)/python -m tests.hostile.prove

prove-interrupts: setup ## raise an exception before every line of every call, then by 100,000 signals, and count (hours; LOGSTORE_INTERRUPT_CALL=commit: one)
	$(BIN)/python -m tests.crash.interrupt_runs
	LOGSTORE_INTERRUPT_SIGNALS=$${LOGSTORE_INTERRUPT_SIGNALS:-100000} $(BIN)/python -m tests.crash.interrupt_runs

prove-exactly-once: setup ## kill a program that consumes, transforms and produces a thousand times, and count (an hour)
	LOGSTORE_KILL_ROUNDS=1000 $(PYTEST) -q $(LONG) tests/stories/test_exactly_once.py

soak: setup ## use a store as programs do all day, and see that nothing grows (an hour; LOGSTORE_SOAK_SECONDS=…), into soak-out
	@$(SHM) $(BIN)/python -m benchmarks.soak soak-out

# What changes the product in one place at a time is in .venv only once it is asked for.
.venv/.mutation: .venv/.done requirements-mutation.lock
	$(BIN)/python -m pip install --quiet --no-cache-dir --disable-pip-version-check --require-hashes -r requirements-mutation.lock
	@touch $@

prove-tests: .venv/.mutation ## change the product in 600 places, one at a time, and name the changes that no test notices (an hour; LOGSTORE_MUTANTS=…)
	$(BIN)/python -m tests.mutation.prove

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

# The peers that are Python packages are in .venv only once a benchmark is asked for.
.venv/.bench: .venv/.done requirements-bench.lock
	$(BIN)/python -m pip install --quiet --no-cache-dir --disable-pip-version-check --require-hashes -r requirements-bench.lock
	@touch $@

BENCHMARKS = $(if $(ONLY),$(foreach operation,$(ONLY),benchmarks/bench_$(operation).py),benchmarks)
BENCH_OUT = bench-out$(if $(ONLY),/$(subst $(eval) ,-,$(ONLY)))

bench: .venv/.bench ## measure everything beside its peers, a quarter of an hour; ONLY="operation …", SCALE=part, into bench-out
	@mkdir -p $(BENCH_OUT)
	@LOGSTORE_BENCH_PEERS=$${LOGSTORE_BENCH_PEERS:-on} LOGSTORE_BENCH_SCALE=$(or $(SCALE),1) $(PYTEST) -q $(LONG) -p no:cacheprovider --benchmark-only \
	  --benchmark-quiet --benchmark-max-time=1.25 --benchmark-min-rounds=3 --benchmark-json=$(BENCH_OUT)/results.json $(BENCHMARKS); \
	  code=$$?; $(BIN)/python -m benchmarks.support.report $(BENCH_OUT)/results.json && exit $$code

bench-compare: setup ## what changed since BASE=commit; ONLY="operation …", SCALE=part
	$(BIN)/python -m benchmarks.support.compare $(BASE) $(foreach operation,$(ONLY),--only $(operation)) $(if $(SCALE),--scale $(SCALE))

bench-docs: setup ## keep what the last `make bench` found, in the page of benchmarks and the README
	$(BIN)/python -m benchmarks.support.report bench-out/results.json --keep docs/explanation/benchmarks.json
	$(BIN)/python -m docs.generators

bench-dump: ## time the dump of 1 GiB against kafka-dump-log
	@$(MAKE) --no-print-directory bench ONLY=dump SCALE=4

golden: setup ## make the golden directories and their answers again, with the real Kafka
	$(BIN)/python -m tests.kafka.make_golden

kafka-diff: setup ## print what another release of Kafka changed against the newest that is known: KV=4.5.0
	$(BIN)/python -m tests.kafka.kafka_diff $(KV)

wheel: setup ## build the wheel for this system, with the kernels of each level of processor, into dist
	rm -rf build
	$(BIN)/python -m pip wheel --quiet --no-deps --no-build-isolation --wheel-dir dist .

test-wheel: wheel ## try the wheel as a new user does, on each Python from 3.11 that is here
	$(BIN)/python -m tests.stories.fresh_wheel dist/*.whl

release: setup ## build the source archive and its wheel twice, compare and try them, into dist; the upload is left to you
	rm -rf build
	$(BIN)/python -m tests.stories.release dist

# What builds the pages is in .venv only once they are asked for.
.venv/.docs: .venv/.done requirements-docs.lock
	$(BIN)/python -m pip install --quiet --no-cache-dir --disable-pip-version-check --require-hashes -r requirements-docs.lock
	@touch $@

docs: .venv/.docs ## build the documentation into site, strictly
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet --strict --clean

reference: setup ## write docs/reference anew from the code, and the figures in pages
	$(BIN)/python -m docs.generators

lock: setup ## renew requirements.lock
	$(BIN)/python -m pip install --quiet uv
	$(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --extra dev --extra compile --extra spark --extra objects --no-header --output-file requirements.lock pyproject.toml
	$(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --extra bench --constraint requirements.lock --no-header --output-file requirements-bench.lock pyproject.toml
	$(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --extra docs --constraint requirements.lock --no-header --output-file requirements-docs.lock pyproject.toml
	$(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --extra mutation --constraint requirements.lock --no-header --output-file requirements-mutation.lock pyproject.toml

clean: ## remove what the other targets made
	rm -rf .venv .spark bench-out soak-out build dist site *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis .benchmarks .test-*.log
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
