"""Appends to tables with widened types and with variants, without Spark."""

from __future__ import annotations

import datetime as dt
from dataclasses import replace
from decimal import Decimal

import pyarrow as pa
import pytest

from optimist.core import Column, DeltaLog
from optimist.core.errors import SchemaError
from optimist.core.protocol.table_metadata import TableMetadata
from optimist.core.schema.type_widening import TYPE_CHANGES
from optimist.core.schema.types import (
    ArrayType,
    DecimalType,
    MapType,
    PrimitiveType,
    StructField,
    StructType,
    schema_to_json,
    walk_fields,
)
from optimist.core.transaction.conflicts.operations import Operation

DEFAULT = "spark.databricks.delta.properties.defaults."
TYPES = {
    "i": (pa.int16(), PrimitiveType("long"), pa.int64()),
    "f": (pa.float32(), PrimitiveType("double"), pa.float64()),
    "d": (pa.decimal128(5, 2), DecimalType(37, 4), pa.decimal128(37, 4)),
}
NARROW = pa.table(
    {
        "i": pa.array([1, None, -3], pa.int16()),
        "f": pa.array([0.5, float("nan"), None], pa.float32()),
        "d": pa.array([Decimal("1.25"), None, Decimal("-999.99")], pa.decimal128(5, 2)),
        "l": pa.array([[{"x": 7}], [], None], pa.list_(pa.struct([("x", pa.int8())]))),
        "m": pa.array([[(1, [2])], None, []], pa.map_(pa.int32(), pa.list_(pa.int32()))),
    }
)
INNER = StructType((StructField("x", PrimitiveType("integer")),))
LONG = PrimitiveType("long")
WIDE = {
    **{name: kind for name, (_, kind, _) in TYPES.items()},
    "l": ArrayType(INNER),
    "m": MapType(LONG, ArrayType(LONG)),
}


def widen(log, types) -> None:
    """Change the types as an ALTER TABLE would."""
    begun = log.start_transaction()
    schema = TableMetadata.of(begun.metadata).declared_schema
    changed = StructType(
        tuple(replace(item, data_type=types.get(item.name, item.data_type)) for item in schema)
    )
    begun.update_metadata(replace(begun.metadata, schema_string=schema_to_json(changed)))
    begun.commit((), Operation("CHANGE COLUMN"))


@pytest.fixture
def log(tmp_path) -> DeltaLog:
    return DeltaLog.for_path(str(tmp_path / "t"), {DEFAULT + "enableTypeWidening": "true"})


def test_widened_columns_take_wide_and_narrow_values(log):
    log.append(NARROW)
    widen(log, WIDE)
    log.append(NARROW)
    big = {"i": 2**62, "f": 1e300, "d": Decimal(10) ** 32, "l": [{"x": 2**30}], "m": [(2**40, [1])]}
    log.append(pa.Table.from_pylist([big], log.to_arrow(limit=0).schema))
    found = log.to_arrow().to_pylist()
    assert repr(found[:3]) == repr(found[3:6])
    assert found[6] == big
    assert found[2] == {"i": -3, "f": None, "d": Decimal("-999.9900"), "l": None, "m": []}
    assert log.snapshot().scan("i > 100000").files.num_rows == 1
    assert log.snapshot().scan("d = 1.25").files.num_rows == 2


def test_each_change_is_recorded_at_the_field_around_it(log):
    log.append(NARROW)
    widen(log, WIDE)
    widen(log, {"d": DecimalType(38, 5)})
    told = {
        ".".join(path): item.metadata[TYPE_CHANGES]
        for path, item in walk_fields(log.snapshot().schema)
        if TYPE_CHANGES in item.metadata
    }
    assert told == {
        "i": [{"toType": "long", "fromType": "short"}],
        "f": [{"toType": "double", "fromType": "float"}],
        "d": [
            {"toType": "decimal(37,4)", "fromType": "decimal(5,2)"},
            {"toType": "decimal(38,5)", "fromType": "decimal(37,4)"},
        ],
        "l.element.x": [{"toType": "integer", "fromType": "byte"}],
        "m": [
            {"toType": "long", "fromType": "integer", "fieldPath": "key"},
            {"toType": "long", "fromType": "integer", "fieldPath": "value.element"},
        ],
    }


def test_nothing_is_recorded_without_the_feature(tmp_path):
    log = DeltaLog.for_path(str(tmp_path / "t"), {})
    log.append(NARROW)
    widen(log, {"i": PrimitiveType("integer")})
    assert TYPE_CHANGES not in log.snapshot().metadata.schema_string


def test_values_that_fit_are_cast_and_the_table_keeps_its_types(tmp_path):
    log = DeltaLog.for_path(str(tmp_path / "t"), {})
    log.append(pa.table({"i": pa.array([1], pa.int32()), "x": pa.array([1.5])}))
    log.append(pa.table({"i": pa.array([2], pa.int64()), "x": pa.array([7], pa.int8())}))
    log.append(pa.table({"i": pa.array([3.0, None]), "x": pa.array([Decimal("0.1"), None])}))
    assert log.to_arrow()["i"].to_pylist() == [1, 2, 3, None]
    assert log.to_arrow()["x"].to_pylist() == [1.5, 7.0, 0.1, None]
    assert [str(item.data_type) for item in log.schema()] == ["integer", "double"]
    for column in (pa.array([2**31]), pa.array([0.5]), pa.array([float("nan")])):
        with pytest.raises(SchemaError) as caught:
            log.append(pa.table({"i": column}))
        assert caught.value.kind == "OPTIMIST_VALUE_DOES_NOT_FIT"


