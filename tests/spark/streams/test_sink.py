"""Streams that write into a table: each batch is one commit, and none comes twice (spec 11.4)."""

import json
from collections import Counter, defaultdict
from pathlib import Path

import pytest
from pyspark.errors import AnalysisException

from optimist.core import DeltaLog
from optimist.core.errors import ConcurrentTransactionException, SchemaError, UsageError
from optimist.logstores.local import LocalLogStore
from optimist.spark import disable, enable, write_stream


@pytest.fixture
def source(enabled, tmp_path):
    """A folder of files that streams read one per batch; call it to add one."""
    folder = tmp_path / "in"
    count = 0

    def add(sql="SELECT id, CAST(id % 2 AS INT) AS p FROM range(3)"):
        nonlocal count
        enabled.sql(sql).coalesce(1).write.mode("append").parquet(f"{folder}/{count}")
        count += 1

    return add


@pytest.fixture
def run(enabled, tmp_path):
    """Runs a stream from the source's folder to its end."""

    def start(target, schema="id LONG, p INT", *, checkpoint="ck", change=lambda w: w, plan=None):
        reader = enabled.readStream.schema(schema).option("maxFilesPerTrigger", 1)
        rows = reader.parquet(f"{tmp_path}/in/*")
        writer = (plan(rows) if plan else rows).writeStream.format("delta")
        writer = writer.option("checkpointLocation", f"{tmp_path}/{checkpoint}")
        query = change(writer).trigger(availableNow=True).start(str(target))
        query.awaitTermination()
        return query

    return start


def commits(path):
    """The actions of each commit of a table."""
    files = sorted(Path(path, "_delta_log").glob("*.json"))
    return [[json.loads(line) for line in file.read_text().splitlines()] for file in files]


def recorded(path):
    return [action["txn"] for commit in commits(path) for action in commit if "txn" in action]


def forget_batches(checkpoint, first):
    """Let Spark's record of batches end before one of them, as if it had crashed there."""
    for file in (Path(checkpoint) / "commits").iterdir():
        if int(file.name.strip(".").split(".")[0]) >= first:
            file.unlink()


@pytest.mark.again
def test_each_batch_is_one_commit_of_the_query(source, run, table_path):
    source()
    source()
    query = run(table_path)
    assert DeltaLog.for_path(table_path).count() == 6
    assert [(txn["appId"], txn["version"]) for txn in recorded(table_path)] == [
        (query.id, 0),
        (query.id, 1),
    ]
    info = DeltaLog.for_path(table_path).history()[0].info
    assert info.operation == "STREAMING UPDATE"
    assert info.operation_parameters == {
        "outputMode": "Append",
        "queryId": query.id,
        "epochId": "1",
    }
    assert {name: info.operation_metrics[name] for name in ("numAddedFiles", "numOutputRows")} == {
        "numAddedFiles": "1",
        "numOutputRows": "3",
    }
    assert info.operation_metrics["numRemovedFiles"] == "0"


@pytest.mark.again
def test_a_batch_that_spark_has_not_recorded_is_not_committed_again(
    source, run, table_path, tmp_path
):
    source()
    run(table_path)
    forget_batches(tmp_path / "ck", 0)
    source()
    run(table_path)
    assert [txn["version"] for txn in recorded(table_path)] == [0, 1]
    assert DeltaLog.for_path(table_path).count() == 6


@pytest.mark.again
def test_a_batch_without_rows_is_recorded(source, run, table_path):
    source()
    run(table_path)
    source()
    run(table_path, plan=lambda rows: rows.where("id > 100"))
    assert [txn["version"] for txn in recorded(table_path)] == [0, 1]
    assert DeltaLog.for_path(table_path).count() == 3


@pytest.fixture
def requests(monkeypatch, table_path):
    """The requests to the table's log, by the newest version that was there before each."""
    seen, log_path = defaultdict(list), f"{table_path}/_delta_log"

    def count(name):
        original = getattr(LocalLogStore, name)

        def counted(store, path, *arguments):
            if path.startswith(log_path):
                seen[len(list(Path(log_path).glob("*.json"))) - 1].append(name)
            return original(store, path, *arguments)

        monkeypatch.setattr(LocalLogStore, name, counted)

    for name in ("put_if_absent", "put_overwrite", "read_bytes", "list_from", "find"):
        count(name)
    return seen


