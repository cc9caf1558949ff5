"""`DeltaLog.write` against a model that goes through the rows one by one."""

from __future__ import annotations

import datetime as dt
import shutil
from decimal import Decimal
from pathlib import Path

import deltalake
import pandas as pd
import pyarrow as pa
import pytest
from deltalake import QueryBuilder
from hypothesis import given, settings
from hypothesis import strategies as st

from command_rows import as_table, conditions, counted, is_true, rows_strategy
from local_tables import (
    PROPERTIES,
    Fate,
    changes_since,
    counted_changes,
    live_rows,
    make,
    metrics_of,
    opened,
)
from optimist.core import DeltaLog, col
from optimist.core.data.storage.filesystem import make_durable
from optimist.core.errors import (
    ArgumentTypeError,
    ConcurrentAppendException,
    ConfigError,
    DeltaConcurrentModificationException,
    SchemaError,
    StorageError,
    UsageError,
)
from partitioned_rows import files_below, parted, table_of

STEP = st.one_of(
    st.tuples(st.just("append"), st.none(), rows_strategy(4)),
    st.tuples(st.just("overwrite"), st.none(), rows_strategy(4)),
    st.tuples(st.just("dynamic"), st.none(), rows_strategy(4)),
    st.tuples(st.just("where"), conditions(), rows_strategy(4)),
    st.tuples(st.just("matching"), conditions(), rows_strategy(6)),
)


def stored(rows, fate):
    """Empty text is null in a partition."""
    empty = [name for name in fate.partition_by if name == "s"]
    return [{**row, **{name: row[name] or None for name in empty}} for row in rows]


def replaced(model, kind, condition, rows, fate):
    """The rows of the table that a write removes."""
    if kind == "append":
        return []
    if kind in ("where", "matching"):
        return [row for row in model if is_true(condition, row)]
    if kind == "overwrite" or not fate.partition_by:
        return model
    written = {tuple(row[name] for name in fate.partition_by) for row in rows}
    return [row for row in model if tuple(row[name] for name in fate.partition_by) in written]


def write_step(log, kind, condition, rows):
    if kind == "append":
        return log.write(as_table(rows))
    if kind in ("where", "matching"):
        return log.write(as_table(rows), "overwrite", predicate=condition.sql)
    how = "dynamic" if kind == "dynamic" else "static"
    return log.write(as_table(rows), mode="overwrite", partition_overwrite=how)


