"""What commands record of the rows they change, against a model that goes row by row."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable as OtherTable

from changing_rows import COLUMNS, PART, ChangingTable
from hand_made_tables import field, make_table
from optimist.core import DeltaLog
from optimist.core.errors import ConcurrentAppendException, SchemaError, StorageError
from optimist.core.transaction.conflicts.operations import Operation
from optimist.spark import DeltaTable, read, write
from optimist.spark.commands.writing.data_writer import DataWriter

PLANE = "spark.optimist.spark.plane"
DEFAULTS = "spark.databricks.delta.properties.defaults."
COMMANDS = ["update", "delete", "append", "replace", "update", "overwrite", "replace", "delete"]
# With these, every UPDATE, DELETE and replaceWhere changes some rows of the table and not others.
SEEDS = [(2935, [PART], "false"), (2854, [], "true")]
FEED = {"delta.enableChangeDataFeed": "true"}


@pytest.fixture(autouse=True)
def with_feed(conf):
    conf(f"{DEFAULTS}enableChangeDataFeed", "true")


@pytest.fixture
def table(spark, table_path):
    """Ten rows in one file."""
    rows = spark.range(10).coalesce(1)
    write(rows.selectExpr("id", "CAST(id AS STRING) AS s", "id % 2 AS p"), table_path)
    return table_path


def counted(table, columns):
    return Counter(
        tuple(tuple(value.values()) if isinstance(value, dict) else value for value in row.values())
        for row in table.select(columns).to_pylist()
    )


def change_paths(path):
    return sorted(Path(path, "_change_data").rglob("*.parquet"))


def hidden_directories(path):
    """Directories that VACUUM of other engines passes over, but for the two that it knows."""
    names = {part for item in Path(path).rglob("*.*") for part in item.relative_to(path).parts[:-1]}
    return {name for name in names if name.startswith(("_", "."))}


def changes_of(path, version, *columns):
    """The changes of one version, by kind."""
    log = DeltaLog.for_path(path, {})
    found = log.changes(columns=[*columns, "_change_type"], starting_version=version)
    by_kind = {}
    for *values, kind in zip(*found.to_pydict().values(), strict=True):
        by_kind.setdefault(kind, []).append(values[0] if len(columns) == 1 else tuple(values))
    return {kind: sorted(rows) for kind, rows in by_kind.items()}


@pytest.mark.sample(2)
@pytest.mark.parametrize(("seed", "partition_by", "vectors"), SEEDS)
def test_the_feed_tells_what_each_command_changed(
    spark, table_path, every_plane, conf, seed, partition_by, vectors
):
    conf(f"{DEFAULTS}enableDeletionVectors", vectors)
    table = ChangingTable(table_path, seed)
    table.create(spark, partition_by)
    for command in COMMANDS:
        table.run(spark, command)
    log = DeltaLog.for_path(table_path, {})
    assert counted(log.to_arrow(), list(COLUMNS)) == Counter(table.rows)
    columns = [*COLUMNS, "_change_type", "_commit_version"]
    expected = Counter(
        {
            (*change, version): count
            for version, changes in table.changes.items()
            for change, count in changes.items()
        }
    )
    assert counted(log.changes(columns=columns, starting_version=1), columns) == expected
    by_spark = read(spark, table_path, readChangeFeed=True, startingVersion=1)
    assert counted(by_spark.toArrow(), columns) == expected
    assert hidden_directories(table_path) == {"_delta_log", "_change_data"}


@pytest.mark.again
@pytest.mark.parametrize("vectors", ["true", "false"])
@pytest.mark.usefixtures("plane")
def test_a_value_that_is_random_is_the_same_in_the_table_and_in_the_feed(
    spark, table_path, conf, vectors
):
    conf(f"{DEFAULTS}enableDeletionVectors", vectors)
    columns = ["CAST(id AS STRING) AS s", "0D AS r", "current_timestamp() AS t", "0L AS double_id"]
    write(spark.range(9).selectExpr("id", *columns), table_path)
    new = {"s": "uuid()", "r": "rand()", "t": "current_timestamp()"}
    DeltaTable.forPath(spark, table_path).update("id % 2 = 0", new)
    rows = read(spark, table_path).where("id % 2 = 0").select("s", "r", "t").collect()
    assert len({row.s for row in rows}) == 5
    found = read(spark, table_path, readChangeFeed=True, startingVersion=1)
    after = found.where("_change_type = 'update_postimage'").select("s", "r", "t").collect()
    assert sorted(after) == sorted(rows)
    assert changes_of(table_path, 1, "id", "s")["update_preimage"] == [
        (i, str(i)) for i in range(0, 9, 2)
    ]


@pytest.mark.again
@pytest.mark.usefixtures("plane")
def test_files_of_changes_are_counted_and_other_engines_read_them(spark, table_path):
    rows = spark.range(40).selectExpr("id", "id % 10 AS x", "concat('p ', id % 2) AS p")
    write(rows.coalesce(1), table_path, partitionBy="p")
    target = DeltaTable.forPath(spark, table_path)
    target.delete("x = 3")
    target.update("id = 8", {"x": "NULL", "p": "'p 1'"})
    new = rows.where("x = 5").coalesce(1)
    write(new, table_path, mode="overwrite", replaceWhere="x IN (5, 7)")
    target.delete("p = 'p 0'")
    write(rows.limit(3), table_path, mode="append")
    infos = DeltaLog.for_path(table_path, {}).history()
    counts = [info.info.operation_metrics.get("numAddedChangeFiles") for info in infos]
    assert counts == [None, "0", "2", "2", "1", None]
    assert len(change_paths(table_path)) == 5
    assert all(len(path.relative_to(table_path).parts) == 4 for path in change_paths(table_path))
    columns = ["id", "x", "p", "_change_type", "_commit_version"]
    theirs = pa.table(OtherTable(table_path).load_cdf(starting_version=1).read_all())
    ours = DeltaLog.for_path(table_path, {}).changes(starting_version=1)
    assert counted(theirs, columns) == counted(ours, columns)
    assert len(ours) == 4 + 2 + 12 + 19 + 3


@pytest.mark.again
@pytest.mark.usefixtures("plane")
def test_generated_columns_and_broken_constraints_are_recorded_as_they_were(spark, tmp_path):
    fields = [
        field("id", "long"),
        {**field("twice", "long"), "metadata": {"delta.generationExpression": "id * 2"}},
    ]
    path = str(tmp_path)
    features = ("changeDataFeed", "generatedColumns", "checkConstraints")
    make_table(tmp_path, fields, [], configuration=FEED, features=features)
    write(spark.range(1, 4).coalesce(1), path, mode="append")
    log = DeltaLog.for_path(path, {})
    txn = log.start_transaction()
    configuration = {**txn.metadata.configuration, "delta.constraints.big": "id > 2"}
    txn.update_metadata(replace(txn.metadata, configuration=configuration))

    txn.commit((), Operation("SET TBLPROPERTIES"))
    DeltaTable.forPath(spark, path).update("id < 3", {"id": "id + 10"})
    assert changes_of(path, 3, "id", "twice") == {
        "update_preimage": [(1, 2), (2, 4)],
        "update_postimage": [(11, 22), (12, 24)],
    }


@pytest.mark.again
@pytest.mark.usefixtures("plane")
def test_a_command_that_fails_leaves_no_file_of_changes(spark, table, monkeypatch):
    target = DeltaTable.forPath(spark, table)
    files = sorted(Path(table).rglob("*.parquet"))
    boom = "if(id = 7, raise_error('boom'), 'new')"
    with pytest.raises(Exception, match="boom"):
        target.update("id > 3", {"s": boom})
    assert sorted(Path(table).rglob("*.parquet")) == files
    write_files = DataWriter.write

    def meet(self, rows, pending, **more):
        monkeypatch.setattr(DataWriter, "write", write_files)
        written = self.write(rows, pending, **more)
        assert change_paths(table)
        DeltaLog.for_path(table, {}).append(pa.table({"id": [5], "s": ["x"], "p": [1]}))
        return written

    monkeypatch.setattr(DataWriter, "write", meet)
    with pytest.raises(ConcurrentAppendException):
        target.delete("id = 5")
    assert len(sorted(Path(table).rglob("*.parquet"))) == len(files) + 1
    assert not change_paths(table)


def test_a_directory_that_can_not_be_renamed_leaves_no_file(spark, table, monkeypatch, conf):
    conf(PLANE, "native")
    files = sorted(Path(table).rglob("*.parquet"))
    Path(table, "_change_data").write_text("in the way")
    with pytest.raises(StorageError) as caught:
        DeltaTable.forPath(spark, table).delete("id = 5")
    assert caught.value.kind == "OPTIMIST_STORAGE_FAILED"
    assert sorted(Path(table).rglob("*.parquet")) == files


def test_a_column_with_a_name_of_the_feed_is_refused_before_anything_is_written(spark, tmp_path):
    fields = [field("id", "long"), field("_change_type", "string")]
    make_table(tmp_path, fields, [], configuration=FEED, features=("changeDataFeed",))
    path = str(tmp_path)
    write(spark.range(3), path, mode="append")
    files = sorted(Path(path).rglob("*.parquet"))
    target = DeltaTable.forPath(spark, path)
    for change in (lambda: target.delete("id = 1"), lambda: target.update("id = 1", {"id": "9"})):
        with pytest.raises(SchemaError) as caught:
            change()
        assert caught.value.kind == "RESERVED_CDC_COLUMNS_ON_WRITE"
    assert sorted(Path(path).rglob("*.parquet")) == files


@pytest.mark.usefixtures("plane")
def test_columns_that_are_mapped_are_found_in_files_of_changes(spark, table_path, conf):
    conf(f"{DEFAULTS}columnMapping.mode", "id")
    rows = spark.range(4).selectExpr(
        "id AS `a b`", "named_struct('x,y', id) AS s", "concat('p', id % 2) AS `p q`"
    )
    write(rows.coalesce(1), table_path, partitionBy="p q")
    target = DeltaTable.forPath(spark, table_path)
    target.update("`a b` > 2", {"s.`x,y`": "100", "`p q`": "'z'"})
    columns = ["a b", "s", "p q"]
    assert changes_of(table_path, 1, *columns) == {
        "update_preimage": [(3, {"x,y": 3}, "p1")],
        "update_postimage": [(3, {"x,y": 100}, "z")],
    }
    found = read(spark, table_path, readChangeFeed=True, startingVersion=1)
    ours = DeltaLog.for_path(table_path, {}).changes(starting_version=1)
    columns.append("_change_type")
    assert counted(found.toArrow(), columns) == counted(ours, columns)


@pytest.mark.usefixtures("plane")
def test_rows_that_stay_get_the_columns_that_their_replacements_bring(spark, table_path):
    write(spark.range(3).coalesce(1).selectExpr("id", "struct(id AS a) AS s"), table_path)
    new = ("1L AS id", "named_struct('a', 7L, 'b', 'x') AS s", "'new' AS n")
    write(
        spark.range(1).selectExpr(*new),
        table_path,
        mode="overwrite",
        replaceWhere="id = 1",
        mergeSchema=True,
    )
    assert sorted(read(spark, table_path).collect()) == [
        (0, (0, None), None),
        (1, (7, "x"), "new"),
        (2, (2, None), None),
    ]
    assert changes_of(table_path, 1, "id", "n") == {"delete": [(1, None)], "insert": [(1, "new")]}
