"""`DeltaTable`: the names and signatures of `delta.tables`, history and detail."""

from __future__ import annotations

import json
import os
from pathlib import Path

import deltalake
import pyarrow as pa
import pytest
from pyspark.errors import AnalysisException

from optimist.core.errors import ArgumentTypeError, ConfigError, TableNotFoundError, UsageError
from optimist.core.options.engine import EngineOptions
from optimist.spark import DeltaTable, write
from optimist.spark.planes.plane_choice import is_native
from optimist.spark.session.conf import SessionConf, engine_options, open_log
from optimist.spark.session.jvm import Jvm


@pytest.fixture
def table(spark, copied):
    def build(path):
        write(spark.range(5).selectExpr("id", "id % 2 AS p"), path, partitionBy="p")
        write(spark.range(5, 7).selectExpr("id", "id % 2 AS p"), path, mode="append")

    return copied("two appends", build)


@pytest.mark.again
def test_a_table_is_found_by_its_path_and_by_a_path_name(spark, table):
    assert DeltaTable.forPath(spark, table).toDF().count() == 7
    assert DeltaTable.forName(spark, f"delta.`{table}`").toDF().count() == 7


@pytest.mark.again
def test_names_that_the_catalog_does_not_know_are_refused_by_spark(spark):
    with pytest.raises(AnalysisException, match="flights"):
        DeltaTable.forName(spark, "default.flights")


def test_a_path_without_a_table_is_refused(spark, tmp_path):
    with pytest.raises(TableNotFoundError):
        DeltaTable.forPath(spark, str(tmp_path / "nothing"))


def test_is_delta_table_tells(spark, table, tmp_path):
    assert DeltaTable.isDeltaTable(spark, table) is True
    assert DeltaTable.isDeltaTable(spark, f"delta.`{table}`") is True
    assert DeltaTable.isDeltaTable(spark, str(tmp_path)) is False


@pytest.mark.parametrize(
    "call",
    [
        lambda t: t.delete(1),
        lambda t: t.update("id = 1", {"id": 5}),
        lambda t: t.history("1"),
        lambda t: t.alias(None),
    ],
)
def test_arguments_of_the_wrong_type_are_refused(spark, table, call):
    with pytest.raises(ArgumentTypeError) as caught:
        call(DeltaTable.forPath(spark, table))
    assert caught.value.kind == "OPTIMIST_INVALID_ARGUMENT_TYPE"


def test_an_update_of_nothing_is_refused(spark, table):
    with pytest.raises(UsageError) as caught:
        DeltaTable.forPath(spark, table).update("id = 1", None)
    assert caught.value.kind == "OPTIMIST_INVALID_ARGUMENT"


def test_history_has_the_columns_of_delta(spark, table):
    history = DeltaTable.forPath(spark, table).history()
    assert " ".join(history.columns) == (
        "version timestamp userId userName operation operationParameters job notebook "
        "clusterId readVersion isolationLevel "
        "isBlindAppend operationMetrics userMetadata engineInfo"
    )
    newest, first = history.collect()
    assert (newest.version, newest.operation, newest.readVersion) == (1, "WRITE", 0)
    assert newest.operationParameters["mode"] == "Append"
    assert newest.operationMetrics["numOutputRows"] == "2"
    assert first.operationParameters["partitionBy"] == '["p"]'
    assert (first.timestamp <= newest.timestamp, first.isBlindAppend) == (True, True)


def test_history_stops_at_its_limit_and_shows_commits_of_other_engines(spark, table):
    extra = pa.table({"id": [9], "p": [1]})
    deltalake.write_deltalake(table, extra, mode="append")
    history = DeltaTable.forPath(spark, table).history(2).collect()
    assert [row.version for row in history] == [2, 1]
    assert "delta-rs" in history[0].engineInfo


def test_detail_tells_about_the_table(spark, table):
    detail = DeltaTable.forPath(spark, table).detail()
    assert " ".join(detail.columns) == (
        "format id name description location createdAt lastModified partitionColumns "
        "clusteringColumns numFiles sizeInBytes properties minReaderVersion minWriterVersion "
        "tableFeatures"
    )
    row = detail.first()
    files = list(Path(table).rglob("*.parquet"))
    assert (row.format, row.location, row.partitionColumns) == ("delta", table, ["p"])
    assert (row.numFiles, row.sizeInBytes) == (len(files), sum(f.stat().st_size for f in files))
    assert row.createdAt <= row.lastModified


def test_history_and_detail_show_what_a_hostile_writer_says_of_itself(spark, table):
    log = Path(table) / "_delta_log"
    (first, *_) = [
        json.loads(line)["metaData"]
        for line in (log / f"{0:020}.json").read_text().splitlines()
        if "metaData" in json.loads(line)
    ]
    info = {
        "operation": "\ud800",
        "operationParameters": {"\udfff": {"a": ["\ud83d", 1.5]}},
        "operationMetrics": {"n": "x\ud800"},
        "userMetadata": "\udc00",
        "inCommitTimestamp": (1 << 63) - 1,
        "job": {"jobId": "\ud800", "runId": [1]},
    }
    on = {"delta.enableInCommitTimestamps": "true"}
    metadata = {**first, "createdTime": -(1 << 63), "configuration": on}
    feature = {
        "minReaderVersion": 1,
        "minWriterVersion": 7,
        "writerFeatures": ["inCommitTimestamp"],
    }
    lines = [{"commitInfo": info}, {"protocol": feature}, {"metaData": metadata}]
    (log / f"{2:020}.json").write_text("\n".join(map(json.dumps, lines)))
    shown = DeltaTable.forPath(spark, table)
    newest = shown.history().first()
    assert (newest.version, newest.operation, newest.timestamp) == (2, None, None)
    assert newest.operationParameters == {"?": '{"a":["?",1.5]}'}
    assert (newest.job.jobId, newest.job.runId) == ("?", "[1]")
    row = shown.detail().first()
    assert (row.createdAt, row.lastModified) == (None, None)


