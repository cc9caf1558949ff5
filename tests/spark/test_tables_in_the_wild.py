"""Tables of other engines, read alike without Spark, by pyarrow in Spark, and by Spark itself."""

from __future__ import annotations

import base64
import datetime as dt
import json
import os
import struct
import uuid
import zlib
from decimal import Decimal
from pathlib import Path

import deltalake
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyroaring import BitMap64

from optimist.core import DeltaLog
from optimist.core.errors import ProtocolError, TableError
from optimist.core.predicates import Predicate
from optimist.core.protocol.actions import (
    AddFile,
    DeletionVectorDescriptor,
    Metadata,
    Protocol,
    RemoveFile,
    actions_from_bytes,
    actions_to_bytes,
)
from optimist.core.schema.types import schema_from_json
from optimist.core.snapshot.local_scan import to_arrow
from optimist.spark import DeltaTable, read, write

ROOT = os.environ.get("OPTIMIST_DAT")
DAT = sorted(Path(ROOT).iterdir()) if ROOT else []


def _versions(table):
    """The expected versions of a table; the newest only as the one that is read by no number."""
    facts = {item: _facts(item)["version"] for item in sorted((table / "expected").iterdir())}
    latest = facts[table / "expected" / "latest"]
    return [item for item, version in facts.items() if item.name == "latest" or version != latest]


def _facts(expected):
    return json.loads((expected / "table_version_metadata.json").read_text())


VERSIONS = [
    pytest.param(table, expected, id=f"{table.name}-{expected.name}")
    for table in DAT
    for expected in _versions(table)
]
needs_dat = pytest.mark.skipif(
    not ROOT, reason="set OPTIMIST_DAT to the folder of the Delta Acceptance Tests"
)
AWKWARD = ["a b", "50%", "a%20b", "x=y", "ä/ö", "a:b", "#?&+", "it's", "{[^]}", "", None]


@pytest.fixture(params=["local", "arrow", "native"])
def rows_at(request):
    """Reads a table on one plane: (path, version, predicate) to an Arrow table."""
    if request.param == "local":
        return _read_locally
    spark = request.getfixturevalue("spark")
    conf = request.getfixturevalue("conf")
    conf("spark.optimist.spark.plane", request.param)
    # The tables are years old, and their older versions are read as well.
    conf(
        "spark.databricks.delta.vacuum.enforceTimeTravelWithinDeletedFileRetentionDuration", "false"
    )

    def by_spark(path, version=None, predicate=None):
        frame = read(spark, str(path), versionAsOf=version)
        return (frame if predicate is None else frame.where(predicate)).toArrow()

    return by_spark


def _read_locally(path, version=None, predicate=None):
    log = DeltaLog.for_path(str(path), {})
    snapshot = log.update() if version is None else log.snapshot(version)
    return to_arrow(snapshot, Predicate.TRUE if predicate is None else predicate)


def values(table, columns=None):
    """The rows in a form that can be compared, whatever engine they come from."""
    rows = table.select(sorted(columns or table.column_names)).to_pylist(maps_as_pydicts="strict")
    return sorted(repr([_plain(value) for value in row.values()]) for row in rows)


def _plain(value):
    if isinstance(value, dt.datetime):
        return value.astimezone(dt.timezone.utc).replace(tzinfo=None) if value.tzinfo else value
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    return [_plain(item) for item in value] if isinstance(value, list) else value


# The Delta Acceptance Tests, written by delta-spark


def content(expected):
    files = (expected / "table_content").glob("*.parquet")
    return pa.concat_tables([pq.read_table(file) for file in files], promote_options="default")


@needs_dat
@pytest.mark.parametrize(("table", "expected"), VERSIONS)
def test_every_version_of_an_acceptance_table_has_the_expected_rows(rows_at, table, expected):
    version = None if expected.name == "latest" else _facts(expected)["version"]
    found, wanted = rows_at(table / "delta", version), content(expected)
    assert sorted(found.column_names) == sorted(wanted.column_names)
    assert values(found) == values(wanted)


# Tables of deltalake

DELTALAKE = ("checkpoint", "awkward", "vacuumed", "restored", "mapped by name", "mapped by id")
READER_OF_MAPPED = {"delta.minReaderVersion": "2", "delta.minWriterVersion": "5"}


def rows(start, count, **more):
    numbers = range(start, start + count)
    columns = {"id": pa.array(numbers, pa.int64()), "s": [f"row {i}" for i in numbers]}
    return pa.table({**columns, **more})


