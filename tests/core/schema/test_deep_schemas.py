"""Schemas whose types stand deep in each other: read at the limit, refused by name beyond it."""

from __future__ import annotations

import json
import pickle
from pathlib import Path

import pyarrow as pa
import pytest

from hostile_log import HostileTable
from optimist.core import DeltaLog
from optimist.core.errors import OptimistError, SchemaError
from optimist.core.predicates import Predicate
from optimist.core.predicates.parsing import parse_column_path
from optimist.core.schema.generated_columns import referenced_columns
from optimist.core.schema.generated_rules import generation_rule
from optimist.core.schema.types import MAX_TYPE_DEPTH, schema_from_json, schema_to_json
from optimist.logstores import LocalLogStore

_WRAPS = {
    "struct": '{"type":"struct","fields":[{"name":"a","type":%s,"nullable":true,"metadata":{}}]}',
    "array": '{"type":"array","elementType":%s,"containsNull":true}',
    "map": '{"type":"map","keyType":"string","valueType":%s,"valueContainsNull":true}',
}
_DEPTHS = [MAX_TYPE_DEPTH + 1, 60, 90, 600, 20_000]


def _text(kind: str, depth: int) -> str:
    before, _, after = _WRAPS[kind].partition("%s")
    return _WRAPS["struct"] % (before * depth + '"long"' + after * depth)


def _value(kind: str, depth: int) -> object:
    value: object = 7
    for _ in range(depth):
        value = {"struct": {"a": value}, "array": [value], "map": [("k", value)]}[kind]
    return {"a": value}


@pytest.mark.parametrize("kind", list(_WRAPS))
@pytest.mark.parametrize("depth", _DEPTHS)
def test_a_deeper_schema_is_an_error_of_ours(tmp_path: Path, kind: str, depth: int) -> None:
    with pytest.raises(SchemaError) as caught:
        schema_from_json(_text(kind, depth))
    assert caught.value.kind == "OPTIMIST_SCHEMA_TOO_DEEP"
    table = HostileTable(tmp_path / "t", _text(kind, depth))
    log = DeltaLog(table.path, LocalLogStore())
    for look in (
        lambda: log.snapshot().schema,
        log.to_arrow,
        log.detail,
        lambda: log.append(pa.table({"a": [1]})),
    ):
        with pytest.raises(SchemaError) as caught:
            look()
        assert caught.value.kind == "OPTIMIST_SCHEMA_TOO_DEEP"


@pytest.mark.parametrize("kind", list(_WRAPS))
def test_the_deepest_schema_is_written_read_and_sent(tmp_path: Path, kind: str) -> None:
    schema = schema_from_json(_text(kind, MAX_TYPE_DEPTH))
    assert schema_from_json(schema_to_json(schema)) == schema
    assert pickle.loads(pickle.dumps(schema)) == schema
    table = HostileTable(tmp_path / "t", _text(kind, MAX_TYPE_DEPTH))
    log = DeltaLog(table.path, LocalLogStore())
    rows = pa.Table.from_pylist([_value(kind, MAX_TYPE_DEPTH)], schema=log.to_arrow().schema)
    log.append(rows)
    log.checkpoint()
    read = DeltaLog(table.path, LocalLogStore()).to_arrow()
    assert read.to_pylist() == rows.to_pylist()
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, read.schema) as writer:
        writer.write_table(read)
    assert pa.ipc.open_stream(sink.getvalue()).read_all() == read


def test_a_table_deeper_than_the_limit_is_not_made(tmp_path: Path) -> None:
    kind: pa.DataType = pa.int64()
    for _ in range(MAX_TYPE_DEPTH + 1):
        kind = pa.list_(kind)
    with pytest.raises(SchemaError) as caught:
        DeltaLog(f"{tmp_path}/t", LocalLogStore()).append(pa.table({"a": pa.nulls(1, kind)}))
    assert caught.value.kind == "OPTIMIST_SCHEMA_TOO_DEEP"
    assert not list(tmp_path.rglob("*.json"))


@pytest.mark.parametrize("opening", ["(", "-", "NOT ", "a.", "abs(", "CASE WHEN a THEN "])
def test_sql_that_is_nested_deeply_is_an_error_of_ours_or_opaque(opening: str) -> None:
    text = opening * 3_000 + "a" + ")" * (3_000 if "(" in opening else 0)
    for parse in (Predicate.parse, parse_column_path, referenced_columns, generation_rule):
        try:
            parse(text)
        except OptimistError as error:
            assert "OPTIMIST_INVALID" in error.kind


def test_what_stands_deep_in_the_metadata_of_a_field_is_no_crash(tmp_path: Path) -> None:
    schema = json.loads(_text("struct", 0))
    for depth in (100, 400, 5_000):
        text = json.dumps(schema).replace('"metadata": {}', '"metadata": {"x": %s}')
        table = HostileTable(tmp_path / str(depth), text % ("[" * depth + "]" * depth))
        log = DeltaLog(table.path, LocalLogStore())
        if depth < 200:
            assert log.to_arrow().num_rows == 0
            continue
        with pytest.raises(SchemaError):
            log.to_arrow()