def test_a_table_sees_what_others_commit(spark, table):
    mine = DeltaTable.forPath(spark, table)
    DeltaTable.forPath(spark, table).delete("id = 0")
    assert mine.toDF().count() == 6


def test_options_come_from_the_conf_of_the_session_by_prefix(spark, conf):
    conf("spark.databricks.delta.maxCommitAttempts", "5")
    conf("fs.s3a.endpoint", "http://there")
    conf("spark.sql.ansi.enabled", "true")
    options = engine_options(spark, {"fs.s3a.endpoint": "http://here"})
    assert options["spark.databricks.delta.maxCommitAttempts"] == "5"
    assert options["fs.s3a.endpoint"] == "http://here"
    assert not any(key.startswith("spark.sql.") for key in options)


def test_handles_are_shared_within_a_session(spark, table):
    assert open_log(spark, table) is open_log(spark, table)
    assert SessionConf.of(spark) is SessionConf.of(spark)


def test_the_conf_adapter_is_a_mapping(spark):
    adapter = SessionConf.of(spark)
    adapter["optimist-test.key"] = "1"
    assert (adapter["optimist-test.key"], "optimist-test.key" in adapter) == ("1", True)
    del adapter["optimist-test.key"]
    assert adapter.get("optimist-test.key") is None
    assert len(adapter) == len(list(adapter))


def test_options_for_the_file_system_are_the_only_ones_of_a_call(spark, table):
    with pytest.raises(UsageError):
        DeltaTable.forPath(spark, table, {"spark.optimist.x": "1"})
    assert DeltaTable.forPath(spark, table, {"fs.x": "1"}).toDF().count() == 7


class ConnectSession:
    """Looks like the client of Spark Connect."""

    __module__ = "pyspark.sql.connect.session"


def test_the_native_plane_refuses_connect_sessions_in_plain_words():
    with pytest.raises(UsageError, match="arrow plane") as caught:
        Jvm.of(ConnectSession())
    assert caught.value.kind == "OPTIMIST_CLASSIC_SPARK_NEEDED"


def test_forcing_the_native_plane_in_a_connect_session_is_an_error():
    forced = EngineOptions.from_options({"optimist.spark.plane": "native"})
    with pytest.raises(ConfigError) as caught:
        is_native(ConnectSession(), "/t", forced, {})
    assert caught.value.kind == "OPTIMIST_CLASSIC_SPARK_NEEDED"


def test_what_is_no_session_is_refused(table):
    with pytest.raises(UsageError, match="SparkSession"):
        DeltaTable.forPath("spark", table)


@pytest.mark.parametrize(
    ("scheme", "named", "is_open"),
    [
        ("s3a", None, False),  # Hadoop names a class for it, which PySpark does not have
        ("memory", None, False),
        ("har", None, True),
        ("mine", "org.apache.hadoop.fs.RawLocalFileSystem", True),
        ("mine", "no.such.FileSystem", False),
    ],
)
def test_hadoop_opens_the_schemes_that_it_has_a_class_for(spark, conf, scheme, named, is_open):
    if named is not None:
        conf(f"fs.{scheme}.impl", named)
    assert Jvm.of(spark).opens(scheme) is is_open


@pytest.mark.parametrize(
    ("path", "conf", "expected"),
    [
        ("/t", {}, True),
        ("file:///t", {}, True),
        ("hdfs://name/t", {}, True),
        ("s3a://bucket/t", {}, False),
        ("gs://bucket/t", {}, False),
        ("az://container/t", {}, False),
        ("/t", {"optimist.spark.plane": "arrow"}, False),
        ("s3a://bucket/t", {"spark.optimist.spark.plane": "native"}, True),
    ],
)
def test_the_plane_is_chosen_by_what_hadoop_opens_and_an_option_forces_it(
    spark, path, conf, expected
):
    assert is_native(spark, path, EngineOptions.from_options(conf), {}) is expected


def test_a_connector_that_does_not_see_our_own_keys_is_not_used(spark, monkeypatch):
    monkeypatch.setattr(Jvm, "opens", lambda self, scheme: scheme == "s3a")
    options = EngineOptions()
    assert is_native(spark, "s3a://b/t", options, {})
    assert not is_native(spark, "s3a://b/t", options, {"spark.optimist.store.s3.region": "x"})


def test_a_connector_that_does_not_see_the_keys_of_a_call_is_not_used(spark, monkeypatch, conf):
    monkeypatch.setattr(Jvm, "opens", lambda self, scheme: scheme == "s3a")
    conf("fs.s3a.access.key", "of the session")
    for value, expected in [("of the session", True), ("of the call", False)]:
        given = {"fs.s3a.access.key": value}
        assert is_native(spark, "s3a://b/t", EngineOptions(), given) is expected
        assert is_native(spark, "/t", EngineOptions(), given)


def test_a_forked_child_is_refused(spark, monkeypatch):
    Jvm.of(spark)
    monkeypatch.setattr(os, "getpid", lambda: -1)
    with pytest.raises(UsageError) as caught:
        Jvm.of(spark)
    assert caught.value.kind == "OPTIMIST_FORKED_SESSION"
