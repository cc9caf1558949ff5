"""CONVERT TO DELTA of tables of Iceberg with Spark."""

from __future__ import annotations

import pyarrow as pa
import pytest
from pyiceberg.types import IntegerType

from iceberg_tables import IcebergFolder
from optimist.core.errors import OptimistError
from optimist.spark import DeltaTable
from optimist.spark.commands.maintenance import convert

SCHEMA = pa.schema(
    [
        ("id", pa.int64()),
        ("p", pa.string()),
        ("x", pa.string()),
        ("s", pa.struct([("a", pa.int32()), ("l", pa.list_(pa.struct([("b", pa.int32())])))])),
    ]
)


@pytest.fixture
def iceberg(tmp_path):
    folder = IcebergFolder(tmp_path)
    yield folder
    folder.close()


@pytest.fixture
def table(iceberg):
    """A partitioned table whose columns were renamed, dropped and added under old names."""
    table = iceberg.create("t", SCHEMA)
    with table.update_spec() as change:
        change.add_identity("p")
    rows = {
        "id": [1, 2, 3],
        "p": ["a b", "c", None],
        "x": ["old", None, "x"],
        "s": [{"a": 1, "l": [{"b": 5}]}, None, {"a": 3, "l": None}],
    }
    table.append(pa.table(rows, schema=SCHEMA))
    with table.update_schema() as change:
        change.rename_column("x", "y")
        change.rename_column("s.l.b", "c")
    with table.update_schema() as change:
        change.add_column("x", IntegerType())
    table.append(
        pa.table(
            {"id": [4], "p": ["c"], "y": ["new"], "s": [{"a": 4, "l": [{"c": 6}]}], "x": [7]},
            schema=table.schema().as_arrow(),
        )
    )
    return table


def path_of(table) -> str:
    return table.location().removeprefix("file://")


def rows_of(frame):
    return [row.asDict(recursive=True) for row in frame.orderBy("id").collect()]


def expected(table):
    return table.scan().to_arrow().sort_by("id").to_pylist()


@pytest.mark.again
def test_the_statement_converts_a_table_that_reads_as_before_and_goes_on(delta, table):
    before, path = expected(table), path_of(table)
    told = delta.sql(f"CONVERT TO DELTA iceberg.`{path}`")
    assert (told.columns, told.collect()) == ([], [])
    name = f"delta.`{path}`"
    assert rows_of(delta.table(name)) == before
    assert delta.sql(f"SELECT id FROM {name} WHERE p = 'c' AND x = 7").collect() == [(4,)]
    assert delta.sql(f"SELECT id FROM {name} WHERE y = 'old'").collect() == [(1,)]
    delta.sql(f"INSERT INTO {name} VALUES (5, 'c', 'more', NULL, 9)")
    delta.sql(f"UPDATE {name} SET x = 8 WHERE y = 'old'")
    delta.sql(f"DELETE FROM {name} WHERE id = 2")
    delta.sql(f"OPTIMIZE {name}")
    delta.sql(f"ALTER TABLE {name} ADD COLUMN z STRING")
    found = delta.sql(f"SELECT id, p, y, x, get(s.l, 0).c, z FROM {name} ORDER BY id").collect()
    assert found == [
        (1, "a b", "old", 8, 5, None),
        (3, None, "x", None, None, None),
        (4, "c", "new", 7, 6, None),
        (5, "c", "more", 9, None, None),
    ]


def test_the_method_converts_the_version_of_a_metadata_file(delta, iceberg):
    table = iceberg.create("t", SCHEMA)
    before = table.metadata_location.removeprefix("file://")
    rows = {"id": [1], "p": ["a"], "x": ["x"], "s": [None]}
    table.append(pa.table(rows, schema=SCHEMA))
    made = DeltaTable.convertToDelta(delta, f"iceberg.`{before}`")
    assert made.toDF().count() == 0
    assert DeltaTable.convertToDelta(delta, f"iceberg.`{path_of(table)}`").history().count() == 1


def test_executors_read_the_footers_of_many_files(delta, table, monkeypatch):
    monkeypatch.setattr(convert, "_MANY_FILES", 1)
    before = expected(table)
    assert rows_of(DeltaTable.convertToDelta(delta, f"iceberg.`{path_of(table)}`").toDF()) == before


def test_what_can_not_be_carried_over_is_refused_by_name(delta, table):
    with pytest.raises(OptimistError) as caught:
        delta.sql(f"CONVERT TO DELTA iceberg.`{path_of(table)}` PARTITIONED BY (p STRING)")
    assert caught.value.kind == "DELTA_PARTITION_SCHEMA_IN_ICEBERG_TABLES"
    with table.update_spec() as change:
        change.remove_field("p")
    rows = pa.table({"id": [9], "p": ["q"]}, schema=pa.schema([SCHEMA[0], SCHEMA[1]]))
    table.append(rows)
    with pytest.raises(OptimistError, match="older partitioning") as caught:
        delta.sql(f"CONVERT TO DELTA iceberg.`{path_of(table)}`")
    assert caught.value.kind == "OPTIMIST_INCOMPATIBLE_ICEBERG_TABLE"