@pytest.mark.again
def test_a_batch_looks_at_the_log_as_it_begins_and_as_it_commits(source, run, table_path, requests):
    for _ in range(4):
        source()
    run(table_path)
    # A look asks for the newest commit, for the next one, and for two behind that, which show a
    # hole; the ninth is for the checksum.
    assert Counter(requests[2]) == {"find": 9, "put_if_absent": 2}


def test_complete_mode_replaces_all_rows(source, run, table_path):
    source()
    source()
    run(
        table_path,
        plan=lambda rows: rows.groupBy("p").count(),
        change=lambda writer: writer.outputMode("complete"),
    )
    found = DeltaLog.for_path(table_path).to_arrow().sort_by("p").to_pylist()
    assert found == [{"p": 0, "count": 4}, {"p": 1, "count": 2}]
    info = DeltaLog.for_path(table_path).history()[0].info
    assert info.operation_parameters["outputMode"] == "Complete"
    assert int(info.operation_metrics["numRemovedFiles"]) > 0


def test_update_mode_is_refused_before_the_query_starts(source, run, table_path):
    source()
    with pytest.raises(UsageError) as caught:
        run(table_path, change=lambda writer: writer.outputMode("update"))
    assert caught.value.kind == "DELTA_UNSUPPORTED_OUTPUT_MODE"
    assert isinstance(caught.value, AnalysisException)
    assert not Path(table_path).exists()


@pytest.mark.again
def test_values_are_cast_to_the_types_of_the_table(enabled, source, run, table_path):
    enabled.sql(f"CREATE TABLE delta.`{table_path}` (id INT, p STRING) USING delta")
    source()
    run(table_path)
    found = DeltaLog.for_path(table_path).to_arrow().sort_by("id").to_pylist()
    assert found == [{"id": 0, "p": "0"}, {"id": 1, "p": "1"}, {"id": 2, "p": "0"}]


@pytest.mark.again
def test_columns_are_added_only_if_the_option_says_so(enabled, source, run, table_path):
    enabled.sql(f"CREATE TABLE delta.`{table_path}` (id LONG) USING delta")
    source()
    with pytest.raises(SchemaError) as caught:
        run(table_path)
    assert caught.value.kind == "DELTA_METADATA_MISMATCH"
    assert DeltaLog.for_path(table_path).snapshot().version == 0
    run(table_path, change=lambda writer: writer.option("mergeSchema", "true"))
    assert DeltaLog.for_path(table_path).snapshot().schema.names == ("id", "p")


def test_tables_are_partitioned_clustered_and_configured_by_the_first_batch(
    source, run, table_path, tmp_path
):
    source()
    run(
        table_path,
        change=lambda w: w.partitionBy("p").option("delta.enableChangeDataFeed", "true"),
    )
    snapshot = DeltaLog.for_path(table_path).snapshot()
    assert snapshot.partition_columns == ("p",)
    assert snapshot.properties.enable_change_data_feed
    other = str(tmp_path / "other")
    for _ in range(2):
        source()
        run(other, checkpoint="ck2", change=lambda writer: writer.clusterBy("p"))
    operations = {record.info.operation for record in DeltaLog.for_path(other).history()}
    assert operations == {"STREAMING UPDATE"}
    assert len(recorded(other)) == DeltaLog.for_path(other).snapshot().version + 1


@pytest.mark.again
def test_constraints_defaults_and_generated_columns_hold_for_streams(
    enabled, source, run, table_path
):
    enabled.sql(
        f"CREATE TABLE delta.`{table_path}` (id LONG NOT NULL, p INT, g LONG GENERATED ALWAYS AS "
        "(id * 2), n LONG GENERATED ALWAYS AS IDENTITY) USING delta"
    )
    enabled.sql(f"ALTER TABLE delta.`{table_path}` ADD CONSTRAINT small CHECK (id < 100)")
    source()
    run(table_path)
    found = DeltaLog.for_path(table_path).to_arrow().to_pylist()
    assert sorted((row["id"], row["g"]) for row in found) == [(0, 0), (1, 2), (2, 4)]
    assert len({row["n"] for row in found}) == 3
    version = DeltaLog.for_path(table_path).snapshot().version
    source("SELECT 500L AS id, 1 AS p")
    with pytest.raises(SchemaError) as caught:
        run(table_path)
    assert caught.value.kind == "DELTA_VIOLATE_CONSTRAINT_WITH_VALUES"
    assert DeltaLog.for_path(table_path).snapshot().version == version


