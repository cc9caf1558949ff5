"""MERGE without Spark and the schema: its evolution, as on Spark."""

from __future__ import annotations

import pyarrow as pa
import pytest

from local_tables import DEFAULTS, FEED, live_rows, opened
from optimist.core import DeltaLog
from optimist.core.errors import MetadataChangedException, SchemaError, UsageError

OLD = pa.table({"id": [0, 1, 2], "v": ["v0", "v1", "v2"], "n": [{"a": 1}, {"a": 2}, None]})
WIDENING = {"enableTypeWidening": "true"}


def by_id(log):
    return sorted(live_rows(log), key=lambda row: row["id"])


@pytest.mark.parametrize("has_vectors", [True, False])
@pytest.mark.parametrize("properties", [{}, {**FEED, "columnMapping.mode": "name"}])
def test_new_columns_and_fields_of_the_source_become_the_tables(tmp_path, has_vectors, properties):
    log = opened(tmp_path / "t", has_vectors=has_vectors, **properties)
    log.append(OLD)
    new = pa.table({"extra": [5, 6], "n": [{"b": 8, "a": 9}, None], "V": ["x", "y"], "id": [1, 7]})
    merge = log.merge(new, ["id"]).when_matched_update_all().when_not_matched_insert_all()
    merge.with_schema_evolution().execute()
    expected = [
        {"id": 0, "v": "v0", "n": {"a": 1, "b": None}, "extra": None},
        {"id": 1, "v": "x", "n": {"a": 9, "b": 8}, "extra": 5},
        {"id": 2, "v": "v2", "n": None, "extra": None},
        {"id": 7, "v": "y", "n": None, "extra": 6},
    ]
    assert by_id(log) == expected
    assert log.snapshot().schema.names == ("id", "v", "n", "extra")
    less = log.merge(new.select(["id", "extra"]), ["id"]).when_not_matched_insert_all()
    assert less.when_matched_update_all().with_schema_evolution().execute().num_updated == 2
    assert by_id(log) == expected


@pytest.mark.parametrize("matching", [[0, 1, 2], [1]])
@pytest.mark.parametrize("has_vectors", [True, False])
def test_updates_of_all_old_columns_keep_their_rows_beside_a_new_column(
    tmp_path, has_vectors, matching
):
    log = opened(tmp_path / "t", has_vectors=has_vectors)
    log.append(OLD.select(["id", "v"]))
    ids = [*matching, 7]
    new = pa.table({"id": ids, "v": [f"new{k}" for k in ids], "extra": ids})
    merge = log.merge(new, ["id"]).when_matched_update({"id": "s.id", "v": "s.v"})
    done = merge.when_not_matched_insert_all().with_schema_evolution().execute()
    assert (done.num_updated, done.num_inserted) == (len(matching), 1)
    expected = [(k, f"new{k}" if k in matching else f"v{k}", None) for k in range(3)]
    assert [tuple(row.values()) for row in by_id(log)] == [*expected, (7, "new7", 7)]


def test_without_evolution_the_table_keeps_its_columns(tmp_path):
    log = opened(tmp_path / "t", has_vectors=True)
    log.append(OLD)
    new = pa.table({"id": [1], "v": ["x"], "extra": [1]})
    with pytest.raises(SchemaError) as caught:
        log.merge(new, ["id"]).when_matched_update_all().execute()
    assert caught.value.kind == "DELTA_MERGE_UNRESOLVED_EXPRESSION"
    assert "with_schema_evolution" in str(caught.value)
    log.merge(new, ["id"]).when_matched_update({"v": "s.v"}).execute()
    assert log.snapshot().schema.names == ("id", "v", "n")


