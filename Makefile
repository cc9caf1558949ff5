# Each target first sets up what it needs, with nothing but a Python; a second time that costs nothing.

PYTHON ?= python3
ROOMS := core locks logstores spark
SCRIPTS := bootstrap.py $(wildcard benchmarks/*.py examples/*.py localstack/*.py)
SCRIPT_PATHS := build/imports:benchmarks:examples:localstack
RUN := .venv/bin/python
# Many tests wait for a server, so a few more workers than cores; a class of tests stays together.
JOBS ?= 3
SPARK_RUN = JAVA_HOME="$$(cat .venv/java-home)" $(RUN)
PYTEST = $(SPARK_RUN) -m pytest -n $(JOBS) --dist loadscope

.PHONY: help demo clouds test test-pyspark check integration emulators bench format clean

help:
	@echo "make demo     the flights: concurrent jobs on one table, a conflict explained, read back"
	@echo "make clouds   the same flights on S3, Azure, Google Cloud and HDFS emulators"
	@echo "make test     everything that must pass: check, then the tests with coverage"
	@echo "make test-pyspark VERSION=4.0.5  the tests of Spark on another PySpark"
	@echo "make check    lint, format, types, direction of imports"
	@echo "make integration  the tests against emulators (TESTS=integration/test_x.py for some)"
	@echo "make emulators  bring the emulators up and leave them up (localstack/down.py stops them)"
	@echo "make bench    ours beside deltalake (BENCH=--quick for a short run)"
	@echo "make format   put the code in the project's format"
	@echo "make clean    remove what was built; .venv stays"

demo:
	@$(PYTHON) bootstrap.py demo
	@$(SPARK_RUN) examples/flights.py $(DEMO)

clouds:
	@$(PYTHON) bootstrap.py clouds
	@$(PYTHON) localstack/up.py
	@$(SPARK_RUN) examples/multi_cloud.py $(CLOUDS)

# What could not be set up skips with its reason; in CI (REQUIRE_EMULATORS=1) it fails.
test: check
	@$(PYTHON) bootstrap.py dev
	@$(PYTHON) localstack/up.py || test "$$REQUIRE_EMULATORS" != 1
	$(PYTEST) --cov --cov-report=term:skip-covered $(or $(TESTS),tests integration)

# In an environment of its own. Older versions leave sockets open, which our tests take for an error.
test-pyspark:
	@$(PYTHON) bootstrap.py dev
	@test -n "$(VERSION)" || { echo "Say which: make test-pyspark VERSION=4.0.5"; exit 2; }
	@$(RUN) -m venv build/pyspark-$(VERSION)
	@build/pyspark-$(VERSION)/bin/python -m pip install --quiet -e '.[dev]' pyspark==$(VERSION)
	JAVA_HOME="$$(cat .venv/java-home)" build/pyspark-$(VERSION)/bin/python -m pytest \
		-n $(JOBS) --dist loadscope -p no:unraisableexception -W ignore::ResourceWarning \
		$(or $(TESTS),tests/spark)

integration: emulators
	@$(PYTHON) bootstrap.py dev
	$(PYTEST) $(or $(TESTS),integration)

emulators:
	@$(PYTHON) localstack/up.py

check: build/imports
	@$(PYTHON) bootstrap.py --no-java dev
	$(RUN) -m ruff check .
	$(RUN) -m ruff format --check .
	MYPYPATH=build/imports $(RUN) -m mypy
	MYPYPATH=$(SCRIPT_PATHS) $(RUN) -m mypy --strict $(SCRIPTS)
	PYTHONPATH=build/imports .venv/bin/lint-imports

bench:
	@$(PYTHON) bootstrap.py bench
	@$(SPARK_RUN) benchmarks/run.py $(BENCH)

format:
	@$(PYTHON) bootstrap.py --no-java dev
	$(RUN) -m ruff format .
	$(RUN) -m ruff check --fix .

# mypy and import-linter look for optimist/ on disk and don't follow an editable install's mapping.
build/imports: Makefile
	@mkdir -p $@/optimist
	@for room in $(ROOMS); do ln -sfn "$(CURDIR)/$$room" $@/optimist/$$room; done
	@touch $@

clean:
	rm -rf build dist *.egg-info .coverage* .pytest_cache .mypy_cache .ruff_cache .hypothesis \
		.import_linter_cache spark-warehouse metastore_db derby.log
