"""What `DeltaTable` tells of a table is what deltalake tells of it."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from pathlib import Path
from typing import Any

import deltalake as real
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import optimist.deltalake as ours
from optimist.core import DeltaLog

NOON = dt.datetime(2020, 1, 1, 12, tzinfo=dt.timezone.utc)
ROWS = pa.table(
    {
        "p": ["a", "b", None, "a"],
        "day": pa.array([dt.date(2020, 1, day) for day in (1, 2, 3, 1)]),
        "x": pa.array([1, 2, 3, None], pa.int64()),
        "f": pa.array([1.5, -0.0, None, 2.25]),
        "d": pa.array([Decimal("1.10"), None, Decimal("-99999999.99"), Decimal("0.00")]),
        "t": pa.array([NOON, None, NOON, NOON], pa.timestamp("us", "UTC")),
        "s": pa.array([{"q": 1}, {"q": None}, None, {"q": 4}]),
        "l": pa.array([[1, 2], [], None, [None]], pa.list_(pa.int32())),
    }
)
FILTERS: list[Any] = [
    [("p", "=", "a")],
    [("p", "!=", "a")],
    [("p", "=", "")],
    [("p", "!=", "")],
    [("p", "in", ["a", ""])],
    [("p", "not in", ("a",))],
    [("p", "not in", ("a", ""))],
    [("p", "not in", [""])],
    [("p", "in", [])],
    [("p", "not in", [])],
    [("day", ">=", dt.date(2020, 1, 2))],
    [("day", "<", "2020-01-02"), ("p", "=", "a")],
    [("x", ">", 2)],
    [("x", "=", "2")],
    [[("p", "=", "b")], [("x", ">=", "3")]],
    "x = 2 or p = 'a'",
    "p is null",
    None,
]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("tables") / "t"
    real.write_deltalake(
        path, ROWS, partition_by=["p", "day"], configuration={"delta.enableChangeDataFeed": "true"}
    )
    real.write_deltalake(path, ROWS.slice(0, 1), mode="append", description="two")
    real.DeltaTable(path).delete("x = 3")
    return path


def test_the_version_its_schema_and_its_metadata_are_the_same(place: Path) -> None:
    mine, theirs = ours.DeltaTable(place), real.DeltaTable(place)
    assert mine.version() == theirs.version() == 2
    assert mine.table_uri == theirs.table_uri
    assert str(mine.schema()) == str(theirs.schema())
    assert mine.schema().to_json() == theirs.schema().to_json()
    assert str(mine.metadata()) == str(theirs.metadata())
    assert mine.protocol() == tuple(theirs.protocol())
    assert mine.history() == theirs.history()
    assert mine.history(1) == theirs.history(1)
    assert mine.transaction_version("none") is theirs.transaction_version("none") is None
    assert repr(mine) == f"DeltaTable({theirs.table_uri!r}, version=2)"


@pytest.mark.parametrize("chosen", FILTERS, ids=str)
def test_a_filter_chooses_the_same_files_and_partitions(place: Path, chosen: Any) -> None:
    mine, theirs = ours.DeltaTable(place), real.DeltaTable(place)
    assert sorted(mine.file_uris(file_pruning_predicate=chosen)) == sorted(
        theirs.file_uris(file_pruning_predicate=chosen)
    )
    found = mine.partitions(file_pruning_predicate=chosen)
    expected = theirs.partitions(file_pruning_predicate=chosen)
    assert sorted(found, key=str) == sorted(
        ({k: row[k] for k in ("p", "day")} for row in expected), key=str
    )


@pytest.mark.parametrize("flatten", [False, True])
def test_the_files_have_the_same_statistics(place: Path, flatten: bool) -> None:
    mine = ours.DeltaTable(place).get_add_actions(flatten)
    theirs = pa.table(real.DeltaTable(place).get_add_actions(flatten))
    rows = sorted(mine.to_pylist(), key=lambda row: row["path"])
    expected = sorted(theirs.to_pylist(), key=lambda row: row["path"])
    assert [row["path"] for row in rows] == [row["path"] for row in expected]
    for row, other in zip(rows, expected, strict=True):
        shared = row.keys() & other.keys()
        assert shared >= {"size_bytes", "modification_time", "num_records"}
        assert [name for name in row if name not in shared and not name.startswith("null")] == []
        assert {name: row[name] for name in ("path", "size_bytes", "num_records")} == {
            name: other[name] for name in ("path", "size_bytes", "num_records")
        }
    for name in ("min.x", "max.x", "min.s.q", "partition.p", "partition.day") if flatten else ():
        assert [row[name] for row in rows] == [row[name] for row in expected]


def test_the_rows_are_the_same_by_each_way(place: Path) -> None:
    mine, theirs = ours.DeltaTable(place), real.DeltaTable(place)
    expected = theirs.to_pyarrow_table().sort_by([("x", "ascending"), ("p", "ascending")])
    for found in (
        mine.to_pyarrow_table(),
        mine.to_pyarrow_dataset().to_table(),
        mine.scan().read_all(),
        pa.Table.from_pandas(mine.to_pandas(), schema=expected.schema),
    ):
        assert found.sort_by([("x", "ascending"), ("p", "ascending")]).equals(expected)
    assert mine.count() == theirs.count() == 4


def test_columns_and_filters_choose_the_same_rows(place: Path) -> None:
    mine, theirs = ours.DeltaTable(place), real.DeltaTable(place)
    for filters in ([("x", ">", 1)], [[("p", "=", "a")], [("x", "=", 2)]], None):
        found = mine.to_pyarrow_table(columns=["x", "p"], filters=filters).sort_by("x")
        assert found.equals(
            theirs.to_pyarrow_table(columns=["x", "p"], filters=filters).sort_by("x")
        )
    found = mine.scan(columns=["x"], predicate="x >= 2 and p = 'b'").read_all()
    assert found.to_pylist() == [{"x": 2}]


def test_changes_are_the_same(place: Path) -> None:
    names = ["x", "_change_type", "_commit_version"]
    times = ours.DeltaTable(place).load_cdf(0).read_all()["_commit_timestamp"]
    assert times.type == pa.timestamp("ms")
    only = ours.DeltaTable(place).load_cdf(0, columns=["_commit_version"])
    assert only.schema == pa.schema([("_commit_version", pa.uint64())])
    mine = ours.DeltaTable(place).load_cdf(0, columns=names).read_all()
    theirs = pa.table(real.DeltaTable(place).load_cdf(0, columns=names).read_all()).select(names)
    assert sorted(mine.to_pylist(), key=str) == sorted(theirs.to_pylist(), key=str)


@pytest.mark.parametrize("column", ["t", "f", "x", "day"])
def test_the_values_of_partitions_are_spelled_the_same(tmp_path: Path, column: str) -> None:
    real.write_deltalake(tmp_path, ROWS.select(["p", column]), partition_by=[column])
    found = ours.DeltaTable(tmp_path).partitions()
    assert sorted(found, key=str) == sorted(real.DeltaTable(tmp_path).partitions(), key=str)


@pytest.mark.parametrize(
    "chosen",
    [
        [("d", "=", Decimal("1.10"))],
        [("x", "in", [np.int64(1)])],
        [("f", ">=", np.float32(2.25))],
    ],
    ids=str,
)
def test_values_of_other_number_types_are_compared_exactly(place: Path, chosen: Any) -> None:
    found = ours.DeltaTable(place).to_pyarrow_dataset(file_pruning_predicate=chosen).to_table()
    assert set(found["x"].to_pylist()) == ({1} if chosen[0][0] != "f" else {None})


@pytest.mark.parametrize(
    "chosen", [[["p", "=", "a"]], [[("p", "=")]], [(5, "=", 1)], {1}, b"p", [("p", "=", b"a")]]
)
def test_what_is_no_filter_is_one_clear_error(place: Path, chosen: Any) -> None:
    with pytest.raises(ValueError, match=r"[Ff]ilter|argument") as error:
        ours.DeltaTable(place).file_uris(file_pruning_predicate=chosen)
    assert "unpack" not in str(error.value)


def test_a_table_is_found_at_a_version_and_at_a_time(place: Path) -> None:
    mine = ours.DeltaTable(place, version=0)
    assert (mine.version(), mine.count()) == (0, 4)
    mine.load_as_version(1)
    assert mine.count() == 5
    mine.load_as_version(dt.datetime(2100, 1, 1))
    assert mine.version() == 2
    mine.load_as_version(0)
    mine.update_incremental()
    assert mine.version() == 2
    with pytest.raises(TypeError):
        mine.load_as_version(1.5)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="timestamp"):
        mine.load_as_version("soon")


def test_a_query_sees_the_registered_version_and_no_variable(place: Path) -> None:
    query = ours.QueryBuilder().register("t", ours.DeltaTable(place, version=0))
    assert query.execute("select count(*) as n from t where x > 1").read_all().to_pylist() == [
        {"n": 2}
    ]
    secret = pa.table({"a": [1]})
    with pytest.raises(Exception, match="secret"):
        query.execute("select * from secret")
    assert secret.num_rows == 1
    with pytest.raises(ours.exceptions.NotSupportedError, match="session_config"):
        ours.QueryBuilder({"datafusion.execution.batch_size": "1"})


@pytest.mark.parametrize(
    "chosen",
    [
        [("p", "~", "a")],
        [("p", "=", None)],
        [("p", "in", "a")],
        [("p", "=", ["a"])],
        [("p", "<", "")],
        [[]],
        [("p", "=", "a"), [("p", "=", "b")]],
        [("nope", "=", "a")],
        [("x", "=", "one")],
    ],
    ids=str,
)
def test_a_filter_that_means_nothing_is_one_clear_error(place: Path, chosen: Any) -> None:
    with pytest.raises((ValueError, ours.exceptions.DeltaError)):
        ours.DeltaTable(place).file_uris(file_pruning_predicate=chosen)


def test_vectors_are_those_that_deltalake_shows(tmp_path: Path) -> None:
    log = DeltaLog.for_path(tmp_path)
    log.create({"k": "bigint", "p": "string"}, partition_by=["p"])
    log.alter.set_properties({"delta.enableDeletionVectors": "true"})
    log.append(pa.table({"k": range(3000), "p": ["a", "b", "c d"] * 1000}))
    assert ours.DeltaTable(tmp_path).deletion_vectors().read_all().num_rows == 0
    log.delete("p = 'c d' and k < 100 or p = 'a' and k in (0, 9, 1500)")
    found, expected = (
        {row["filepath"]: row["selection_vector"] for row in feed.to_pylist()}
        for feed in (
            ours.DeltaTable(tmp_path).deletion_vectors().read_all(),
            pa.table(real.DeltaTable(tmp_path).deletion_vectors()),
        )
    )
    assert found == expected
    assert sorted(map(len, found.values())) == [1000, 1000]
    assert sorted(row.count(False) for row in found.values()) == [3, 33]
    assert ours.DeltaTable(tmp_path, version=2).deletion_vectors().read_all().num_rows == 0


def test_a_value_of_another_type_is_not_blamed_on_the_log(place: Path) -> None:
    with pytest.raises(ValueError, match=r"'x' with 'one', which is no long"):
        ours.DeltaTable(place).file_uris(file_pruning_predicate=[("x", "=", "one")])


def test_the_old_names_of_arguments_warn(place: Path) -> None:
    table = ours.DeltaTable(place)
    with pytest.warns(DeprecationWarning, match="partition_filters"):
        assert len(table.file_uris([("p", "=", "b")])) == 1
    with pytest.warns(DeprecationWarning, match="partitions"):
        assert table.to_pyarrow_table(partitions=[("p", "=", "b")]).num_rows == 1
    with pytest.warns(DeprecationWarning, match="without_files"):
        ours.DeltaTable(place, without_files=True)
    with pytest.raises(ValueError, match="alone"):
        table.file_uris([("p", "=", "b")], file_pruning_predicate="x = 1")


@pytest.mark.parametrize("module", [real, ours], ids=["real", "ours"])
def test_statistics_are_those_of_the_columns_that_the_table_names(
    tmp_path: Path, module: Any
) -> None:
    rows = pa.table({"a": ["x", None], "b": [1, 2], "c": [3, 4]})
    wanted = {"delta.dataSkippingStatsColumns": "c,a"}
    module.write_deltalake(tmp_path, rows, configuration=wanted)
    actions = pa.table(module.DeltaTable(tmp_path).get_add_actions(flatten=True))
    names = [name for name in actions.column_names if "." in name]
    assert sorted(names) == ["max.a", "max.c", "min.a", "min.c", "null_count.a", "null_count.c"]


def test_a_dataset_has_the_types_of_arrow_that_are_asked_for(tmp_path: Path) -> None:
    texts = pa.array([["q"], None, []], pa.list_(pa.string()))
    rows = pa.table({"p": ["a", "b", "b"], "n": [1, 2, 3], "s": ["x", None, "z"], "l": texts})
    ours.write_deltalake(tmp_path, rows, partition_by=["p"])
    table = ours.DeltaTable(tmp_path)
    large = table.to_pyarrow_dataset(as_large_types=True)
    assert large.schema.field("s").type == large.schema.field("p").type == pa.large_string()
    assert large.schema.field("l").type == pa.large_list(pa.large_string())
    found = large.to_table(columns=["s", "l"], filter=pc.field("p") == "b")
    assert found.schema == pa.schema([large.schema.field("s"), large.schema.field("l")])
    assert found.sort_by("s").to_pylist() == [{"s": "z", "l": []}, {"s": None, "l": None}]
    chosen = pa.schema({"n": pa.int64(), "s": pa.large_string()})
    dataset = table.to_pyarrow_dataset(schema=chosen, as_large_types=True)
    assert dataset.to_table(filter=pc.field("n") == 3).cast(chosen).to_pylist() == [
        {"n": 3, "s": "z"}
    ]
    assert dataset.schema == chosen


def test_a_dataset_refuses_types_that_hold_not_all_values(tmp_path: Path) -> None:
    ours.write_deltalake(tmp_path, pa.table({"n": [1, 300]}))
    table = ours.DeltaTable(tmp_path)
    small = table.to_pyarrow_dataset(schema=pa.schema({"n": pa.int8()}))
    assert small.to_table(filter=pc.field("n") == 1)["n"].to_pylist() == [1]
    with pytest.raises(pa.ArrowInvalid, match="300"):
        small.to_table()
    with pytest.raises(ours.exceptions.DeltaError, match="no column 'x'"):
        table.to_pyarrow_dataset(schema=pa.schema({"x": pa.int8()}))
