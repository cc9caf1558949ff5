"""Rows by partition against a model that looks at one row after the other."""

from __future__ import annotations

import datetime as dt
import math
from decimal import Decimal

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from optimist.core.data.parquet.partitioned_rows import copied_parts, rows_by_partition
from optimist.core.data.partition_values import serialize_partition_values
from optimist.core.schema.arrow_types import to_arrow_schema
from optimist.core.schema.types import DecimalType, PrimitiveType, StructField, StructType

_ODD = {
    "string": ["", "a", "A", "é", "a/b", "__HIVE_DEFAULT_PARTITION__"],
    "long": [0, -1, 2**63 - 1, -(2**63)],
    "double": [0.0, -0.0, math.nan, math.inf, 1e300],
    "boolean": [True, False],
    "date": [dt.date(1, 1, 1), dt.date(9999, 12, 31)],
    "timestamp": [dt.datetime(1, 1, 1, tzinfo=dt.timezone.utc)],
    "binary": [b"", b"a"],
    "decimal": [Decimal("0.00"), Decimal("-1.50"), Decimal("9" * 36 + ".99")],
}


@st.composite
def partitioned(draw):
    """Fields of some types, and rows of odd values and nulls."""
    kinds = draw(st.lists(st.sampled_from(list(_ODD)), min_size=1, max_size=3))
    fields = StructType(
        tuple(
            StructField(f"p{at}", DecimalType(38, 2) if kind == "decimal" else PrimitiveType(kind))
            for at, kind in enumerate(kinds)
        )
    )
    values = st.tuples(*(st.sampled_from([None, *_ODD[kind]]) for kind in kinds))
    return fields, draw(st.lists(values, max_size=12))


@given(partitioned())
@settings(deadline=None)
def test_each_row_is_in_its_partition_in_the_order_of_the_rows(case):
    fields, rows = case
    named = [dict(zip(fields.names, row, strict=True)) for row in rows]
    batch = pa.RecordBatch.from_pylist(named, schema=to_arrow_schema(fields))
    expected: dict[tuple[str | None, ...], list[int]] = {}
    for number, row in enumerate(named):
        key = tuple(serialize_partition_values(row, fields).values())
        expected.setdefault(key, []).append(number)
    found: dict[tuple[str | None, ...], list[int]] = {}
    for values, numbers in rows_by_partition(batch, fields):
        key = tuple(values.values())
        whole = list(range(len(rows))) if numbers is None else numbers.to_pylist()
        assert whole == sorted(whole)
        found[key] = sorted(found.get(key, []) + whole)  # empty bytes and null are one partition
    assert found == expected


def test_the_part_of_a_partition_keeps_no_other_rows_in_memory():
    rows = pa.record_batch({"n": range(4000), "text": [f"text {n}" for n in range(4000)]})
    numbers = [pa.array(range(start, 4000, 4), pa.uint64()) for start in range(4)]
    parts = list(copied_parts(rows, numbers))
    assert [part["n"].to_pylist() for part in parts] == [each.to_pylist() for each in numbers]
    assert [part["text"][1].as_py() for part in parts] == [f"text {n}" for n in (4, 5, 6, 7)]
    assert all(part.get_total_buffer_size() <= 2 * part.nbytes for part in parts)