@pytest.fixture(scope="module")
def deltalake_tables(tmp_path_factory):
    """Paths by what was done to the table."""
    root = tmp_path_factory.mktemp("deltalake")
    paths = {name: str(root / name) for name in DELTALAKE}
    for start in range(0, 40, 5):
        deltalake.write_deltalake(paths["checkpoint"], rows(start, 5), mode="append")
    table = deltalake.DeltaTable(paths["checkpoint"])
    table.create_checkpoint()
    table.delete("id % 5 = 2")
    deltalake.write_deltalake(
        paths["awkward"], rows(0, len(AWKWARD), p=AWKWARD), partition_by=["p"]
    )
    for name in ("vacuumed", "restored"):
        deltalake.write_deltalake(paths[name], rows(0, 10))
        deltalake.write_deltalake(paths[name], rows(10, 10), mode="append")
        deltalake.DeltaTable(paths[name]).delete("id < 15")
    deltalake.DeltaTable(paths["vacuumed"]).vacuum(
        retention_hours=0, enforce_retention_duration=False, dry_run=False
    )
    deltalake.DeltaTable(paths["restored"]).restore(1)
    structs = pa.array([{"x y": number} for number in range(10)])
    mapped = rows(0, 10, **{"a b": structs, "p q": ["u v"] * 4 + ["w"] * 6})
    for mode in ("name", "id"):
        path = paths[f"mapped by {mode}"]
        configuration = {"delta.columnMapping.mode": mode, **READER_OF_MAPPED}
        deltalake.write_deltalake(path, mapped, partition_by=["p q"], configuration=configuration)
        deltalake.write_deltalake(path, mapped, mode="append")
        deltalake.DeltaTable(path).create_checkpoint()
        deltalake.write_deltalake(path, mapped.slice(3, 2), mode="append")
    return paths


def rows_of_deltalake(path):
    table = deltalake.DeltaTable(path)
    if table.metadata().configuration.get("delta.columnMapping.mode") is None:
        return table.to_pyarrow_table()
    # The one above reads mapped columns as null; this one, empty partition values as empty text.
    query = deltalake.QueryBuilder().register("t", table)
    return pa.table(query.execute("SELECT * FROM t").read_all())


@pytest.mark.parametrize("name", DELTALAKE)
def test_a_table_of_deltalake_has_the_rows_that_deltalake_reads(rows_at, deltalake_tables, name):
    path = deltalake_tables[name]
    wanted = rows_of_deltalake(path)
    assert wanted.num_rows
    assert values(rows_at(path)) == values(wanted)


@pytest.mark.parametrize("name", ["mapped by name", "mapped by id"])
def test_mapped_columns_of_deltalake_are_filtered_by_their_own_names(
    rows_at, deltalake_tables, name
):
    found = rows_at(deltalake_tables[name], predicate="id >= 8 AND `p q` = 'w' AND `a b`.`x y` < 9")
    assert found["id"].to_pylist() == [8, 8]


def test_awkward_partitions_are_found_by_their_values(rows_at, deltalake_tables):
    wanted = ["50%", "a b", "a%20b", "x=y", "ä/ö"]
    listed = ", ".join(f"'{value}'" for value in wanted)
    found = rows_at(deltalake_tables["awkward"], predicate=f"p IN ({listed})")
    assert sorted(found["p"].to_pylist()) == wanted


# Tables made by hand: what no engine at hand writes

