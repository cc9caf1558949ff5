"""What docs/stores.md shows is what is run here, to the letter."""

import os
import subprocess
import sys

import pyarrow as pa
import pytest

from optimist.core import DeltaLog
from optimist.core.errors import ConfigError
from optimist.core.plugins.logstore import PutOutcome
from optimist.core.plugins.logstore_registry import choose_store, find_store


@pytest.fixture
def own_modules(modules_of_page):
    return modules_of_page("stores.md")


@pytest.mark.parametrize("value", ["sqlite_store:SqliteLogStore", "sqlite_store.SqliteLogStore"])
@pytest.mark.parametrize("key", ["spark.delta.logStore.class", "delta.logStore.file.impl"])
def test_own_class_is_found_through_the_conf_key(own_modules, tmp_path, key, value):
    store = find_store(str(tmp_path), {key: value, "spark.app.name": "nightly"})
    assert type(store).__name__ == "SqliteLogStore"
    assert store.put_if_absent(f"{tmp_path}/0.json", b"x") is PutOutcome.CREATED
    assert store.put_if_absent(f"{tmp_path}/0.json", b"y") is PutOutcome.EXISTS
    assert (tmp_path / "log.sqlite").exists()
    assert choose_store(str(tmp_path), {key: value}).reason == f"conf key {key}={value}"


def test_own_class_named_for_every_path_refuses_what_is_not_local(own_modules, tmp_path):
    options = {"spark.delta.logStore.class": "sqlite_store:SqliteLogStore"}
    for path in ("s3a://bucket/t", "hdfs://name/t"):
        with pytest.raises(ConfigError, match="no local disk"):
            DeltaLog.for_path(path, options)
        with pytest.raises(ConfigError, match="no local disk"):
            find_store(path, options).ensure_directory(f"{path}/_delta_log")
    log = DeltaLog.for_path(f"file://{tmp_path}/t", options)
    log.append(pa.table({"a": [1]}))
    assert (tmp_path / "t" / "_delta_log" / "log.sqlite").exists()
    assert DeltaLog.for_path(f"{tmp_path}/t", options).count() == 1


@pytest.mark.again
def test_own_class_passes_the_suite_as_documented(own_modules):
    finished = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_sqlite_store.py"],
        cwd=own_modules,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)},
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )
    assert finished.returncode == 0, finished.stdout + finished.stderr
    assert "skipped" not in finished.stdout
