"""Columns of other names than in the files, by name and by id, on the native plane."""

from __future__ import annotations

import pyarrow as pa
import pytest

from grown_tables import GrownTable, numbers
from hand_made_tables import array_of, map_of, mapped, struct_of
from optimist.core import DeltaLog
from optimist.spark import read
from optimist.spark.native.file_selection import file_selections
from read_back import ids

ADDRESS = struct_of(
    mapped("street", "string", 4, "c-s"),
    mapped("zip", "integer", 5, "c-z"),
)
MAPPED = [
    mapped("b", "long", 1, "a"),  # the names of two columns were swapped
    mapped("a", "long", 2, "b"),
    mapped("address", ADDRESS, 3, "c-a"),
    mapped("list", array_of(ADDRESS), 6, "c-l"),
    mapped("map", map_of("string", ADDRESS), 7, "c-m"),
    mapped("day", "string", 8, "c-d"),
]


IDS = {"a": 1, "b": 2, "c-a": 3, "c-s": 4, "c-z": 5, "c-l": 6, "c-m": 7}


def stored_rows(names):
    """Three rows as a file has them, with field ids, under what `names` makes of each name."""

    def column(name, kind):
        return pa.field(names(name), kind, metadata={"PARQUET:field_id": str(IDS[name])})

    home = [{names("c-s"): "x", names("c-z"): 1}, {names("c-s"): "y", names("c-z"): 2}, None]
    inner = pa.struct([column("c-s", pa.string()), column("c-z", pa.int32())])
    fields = [
        column("a", pa.int64()),
        column("b", pa.int64()),
        column("c-a", inner),
        column("c-l", pa.list_(inner)),
        column("c-m", pa.map_(pa.string(), inner)),
    ]
    values = [[1, 2, 3], [10, 20, 30], home, [[home[0]], [], None], [[("k", home[1])], None, []]]
    arrays = [pa.array(value, each.type) for value, each in zip(values, fields, strict=True)]
    return pa.table(arrays, schema=pa.schema(fields))


@pytest.fixture(params=["name", "id"])
def renamed(request, tmp_path):
    """A table whose columns were renamed; by id, the names in its files say nothing at all."""
    table = GrownTable(
        tmp_path / "renamed",
        MAPPED,
        partitions=["day"],
        features=["columnMapping"],
        columnMapping__mode=request.param,
        columnMapping__maxColumnId="8",
    )
    names = str if request.param == "name" else lambda name: f"other-{IDS[name]}"
    stats = {
        "minValues": {"a": 1, "b": 10},
        "maxValues": {"a": 3, "b": 30},
        "nullCount": {"a": 0, "b": 0},
    }
    table.add("f", stored_rows(names), values={"c-d": "mon"}, stats=stats)
    table.add("g", stored_rows(names), values={"c-d": "tue"}, deleted={0}, stats=stats)
    return table


@pytest.mark.again
def test_renamed_columns_have_the_values_of_their_files(spark, renamed):
    frame = read(spark, renamed.path)
    assert frame.columns == ["b", "a", "address", "list", "map", "day"]
    first = frame.where("day = 'mon' AND b = 1").first()
    assert first.asDict(recursive=True) == {
        "b": 1,
        "a": 10,
        "address": {"street": "x", "zip": 1},
        "list": [{"street": "x", "zip": 1}],
        "map": {"k": {"street": "y", "zip": 2}},
        "day": "mon",
    }
    assert frame.where("day = 'mon' AND b = 3").first().address is None


def test_physical_names_mean_nothing_without_column_mapping(spark, tmp_path):
    columns = [mapped("id", "long", 1, "col-1"), mapped("name", "string", 2, "col-2")]
    table = GrownTable(tmp_path / "copied", columns)
    table.add("a", numbers(0, 10))
    log = DeltaLog.for_path(table.path)
    log.append(numbers(10, 5))
    assert ids(read(spark, table.path).where("id > 7")) == list(range(8, 15))
    assert sorted(log.to_arrow("id > 7")["id"].to_pylist()) == list(range(8, 15))
    assert log.snapshot().scan("id > 7").files.num_rows == 2


@pytest.mark.again
@pytest.mark.parametrize(
    ("condition", "count"),
    [
        ("b = 1", 1),
        ("a = 10", 1),
        ("a = 1", 0),
        ("b >= 2", 4),
        ("address.street = 'y'", 2),
        ("address.zip = 1", 1),
        ("address IS NULL", 2),
        ("address.street IS NULL", 2),
        ("get(list, 0).zip = 1", 1),
        ("map['k'].street = 'y'", 1),
        ("day = 'tue'", 2),
        ("day = 'mon' AND address.zip > 1", 1),
        ("day = 'tue' OR a = 30", 3),
    ],
)
def test_filters_name_renamed_columns_by_their_new_names(spark, renamed, condition, count):
    assert read(spark, renamed.path).where(condition).count() == count


@pytest.mark.again
def test_renamed_columns_prune_partitions_and_skip_files(spark, renamed):
    frame = read(spark, renamed.path)
    assert _num_files(frame.where("day = 'mon'")) == 1
    assert _num_files(frame.where("a > 5")) == 2
    assert _num_files(frame.where("b > 5")) == 0


def _num_files(frame):
    return sum(each.num_files for each in file_selections(frame))


@pytest.mark.again
def test_each_field_of_a_renamed_struct_can_be_read_alone(spark, renamed):
    frame = read(spark, renamed.path).where("day = 'mon'")
    assert [row.street for row in frame.orderBy("b").select("address.street").collect()] == [
        "x",
        "y",
        None,
    ]
    assert [row.zip for row in frame.orderBy("b").select("address.zip").collect()] == [1, 2, None]


@pytest.mark.parametrize("renamed", ["name"], indirect=True)
def test_filters_on_renamed_columns_reach_parquet_and_structs_are_pruned(spark, renamed, capsys):
    frame = read(spark, renamed.path).where("day = 'mon' AND b > 1").select("address.zip")
    frame.explain()
    shown = capsys.readouterr().out
    assert "GreaterThan(a,1)" in shown
    assert "c-s" not in shown
