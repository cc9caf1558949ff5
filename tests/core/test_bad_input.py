"""Wrong paths, damaged logs, wrong data: one clear error each, and nothing half-written."""

from __future__ import annotations

import json

import pyarrow as pa
import pytest

from optimist.core import DeltaLog
from optimist.core.errors import (
    ConfigError,
    ProtocolError,
    SchemaError,
    TableError,
    TableNotFoundError,
    UsageError,
)


def fresh(path):
    """A handle that remembers nothing."""
    cached = DeltaLog.for_path(str(path))
    return DeltaLog(str(path), cached.store)


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "table"
    for number in range(3):
        DeltaLog.for_path(str(path)).append(pa.table({"id": [number], "p": ["x"]}))
    return path


def commit_file(table, version):
    return table / "_delta_log" / f"{version:020}.json"


def files_below(path):
    return sorted(str(item) for item in path.rglob("*"))


def test_a_path_where_nothing_is(tmp_path):
    with pytest.raises(TableNotFoundError, match="does not exist") as raised:
        fresh(tmp_path / "wrong").snapshot()
    assert raised.value.kind == "PATH_NOT_FOUND"
    assert isinstance(raised.value, FileNotFoundError)
    assert not (tmp_path / "wrong").exists()


def test_a_folder_that_is_no_table(tmp_path):
    (tmp_path / "notes.txt").write_text("x")
    with pytest.raises(TableNotFoundError, match="is not a Delta table"):
        fresh(tmp_path).snapshot()


def test_a_file_in_place_of_the_log(tmp_path):
    (tmp_path / "_delta_log").write_text("x")
    log = fresh(tmp_path)
    for call in (log.snapshot, lambda: log.append(pa.table({"id": [1]}))):
        with pytest.raises(TableError, match="_delta_log") as raised:
            call()
        assert raised.value.kind == "OPTIMIST_LOG_PATH_IS_A_FILE"
    assert files_below(tmp_path) == [str(tmp_path / "_delta_log")]


def test_a_log_with_a_gap(table):
    commit_file(table, 1).unlink()
    with pytest.raises(TableError) as raised:
        fresh(table).snapshot()
    assert raised.value.kind == "DELTA_VERSIONS_NOT_CONTIGUOUS"


@pytest.mark.parametrize(
    "content", [b"", b'{"add":{"path":"a', b"no json\n", b"[1]\n", b"\xff\xfe"]
)
def test_a_torn_or_empty_commit(table, content):
    commit_file(table, 2).write_bytes(content)
    with pytest.raises(TableError, match=f"{2:020}.json") as raised:
        fresh(table).snapshot().files.num_rows  # noqa: B018 - reading is what fails
    assert raised.value.kind == "OPTIMIST_MALFORMED_COMMIT"


@pytest.mark.parametrize(
    ("protocol", "kind"),
    [
        (
            {"minReaderVersion": 3, "minWriterVersion": 7,
             "readerFeatures": ["teleport"], "writerFeatures": ["teleport"]},
            "DELTA_UNSUPPORTED_FEATURES_FOR_READ",
        ),
        ({"minReaderVersion": 9, "minWriterVersion": 9}, "DELTA_INVALID_PROTOCOL_VERSION"),
    ],
)  # fmt: skip
def test_a_table_beyond_this_engine_is_refused_by_name(table, protocol, kind):
    with commit_file(table, 2).open("a") as file:
        file.write(json.dumps({"protocol": protocol}) + "\n")
    with pytest.raises(ProtocolError) as raised:
        fresh(table).snapshot()
    assert raised.value.kind == kind
    assert str(table) in str(raised.value)


def test_an_unknown_writer_feature_reads_but_refuses_the_write_before_anything_is_written(table):
    protocol = {"minReaderVersion": 1, "minWriterVersion": 7, "writerFeatures": ["teleport"]}
    with commit_file(table, 2).open("a") as file:
        file.write(json.dumps({"protocol": protocol}) + "\n")
    commit_file(table, 2).with_suffix(".crc").unlink()  # it would tell that the commit was changed
    assert fresh(table).snapshot().num_files == 3
    before = files_below(table)
    with pytest.raises(ProtocolError, match="teleport") as raised:
        fresh(table).append(pa.table({"id": [9], "p": ["y"]}))
    assert raised.value.kind == "DELTA_UNSUPPORTED_FEATURES_FOR_WRITE"
    assert files_below(table) == before


@pytest.mark.parametrize(
    ("rows", "column"),
    [
        ({"id": [1], "p": ["x"], "extra": [1]}, "extra"),
        ({"id": ["text"], "p": ["x"]}, "id"),
    ],
)
def test_data_that_does_not_fit_names_the_column(table, rows, column):
    before = files_below(table)
    with pytest.raises(SchemaError, match=column):
        fresh(table).append(pa.table(rows))
    assert files_below(table) == before


def test_a_partition_column_that_does_not_exist(tmp_path):
    with pytest.raises(SchemaError, match="nowhere"):
        fresh(tmp_path / "new").append(pa.table({"id": [1]}), partition_by=["nowhere"])
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize("predicate", ["id = ", "id ==== 3", "SELECT", "unknown_column = 1"])
def test_an_invalid_predicate(table, predicate):
    with pytest.raises(UsageError):
        fresh(table).snapshot().scan(predicate)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"spark.databricks.delta.maxCommitAttempts": "many"}, "maxCommitAttempts"),
        ({"spark.optimist.conflict.granularty": "file"}, "is unknown"),
        (
            {"optimist.commit.lock.enabled": "true",
             "spark.databricks.delta.commitLock.enabled": "false"},
            "contradict",
        ),
        ({"spark.delta.logStore.class": "no.such.module:Store"}, "no.such.module"),
        (
            {"spark.delta.logStore.class": "local", "spark.delta.logStore.s3a.impl": "memory"},
            "logStore",
        ),
    ],
)  # fmt: skip
def test_a_wrong_conf(tmp_path, options, words):
    with pytest.raises(ConfigError, match=words):
        DeltaLog.for_path(str(tmp_path), options)


def test_times_and_versions_that_are_not_there(table):
    log = fresh(table)
    with pytest.raises(TableError) as raised:
        log.snapshot(version=7)
    assert raised.value.kind == "DELTA_VERSION_NOT_FOUND"
    with pytest.raises(TableError) as raised:
        log.snapshot(timestamp="1999-01-01")
    assert raised.value.kind == "DELTA_TIMESTAMP_EARLIER_THAN_COMMIT_RETENTION"
    with pytest.raises(UsageError):
        log.snapshot(version=1, timestamp="2024-01-01")
    with pytest.raises(UsageError):
        log.snapshot(timestamp="yesterday")
