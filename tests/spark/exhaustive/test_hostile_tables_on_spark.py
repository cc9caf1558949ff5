"""Tables that claim what can't be, on both planes: deep schemas, sizes and counts that lie."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pytest
from py4j.protocol import Py4JJavaError

from hostile_log import HostileTable, add
from optimist.core import DeltaLog
from optimist.core.errors import SchemaError, TableError
from optimist.core.schema.types import MAX_TYPE_DEPTH
from optimist.spark import DeltaTable, count, read, write

_WRAPS = {
    "s": '{"type":"struct","fields":[{"name":"a","type":%s,"nullable":true,"metadata":{}}]}',
    "l": '{"type":"array","elementType":%s,"containsNull":true}',
    "m": '{"type":"map","keyType":"string","valueType":%s,"valueContainsNull":true}',
}


@pytest.fixture(params=["native", "arrow"], autouse=True)
def plane(request, conf):
    conf("spark.optimist.spark.plane", request.param)
    return request.param


def _schema(depth: int) -> str:
    types = {"id": '"long"'}
    for name, wrap in _WRAPS.items():
        before, _, after = wrap.partition("%s")
        types[name] = before * depth + '"long"' + after * depth
    fields = (
        f'{{"name":"{name}","type":{kind},"nullable":true,"metadata":{{}}}}'
        for name, kind in types.items()
    )
    return f'{{"type":"struct","fields":[{",".join(fields)}]}}'


def _row(number: int, depth: int) -> dict[str, object]:
    s: object = number
    m: object = number
    items: object = number
    for _ in range(depth):
        s, items, m = {"a": s}, [items], [("k", m)]
    return {"id": number, "s": s, "l": items, "m": m}


def test_the_deepest_schema_is_read_and_written(spark, tmp_path: Path) -> None:
    table = HostileTable(tmp_path / "t", _schema(MAX_TYPE_DEPTH))
    log = DeltaLog.for_path(table.path)
    rows = [_row(number, MAX_TYPE_DEPTH) for number in (1, 2)]
    log.append(pa.Table.from_pylist(rows, schema=log.to_arrow().schema))
    found = read(spark, table.path)
    assert sorted(row.id for row in found.collect()) == [1, 2]
    leaf = "s" + ".a" * MAX_TYPE_DEPTH
    assert [row.id for row in found.where(f"{leaf} = 2").collect()] == [2]
    write(found.where("id = 1"), table.path, mode="append")
    DeltaTable.forPath(spark, table.path).delete("id = 2")
    again = DeltaLog.for_path(table.path).to_arrow()
    assert again.to_pylist() == [rows[0], rows[0]]


@pytest.mark.parametrize("depth", [MAX_TYPE_DEPTH + 1, 600, 20_000])
def test_a_deeper_schema_is_an_error_of_ours(spark, tmp_path: Path, depth: int) -> None:
    table = HostileTable(tmp_path / "t", _schema(depth))
    for ask in (
        lambda: read(spark, table.path),
        lambda: DeltaTable.forPath(spark, table.path).toDF(),
        lambda: write(spark.range(1), table.path, mode="append"),
        lambda: DeltaTable.forPath(spark, table.path).delete("id = 1"),
    ):
        with pytest.raises(SchemaError) as caught:
            ask()
        assert caught.value.kind == "OPTIMIST_SCHEMA_TOO_DEEP"


@pytest.mark.parametrize("claims", [[-5], [1 << 62] * 3], ids=["negative", "wrapping"])
def test_where_row_counts_lie_rows_are_counted(spark, tmp_path: Path, claims: list[int]) -> None:
    table = HostileTable(tmp_path / "t")
    for number, claim in enumerate(claims):
        size = table.data_file(f"f{number}", [1, 2])
        table.commit(add(f"f{number}", size, rows=claim))
    assert count(spark, table.path) == 2 * len(claims)
    assert count(spark, table.path, "x = 1") == len(claims)
    assert read(spark, table.path).where("x = 1").count() == len(claims)
    done = DeltaTable.forPath(spark, table.path).delete("x = 1")
    assert read(spark, table.path).count() == len(claims)
    assert done is None or "-" not in json.dumps(done, default=str)
    metrics = DeltaLog.for_path(table.path).history(1)[0].info.operation_metrics or {}
    assert all(int(value) >= 0 for value in metrics.values() if value.lstrip("-").isdigit())


def test_sizes_beyond_64_bits_are_refused(spark, plane, tmp_path: Path) -> None:
    table = HostileTable(tmp_path / "t")
    table.commit(*(add(f"f{number}", 1 << 62) for number in range(3)))
    for ask in (
        lambda: DeltaTable.forPath(spark, table.path).detail().collect(),
        lambda: DeltaTable.forPath(spark, table.path).delete("x = 1"),
    ):
        with pytest.raises(TableError) as caught:
            ask()
        assert caught.value.kind == "OPTIMIST_IMPOSSIBLE_COUNT"
    # The arrow plane looks at files when Spark plans a query of the user's; what Spark makes of its
    # error is the error itself in a process that has enabled a session.
    errors = (TableError,) if plane == "native" else (TableError, Py4JJavaError)
    with pytest.raises(errors, match="OPTIMIST_IMPOSSIBLE_COUNT"):
        read(spark, table.path).collect()


def test_a_file_that_claims_petabytes_is_read_by_a_few_tasks(spark, tmp_path: Path, conf) -> None:
    table = HostileTable(tmp_path / "t")
    table.data_file("f", [1, 2])
    table.commit(add("f", 10**12))
    assert 1 < read(spark, table.path).rdd.getNumPartitions() < 10_000
    conf("spark.sql.files.maxPartitionBytes", "64g")  # even so few tasks take their time
    frame = read(spark, table.path)
    assert 1 < frame.rdd.getNumPartitions() < 20
    assert sorted(row.x for row in frame.collect()) == [1, 2]


@pytest.mark.parametrize("plane", ["native"], indirect=True)
def test_a_file_that_claims_more_than_any_file_has_is_refused(spark, tmp_path: Path) -> None:
    table = HostileTable(tmp_path / "t")
    table.data_file("f", [1, 2])
    table.commit(add("f", 10**15))
    for ask in (
        lambda: read(spark, table.path).collect(),
        lambda: DeltaTable.forPath(spark, table.path).delete("x = 1"),
    ):
        with pytest.raises(TableError) as caught:
            ask()
        assert caught.value.kind == "OPTIMIST_IMPOSSIBLE_COUNT"


@pytest.mark.parametrize(
    ("kind", "collations"),
    [
        ("string", {"c": "spark.NO_SUCH_COLLATION"}),
        ("string", {"c": "nobody.UNICODE"}),
        ("string", {"c": "UNICODE"}),
        ("string", {"c": 5}),
        ("string", ["c"]),
        ("long", {"c": "icu.UNICODE"}),
        ("decimal(0,0)", {}),
        ("decimal(99,2)", {}),
        ("decimal(5,9)", {}),
    ],
)
def test_a_type_that_spark_does_not_know_is_an_error_of_ours(
    spark, tmp_path: Path, kind: str, collations: object
) -> None:
    table = HostileTable(tmp_path / "t", _one_column(kind, {"__COLLATIONS": collations}))
    with pytest.raises(SchemaError) as caught:
        read(spark, table.path)
    assert caught.value.kind == "OPTIMIST_UNKNOWN_TYPE"


def test_metadata_that_spark_cannot_hold_stop_no_reader(spark, tmp_path: Path) -> None:
    metadata = {"mixed": [1, "a", None], "lists": [[1]], "inner": {"l": [1, 2.5]}, "good": [1, 2]}
    table = HostileTable(tmp_path / "t", _one_column("long", metadata))
    frame = read(spark, table.path)
    assert frame.schema["c"].metadata == {"good": [1, 2]}
    assert frame.collect() == []


def _one_column(kind: str, metadata: dict[str, object]) -> str:
    field = {"name": "c", "type": kind, "nullable": True, "metadata": metadata}
    return json.dumps({"type": "struct", "fields": [field]})
