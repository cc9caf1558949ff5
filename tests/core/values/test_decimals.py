"""Decimals keep all of their 38 digits, whatever decimal context the caller's thread has."""

from __future__ import annotations

import decimal
import operator
from collections.abc import Iterator
from contextlib import contextmanager
from decimal import Decimal
from fractions import Fraction

import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from optimist.core import DeltaLog, Predicate
from optimist.core.data.partition_values import parse_partition_value, serialize_partition_value
from optimist.core.errors import TableError
from optimist.core.predicates import col, evaluate
from optimist.core.predicates.tree import Literal
from optimist.core.schema.types import DecimalType
from optimist.core.values.decimals import ceil_to_scale, floor_to_scale, is_in_range, spread

NINES = Decimal("9" * 38)
OPERATORS = {
    "=": operator.eq,
    "<>": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


@contextmanager
def hostile_context() -> Iterator[None]:
    """A caller's context in which every rounding, and every mix with floats, is an error."""
    with decimal.localcontext() as context:
        context.prec = 1
        for signal in (decimal.Inexact, decimal.Rounded, decimal.FloatOperation):
            context.traps[signal] = True
        yield


def scaled(unscaled: int, scale: int) -> Decimal:
    sign, digits = int(unscaled < 0), tuple(int(digit) for digit in str(abs(unscaled)))
    return Decimal((sign, digits, -scale))


@st.composite
def decimal_columns(draw: st.DrawFn) -> tuple[DecimalType, list[Decimal]]:
    precision = draw(st.integers(1, 38) | st.just(38))
    scale = draw(st.integers(0, precision))
    top = 10**precision - 1
    unscaled = st.integers(-top, top) | st.sampled_from([-top, 1 - top, -1, 0, 1, top - 1, top])
    values = draw(st.lists(unscaled, min_size=1, max_size=5))
    return DecimalType(precision, scale), [scaled(value, scale) for value in values]


def near(value: Decimal) -> st.SearchStrategy[Decimal]:
    """The number, its neighbours, and those between."""
    sign, digits, exponent = value.as_tuple()
    assert isinstance(exponent, int)
    unscaled = int("".join(map(str, digits))) * (-1 if sign else 1)
    finer = st.integers(-11, 11).map(lambda step: scaled(10 * unscaled + step, 1 - exponent))
    # Spark has no constants of more digits, before and behind the point, zeros among them.
    return finer.filter(lambda item: _precision(item) <= 38) | st.just(value)


def _precision(number: Decimal) -> int:
    _, digits, exponent = number.as_tuple()
    return max(len(digits), -int(exponent))


@settings(max_examples=3 * settings.default.max_examples, deadline=None)
@given(data=st.data())
def test_comparisons_answer_as_exact_numbers_do(data: st.DataObject) -> None:
    data_type, values = data.draw(decimal_columns())
    constant = data.draw(st.sampled_from(values).flatmap(near))
    op = data.draw(st.sampled_from(sorted(OPERATORS)))
    column = pa.array(values, pa.decimal128(data_type.precision, data_type.scale))
    with hostile_context():
        answers = [
            evaluate(Predicate.parse(f"d {op} {constant:f}"), {"d": column}),
            evaluate(Predicate.parse(f"{constant:f} {FLIPPED[op]} d"), {"d": column}),
        ]
    expected = [OPERATORS[op](Fraction(value), Fraction(constant)) for value in values]
    for answer in answers:
        # None is an honest answer where Spark's common type loses digits, and only there.
        if answer is None:
            digits = len(constant.as_tuple().digits)
            assert digits > 38 or data_type.precision + 1 > 38
        else:
            assert answer.to_pylist() == expected


FLIPPED = {"=": "=", "<>": "<>", "<": ">", "<=": ">=", ">": "<", ">=": "<="}


@pytest.mark.parametrize("scale", [0, 10, 38])
def test_rows_at_both_ends_of_the_range_are_found_by_each_operator(tmp_path, scale: int) -> None:
    top = scaled(10**38 - 1, scale)
    values = [top.copy_negate(), scaled(-1, scale), scaled(0, scale), top]
    log = DeltaLog.for_path(str(tmp_path / "t"))
    for value in values:  # a file each, so that each can be skipped
        log.append(pa.table({"d": pa.array([value], pa.decimal128(38, scale))}))
    with hostile_context():
        for constant in values:
            for op, holds in OPERATORS.items():
                expected = [value for value in values if holds(value, constant)]
                condition = f"d {op} {constant:f}"
                found = log.to_arrow(condition)["d"].to_pylist()
                assert sorted(found) == expected, condition
                assert log.count(condition) == len(expected), condition
            if constant.copy_abs() == top:
                assert log.snapshot().scan(f"d = {constant:f}").files.num_rows == 1
            assert log.count(f"d IN ({constant:f})") == 1
            assert log.count(col("d") == constant) == 1


@settings(max_examples=2 * settings.default.max_examples, deadline=None)
@given(column=decimal_columns())
@example(column=(DecimalType(38, 0), [NINES]))
def test_partition_values_come_back_as_they_were(column: tuple[DecimalType, list[Decimal]]) -> None:
    data_type, values = column
    with hostile_context():
        for value in values:
            text = serialize_partition_value(value, data_type)
            assert parse_partition_value(text, data_type) == value


@pytest.mark.parametrize(
    ("text", "data_type"),
    [
        ("1" + "0" * 38, DecimalType(38, 0)),
        ("-1" + "0" * 38, DecimalType(38, 0)),
        ("1", DecimalType(38, 38)),
        ("1E+40", DecimalType(38, 0)),
        ("1E+400000", DecimalType(38, 0)),
        ("0.5", DecimalType(38, 0)),
        ("NaN", DecimalType(38, 0)),
        ("Infinity", DecimalType(38, 0)),
    ],
)
def test_a_partition_value_out_of_its_range_is_still_refused(text: str, data_type) -> None:
    with hostile_context(), pytest.raises(TableError) as caught:
        parse_partition_value(text, data_type, column="p")
    assert caught.value.kind == "OPTIMIST_MALFORMED_PARTITION_VALUE"


@pytest.mark.parametrize("scale", [0, 10, 38])
def test_a_table_partitioned_by_the_largest_decimals_reads_and_prunes(tmp_path, scale) -> None:
    top = scaled(10**38 - 1, scale)
    values = [top.copy_negate(), scaled(1, scale), top]
    log = DeltaLog.for_path(str(tmp_path / "t"))
    kind = pa.decimal128(38, scale)
    rows = pa.table({"d": pa.array(values, kind), "i": range(len(values))})
    log.append(rows, partition_by=["d"])
    with hostile_context():
        assert sorted(log.to_arrow()["d"].to_pylist()) == values
        for position, value in enumerate(values):
            assert log.to_arrow(f"d = {value:f}")["i"].to_pylist() == [position]
            assert log.snapshot().scan(f"d = {value:f}").files.num_rows == 1


def test_the_opposite_of_a_number_keeps_its_digits() -> None:
    with hostile_context():
        parsed = Predicate.parse(f"d <= -{NINES}")
    assert parsed.right == Literal(NINES.copy_negate(), "decimal")


def test_numbers_are_rounded_only_towards_the_side_that_is_named() -> None:
    number = Decimal("-1.25")
    with hostile_context():
        assert floor_to_scale(number, 1) == Decimal("-1.3")
        assert ceil_to_scale(number, 1) == Decimal("-1.2")
        assert not is_in_range(Decimal(10), 3, 2)
        assert is_in_range(Decimal("-9.99"), 3, 2)
        assert spread(Decimal(2000), 3) == (Decimal(1980), Decimal(2020))