@given(rows_strategy(6), st.lists(STEP, min_size=1, max_size=4), PROPERTIES)
@settings(max_examples=settings.default.max_examples // 2, deadline=None)
@pytest.mark.parametrize("fate", list(Fate))
def test_write_after_write_leaves_the_rows_of_the_model(
    tmp_path_factory, fate, first, steps, properties
):
    path = tmp_path_factory.mktemp("model") / "t"
    log = make(path, fate, [first], **properties)
    model = stored(first, fate)
    for kind, condition, given_rows in steps:
        rows = stored(given_rows, fate)
        if kind == "matching":
            given_rows = rows = [row for row in rows if is_true(condition, row)]
        before = log.snapshot().version
        if kind == "where" and not all(is_true(condition, row) for row in rows):
            with pytest.raises(SchemaError) as caught:
                write_step(log, kind, condition, given_rows)
            assert caught.value.kind == "DELTA_REPLACE_WHERE_MISMATCH"
            assert log.snapshot().version == before
            continue
        gone = replaced(model, kind, condition, rows, fate)
        assert write_step(log, kind, condition, given_rows).version == before + 1
        model = [row for row in model if not any(row is other for other in gone)] + rows
        assert counted(live_rows(log)) == counted(model), (kind, condition)
        if properties:
            expected = counted_changes(
                [*(("delete", row) for row in gone), *(("insert", row) for row in rows)]
            )
            assert changes_since(log, before) == expected, (kind, condition)
    assert log.count() == len(model)
    if "columnMapping.mode" not in properties:
        assert rows_of_another_engine(path) == len(model)


def rows_of_another_engine(path: Path) -> int:
    engine = QueryBuilder().register("t", deltalake.DeltaTable(str(path)))
    (count,) = pa.table(engine.execute("SELECT count(*) AS n FROM t"))["n"].to_pylist()
    return count


@pytest.fixture
def log(tmp_path) -> DeltaLog:
    log = DeltaLog.for_path(str(tmp_path / "t"))
    log.write(table_of([1, 2, 3], ["a", "b", "b"]), partition_by=["p"])
    return log


@pytest.mark.parametrize("mode", ["append", "overwrite", "error", "ignore"])
def test_each_mode_makes_a_table(tmp_path, mode):
    log = DeltaLog.for_path(str(tmp_path / "t"))
    assert log.write(table_of([1], ["a"]), mode, partition_by=["p"]).version == 0
    assert log.snapshot().partition_columns == ("p",)
    names = {"append": "Append", "overwrite": "Overwrite", "ignore": "Ignore"}
    info = log.history(1)[0].info
    assert info.operation == "WRITE"
    assert info.operation_parameters == {
        "mode": names.get(mode, "ErrorIfExists"),
        "partitionBy": '["p"]',
    }
    assert info.is_blind_append is (mode != "overwrite")


def test_modes_that_make_a_table_leave_one_that_exists(log):
    assert log.write(table_of([9], ["z"]), "ignore") is None
    with pytest.raises(UsageError) as caught:
        log.write(table_of([9], ["z"]), "error")
    assert caught.value.kind == "DELTA_PATH_EXISTS"
    assert log.version() == 0


def test_an_overwrite_of_a_table_that_does_not_exist_checks_the_predicate(tmp_path):
    log = DeltaLog.for_path(str(tmp_path / "t"))
    with pytest.raises(SchemaError) as caught:
        log.write(table_of([1, 2], ["a", "b"]), "overwrite", predicate="p = 'a'")
    assert caught.value.kind == "DELTA_REPLACE_WHERE_MISMATCH"
    assert not log.table_exists()
    log.write(table_of([1], ["a"]), "overwrite", predicate="p = 'a'")
    assert log.history(1)[0].info.operation_parameters["predicate"] == "p = 'a'"


def test_the_history_says_what_was_asked(log):
    log.write(table_of([4], ["b"]), "overwrite", partition_overwrite="dynamic", user_metadata="m")
    info = log.history(1)[0].info
    assert info.operation_parameters == {
        "mode": "Overwrite",
        "partitionBy": "[]",
        "isDynamicPartitionOverwrite": True,
    }
    assert info.user_metadata == "m"
    counts = ("numFiles", "numOutputRows", "numRemovedFiles")
    assert metrics_of(log, *counts) == (1, 1, 1)
    assert parted(log) == {"a": [1], "b": [4]}
    log.write(table_of([5], ["c"]), "overwrite", predicate=col("id") > 3, partition_by=["p"])
    info = log.history(1)[0].info
    assert info.operation_parameters == {
        "mode": "Overwrite",
        "partitionBy": '["p"]',
        "predicate": str(col("id") > 3),
    }
    assert metrics_of(log, *counts, "numDeletedRows", "numCopiedRows") == (1, 1, 1, 1, 0)
    assert parted(log) == {"a": [1], "c": [5]}


def test_null_does_not_satisfy_the_predicate(log):
    before = files_below(log)
    with pytest.raises(SchemaError) as caught:
        log.write(table_of([4, 5], ["b", None]), "overwrite", predicate="p = 'b'")
    assert caught.value.kind == "DELTA_REPLACE_WHERE_MISMATCH"
    with pytest.raises(SchemaError):  # empty text is null in the table
        log.write(table_of([4], [""]), "overwrite", predicate="p = ''")
    assert files_below(log) == before
    log.write(table_of([4], [None]), "overwrite", predicate="p IS NULL")
    log.write(table_of([5], [""]), "overwrite", predicate="p IS NULL")
    assert parted(log) == {"a": [1], "b": [2, 3], None: [5]}


def test_a_replay_is_skipped(log):
    assert log.write(table_of([4], ["c"]), txn=("job", 3)).version == 1
    assert log.write(table_of([4], ["c"]), "overwrite", txn=("job", 3)) is None
    assert log.write(table_of([5], ["c"]), "overwrite", txn=("job", 4)).version == 2
    assert log.write(table_of([5], ["c"]), "error", txn=("job", 4)) is None
    with pytest.raises(UsageError):
        log.write(table_of([5], ["c"]), "error", txn=("job", 5))
    assert parted(log) == {"c": [5]}


@pytest.mark.parametrize(
    ("arguments", "kind"),
    [
        ({"mode": "replace"}, "OPTIMIST_UNKNOWN_MODE"),
        ({"mode": None}, "OPTIMIST_UNKNOWN_MODE"),
        ({"mode": ["append"]}, "OPTIMIST_UNKNOWN_MODE"),
        ({"partition_overwrite": "all"}, "OPTIMIST_INVALID_ARGUMENT"),
        ({"schema_mode": "mergeSchema"}, "OPTIMIST_INVALID_ARGUMENT"),
        ({"target_file_size": 0}, "OPTIMIST_INVALID_ARGUMENT"),
        ({"predicate": "id = 1"}, "OPTIMIST_INVALID_ARGUMENT"),
        ({"partition_overwrite": "dynamic"}, "OPTIMIST_INVALID_ARGUMENT"),
        ({"schema_mode": "overwrite"}, "OPTIMIST_INVALID_ARGUMENT"),
        (
            {"mode": "overwrite", "predicate": "id = 1", "partition_overwrite": "dynamic"},
            "DELTA_REPLACE_WHERE_WITH_DYNAMIC_PARTITION_OVERWRITE",
        ),
        (
            {"mode": "overwrite", "schema_mode": "overwrite", "partition_overwrite": "dynamic"},
            "DELTA_OVERWRITE_SCHEMA_WITH_DYNAMIC_PARTITION_OVERWRITE",
        ),
        (
            {"mode": "overwrite", "schema_mode": "overwrite", "predicate": "id = 1"},
            "OPTIMIST_INVALID_ARGUMENT",
        ),
        ({"mode": "overwrite", "predicate": "soundex(p) = 'x'"}, "OPTIMIST_NEEDS_SPARK"),
        ({"mode": "overwrite", "predicate": "id ="}, "OPTIMIST_INVALID_PREDICATE"),
    ],
)
def test_arguments_that_mean_nothing_are_refused(log, arguments, kind):
    before = files_below(log)
    with pytest.raises(UsageError) as caught:
        log.write(table_of([4], ["c"]), **arguments)
    assert caught.value.kind == kind
    assert files_below(log) == before


@pytest.mark.parametrize(
    "arguments",
    [{"partition_by": "p"}, {"txn": "job"}, {"user_metadata": 5}, {"target_file_size": "1 GB"}],
)
def test_arguments_of_another_type_are_refused(log, arguments):
    with pytest.raises(ArgumentTypeError):
        log.write(table_of([4], ["c"]), **arguments)
    with pytest.raises(ArgumentTypeError):
        log.write([{"id": 1}])
    assert log.version() == 0


def test_a_condition_on_data_columns_can_be_forbidden(tmp_path):
    key = "spark.databricks.delta.replaceWhere.dataColumns.enabled"
    log = DeltaLog.for_path(str(tmp_path / "t"), {key: "false"})
    log.write(table_of([1], ["a"]), partition_by=["p"])
    with pytest.raises(UsageError) as caught:
        log.write(table_of([1], ["a"]), "overwrite", predicate="id = 1")
    assert caught.value.kind == "DELTA_REPLACE_WHERE_ON_DATA_COLUMNS_DISABLED"
    log.write(table_of([2], ["a"]), "overwrite", predicate="p = 'a'")
    assert parted(log) == {"a": [2]}


def test_the_check_of_new_rows_can_be_left_out(tmp_path):
    key = "spark.databricks.delta.replaceWhere.constraintCheck.enabled"
    log = DeltaLog.for_path(str(tmp_path / "t"), {key: "false"})
    log.write(table_of([1], ["a"]), partition_by=["p"])
    log.write(table_of([2], ["b"]), "overwrite", predicate="p = 'a'")
    assert parted(log) == {"b": [2]}


def test_a_new_table_gets_properties_that_an_existing_one_must_have(tmp_path):
    log = DeltaLog.for_path(str(tmp_path / "t"))
    given = {"delta.EnableChangeDataFeed": "true", "delta.feature.deletionVectors": "supported"}
    for mode in ("error", "append", "overwrite"):
        log.write(table_of([1], ["a"]), mode, properties={**given, "own": "x"})
    found = log.snapshot().metadata.configuration
    assert found == {"delta.enableChangeDataFeed": "true", "own": "x"}
    assert "deletionVectors" in log.snapshot().protocol.writer_features
    log.append(table_of([1], ["a"]), properties={"own": "x"})
    log.write(table_of([1], ["a"]), "overwrite")
    with pytest.raises(SchemaError):
        log.append(table_of([2], ["a"]), properties={"own": "y"})
    for other in ({"own": "y"}, {"more": "x"}, {"delta.feature.rowTracking": "supported"}):
        with pytest.raises(SchemaError) as caught:
            log.write(table_of([2], ["a"]), properties=other)
        assert caught.value.kind == "DELTA_CREATE_TABLE_WITH_DIFFERENT_PROPERTY"
    with pytest.raises(ConfigError):
        log.write(table_of([2], ["a"]), properties={"delta.nope": "1"})
    with pytest.raises(ArgumentTypeError):
        log.write(table_of([2], ["a"]), properties=["own"])
    assert parted(log) == {"a": [1]}


# Failures


@pytest.mark.parametrize("has_vectors", [True, False])
def test_a_write_that_fails_half_way_leaves_no_file(tmp_path, has_vectors, monkeypatch):
    log = opened(tmp_path / "t", has_vectors=has_vectors, enableChangeDataFeed="true")
    log.write(table_of(list(range(8)), ["a"] * 8))
    before = files_below(log)

    def failing(*_: object, **__: object) -> None:
        raise StorageError("The disk is full.", kind="OPTIMIST_STORAGE_FAILED")

    monkeypatch.setattr("optimist.core.local.write.make_durable", failing)
    for arguments in ({}, {"predicate": "id > 5"}):
        with pytest.raises(StorageError):
            log.write(table_of([7], ["a"]), "overwrite", **arguments)
        assert files_below(log) == before


def test_a_write_into_a_table_that_is_dropped_meanwhile_says_so(tmp_path, monkeypatch):
    log = opened(tmp_path / "t", has_vectors=False)
    log.write(table_of([1], ["a"]))

    def drop_first(*given: object) -> None:
        shutil.rmtree(tmp_path / "t")
        make_durable(*given)

    monkeypatch.setattr("optimist.core.local.write.make_durable", drop_first)
    with pytest.raises(StorageError, match="Nothing was committed") as caught:
        log.write(table_of([2], ["a"]))
    assert caught.value.kind == "OPTIMIST_PREDECESSOR_MISSING"
    assert not (tmp_path / "t").exists()


def test_rows_that_break_a_constraint_leave_no_file_of_the_deletion(tmp_path):
    log = opened(tmp_path / "t", has_vectors=False)
    log.write(table_of(list(range(8)), ["a"] * 8))
    log.alter.add_constraint("small", "id < 100")
    before = files_below(log)
    with pytest.raises(SchemaError) as caught:
        log.write(table_of([200], ["a"]), "overwrite", predicate="id > 5")
    assert caught.value.kind == "DELTA_VIOLATE_CONSTRAINT_WITH_VALUES"
    assert files_below(log) == before


# Concurrency


def test_of_two_overwrites_one_is_a_conflict(log):
    with pytest.raises(DeltaConcurrentModificationException), log.transaction() as slow:
        slow.write(table_of([7], ["x"]), "overwrite")
        log.write(table_of([8], ["y"]), "overwrite")
    assert parted(log) == {"y": [8]}


@pytest.mark.parametrize(
    ("winner", "is_conflict"), [(table_of([9], ["b"]), True), (table_of([9], ["z"]), False)]
)
@pytest.mark.parametrize("how", [{"predicate": "p = 'b'"}, {"partition_overwrite": "dynamic"}])
def test_an_append_conflicts_where_it_could_match(log, winner, is_conflict, how):
    def race() -> None:
        with log.transaction() as slow:
            slow.write(table_of([7], ["b"]), "overwrite", **how)
            log.write(winner)

    if is_conflict:
        with pytest.raises(ConcurrentAppendException):
            race()
        assert parted(log) == {"a": [1], "b": [2, 3, 9]}
    else:
        race()
        assert parted(log) == {"a": [1], "b": [7], "z": [9]}


def test_two_writes_that_make_one_table_do_not_both_land(tmp_path):
    log = DeltaLog.for_path(str(tmp_path / "t"))
    with pytest.raises(DeltaConcurrentModificationException), log.transaction() as slow:
        slow.write(table_of([1], ["a"]), "error")
        log.write(table_of([2], ["b"]), "error")
    assert parted(log) == {"b": [2]}


def test_overwrites_within_a_transaction_see_what_was_before_them(log):
    with log.transaction() as txn:
        txn.write(table_of([4], ["c"]))
        txn.write(table_of([5], ["c"]), "overwrite", partition_overwrite="dynamic")
        txn.write(table_of([6], ["b"]), "overwrite", predicate="id > 1 AND p = 'b'")
        assert txn.write(table_of([7], ["c"]), "ignore") is None
    assert parted(log) == {"a": [1], "b": [6], "c": [5]}
    assert log.version() == 1


# Rows of the table itself


def test_an_overwrite_by_its_own_rows_does_not_remove_rows_that_came_later(log):
    scan = log.scan("id > 1")
    log.append(table_of([9], ["z"]))
    with pytest.raises(ConcurrentAppendException):
        log.write(scan, "overwrite")
    assert parted(log) == {"a": [1], "b": [2, 3], "z": [9]}
    log.write(log.scan("id > 1"), "overwrite")
    assert parted(log) == {"b": [2, 3], "z": [9]}


def test_an_overwrite_by_a_chosen_version_restores_it(log):
    log.append(table_of([9], ["z"]))
    log.write(log.scan(version=0), "overwrite")
    assert parted(log) == {"a": [1], "b": [2, 3]}


def test_an_append_of_its_own_rows_reads_the_table(log):
    log.append(log.scan("id = 1"))
    assert log.history(1)[0].info.is_blind_append is False
    other = DeltaLog.for_path(log.table_path + "-other")
    other.append(log.scan())
    assert other.history(1)[0].info.is_blind_append is True
    assert parted(other) == {"a": [1, 1], "b": [2, 3]}


# The schema


def test_an_append_adds_columns_where_it_may(log):
    more = pa.table({"id": [4], "p": ["c"], "n": pa.array([{"x": 1}])})
    with pytest.raises(SchemaError) as caught:
        log.append(more)
    assert caught.value.kind == "DELTA_METADATA_MISMATCH"
    assert "schema_mode='merge'" in str(caught.value)
    log.append(more, schema_mode="merge")
    log.append(pa.table({"n": pa.array([{"y": "t"}])}), schema_mode="merge")
    assert [row["n"] for row in log.to_arrow("id IS NULL OR id = 4").to_pylist()] == [
        {"x": 1, "y": None},
        {"x": None, "y": "t"},
    ]
    assert log.history(1)[0].info.operation_parameters["canMergeSchema"] is True


def test_the_conf_lets_every_write_add_columns(tmp_path):
    key = "spark.databricks.delta.schema.autoMerge.enabled"
    log = DeltaLog.for_path(str(tmp_path / "t"), {key: "true"})
    log.write(table_of([1], ["a"]))
    log.write(pa.table({"z": [1]}))
    assert log.schema().names == ("id", "p", "z")
    assert "canMergeSchema" not in log.history(1)[0].info.operation_parameters


def test_a_schema_that_is_replaced_needs_every_row_to_go(log):
    log.write(pa.table({"k": ["x"]}), "overwrite", schema_mode="overwrite")
    assert log.schema().names == ("k",)
    assert log.snapshot().partition_columns == ()
    assert log.to_arrow().to_pylist() == [{"k": "x"}]
    assert log.to_arrow(version=0).num_rows == 3


def test_rows_without_a_column_that_is_not_null_are_refused(tmp_path):
    log = DeltaLog.for_path(str(tmp_path / "t"))
    inner = pa.struct([pa.field("x", pa.int64(), nullable=False)])
    schema = pa.schema([pa.field("id", pa.int64(), nullable=False), ("n", inner)])
    log.create(schema)
    for rows in (
        pa.table({"n": pa.array([{"x": 1}])}),
        pa.table({"id": [None, 2], "n": pa.array([{"x": 1}, {"x": 2}])}),
        pa.table({"id": [1, 2], "n": pa.array([{"x": 1}, {"x": None}])}),
    ):
        for arguments in ({}, {"schema_mode": "merge"}, {"mode": "overwrite"}):
            with pytest.raises(SchemaError):
                log.write(rows, **arguments)
    assert log.version() == 0
    log.write(pa.table({"id": [1], "n": pa.array([{"x": 1}])}), schema_mode="merge")
    assert not log.schema().find("id").nullable


def test_a_column_that_others_rely_on_keeps_its_type_and_place(tmp_path):
    log = opened(tmp_path / "t", has_vectors=False, enableTypeWidening="true")
    log.create({"id": "int", "c": "int"}, cluster_by=["c"])
    log.alter.add_constraint("positive", "id > 0")
    with pytest.raises(SchemaError) as caught:
        log.write(pa.table({"id": pa.array([1], pa.int64())}), schema_mode="merge")
    assert caught.value.kind == "DELTA_CONSTRAINT_DATA_TYPE_MISMATCH"
    with pytest.raises(SchemaError):
        log.write(pa.table({"id": [1]}), "overwrite", schema_mode="overwrite")
    assert log.to_arrow().num_rows == 0


# Types of Arrow


@pytest.mark.parametrize(
    ("declared", "values", "stored"),
    [
        ("bigint", pa.array([2**63 - 1, None], pa.uint64()), [2**63 - 1, None]),
        ("decimal(20,0)", pa.array([2**64 - 1], pa.uint64()), [Decimal(2**64 - 1)]),
        ("int", pa.array([5, 5, 7]).dictionary_encode(), [5, 5, 7]),
        ("string", pa.array(["a", "é"], pa.large_string()), ["a", "é"]),
        ("string", pa.array(["a", None], pa.string_view()), ["a", None]),
        ("string", pa.array(["{}"], pa.json_()), ["{}"]),
        (
            "array<int>",
            pa.array([[1], None, [None]], pa.large_list(pa.int64())),
            [[1], None, [None]],
        ),
        ("array<int>", pa.array([[1], None], pa.list_view(pa.int8())), [[1], None]),
        ("array<int>", pa.array([None, [None]], pa.list_(pa.null())), [None, [None]]),
        (
            "struct<a:int,b:array<string>>",
            pa.array([{"a": 1, "b": None}, None], pa.struct([("a", pa.int64()), ("b", pa.null())])),
            [{"a": 1, "b": None}, None],
        ),
        ("map<int,double>", pa.array([[(1, 2)]], pa.map_(pa.int64(), pa.int64())), [[(1, 2.0)]]),
        ("date", pa.array(["2026-11-28", None]), [dt.date(2026, 11, 28), None]),
        (
            "timestamp_ntz",
            pa.array([dt.date(2026, 11, 28)]),
            [dt.datetime(2026, 11, 28)],
        ),
        ("binary", pa.array([b"0123456789abcdef"], pa.uuid()), [b"0123456789abcdef"]),
    ],
    ids=str,
)
def test_values_of_every_layout_are_stored(tmp_path, declared, values, stored):
    log = DeltaLog.for_path(str(tmp_path / "t"))
    log.create({"c": declared})
    for given_values in (values, pa.chunked_array([values.slice(0, 1), values.slice(1)])):
        log.write(pa.table({"c": given_values}), "overwrite")
        assert log.to_arrow()["c"].to_pylist() == stored


@pytest.mark.parametrize(
    ("declared", "values", "kind"),
    [
        ("bigint", pa.array([2**63], pa.uint64()), "OPTIMIST_VALUE_DOES_NOT_FIT"),
        (None, pa.array([2**63], pa.uint64()), "OPTIMIST_VALUE_DOES_NOT_FIT"),
        ("tinyint", pa.array([128]), "OPTIMIST_VALUE_DOES_NOT_FIT"),
        ("decimal(4,1)", pa.array([Decimal("1.25")]), "OPTIMIST_VALUE_DOES_NOT_FIT"),
        ("date", pa.array(["28.11.2026"]), "OPTIMIST_VALUE_DOES_NOT_FIT"),
        ("array<tinyint>", pa.array([[1], [128]]), "OPTIMIST_VALUE_DOES_NOT_FIT"),
        ("timestamp", pa.array(["2026-11-28 10:00:00"]), "DELTA_FAILED_TO_MERGE_FIELDS"),
        ("boolean", pa.array([1]), "DELTA_FAILED_TO_MERGE_FIELDS"),
        ("int", pa.array(["1"]), "DELTA_FAILED_TO_MERGE_FIELDS"),
        ("decimal(4,1)", pa.array([0.1]), "DELTA_FAILED_TO_MERGE_FIELDS"),
        (None, pa.array([{}], pa.struct([])), "DELTA_CANNOT_WRITE_EMPTY_SCHEMA.STRUCT_NO_FIELDS"),
        (None, pa.array([1], pa.duration("s")), "DELTA_UNSUPPORTED_DATA_TYPES"),
        (None, pa.array([[]], pa.list_(pa.null())), "DELTA_COMPLEX_TYPE_COLUMN_CONTAINS_NULL_TYPE"),
    ],
    ids=str,
)
def test_values_that_do_not_fit_are_refused_by_the_name_of_the_column(
    tmp_path, declared, values, kind
):
    log = DeltaLog.for_path(str(tmp_path / "t"))
    if declared:
        log.create({"some": declared})
    with pytest.raises(SchemaError, match="some") as caught:
        log.write(pa.table({"some": values}))
    assert caught.value.kind == kind
    assert not log.table_exists() or log.version() == 0


def test_a_frame_of_pandas_goes_in(tmp_path):
    log = DeltaLog.for_path(str(tmp_path / "t"))
    log.create({"i": "int", "f": "float", "t": "timestamp", "s": "string"})
    frame = pd.DataFrame(
        {
            "i": [1, 2],
            "f": [1.5, None],
            "t": pd.to_datetime(["2026-11-28 10:00", None]),
            "s": ["a", None],
        }
    )
    log.write(frame)
    log.write(frame.assign(i=[1.0, None]))
    found = log.to_arrow().to_pylist()
    assert [row["i"] for row in found] == [1, 2, 1, None]
    assert found[0]["t"] == dt.datetime(2026, 11, 28, 10, tzinfo=dt.timezone.utc)