@pytest.mark.parametrize("has_vectors", [True, False])
def test_fields_that_the_source_lacks_keep_the_tables_values(tmp_path, has_vectors):
    inner = pa.struct({"p": pa.int64(), "q": pa.int64()})
    table = pa.schema({"id": pa.int64(), "n": pa.struct({"a": pa.int64(), "b": inner})})
    whole = {"a": 1, "b": {"p": 2, "q": 3}}
    rows = [whole, None, {"a": 1, "b": None}, whole]
    old = [{"id": at, "n": n} for at, n in enumerate(rows)]
    log = opened(tmp_path / "t", has_vectors=has_vectors, **FEED)
    log.append(pa.Table.from_pylist(old, table))
    lacking = pa.struct({"c": pa.int64(), "b": pa.struct({"q": pa.int64()})})
    given = [{"c": 9, "b": {"q": 8}}, None, {"c": 9, "b": None}, None, {"c": 9, "b": {"q": 8}}]
    new = pa.table({"id": range(5), "n": pa.array(given, lacking)})
    merge = log.merge(new, ["id"]).when_matched_update_all().when_not_matched_insert_all()
    merge.with_schema_evolution().execute()
    assert [row["n"] for row in by_id(log)] == [
        {"a": 1, "b": {"p": 2, "q": 8}, "c": 9},
        None,
        {"a": 1, "b": None, "c": 9},
        {"a": 1, "b": {"p": 2, "q": None}, "c": None},
        {"a": None, "b": {"p": None, "q": 8}, "c": 9},
    ]


def test_structs_in_lists_and_maps_get_new_fields(tmp_path):
    log = opened(tmp_path / "t", has_vectors=True)
    item, more = pa.struct({"a": pa.int32()}), pa.struct({"b": pa.string(), "a": pa.int32()})
    fields = {"id": pa.int64(), "l": pa.list_(item), "m": pa.map_(pa.string(), item)}
    old = [{"id": 1, "l": [{"a": 1}, None], "m": [("k", {"a": 1})]}, {"id": 2, "l": None, "m": []}]
    log.append(pa.Table.from_pylist(old, pa.schema(fields)))
    fields = {"id": pa.int64(), "m": pa.map_(pa.string(), more), "l": pa.list_(more)}
    new = [{"id": 2, "l": [{"a": 7, "b": "x"}], "m": [("k", {"a": 8, "b": None})]}]
    merge = log.merge(pa.Table.from_pylist(new, pa.schema(fields)), ["id"])
    merge.when_matched_update_all().with_schema_evolution().execute()
    assert by_id(log) == [
        {"id": 1, "l": [{"a": 1, "b": None}, None], "m": [("k", {"a": 1, "b": None})]},
        {"id": 2, "l": [{"a": 7, "b": "x"}], "m": [("k", {"a": 8, "b": None})]},
    ]


@pytest.mark.parametrize("has_vectors", [True, False])
def test_a_column_is_widened_only_where_the_table_allows_it(tmp_path, has_vectors):
    for name, properties in (("plain", {}), ("wide", WIDENING)):
        log = opened(tmp_path / name, has_vectors=has_vectors, **properties, **FEED)
        log.append(pa.table({"id": [1, 2], "n": pa.array([1, 2], pa.int32())}))
        new = pa.table({"id": [2, 3], "n": pa.array([3, 4], pa.int64())})
        merge = log.merge(new, ["id"]).when_matched_update_all().when_not_matched_insert_all()
        merge.with_schema_evolution().execute()
        assert [row["n"] for row in by_id(log)] == [1, 3, 4]
        kind = log.snapshot().schema.fields[1].data_type
        assert str(kind) == ("integer" if name == "plain" else "long")
        found = log.changes(columns=["n", "_change_type"], starting_version=1)["n"]
        assert sorted(found.to_pylist()) == [2, 3, 4]
        merge = log.merge(pa.table({"id": [1], "n": [2**40]}), ["id"])
        merge = merge.when_matched_update_all().with_schema_evolution()
        if name == "plain":
            with pytest.raises(SchemaError) as caught:
                merge.execute()
            assert caught.value.kind == "OPTIMIST_VALUE_DOES_NOT_FIT"
        else:
            merge.execute()
            assert by_id(log)[0]["n"] == 2**40


