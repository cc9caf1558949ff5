# Each target first sets up what it needs, with nothing but a Python; a second time that costs nothing.

PYTHON ?= python3
SCRIPTS := bootstrap.py release.py $(wildcard benchmarks/*.py examples/*.py localstack/*.py)
SCRIPT_PATHS := benchmarks:examples:localstack
RUN := .venv/bin/python
# Without compiled modules every worker, server and Python worker of Spark compiles all of them anew:
# seconds for each process, half of what collecting the tests costs.
unexport PYTHONDONTWRITEBYTECODE
# Many tests wait for a server, so there are more workers than cores. A few tests begin at once.
JOBS ?= $(if $(TESTS),0,4)
SPARK_RUN = JAVA_HOME="$$(cat .venv/java-home)" $(RUN)
# What stays together, and what comes first, is told by conftest.py.
SHARING = --dist loadscope --no-loadscope-reorder
PYTEST = $(SPARK_RUN) -m pytest -n $(JOBS) $(SHARING)
EXHAUSTIVE = tests/exhaustive tests/spark/exhaustive integration/exhaustive
EXHAUSTIVE_JOBS = 3
EXHAUSTIVE_CASES = 10000
PART = $(if $(ONE_IN),--one-in $(ONE_IN))
PART_OF_ALL = $(if $(ONE_IN),$(PART) --of-all)
# Tried in an environment of their own: s3fs pins a botocore, and boto3 beside it another.
DRIVER_TESTS = integration/test_fsspec_drivers.py
ORDINARY = tests integration --ignore=$(DRIVER_TESTS)
# What could not be set up skips with its reason; in CI (REQUIRE_EMULATORS=1) it fails.
SERVERS = $(PYTHON) localstack/up.py || test "$$REQUIRE_EMULATORS" != 1
# What is promised in tables: the public names, the commands, the pages, the words.
HOUSE = $(addprefix tests/test_,commands.py public_face.py pages.py words.py error_kinds.py)
# Parts that run at the same time; each shows what it says when it ends, where Make can do that.
AT_ONCE = $(MAKE) --no-print-directory -j
APART = $(if $(filter output-sync,$(.FEATURES)),--output-sync)
UV = .venv/bin/uv
# Older versions leave sockets open, which our tests take for an error.
TOLERANT = --dist loadscope -p no:unraisableexception -W ignore::ResourceWarning
# The packages with an upper bound, and what is tried with other versions: all that needs no Spark.
BOUNDED = fsspec pyarrow
AT_THE_BOUNDS = tests/core tests/locks tests/logstores
EMULATORS_s3 = s3
EMULATORS_s3-dynamodb = s3 dynamodb
EMULATORS_azure = azurite
EMULATORS_gcs = gcs
EMULATORS_hdfs = hdfs
CLOUD_NAMES = $(or $(filter s3 s3-dynamodb azure gcs hdfs,$(CLOUDS)),s3 s3-dynamodb azure gcs hdfs)

.PHONY: help demo stream clouds test ready servers tests test-all exhaustive exhaustive-searches exhaustive-again \
	exhaustive-examples test-pyspark test-oldest test-newest test-fsspec coverage check lint types layers house integration wire emulators bench docs dist format clean

help:
	@echo "make demo     the flights: concurrent jobs on one table, a conflict explained, read back"
	@echo "make stream    flights arrive month by month; a driver of two streams is killed and comes back"
	@echo "make clouds   the same flights on S3, Azure, Google Cloud and HDFS emulators"
	@echo "make test     check, then the tests, emulators and Spark included"
	@echo "make test-all  everything that is tested: make test, then make exhaustive"
	@echo "make exhaustive  the exhaustive tests, minutes to hours (CASES=1000000, ONE_IN=3)"
	@echo "make test-pyspark VERSION=4.0.5  the tests of Spark on another PySpark"
	@echo "make test-oldest  the oldest versions that pyproject.toml allows"
	@echo "make coverage  the lines that the tests without Spark and without servers reach"
	@echo "make test-newest  the newest there are, past the upper bounds of pyproject.toml"
	@echo "make test-fsspec  the fsspec drivers that may carry commits; part of make test-all"
	@echo "make check    lint, format, types, direction of imports, tables of commands and names"
	@echo "make integration  the tests against emulators (TESTS=integration/test_x.py for some)"
	@echo "make wire     each store with a tenth of its messages harmed, 20 rounds (ROUNDS=50)"
	@echo "make emulators  bring the emulators up and leave them up (localstack/down.py stops them)"
	@echo "make bench    ours beside deltalake (BENCH=--quick for a short run)"
	@echo "make docs     the site of the pages, in build/site; broken links are errors"
	@echo "make dist     build the packages of a release, install them with each extra, run the demo there"
	@echo "make format   put the code in the project's format"
	@echo "make clean    remove what was built; .venv stays"

demo:
	@$(PYTHON) bootstrap.py demo
	@$(SPARK_RUN) examples/flights.py $(DEMO)

stream:
	@$(PYTHON) bootstrap.py demo
	@$(SPARK_RUN) examples/streams.py $(STREAM)

clouds:
	@$(PYTHON) bootstrap.py clouds
	@$(PYTHON) localstack/up.py $(sort $(foreach name,$(CLOUD_NAMES),$(EMULATORS_$(name))))
	@$(SPARK_RUN) examples/multi_cloud.py $(CLOUDS)

# Of some tests nothing else is checked, and servers come up only for those that ask for them.
test: $(if $(TESTS),,ready) tests

# The servers come up while the checks run.
ready:
	@$(PYTHON) bootstrap.py dev
	@$(AT_ONCE) check servers

servers:
	@$(SERVERS)

tests:
	@$(PYTHON) bootstrap.py dev
	@$(if $(TESTS),$(if $(findstring integration,$(TESTS)),$(SERVERS)),$(SERVERS))
	$(PYTEST) $(or $(TESTS),-m "not race and not again" $(ORDINARY) $(addprefix --ignore=,$(HOUSE)))

test-all: test exhaustive test-fsspec

# ONE_IN=3 leaves out two of three tests and cases.
exhaustive: exhaustive-searches $(if $(TESTS),,exhaustive-again exhaustive-examples)

# Searches through all schedules (2 GB each), kills at every step, every message of a commit lost,
# CASES hostile tables, histories and schedules in proportion to it, odd and hostile tables on Spark.
exhaustive-searches:
	@$(PYTHON) bootstrap.py dev
	@$(SERVERS)
	EXHAUSTIVE_CASES=$(or $(CASES),$(EXHAUSTIVE_CASES)) $(SPARK_RUN) -m pytest -n $(EXHAUSTIVE_JOBS) \
		$(SHARING) $(PART) --timeout 3600 -o faulthandler_timeout=1800 $(or $(TESTS),$(EXHAUSTIVE))

# The races for servers, and the cases that make test leaves out: another plane or store, a sample.
exhaustive-again:
	@$(PYTHON) bootstrap.py dev
	@$(SERVERS)
	$(PYTEST) $(PART) -m "race or again" $(ORDINARY)

# Each Hypothesis test with ten times the examples.
exhaustive-examples:
	@$(PYTHON) bootstrap.py dev
	$(RUN) -m pytest -n $(EXHAUSTIVE_JOBS) --dist loadscope $(PART_OF_ALL) -m hypothesis \
		--hypothesis-profile thorough tests --ignore=tests/spark $(wildcard tests/exhaustive/test_odd_*)

# In an environment of its own, what make test runs of Spark.
test-pyspark:
	@$(PYTHON) bootstrap.py dev
	@test -n "$(VERSION)" || { echo "Say which: make test-pyspark VERSION=4.0.5"; exit 2; }
	@$(UV) venv --quiet --clear --python $(RUN) build/pyspark-$(VERSION)
	@$(UV) pip install --quiet --python build/pyspark-$(VERSION) -e '.[dev]' pyspark==$(VERSION)
	JAVA_HOME="$$(cat .venv/java-home)" build/pyspark-$(VERSION)/bin/python -m pytest -n $(JOBS) \
		$(TOLERANT) $(or $(TESTS),-m "not race and not again" tests/spark)

# What pyproject.toml promises at its lower end, on Python 3.10 where there is one (ONE_IN=3).
test-oldest:
	@$(PYTHON) bootstrap.py --no-java dev
	@$(UV) venv --quiet --clear --no-python-downloads --python 3.10 build/oldest 2>/dev/null \
		|| $(UV) venv --quiet --clear --python $(RUN) build/oldest
	@$(UV) pip install --quiet --python build/oldest --resolution lowest-direct -e '.[test]'
	build/oldest/bin/python -m pytest -n $(JOBS) $(TOLERANT) $(PART_OF_ALL) -W ignore::FutureWarning \
		$(or $(TESTS),-m "not race and not again" $(AT_THE_BOUNDS))

# What lies beyond its upper bounds; where this passes they can be moved.
test-newest:
	@$(PYTHON) bootstrap.py --no-java dev
	@$(UV) venv --quiet --clear --python $(RUN) build/newest
	@mkdir -p build && printf '%s\n' $(BOUNDED) > build/unbounded.txt
	@$(UV) pip install --quiet --python build/newest --override build/unbounded.txt -e '.[test]'
	@$(UV) pip list --quiet --python build/newest | grep -E "^($$(echo $(BOUNDED) | tr ' ' '|')) "
	build/newest/bin/python -m pytest -n $(JOBS) $(TOLERANT) $(or $(TESTS),$(AT_THE_BOUNDS))

# Measuring costs two thirds of the time again. A child forked under it can wait for a lock for ever.
coverage:
	@$(PYTHON) bootstrap.py --no-java dev
	$(RUN) -m pytest -n $(JOBS) --dist loadscope --cov --cov-report=term:skip-covered \
		-k "not fork" $(or $(TESTS),$(AT_THE_BOUNDS) tests/deltalake_api tests/odd tests/hostile)

test-fsspec:
	@$(PYTHON) bootstrap.py --no-java --venv build/fsspec test-fsspec
	@$(PYTHON) localstack/up.py s3 azurite gcs || test "$$REQUIRE_EMULATORS" != 1
	build/fsspec/bin/python -m pytest -n $(JOBS) --dist loadscope --confcutdir=integration \
		$(DRIVER_TESTS)

integration: emulators
	@$(PYTHON) bootstrap.py dev
	$(PYTEST) $(or $(TESTS),integration --ignore=$(DRIVER_TESTS))

# One round per store is in the integration tests.
wire: emulators
	@$(PYTHON) bootstrap.py dev
	FAULTY_WIRE_ROUNDS=$(or $(ROUNDS),20) $(PYTEST) integration/exhaustive/test_faulty_wire.py

emulators:
	@$(PYTHON) localstack/up.py

# .pre-commit-config.yaml runs the same four.
check:
	@$(PYTHON) bootstrap.py --no-java dev
	@$(AT_ONCE) $(APART) lint types layers house

lint:
	@$(PYTHON) bootstrap.py --no-java dev
	$(RUN) -m ruff check .
	$(RUN) -m ruff format --check .

types:
	@$(PYTHON) bootstrap.py --no-java dev
	$(RUN) -m mypy
	MYPYPATH=$(SCRIPT_PATHS) $(RUN) -m mypy --strict $(SCRIPTS)

layers:
	@$(PYTHON) bootstrap.py --no-java dev
	PYTHONPATH=. .venv/bin/lint-imports

house:
	@$(PYTHON) bootstrap.py --no-java dev
	$(RUN) -m pytest -q $(HOUSE)

bench:
	@$(PYTHON) bootstrap.py bench
	@$(SPARK_RUN) benchmarks/run.py $(BENCH)

# Its diagrams are drawn by a script of the site's own, since the theme would ask another host.
MERMAID = 11.17.2
docs:
	@$(PYTHON) bootstrap.py --no-java dev
	@mkdir -p build/docs
	@test -f build/docs/mermaid-$(MERMAID).tgz || npm pack --silent --pack-destination build/docs mermaid@$(MERMAID)
	@tar -xzf build/docs/mermaid-$(MERMAID).tgz -C build/docs package/dist/mermaid.min.js
	NO_MKDOCS_2_WARNING=1 $(RUN) -m mkdocs build --quiet --strict
	@echo "The site is in build/site: open build/site/index.html"

# The packages of the newest commit, in build/release/dist.
dist:
	@$(PYTHON) bootstrap.py dev
	@$(RUN) release.py

format:
	@$(PYTHON) bootstrap.py --no-java dev
	$(RUN) -m ruff format .
	$(RUN) -m ruff check --fix .

clean:
	rm -rf build dist *.egg-info .coverage* .pytest_cache .mypy_cache .ruff_cache .hypothesis \
		.import_linter_cache spark-warehouse metastore_db derby.log