def test_bare_nulls_are_refused(source, run, table_path):
    source()
    with pytest.raises(SchemaError) as caught:
        run(table_path, plan=lambda rows: rows.selectExpr("id", "NULL AS p"))
    assert caught.value.kind == "DELTA_NULL_SCHEMA_IN_STREAMING_WRITE"
    assert not Path(table_path).exists()


@pytest.mark.again
def test_options_that_replace_rows_have_no_effect(source, run, table_path):
    source()
    source()
    replaced = {"replaceWhere": "id > 0", "txnAppId": "x", "txnVersion": "0", "dataChange": "false"}
    run(table_path, change=lambda writer: writer.options(**replaced))
    assert DeltaLog.for_path(table_path).count() == 6


@pytest.mark.again
def test_two_runs_of_one_query_conflict(source, run, meeting, table_path, tmp_path):
    source()
    query = run(table_path)
    source()

    def other_run():
        log = DeltaLog.for_path(table_path, {})
        log.append(log.to_arrow(), txn=(query.id, 1))

    meeting(other_run)
    with pytest.raises(ConcurrentTransactionException) as caught:
        run(table_path)
    assert caught.value.kind == "DELTA_CONCURRENT_TRANSACTION"
    assert [txn["version"] for txn in recorded(table_path)] == [0, 1]


def test_a_table_is_found_and_made_by_its_name(enabled, source, tmp_path):
    source()
    enabled.sql("CREATE DATABASE IF NOT EXISTS streams")
    try:
        rows = enabled.readStream.schema("id LONG, p INT").parquet(f"{tmp_path}/in/*")
        for count in (3, 6):
            writer = rows.writeStream.format("delta").trigger(availableNow=True).partitionBy("p")
            writer = writer.option("checkpointLocation", f"{tmp_path}/ck")
            writer.toTable("streams.t").awaitTermination()
            assert enabled.table("streams.t").count() == count
            source()
        assert len(enabled.sql("SHOW PARTITIONS streams.t").collect()) == 2
    finally:
        enabled.sql("DROP DATABASE streams CASCADE")


def test_a_path_is_no_name(enabled, source, table_path, tmp_path):
    source()
    enabled.range(1).write.format("delta").save(table_path)
    rows = enabled.readStream.schema("id LONG, p INT").parquet(f"{tmp_path}/in/*")
    writer = rows.writeStream.format("delta").option("checkpointLocation", f"{tmp_path}/ck")
    with pytest.raises(UsageError) as caught:
        writer.toTable(f"delta.`{table_path}`")
    assert caught.value.kind == "DELTA_INVALID_V1_TABLE_CALL"


def test_a_session_that_is_not_enabled_writes_by_a_function(spark, source, table_path, tmp_path):
    disable(spark)
    try:
        for count in (3, 6):
            source()
            rows = spark.readStream.schema("id LONG, p INT").parquet(f"{tmp_path}/in/*")
            checkpoint, trigger = f"{tmp_path}/ck", {"availableNow": True}
            query = write_stream(rows, table_path, checkpoint, trigger=trigger, partitionBy="p")
            query.awaitTermination()
            assert DeltaLog.for_path(table_path).count() == count
        assert {txn["appId"] for txn in recorded(table_path)} == {query.id}
        assert [txn["version"] for txn in recorded(table_path)] == [0, 1]
        with pytest.raises(UsageError) as caught:
            write_stream(rows, table_path, f"{tmp_path}/ck2", outputMode="update")
        assert caught.value.kind == "DELTA_UNSUPPORTED_OUTPUT_MODE"
    finally:
        enable(spark)
