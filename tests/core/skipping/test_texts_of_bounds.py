"""A bound in the log is text: whatever its writer meant by it, no file is skipped wrongly.

A file of two values gets the statistics that some writer would have written when the column had
its former type. They are read as the type of now, from the text, and from what checkpoints hold.
"""

import datetime as dt
import json
import math
import operator
import struct
from decimal import Decimal
from itertools import pairwise

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from optimist.core.data.statistics.string_bounds import lower_bound, upper_bound
from optimist.core.log.file_table import files_table
from optimist.core.log.parsed_columns import statistics_texts
from optimist.core.log_upkeep.struct_columns import StructColumns
from optimist.core.predicates.resolution import resolve_column
from optimist.core.predicates.tree import Column, Comparison, In, Literal, StartsWith
from optimist.core.protocol.actions import AddFile
from optimist.core.schema.arrow_types import to_arrow_type
from optimist.core.schema.type_widening import is_widening, with_type_changes
from optimist.core.schema.types import DecimalType, PrimitiveType, StructField, StructType
from optimist.core.skipping.pruner import FilePruner
from optimist.core.skipping.statistics import stats_table

UTC = dt.timezone.utc
OPERATORS = {
    "=": operator.eq,
    "<>": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
PRIMITIVES = [
    PrimitiveType(name)
    for name in (
        *("byte", "short", "integer", "long", "float", "double"),
        *("date", "timestamp", "timestamp_ntz", "string"),
    )
]
DECIMALS = [
    DecimalType(*sizes)
    for sizes in ((5, 2), (12, 2), (15, 3), (20, 0), (22, 2), (34, 2), (38, 0), (38, 18))
]
TYPES = [*PRIMITIVES, *DECIMALS]
WIDENINGS = [(old, new) for old in TYPES for new in TYPES if old == new or is_widening(old, new)]
OFFSETS = ["", "-07:52:58", "+00:19:32", "-00:44:30", "-03:30"]


def as_float32(value):
    return struct.unpack("<f", struct.pack("<f", value))[0]


DIGITS = (0, 1, -70, 2**63 - 1, 2**63, -(2**63), -(2**63) - 1, 10**18 + 1, 12345678901234567890123)
EDGES = {
    "byte": (-128, 127),
    "short": (-(2**15), 2**15 - 1),
    "integer": (-(2**31), 2**24 + 1, 2**31 - 1),
    "long": (-(2**63), 2**53 + 1, 2**63 - 1),
    "double": (-1.1, -0.1, 0.0, 1e-7, 0.1, 0.7, 16777217.0, 3.4028234e38),
    "date": (dt.date(1, 1, 1), dt.date(1582, 10, 14), dt.date(2020, 2, 29), dt.date(9999, 12, 31)),
    "timestamp_ntz": (
        dt.datetime(1, 1, 3, 0, 0, 0, 999),
        dt.datetime(1800, 1, 1, 1, 2, 3, 999_999),
        dt.datetime(1969, 12, 31, 23, 59, 59, 999_999),
        dt.datetime(2020, 1, 1, 0, 0, 0, 1_001),
    ),
    "string": ("", "a", "abcdefghi", "abcdefgh😀", "\ufffd", "abcdefgh\U0010ffff\U0010ffff!"),
}
EDGES["float"] = tuple(map(as_float32, EDGES["double"]))
EDGES["timestamp"] = tuple(value.replace(tzinfo=UTC) for value in EDGES["timestamp_ntz"])


def floats(width):
    drawn = st.floats(allow_nan=False, allow_infinity=False, width=width)
    return st.one_of(st.sampled_from(EDGES["double"]), drawn).map(
        as_float32 if width == 32 else float
    )


def decimals(kind):
    top = 10**kind.precision - 1
    inside = st.sampled_from([number for number in DIGITS if abs(number) <= top])
    return st.one_of(inside, st.integers(-top, top)).map(lambda n: scaled(n, kind.scale))


def scaled(number, scale):
    digits = tuple(map(int, str(abs(number))))
    return Decimal((int(number < 0), digits, -scale))


VALUES = {
    "byte": st.integers(-128, 127),
    "short": st.integers(-(2**15), 2**15 - 1),
    "integer": st.integers(-(2**31), 2**31 - 1),
    "long": st.integers(-(2**63), 2**63 - 1),
    "float": floats(32),
    "double": floats(64),
    "date": st.dates(),
    "timestamp": st.datetimes(dt.datetime(1, 1, 3), dt.datetime(9999, 12, 29)).map(
        lambda value: value.replace(tzinfo=UTC)
    ),
    "timestamp_ntz": st.datetimes(),
    "string": st.text(st.sampled_from('ab~\x7fé\ud7ff\ufffd\uffff😀\U0010ffff"\\\n'), max_size=40),
}


def values_of(kind):
    return decimals(kind) if isinstance(kind, DecimalType) else VALUES[kind.name]


def edges_of(kind):
    if not isinstance(kind, DecimalType):
        return EDGES[kind.name]
    top = 10**kind.precision - 1
    numbers = (-top, *(number for number in DIGITS if abs(number) <= top), top)
    return [scaled(number, kind.scale) for number in numbers]


def widened(value, old, new):
    """The value as readers give it out once the column is wider."""
    if isinstance(new, DecimalType):
        return Decimal(value)
    if new.name == "double":
        return float(value)
    is_day = old.name == "date" and new.name == "timestamp_ntz"
    return dt.datetime.combine(value, dt.time()) if is_day else value


def by_spark(value, kind, is_high, offset):
    """The JSON of a bound as engines on the JVM write it; None for no bound."""
    if isinstance(value, float):
        return pa.scalar(value, to_arrow_type(kind)).cast(pa.string()).as_py()
    if isinstance(value, Decimal):
        return f"{value:f}"
    if isinstance(value, dt.datetime):
        cut = value.replace(microsecond=value.microsecond // 1000 * 1000)
        return json.dumps(clock(cut, offset) if value.tzinfo else cut.isoformat()[:23])
    if isinstance(value, dt.date):
        return json.dumps(value.isoformat())
    if isinstance(value, str):
        bound = upper_bound(value, 8) if is_high else lower_bound(value, 8)
        return None if bound is None else json.dumps(bound, ensure_ascii=False)
    return str(value)


def clock(value, offset):
    """An instant on the clock of a place; early writers cut the seconds off its offset."""
    if not offset:
        return value.strftime("%Y").rjust(4, "0") + value.strftime("-%m-%dT%H:%M:%SZ")
    sign, parts = (-1 if offset[0] == "-" else 1), [int(part) for part in offset[1:].split(":")]
    hours, minutes, seconds = (*parts, 0)[:3]
    if value.year >= 1972:
        seconds = 0
    away = dt.timedelta(hours=hours, minutes=minutes, seconds=seconds)
    local = (value + sign * away).replace(tzinfo=None)
    return local.isoformat(timespec="milliseconds") + offset[:6]


def by_rust(value, kind, is_high, _offset):
    """As delta-rs writes it: numbers as doubles, decimals without places cut off at 64 bits."""
    if isinstance(value, float):
        return repr(value)
    if isinstance(value, Decimal):
        if kind.scale == 0:
            return str(max(-(2**63), min(2**63 - 1, int(value))))
        return repr(float(value))
    if isinstance(value, dt.datetime):
        text = value.replace(tzinfo=None).isoformat(timespec="microseconds")
        return json.dumps(text + ("Z" if value.tzinfo else ""))
    return by_spark(value, kind, is_high, "")


def by_old_spark(value, kind, is_high, offset):
    """Long maxima end with U+FFFD; the JSON of numbers is as ever."""
    if isinstance(value, str) and is_high and len(value) > 8:
        return json.dumps(value[:8] + "\ufffd", ensure_ascii=False)
    return by_spark(value, kind, is_high, offset)


WRITERS = (by_spark, by_rust, by_old_spark)


def schema_of(old, new):
    before = StructType((StructField("c", old),))
    after = StructType((StructField("c", new),))
    return with_type_changes(after, before)


def stats_of(low, high):
    """The statistics of two rows without nulls."""
    bounds = [
        f'"{name}":{{"c":{text}}}'
        for name, text in (("minValues", low), ("maxValues", high))
        if text is not None
    ]
    return "{" + ",".join(['"numRecords":2', *bounds, '"nullCount":{"c":0}']) + "}"


def files_with(all_stats):
    return files_table(
        AddFile(f"{number}", {}, 1, 1, True, stats=stats) for number, stats in enumerate(all_stats)
    )


def of_our_checkpoint(stats, schema):
    """What is left of the statistics in a checkpoint of ours that has them as a struct alone."""
    columns = StructColumns((resolve_column(("c",), schema),), (), schema)
    (parsed,) = columns.columns(files_with([stats]).to_batches()[0])
    return statistics_texts(parsed)[0].as_py()


def of_foreign_checkpoint(stats, schema):
    """The same of an engine that takes each text for a value of the column's type."""
    kind = schema.fields[0].data_type
    parsed = json.loads(stats)
    if kind == PrimitiveType("double"):
        wanted = {name: pa.float64() for name in ("minValues", "maxValues")}
        bounds = {
            name: pa.StructArray.from_arrays([pa.array([parsed[name]["c"]], kind)], ["c"])
            for name, kind in wanted.items()
        }
        nulls = pa.StructArray.from_arrays([pa.array([0], pa.int64())], ["c"])
        fields = {"numRecords": pa.array([2], pa.int64()), **bounds, "nullCount": nulls}
        struct_array = pa.StructArray.from_arrays(list(fields.values()), names=list(fields))
        return statistics_texts(struct_array)[0].as_py()
    return stats


def literals_near(values, kind, texts):
    """Constants at, just below and just above the values, and what the texts seem to say."""
    if isinstance(kind, DecimalType):
        step = scaled(1, kind.scale)
        near = [item for value in values for item in (value - step, value, value + step)]
        top = Decimal(10**kind.precision - 1).scaleb(-kind.scale)
        return [Literal(item, "decimal") for item in near if abs(item) <= top]
    name = kind.name
    if name in ("float", "double"):
        found = [*values, *(float(text) for text in texts if text is not None)]
        near = [
            item
            for value in found
            for item in (math.nextafter(value, -math.inf), value, math.nextafter(value, math.inf))
        ]
        return [Literal(item, "double") for item in near]
    if name in ("byte", "short", "integer", "long"):
        return [Literal(value + step, "integer") for value in values for step in (-1, 0, 1)]
    if name == "string":
        near = [item for value in values for item in (value, value + "\x00", value[:-1])]
        return [Literal(item, "string") for item in near]
    found = []
    step = dt.timedelta(days=1) if name == "date" else dt.timedelta(microseconds=1)
    for value in values:
        for sign in (-1, 0, 1):
            try:
                found.append(Literal(value + sign * step, name))
            except OverflowError:
                continue
    return found


def order(value):
    return value.encode() if isinstance(value, str) else value


def truths(values, literal):
    """Conditions on the column, each with how many of the values it is true for."""
    column = Column(("c",))
    for op, compare in OPERATORS.items():
        count = sum(compare(order(value), order(literal.value)) for value in values)
        yield Comparison(op, column, literal), count
    yield In(column, (literal,)), values.count(literal.value)
    if literal.kind == "string":
        is_start = [value.startswith(literal.value) for value in values]
        yield StartsWith(column, literal.value), sum(is_start)


def statistics_of(written, types, offset):
    """What all writers say of a file of these values, and what checkpoints make of that."""
    old, _ = types
    schema = schema_of(*types)
    for write in WRITERS:
        texts = [write(value, old, at == 1, offset) for at, value in enumerate(written)]
        stats = stats_of(*texts)
        yield stats
        yield of_our_checkpoint(stats, schema)
        yield of_foreign_checkpoint(stats, schema)


def ensure_right(written, types, offset):
    old, new = types
    values = [widened(value, old, new) for value in written]
    all_stats = list(statistics_of(written, types, offset))
    pruner = FilePruner(files_with(all_stats), schema_of(old, new), ())
    texts = [by_spark(value, old, at == 1, offset) for at, value in enumerate(written)]
    for literal in literals_near(values, new, texts):
        for predicate, count in truths(values, literal):
            skipped = [not keeps for keeps in pruner.keep_mask(predicate).to_pylist()]
            wrong = [stats for stats, is_gone in zip(all_stats, skipped, strict=True) if is_gone]
            assert not (count and wrong), f"{predicate} skips {values}, told as {wrong}"
            counted = pruner.count(predicate)
            decided = len(all_stats) - counted.undecided.num_rows
            assert counted.rows == count * decided, f"{predicate} of {values}, told as {all_stats}"


@pytest.mark.sample(3)
@pytest.mark.parametrize("types", WIDENINGS, ids=lambda types: f"{types[0]}-{types[1]}")
def test_no_bound_skips_the_values_that_it_was_written_for(types):
    edges = sorted(edges_of(types[0]), key=order)
    for number, (low, high) in enumerate([*pairwise(edges), (edges[0], edges[0])]):
        ensure_right([low, high], types, OFFSETS[number % len(OFFSETS)])


@settings(deadline=None, max_examples=20)
@given(st.sampled_from(WIDENINGS), st.sampled_from(OFFSETS), st.data())
def test_no_widening_and_no_writer_makes_a_bound_skip_its_own_values(types, offset, data):
    drawn = data.draw(st.lists(values_of(types[0]), min_size=2, max_size=2))
    ensure_right(sorted(drawn, key=order), types, offset)


STEPS = {
    "string": ("b", "d", "a", "f"),
    "date": tuple(dt.date(2020, 1, day) for day in (3, 5, 1, 7)),
    "timestamp_ntz": tuple(dt.datetime(2020, 1, day) for day in (3, 5, 1, 7)),
    "timestamp": tuple(dt.datetime(2020, 1, day, tzinfo=UTC) for day in (3, 5, 1, 7)),
    "float": (3.0, 5.0, 1.0, 7.0),
    "double": (3.0, 5.0, 1.0, 7.0),
}


@pytest.mark.sample(3)
@pytest.mark.parametrize("types", WIDENINGS, ids=lambda types: f"{types[0]}-{types[1]}")
def test_a_file_whose_values_lie_elsewhere_is_skipped_however_wide_the_column_became(types):
    old, new = types
    numbers = (3, 5, 1, 7) if isinstance(old, PrimitiveType) else map(Decimal, (3, 5, 1, 7))
    low, high, below, above = STEPS.get(str(old), tuple(numbers))
    texts = [by_spark(value, old, at == 1, "") for at, value in enumerate((low, high))]
    files, schema = files_with([stats_of(*texts)]), schema_of(old, new)
    pruner = FilePruner(files, schema, (), trust_float_maximum=True)
    kind = literals_near([widened(low, old, new)], new, [])[0].kind
    for op, value in (("<=", below), (">=", above)):
        literal = Literal(widened(value, old, new), kind)
        assert pruner.keep_mask(Comparison(op, Column(("c",)), literal)).to_pylist() == [False]


def test_bounds_that_are_wider_than_written_are_not_given_out_as_values():
    schema = schema_of(PrimitiveType("float"), PrimitiveType("double"))
    files = files_with([stats_of("0.7", "2.5"), stats_of("0.5", "2.5")])
    table = stats_table(files, [("c",)], schema)
    assert table["min.0"].to_pylist() == [as_float32(0.7), 0.5]
    assert table["tightBounds"].to_pylist() == [False, None]


def test_text_that_its_writer_could_not_write_may_be_any_text():
    # Bytes that are no UTF-8 stand as U+FFFD in the statistics, and sort otherwise in the file.
    schema = schema_of(PrimitiveType("string"), PrimitiveType("string"))
    stats = stats_of('"a\ufffdb"', '"b\ufffdb"')
    pruner = FilePruner(files_with([stats]), schema, ())
    column = Column(("c",))
    for predicate in (
        Comparison("<", column, Literal("aé", "string")),
        Comparison(">", column, Literal("b😀", "string")),
    ):
        assert pruner.keep_mask(predicate).to_pylist() == [True]
    assert pruner.keep_mask(Comparison("<", column, Literal("a", "string"))).to_pylist() == [False]


def test_a_whole_number_that_was_a_double_on_its_way_is_no_bound():
    schema = schema_of(PrimitiveType("long"), PrimitiveType("long"))
    files = files_with([stats_of("1.0E18", "1e+18"), stats_of("1.0E3", "1e3")])
    table = stats_table(files, [("c",)], schema)
    assert table["min.0"].to_pylist() == [None, 1000]
    assert table["max.0"].to_pylist() == [None, 1000]
