"""Tables made by hand, read alike without Spark, by pyarrow in Spark, and by Spark itself."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal

import pyarrow as pa
import pytest

from hand_made_tables import (
    array_of,
    data_file,
    field,
    inline_vector,
    make_table,
    map_of,
    mapped,
    stored_vectors,
    struct_of,
    with_id,
)
from optimist.core import DeltaLog
from optimist.core.protocol.actions import (
    RemoveFile,
    actions_from_bytes,
)
from optimist.spark import DeltaTable, read
from table_contents import plain_value, read_locally, rows, values


@pytest.mark.again
def test_rows_that_deletion_vectors_mark_are_not_read(rows_at, tmp_path, request):
    conf = request.getfixturevalue("conf")
    conf("spark.sql.files.maxPartitionBytes", "4k")
    conf("spark.sql.files.openCostInBytes", "1k")
    root = tmp_path / "t with space"
    marked = [
        {0, 5, 99, *range(200, 300), 999},
        {1},
        set(range(1, 1000)),
        {7, 500},
        set(),
    ]
    vectors = [
        *stored_vectors(root, marked[0], marked[1], prefix="ab"),
        *stored_vectors(root, marked[2], absolute=True),
        inline_vector(marked[3]),
        None,
    ]
    adds = [
        data_file(root, f"f{i}.parquet", rows(i * 1000, 1000), vector=vector, row_group_size=100)
        for i, vector in enumerate(vectors)
    ]
    make_table(
        root, [field("id", "long"), field("s", "string")], adds, features=["deletionVectors"]
    )
    wanted = [i for i in range(5000) if i % 1000 not in marked[i // 1000]]
    found = rows_at(root)
    assert sorted(found["id"].to_pylist()) == wanted
    assert all(row["s"] == f"row {row['id']}" for row in found.to_pylist())
    some = rows_at(root, predicate="id >= 998 AND id < 1003")
    assert sorted(some["id"].to_pylist()) == [998, 1000, 1002]


OLD_TO_NEW = [
    (pa.int8(), "byte", "short", [1, -128, None]),
    (pa.int8(), "byte", "integer", [1, -128, None]),
    (pa.int16(), "short", "long", [2, -32768, None]),
    (pa.int32(), "integer", "long", [3, 2**31 - 1, None]),
    (pa.int8(), "byte", "double", [4, -5, None]),
    (pa.int16(), "short", "double", [4, -5, None]),
    (pa.int32(), "integer", "double", [4, 2**31 - 1, None]),
    (pa.float32(), "float", "double", [0.5, float("inf"), None]),
    (pa.int8(), "byte", "decimal(10,0)", [6, -7, None]),
    (pa.int16(), "short", "decimal(12,2)", [6, -7, None]),
    (pa.int32(), "integer", "decimal(12,2)", [6, -(2**31), None]),
    (pa.int64(), "long", "decimal(22,2)", [6, 2**63 - 1, None]),
    (pa.int8(), "byte", "decimal(4,1)", [127, -128, None]),
    (pa.int16(), "short", "decimal(6,1)", [2**15 - 1, -(2**15), None]),
    (pa.int32(), "integer", "decimal(10,0)", [2**31 - 1, -(2**31), None]),
    (pa.int64(), "long", "decimal(19,0)", [2**63 - 1, -(2**63), None]),
    (pa.decimal128(5, 2), "decimal(5,2)", "decimal(10,4)", [Decimal("1.25"), None, None]),
    (pa.decimal128(10, 2), "decimal(10,2)", "decimal(30,12)", [Decimal("1.25"), None, None]),
    (pa.date32(), "date", "timestamp_ntz", [dt.date(2024, 2, 29), dt.date(1601, 1, 1), None]),
]


def test_columns_that_were_widened_are_read_from_old_files(rows_at, tmp_path):
    def changed(old, new, path=None):
        place = {} if path is None else {"fieldPath": path}
        return {"delta.typeChanges": [{"fromType": old, "toType": new, **place}]}

    fields, columns, wanted = [], {}, {}
    for number, (arrow, old, new, items) in enumerate(OLD_TO_NEW):
        fields.append(field(f"c{number}", new, **changed(old, new)))
        columns[f"c{number}"] = pa.array(items, arrow)
        wanted[f"c{number}"] = [_widened(item, new) for item in items]
    fields += [
        field("a", array_of("long"), **changed("integer", "long", "element")),
        field("m", map_of("long", "double"), **changed("integer", "long", "key")),
        field("st", struct_of(field("x", "long", **changed("short", "long")))),
    ]
    fields += [
        field("ad", array_of("decimal(4,1)"), **changed("byte", "decimal(4,1)", "element")),
        field("sd", struct_of(field("x", "decimal(6,1)", **changed("short", "decimal(6,1)")))),
    ]
    nested = {
        "ad": pa.array([[127, None], [], None], pa.list_(pa.int8())),
        "sd": pa.array([{"x": -5}, {"x": None}, None], pa.struct([("x", pa.int16())])),
        "a": pa.array([[1, None], [], None], pa.list_(pa.int32())),
        "m": pa.array([[(1, 0.5)], [], None], pa.map_(pa.int32(), pa.float32())),
        "st": pa.array([{"x": 1}, {"x": None}, None], pa.struct([("x", pa.int16())])),
    }
    old = pa.table({**columns, **nested})
    wanted |= {"a": [[1, None], [], None], "m": [{1: 0.5}, {}, None], "st": old["st"].to_pylist()}
    wanted |= {
        "ad": [[Decimal(127), None], [], None],
        "sd": [{"x": Decimal(-5)}, {"x": None}, None],
    }
    root = tmp_path / "t"
    make_table(
        root,
        fields,
        [data_file(root, "old.parquet", old)],
        features=["typeWidening", "timestampNtz"],
        configuration={"delta.enableTypeWidening": "true"},
    )
    found = rows_at(root)
    assert found["c6"].type == pa.float64()
    assert found["c18"].type == pa.timestamp("us")
    assert found.to_pydict(maps_as_pydicts="strict") == wanted


def _widened(value, kind):
    if value is None:
        return None
    if kind.startswith("decimal"):
        return Decimal(value)
    return dt.datetime.combine(value, dt.time()) if isinstance(value, dt.date) else value


@pytest.mark.parametrize("mode", ["name", "id"])
def test_mapped_columns_are_found_by_name_or_by_id_at_any_depth(rows_at, tmp_path, mode):
    inner = struct_of(mapped("deep name", "string", 4, "col-4"), mapped("new", "long", 9, "col-9"))
    fields = [
        mapped("the key", "long", 1, "col-1"),
        mapped("p", "string", 2, "col-2"),
        mapped("st", inner, 3, "col-3"),
        mapped("list", array_of(struct_of(mapped("x", "long", 6, "col-6"))), 5, "col-5"),
        mapped("m", map_of("string", struct_of(mapped("y", "long", 8, "col-8"))), 7, "col-7"),
        mapped("late", "long", 10, "col-10"),
    ]

    def name(number):  # in the mode `id`, the names in a file mean nothing
        return f"col-{number}" if mode == "name" else f"col-{number % 8 + 1}"

    def part(number, kind):
        return with_id(pa.field(name(number), kind), number)

    schema = pa.schema(
        [
            part(1, pa.int64()),
            part(3, pa.struct([part(4, pa.string())])),
            part(5, pa.list_(pa.struct([part(6, pa.int64())]))),
            part(7, pa.map_(pa.string(), pa.struct([part(8, pa.int64())]))),
        ]
    )
    stored = pa.Table.from_pylist(
        [
            {
                name(1): 1,
                name(3): {name(4): "a"},
                name(5): [{name(6): 5}, None],
                name(7): [("k", {name(8): 7})],
            },
            {name(1): 2, name(3): None, name(5): None, name(7): None},
        ],
        schema=schema,
    )
    root = tmp_path / "t"
    make_table(
        root,
        fields,
        [data_file(root, "f.parquet", stored, partition={"col-2": "x y"})],
        partition_columns=["p"],
        features=["columnMapping"],
        configuration={"delta.columnMapping.mode": mode, "delta.columnMapping.maxColumnId": "10"},
    )
    first = {
        "the key": 1,
        "p": "x y",
        "st": {"deep name": "a", "new": None},
        "list": [{"x": 5}, None],
        "m": {"k": {"y": 7}},
        "late": None,
    }
    second = {"the key": 2, "p": "x y", "st": None, "list": None, "m": None, "late": None}
    found = sorted(rows_at(root).to_pylist(maps_as_pydicts="strict"), key=lambda r: r["the key"])
    assert found == [first, second]
    assert rows_at(root, predicate="`the key` = 2")["p"].to_pylist() == ["x y"]


PARTITIONS = {
    "string": ("x%20y", "x%20y"),
    "long": ("-9223372036854775808", -(2**63)),
    "integer": ("7", 7),
    "short": ("-3", -3),
    "byte": ("127", 127),
    "float": ("0.5", 0.5),
    "double": ("-Infinity", float("-inf")),
    "boolean": ("true", True),
    "binary": ("abc", b"abc"),
    "date": ("0001-01-01", dt.date(1, 1, 1)),
    "timestamp": (
        "1850-06-01T12:00:00.000001Z",
        dt.datetime(1850, 6, 1, 12, 0, 0, 1, tzinfo=dt.timezone.utc),
    ),
    "timestamp_ntz": ("1500-01-01 00:00:00", dt.datetime(1500, 1, 1)),
    "decimal(10,3)": ("-1.250", Decimal("-1.250")),
}


def test_partition_values_of_every_type_and_null_are_read(rows_at, tmp_path):
    kinds = dict(zip(map("p{}".format, range(len(PARTITIONS))), PARTITIONS.items(), strict=True))
    root = tmp_path / "t"
    texts = {name: text for name, (_, (text, _)) in kinds.items()}
    adds = [
        data_file(root, "full.parquet", pa.table({"id": [1]}), partition=texts),
        data_file(root, "null.parquet", pa.table({"id": [2]}), partition=dict.fromkeys(texts)),
        data_file(root, "empty.parquet", pa.table({"id": [3]}), partition=dict.fromkeys(texts, "")),
    ]
    make_table(
        root,
        [field("id", "long"), *(field(name, kind) for name, (kind, _) in kinds.items())],
        adds,
        partition_columns=list(kinds),
        features=["timestampNtz"],
    )
    wanted = {"id": 1, **{name: value for name, (_, (_, value)) in kinds.items()}}
    nothing = [{"id": i, **dict.fromkeys(kinds)} for i in (2, 3)]
    found = sorted(rows_at(root).to_pylist(), key=lambda row: row["id"])
    assert found == [wanted, *nothing]


def test_old_dates_int96_absolute_paths_and_char_columns_are_read(rows_at, tmp_path):
    moments = [dt.datetime(1788, 7, 4, 1, 2, 3, 4), dt.datetime(2900, 1, 1), None]
    days = [dt.date(1, 1, 1), dt.date(1582, 10, 15), None]
    stored = pa.table(
        {
            "t": pa.array(moments, pa.timestamp("us")),
            "d": pa.array(days, pa.date32()),
            "c": ["a ", "b ", None],
        }
    )
    root, elsewhere = tmp_path / "t", tmp_path / "else where"
    elsewhere.mkdir()
    add = data_file(
        root, str(elsewhere / "f.parquet"), stored, use_deprecated_int96_timestamps=True
    )
    kinds = {"__CHAR_VARCHAR_TYPE_STRING": "char(2)"}
    fields = [field("t", "timestamp"), field("d", "date"), field("c", "string", **kinds)]
    make_table(root, fields, [add])
    found = rows_at(root)
    assert [plain_value(value) for value in found["t"].to_pylist()] == moments
    assert found["d"].to_pylist() == days
    assert found["c"].to_pylist() == ["a ", "b ", None]


def test_a_table_with_vectors_can_be_appended_to_deleted_from_and_updated(spark, plane, tmp_path):
    root = tmp_path / "t"
    (stored,) = stored_vectors(root, {0, 1, 2})
    vectors = [stored, inline_vector({7}), inline_vector({0, 9})]
    adds = [
        data_file(root, f"f{i}.parquet", rows(i * 10, 10), vector=vector)
        for i, vector in enumerate(vectors)
    ]
    fields = [field("id", "long"), field("s", "string")]
    configuration = {"delta.enableDeletionVectors": "true"}
    make_table(root, fields, adds, features=["deletionVectors"], configuration=configuration)
    log = DeltaLog.for_path(str(root), {})
    log.append(rows(30, 2))
    table = DeltaTable.forPath(spark, str(root))
    table.delete("id IN (0, 5, 11)")
    table.update("id = 12", {"s": "'new'"})
    left = {*range(3, 20), *range(21, 29), 30, 31} - {5, 11, 17}
    found = read_locally(root)
    assert sorted(found["id"].to_pylist()) == sorted(left)
    assert values(read(spark, str(root)).toArrow()) == values(found)
    assert [row["id"] for row in found.to_pylist() if row["s"] == "new"] == [12]
    commits = [root / "_delta_log" / f"{version:020}.json" for version in (2, 3)]
    removed = [
        item.deletion_vector
        for commit in commits
        for item in actions_from_bytes(commit.read_bytes(), str(commit))
        if isinstance(item, RemoveFile)
    ]
    assert removed[:2] in (vectors[:2], vectors[1::-1])
    (last,) = removed[2:]
    assert last.cardinality == 2
    live = DeltaLog.for_path(str(root), {}).snapshot().files
    assert live["deletionVector"].null_count == 2  # of the appended rows, and of the updated one