def test_values_see_the_columns_of_before(tmp_path):
    log = opened(tmp_path / "t", has_vectors=True)
    log.append(OLD)
    new = pa.table({"id": [1, 2], "extra": [5, None]})
    merge = log.merge(new, ["id"]).with_schema_evolution()
    merge = merge.when_matched_update({"extra": "coalesce(extra, id)"}, "extra IS NOT NULL")
    with pytest.raises(UsageError):  # both sides have `id`
        merge.execute()
    merge = log.merge(new, ["id"]).with_schema_evolution()
    merge.when_matched_update({"extra": "coalesce(extra, t.id)"}).execute()
    assert [row["extra"] for row in by_id(log)] == [None, 5, 2]
    log.merge(new, ["id"]).when_not_matched_by_source_update({"v": "'gone'"}).execute()
    with pytest.raises(SchemaError) as caught:
        merge = log.merge(pa.table({"id": [1], "z": [1]}), ["id"]).with_schema_evolution()
        merge.when_not_matched_by_source_update({"z": "1"}).execute()
    assert caught.value.kind == "DELTA_COLUMN_NOT_FOUND"


def test_sql_and_the_conf_key_let_the_schema_evolve(tmp_path):
    log = opened(tmp_path / "t", has_vectors=True)
    log.append(OLD.select(["id", "v"]))
    new = pa.table({"id": [1], "v": ["x"], "one": [1]})
    log.sql(
        "MERGE WITH SCHEMA EVOLUTION INTO this AS t USING new ON t.id = new.id "
        "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED BY SOURCE AND t.id = 0 THEN DELETE",
        sources={"new": new},
    )
    assert by_id(log) == [{"id": 1, "v": "x", "one": 1}, {"id": 2, "v": "v2", "one": None}]
    conf = {"spark.databricks.delta.schema.autoMerge.enabled": "true"}
    open_to_all = DeltaLog.for_path(str(tmp_path / "t"), conf)
    open_to_all.merge(new.append_column("two", [[2]]), ["id"]).when_matched_update_all().execute()
    assert by_id(log)[0] == {"id": 1, "v": "x", "one": 1, "two": 2}


def test_new_columns_in_partitions_with_row_ids_and_defaults(tmp_path):
    options = {f"{DEFAULTS}enableRowTracking": "true"}
    log = DeltaLog.for_path(str(tmp_path / "t"), options)
    log.append(OLD, partition_by=["v"])
    ids = {row["id"]: row["_metadata.row_id"] for row in with_ids(log)}
    new = pa.table({"id": [1, 9], "v": ["v0", "new"], "n": [{"a": 5}, None], "extra": [1, 2]})
    merge = log.merge(new, ["id"]).when_matched_update_all().when_not_matched_insert_all()
    merge.with_schema_evolution().execute()
    after = {row["id"]: row["_metadata.row_id"] for row in with_ids(log)}
    assert {id_: after[id_] for id_ in ids} == ids
    assert len(set(after.values())) == 4
    assert by_id(log)[1] == {"id": 1, "v": "v0", "n": {"a": 5}, "extra": 1}


def with_ids(log):
    return log.to_arrow(columns=["id", "_metadata.row_id"]).to_pylist()


def test_a_change_of_the_schema_is_a_conflict_with_another(tmp_path):
    log = opened(tmp_path / "t", has_vectors=True)
    log.append(OLD)
    new = pa.table({"id": [1], "extra": [5]})
    merge = log.merge(new, ["id"]).when_matched_update_all().with_schema_evolution()

    def intrude(done):
        if done.step == "search":
            log.alter.add_columns({"z": "int"})

    with pytest.raises(MetadataChangedException):
        merge.execute(progress=intrude)
    assert log.snapshot().schema.names == ("id", "v", "n", "z")


def test_a_change_that_the_schema_can_not_have_is_refused(tmp_path):
    log = opened(tmp_path / "t", has_vectors=True, **FEED)
    log.append(OLD)
    new = pa.table({"id": [1], "_change_type": ["x"]})
    with pytest.raises((SchemaError, UsageError)):
        merge = log.merge(new, ["id"]).when_matched_update_all().with_schema_evolution()
        merge.execute()
    assert log.snapshot().schema.names == ("id", "v", "n")