def test_integers_become_no_other_numbers_where_types_may_widen(log):
    log.append(pa.table({"i": pa.array([1], pa.int32())}))
    log.append(pa.table({"i": pa.array([Decimal(5)])}), schema_mode="merge")
    log.append(pa.table({"i": pa.array([2**40])}), schema_mode="merge")
    assert str(log.schema().find("i").data_type) == "long"
    with pytest.raises(SchemaError):
        log.append(pa.table({"i": pa.array([0.5])}), schema_mode="merge")


def test_a_widened_partition_column_has_one_partition_for_one_value(log):
    day = dt.date(2020, 1, 2)
    rows = pa.table({"p": pa.array([1, 2], pa.int32()), "q": [day, day], "x": ["a", "b"]})
    log.append(rows, partition_by=["p", "q"])
    widen(log, {"p": PrimitiveType("long")})
    log.append(rows)
    assert log.snapshot().scan("p = 2").files.num_rows == 2
    assert log.to_arrow("p = 2").to_pylist() == [{"p": 2, "q": day, "x": "b"}] * 2


# Variants

BINARIES = pa.struct([("metadata", pa.binary()), ("value", pa.binary())])
ONE = {"metadata": b"\x01\x00\x00", "value": b"\x0c\x01"}


def variants(kind="variant") -> StructType:
    return StructType((StructField("v", PrimitiveType(kind)), StructField("n", ArrayType(
        StructType((StructField("w", PrimitiveType(kind)),))
    ))))  # fmt: skip


@pytest.fixture
def with_variants(tmp_path) -> DeltaLog:
    log = DeltaLog.for_path(str(tmp_path / "t"), {})
    begun = log.start_transaction()
    metadata = replace(begun.metadata, schema_string=schema_to_json(variants()))
    begun.update_metadata(metadata)
    begun.commit((), Operation("CREATE TABLE"))
    return log


def test_two_binaries_become_a_variant_where_the_table_has_one(with_variants):
    nested = pa.array(
        [[{"w": ONE}, None, {"w": None}], None], pa.list_(pa.struct([("w", BINARIES)]))
    )
    rows = pa.table({"v": pa.array([ONE, None], BINARIES), "n": nested})
    with_variants.append(rows)
    with_variants.append(with_variants.to_arrow())
    assert with_variants.to_arrow().to_pylist() == rows.to_pylist() * 2
    assert with_variants.snapshot().protocol.writer_features == (
        "appendOnly",
        "invariants",
        "variantType",
    )


def test_what_was_read_as_variants_makes_a_table_of_variants(with_variants, tmp_path):
    with_variants.append(pa.table({"v": pa.array([ONE], BINARIES)}))
    copy = DeltaLog.for_path(str(tmp_path / "copy"), {})
    copy.append(with_variants.to_arrow())
    assert copy.snapshot().schema == variants()


@pytest.mark.parametrize("part", ["metadata", "value"])
def test_half_a_variant_is_refused(with_variants, part):
    half = pa.array([ONE, {**ONE, part: None}, None], BINARIES)
    with pytest.raises(SchemaError, match="lacks one of its two binaries") as caught:
        with_variants.append(pa.table({"v": half}))
    assert caught.value.kind == "OPTIMIST_VALUE_DOES_NOT_FIT"
    assert with_variants.snapshot().version == 0


def test_other_structs_are_no_variants(with_variants):
    other = pa.array([{**ONE, "more": 1}], pa.struct([*BINARIES, ("more", pa.int64())]))
    with pytest.raises(SchemaError) as caught:
        with_variants.append(pa.table({"v": other}))
    assert caught.value.kind == "DELTA_FAILED_TO_MERGE_FIELDS"


@pytest.mark.parametrize("command", ["append", "merge"])
def test_declared_lengths_stay_where_a_struct_gets_more_fields(tmp_path, command):
    log = DeltaLog.for_path(str(tmp_path), {})
    log.create([Column("id", "bigint"), Column("s", "struct<a:varchar(3),n:int>")])
    rows = [{"id": 1, "s": {"a": "abc", "n": 1, "b": "long enough"}}]
    if command == "append":
        log.append(pa.Table.from_pylist(rows), schema_mode="merge")
    else:
        merge = log.merge(pa.Table.from_pylist(rows), "t.id = s.id").with_schema_evolution()
        merge.when_matched_update_all().execute()
        log.append(pa.Table.from_pylist(rows))
    item = log.snapshot().schema.find("s")
    assert item.metadata["__CHAR_VARCHAR_TYPE_STRING"] == "struct<a:varchar(3),n:int,b:string>"
    log.append(pa.Table.from_pylist(rows))
    with pytest.raises(SchemaError) as caught:
        log.append(pa.Table.from_pylist([{"id": 2, "s": {"a": "abcd", "n": 1, "b": ""}}]))
    assert caught.value.kind == "DELTA_EXCEED_CHAR_VARCHAR_LIMIT"
    assert log.to_arrow().to_pylist() == 2 * rows