Z85 = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"
B85 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;<=>?@^_`{|}~"


def z85(data):
    return base64.b85encode(data).decode().translate(str.maketrans(B85, Z85))


def field(name, kind, **metadata):
    return {"name": name, "type": kind, "nullable": True, "metadata": metadata}


def struct_of(*fields):
    return {"type": "struct", "fields": list(fields)}


def array_of(kind):
    return {"type": "array", "elementType": kind, "containsNull": True}


def map_of(key, value):
    return {"type": "map", "keyType": key, "valueType": value, "valueContainsNull": True}


def make_table(root, fields, adds, *, partition_columns=(), configuration=None, features=()):
    """Version 0 of a table, its data files written already."""
    schema = json.dumps(struct_of(*fields))
    assert schema_from_json(schema)
    metadata = Metadata(
        id=str(uuid.uuid4()),
        schema_string=schema,
        partition_columns=tuple(partition_columns),
        configuration=configuration or {},
    )
    protocol = Protocol(3, 7, tuple(features), tuple(features))
    log = root / "_delta_log"
    log.mkdir(parents=True, exist_ok=True)
    commit = actions_to_bytes((protocol, metadata, *adds))
    (log / f"{0:020}.json").write_bytes(commit)
    return root


def data_file(root, name, rows, *, partition=None, vector=None, **options):
    root.mkdir(parents=True, exist_ok=True)
    place = root / name
    pq.write_table(rows, place, **options)
    path = name if not name.startswith("/") else place.as_uri()
    stats = json.dumps({"numRecords": rows.num_rows, "tightBounds": vector is None})
    size = place.stat().st_size
    return AddFile(path, partition or {}, size, 1, True, stats=stats, deletion_vector=vector)


def bitmap(positions):
    return struct.pack("<i", 1681511377) + BitMap64(positions).serialize()


def inline_vector(positions):
    data = bitmap(positions)
    text = z85(data + b"\0" * (-len(data) % 4))
    return DeletionVectorDescriptor("i", text, len(data), len(positions))


def stored_vectors(root, *sets, prefix="", absolute=False):
    """Descriptors of vectors that stand in one file."""
    name = uuid.uuid4()
    folder = root / prefix
    folder.mkdir(parents=True, exist_ok=True)
    place = folder / f"deletion_vector_{name}.bin"
    content, found = b"\x01", []
    for positions in sets:
        data = bitmap(positions)
        kind, text = ("p", place.as_uri()) if absolute else ("u", prefix + z85(name.bytes))
        found.append(DeletionVectorDescriptor(kind, text, len(data), len(positions), len(content)))
        content += struct.pack(">i", len(data)) + data + struct.pack(">I", zlib.crc32(data))
    place.write_bytes(content)
    return found


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
    nested = {
        "a": pa.array([[1, None], [], None], pa.list_(pa.int32())),
        "m": pa.array([[(1, 0.5)], [], None], pa.map_(pa.int32(), pa.float32())),
        "st": pa.array([{"x": 1}, {"x": None}, None], pa.struct([("x", pa.int16())])),
    }
    old = pa.table({**columns, **nested})
    wanted |= {"a": [[1, None], [], None], "m": [{1: 0.5}, {}, None], "st": old["st"].to_pylist()}
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
    assert found["c14"].type == pa.timestamp("us")
    assert found.to_pydict(maps_as_pydicts="strict") == wanted


def _widened(value, kind):
    if value is None:
        return None
    if kind.startswith("decimal"):
        return Decimal(value)
    return dt.datetime.combine(value, dt.time()) if isinstance(value, dt.date) else value


def mapped(name, kind, number, physical):
    return field(
        name,
        kind,
        **{"delta.columnMapping.id": number, "delta.columnMapping.physicalName": physical},
    )


def with_id(arrow_field, number):
    return arrow_field.with_metadata({b"PARQUET:field_id": str(number).encode()})


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
    assert [_plain(value) for value in found["t"].to_pylist()] == moments
    assert found["d"].to_pylist() == days
    assert found["c"].to_pylist() == ["a ", "b ", None]


# Variants, and what is written to such tables


def variant_table(root):
    kind = pa.struct(
        [pa.field("metadata", pa.binary(), False), pa.field("value", pa.binary(), False)]
    )
    one = {"metadata": b"\x01\x00\x00", "value": b"\x0c\x01"}
    stored = pa.table({"id": [0, 1], "v": pa.array([one, None], kind)})
    add = data_file(root, "f.parquet", stored)
    return make_table(
        root, [field("id", "long"), field("v", "variant")], [add], features=["variantType"]
    )


def test_variants_are_read_as_their_two_binaries_without_spark(tmp_path):
    found = _read_locally(variant_table(tmp_path / "t"))
    one = {"value": b"\x0c\x01", "metadata": b"\x01\x00\x00"}
    assert found["v"].to_pylist() == [one, None]


def test_shredded_variants_are_refused(tmp_path):
    root = variant_table(tmp_path / "t")
    kind = pa.struct([("metadata", pa.binary()), ("value", pa.binary()), ("typed_value", "int64")])
    pq.write_table(pa.table({"id": [0], "v": pa.array([None], kind)}), root / "f.parquet")
    with pytest.raises(TableError, match="shredded") as caught:
        _read_locally(root)
    assert caught.value.kind == "OPTIMIST_DATA_FILE_TYPE_MISMATCH"


def test_variants_are_variants_in_spark(spark, plane, tmp_path):
    frame = read(spark, str(variant_table(tmp_path / "t")))
    found = frame.selectExpr("id", "to_json(v)", "variant_get(v, '$', 'int')").orderBy("id")
    assert [tuple(row) for row in found.collect()] == [(0, "1", 1), (1, None, None)]
    with pytest.raises(ProtocolError) as caught:
        write(frame, str(tmp_path / "t"), mode="append")
    assert caught.value.fields["unsupported"] == ("variantType",)
    assert [item.name for item in (tmp_path / "t").rglob("*.parquet")] == ["f.parquet"]


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
    found = _read_locally(root)
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
    assert removed[2:] == [None]
    live = DeltaLog.for_path(str(root), {}).update().files
    assert live["deletionVector"].null_count == live.num_rows - 1
