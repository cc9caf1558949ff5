"""Skipping never drops a file that holds a matching row, and drops what the rules of 9.5 say."""

import datetime as dt
import io
import json
import math
from decimal import Decimal

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from optimist.core.data.parquet.footer_statistics import nan_free_columns, stats_from_footer
from optimist.core.data.statistics.stats_columns import stats_columns
from optimist.core.predicates import Predicate, SplitPredicate, evaluate, split_conjuncts
from optimist.core.predicates.tree import (
    Column,
    Comparison,
    In,
    IsNull,
    Like,
    Literal,
    NullSafeEqual,
    StartsWith,
)
from optimist.core.protocol.properties import TableProperties
from optimist.core.schema.types import DecimalType, PrimitiveType, StructField, StructType
from optimist.core.skipping.pruner import FilePruner, keep_mask, may_match, prune
from optimist.core.skipping.statistics import FileStatistics
from predicate_trees import trees_of

UTC = dt.timezone.utc


def field(name, kind):
    return StructField(name, PrimitiveType(kind) if isinstance(kind, str) else kind)


def mapped(name, kind, physical):
    return StructField(
        name, PrimitiveType(kind), metadata={"delta.columnMapping.physicalName": physical}
    )


SCHEMA = StructType(
    (
        field("p", "integer"),
        field("id", "long"),
        field("x", "double"),
        field("f", "float"),
        field("s", "string"),
        field("n", DecimalType(5, 2)),
        field("w", DecimalType(38, 10)),
        field("d", "date"),
        field("t", "timestamp"),
        field("c", "timestamp_ntz"),
        field("b", "boolean"),
        field("st", StructType((field("q", "long"), field("r", "string")))),
    )
)
COLUMNS = {
    "p": (pa.int32(), "integer", st.integers(0, 2)),
    "id": (pa.int64(), "integer", st.integers(-9, 9) | st.sampled_from([2**63 - 1, -(2**63)])),
    "x": (
        pa.float64(),
        "double",
        st.sampled_from([math.nan, math.inf, -math.inf, -0.0, 0.0, 0.1, 1.5, -2.0]),
    ),
    "f": (pa.float32(), "float", st.sampled_from([math.nan, -0.0, 0.0, 1.5, 0.10000000149011612])),
    "s": (
        pa.string(),
        "string",
        st.text("aé\x7f😀\U0010ffff", max_size=4)
        | st.text("aé\U0010ffff😀", max_size=3).map(lambda text: "é" * 31 + text),
    ),
    "n": (pa.decimal128(5, 2), "decimal", st.decimals(-9, 9, places=2)),
    "w": (
        pa.decimal128(38, 10),
        "decimal",
        st.decimals(-(10**25), 10**25, places=10),
    ),
    "d": (pa.date32(), "date", st.dates(dt.date(1899, 12, 25), dt.date(1900, 1, 5))),
    "t": (
        pa.timestamp("us", "UTC"),
        "timestamp",
        st.sampled_from([-1001, -1000, -1, 0, 1, 999, 1000, 1001, 10**6]).map(
            lambda micros: dt.datetime(1970, 1, 1, tzinfo=UTC) + dt.timedelta(microseconds=micros)
        ),
    ),
    "c": (
        pa.timestamp("us"),
        "timestamp_ntz",
        st.integers(0, 1002).map(lambda micros: dt.datetime(2024, 1, 1, 0, 0, 0, micros)),
    ),
    "b": (pa.bool_(), "boolean", st.booleans()),
}
rows = st.lists(
    st.fixed_dictionaries({name: st.none() | values for name, (_, _, values) in COLUMNS.items()})
    | st.just(dict.fromkeys(COLUMNS)),
    min_size=1,
    max_size=5,
)
files_of_rows = st.lists(st.tuples(st.none() | st.integers(0, 2), rows), min_size=1, max_size=3)


@st.composite
def leaf(draw, names):
    name = draw(st.sampled_from(names))
    _, kind, values = COLUMNS[name]
    column = Column((name,))
    literal = values.map(lambda value: Literal(value, kind)) | st.just(Literal(None, "null"))
    shape = draw(st.integers(0, 6))
    if shape == 0:
        return IsNull(column)
    if shape == 1:
        return In(column, tuple(draw(st.lists(literal, min_size=1, max_size=4))))
    if shape == 2:
        return NullSafeEqual(column, draw(literal))
    if shape in (3, 4) and name == "s":
        text = draw(values)
        return (
            StartsWith(column, text)
            if shape == 3
            else Like(column, ((False, text + "a"), (True, "%")))
        )
    op = draw(st.sampled_from(["=", "<>", "<", "<=", ">", ">="]))
    return Comparison(op, column, draw(literal))


def predicates_on(*names):
    return trees_of(leaf(names), max_leaves=4)


def data_table(partition, file_rows):
    arrays = {
        name: pa.array([row[name] for row in file_rows], kind)
        for name, (kind, _, _) in COLUMNS.items()
        if name != "p"
    }
    return pa.table({"p": pa.array([partition] * len(file_rows), pa.int32()), **arrays})


def footer_stats(table, schema=SCHEMA, **options):
    buffer = io.BytesIO()
    pq.write_table(table, buffer, row_group_size=2, store_schema=False)
    buffer.seek(0)
    footer = pq.read_metadata(buffer)
    columns = stats_columns(schema, ["p"], TableProperties())
    return stats_from_footer(footer, schema, columns, nan_free=nan_free_columns(table), **options)


def files_table(stats, partitions=None):
    values = [[("p", text)] for text in partitions] if partitions else [[]] * len(stats)
    return pa.table(
        {
            "path": [f"f{i}" for i in range(len(stats))],
            "stats": pa.array(stats, pa.string()),
            "partitionValues": pa.array(values, pa.map_(pa.string(), pa.string())),
        }
    )


@pytest.mark.sample(3)
@pytest.mark.parametrize("name", sorted(COLUMNS))
@settings(max_examples=60, suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(st.data(), files_of_rows)
def test_no_file_with_a_matching_row_is_dropped(name, data, files):
    predicate = data.draw(predicates_on(name, name, "p"))
    tables = [data_table(partition, file_rows) for partition, file_rows in files]
    listed = files_table(
        [footer_stats(table.drop_columns(["p"])) for table in tables],
        [None if partition is None else str(partition) for partition, _ in files],
    )
    kept = FilePruner(listed, SCHEMA, ["P"]).keep_mask(predicate).to_pylist()
    split = split_conjuncts(predicate, ["p"])
    may = may_match(listed, split, SCHEMA, ["p"], use_statistics=True).to_pylist()
    for keeps, might, table in zip(kept, may, tables, strict=True):
        answer = evaluate(predicate, table)
        assert answer is not None
        if True in answer.to_pylist():
            assert keeps
            assert might


def stats(low, high, nulls, *, records=10, **more):
    return json.dumps(
        {"numRecords": records, "minValues": low, "maxValues": high, "nullCount": nulls, **more}
    )


NUMBERS = [
    stats({"id": 1}, {"id": 5}, {"id": 0}),
    stats({"id": 5}, {"id": 5}, {"id": 3}),
    stats({"id": 6}, {"id": 9}, {"id": 0}),
    stats({}, {}, {"id": 10}),
    None,
]


@pytest.mark.parametrize(
    ("sql", "kept"),
    [
        ("id = 5", "014"),
        ("5 = id", "014"),
        ("id <=> 5", "014"),
        ("id <> 5", "024"),
        ("NOT (id = 5)", "024"),
        ("NOT (id <=> 5)", "01234"),
        ("id < 5", "04"),
        ("id <= 4.5", "04"),
        ("id >= 6", "24"),
        ("id > 5", "24"),
        ("NOT (id <= 5)", "24"),
        ("id IN (0, 7)", "24"),
        ("id IN (0, 10)", "4"),
        ("id IN (7, NULL)", "24"),
        ("id NOT IN (5, 6)", "024"),
        ("id IS NULL", "134"),
        ("id IS NOT NULL", "0124"),
        ("id BETWEEN 2 AND 4", "04"),
        ("id < 5 OR id IS NULL", "0134"),
        ("id = 1 AND id = 5", "04"),
        ("NOT (id < 6 OR id > 8)", "24"),
        ("id = 1 AND lower(s) = 'x'", "04"),
        ("id = 1 OR lower(s) = 'x'", "01234"),
        ("NOT (id = 1 AND lower(s) = 'x')", "01234"),
        ("rand() < 0.5", "01234"),
        ("id = NULL", "0124"),
        ("TRUE", "01234"),
        ("FALSE", ""),
        ("id + 1 = 3", "01234"),
        ("CAST(id AS STRING) = '3'", "01234"),
        ("id = '7'", "24"),
        ("id = 'x'", "0124"),
        ("id = 3.5", ""),
        ("missing = 1", "01234"),
    ],
)
def test_each_rule_of_the_table_keeps_these_files(sql, kept):
    mask = keep_mask(Predicate.parse(sql).conjuncts(), files_table(NUMBERS), SCHEMA)
    assert "".join(str(i) for i, keeps in enumerate(mask.to_pylist()) if keeps) == kept


def one_file(sql, text, schema=SCHEMA):
    return keep_mask(Predicate.parse(sql).conjuncts(), files_table([text]), schema).to_pylist() == [
        True
    ]


@pytest.mark.parametrize(
    ("nulls", "is_null", "is_not_null"), [(0, False, True), (10, True, False), (4, True, True)]
)
def test_null_counts_that_are_not_tight_are_three_valued(nulls, is_null, is_not_null):
    text = stats({"id": 1}, {"id": 2}, {"id": nulls}, tightBounds=False)
    assert one_file("id IS NULL", text) is is_null
    assert one_file("id IS NOT NULL", text) is is_not_null
    assert one_file("id = 7", text) is False


def test_a_timestamps_maximum_is_up_to_a_millisecond_higher():
    text = stats({"t": "2024-01-01T00:00:00.000Z"}, {"t": "2024-01-01T00:00:00.123Z"}, {"t": 0})
    assert one_file("t = TIMESTAMP '2024-01-01 00:00:00.123999Z'", text)
    assert one_file("t > TIMESTAMP '2024-01-01 00:00:00.1239Z'", text)
    assert not one_file("t > TIMESTAMP '2024-01-01 00:00:00.124001Z'", text)
    assert not one_file("t < TIMESTAMP '2024-01-01 00:00:00Z'", text)
    shifted = stats(
        {"t": "2024-01-01T02:00:00.000+02:00"}, {"t": "2023-12-31T16:00:00.000-08:00"}, {"t": 0}
    )
    assert one_file("t = TIMESTAMP '2024-01-01 00:00:00Z'", shifted)
    assert not one_file("t = TIMESTAMP '2024-01-01 02:00:00Z'", shifted)


def test_a_prefix_is_compared_with_prefixes_of_the_bounds():
    text = stats({"s": "bcd"}, {"s": "bdd\x7f"}, {"s": 0})
    kept = [
        prefix
        for prefix in ("b", "bc", "bd", "be", "a", "bdde", "bcd0")
        if one_file(f"startswith(s, '{prefix}')", text)
    ]
    assert kept == ["b", "bc", "bd", "bdde", "bcd0"]
    assert not one_file("s LIKE 'a%c_'", text)
    assert one_file("s LIKE '%z'", text)
    assert not one_file("s LIKE 'be'", text)
    assert one_file("s NOT LIKE 'b%'", text)


def test_zeros_of_both_signs_are_one_and_nan_is_above_all():
    text = stats({"x": 0.0}, {"x": -0.0}, {"x": 0})
    assert one_file("x = -0.0D", text)
    assert one_file("x = 0", text)
    assert not one_file("x < 0", text)
    with_nan = stats({"x": 1.0}, {"x": "NaN"}, {"x": 0})
    assert one_file("x > 1000", with_nan)
    assert one_file("x = CAST('NaN' AS DOUBLE)", with_nan)
    assert not one_file("x < 1", with_nan)


def test_a_maximum_that_may_hide_nan_is_trusted_only_where_that_is_asked_for():
    files = files_table([stats({"x": 1.0}, {"x": 5.0}, {"x": 0})])
    for sql, hides in [("x > 10", True), ("x <> 10", True), ("x < 0", False), ("x = 7", False)]:
        split = split_conjuncts(Predicate.parse(sql), [])
        assert may_match(files, split, SCHEMA, [], use_statistics=True).to_pylist() == [
            hides or "<>" in sql
        ]
    above = Predicate.parse("x > 10")
    assert prune(files, split_conjuncts(above, []), SCHEMA, []).num_rows == 1
    assert FilePruner(files, SCHEMA, [], trust_float_maximum=True).prune(above).num_rows == 0


def test_float_bounds_are_rounded_to_the_columns_type():
    text = stats({"f": 0.1}, {"f": 0.1}, {"f": 0})
    assert one_file("f = 0.1F", text)
    assert one_file("f > 0.1D", text)
    assert not one_file("f = 0.1D", text)


def test_long_decimals_may_have_been_rounded_to_fifteen_digits():
    text = stats({"w": 1234567890123456.8}, {"w": 1234567890123456.8}, {"w": 0})
    assert one_file("w = 1234567890123456.7890123456", text)
    assert not one_file("w = 1234567890123000", text)
    assert one_file("n = 1.25", stats({"n": 1.25}, {"n": 1.25}, {"n": 0}))
    assert not one_file("n = 1.24", stats({"n": 1.25}, {"n": 1.25}, {"n": 0}))


def test_text_with_a_collation_and_padded_text_never_prune():
    text = stats({"s": "b"}, {"s": "c"}, {"s": 0})
    for metadata in (
        {"__COLLATIONS": {"s": "ICU.UNICODE_CI"}},
        {"__CHAR_VARCHAR_TYPE_STRING": "char(5)"},
    ):
        schema = StructType((StructField("s", PrimitiveType("string"), metadata=metadata),))
        assert one_file("s = 'z'", text, schema)
    assert not one_file("s = 'z'", text)


def test_padded_text_within_a_struct_never_prunes_and_its_numbers_do():
    # Spark pads such texts when it reads them; a foreign writer may have stored 'a' for 'a  '.
    kinds = (("c", "string"), ("v", "string"), ("n", "long"))
    inner = StructType(tuple(field(name, kind) for name, kind in kinds))
    bounds = {"s": {"c": "a", "v": "a", "n": 1}}
    text = stats(bounds, bounds, {"s": dict.fromkeys("cvn", 0)})

    def keeps(sql, declared):
        metadata = {"__CHAR_VARCHAR_TYPE_STRING": declared}
        return one_file(sql, text, StructType((StructField("s", inner, metadata=metadata),)))

    padded = "struct<c:char(3),v:varchar(3),n:bigint>"
    assert keeps("s.c = 'a  '", padded)
    assert not keeps("s.n = 2", padded)
    assert not keeps("s.c = 'z'", padded.replace("char(3)", "varchar(3)", 1))


def test_mapped_and_nested_columns_are_found_by_their_physical_names():
    inner = StructType((mapped("q", "long", "col-2"),))
    schema = StructType(
        (StructField("st", inner, metadata={"delta.columnMapping.physicalName": "col-1"}),)
    )
    text = stats({"col-1": {"col-2": 1}}, {"col-1": {"col-2": 5}}, {"col-1": {"col-2": 0}})
    assert one_file("ST.Q = 3", text, schema)
    assert not one_file("st.q = 6", text, schema)
    old = stats({"st": {"q": 1}}, {"st": {"q": 5}}, {"st": {"q": 0}})
    assert one_file("st.q = 6", old, schema)


def test_partition_conjuncts_are_exact_and_data_conjuncts_use_statistics():
    files = files_table(
        [stats({"id": i}, {"id": i}, {"id": 0}) for i in (1, 2, 1, 2, 1)], ["1", "1", "2", None, ""]
    )

    def kept(sql, **options):
        split = split_conjuncts(Predicate.parse(sql), ["p"])
        return prune(files, split, SCHEMA, ["p"], **options)["path"].to_pylist()

    assert kept("p = 1") == ["f0", "f1"]
    assert kept("p IS NULL") == ["f3", "f4"]
    assert kept("p <> 1") == ["f2"]
    assert kept("p = '2'") == ["f2"]
    assert kept("p = 1 AND id = 1") == ["f0"]
    assert kept("p = 1 AND id = 1", use_statistics=False) == ["f0", "f1"]
    assert kept("p = 1 OR id = 2") == ["f0", "f1", "f3"]
    assert kept("p = 1 AND rand() < 1") == ["f0", "f1"]
    assert kept("p = 'x'") == ["f0", "f1", "f2", "f3", "f4"]
    assert kept("TRUE") == ["f0", "f1", "f2", "f3", "f4"]


def test_a_conflict_check_widens_what_it_does_not_understand():
    files = files_table(NUMBERS[:2], ["1", "2"])

    def hits(partition, data=(), use_statistics=False):
        split = SplitPredicate(
            tuple(map(Predicate.parse, partition)), tuple(map(Predicate.parse, data))
        )
        return may_match(files, split, SCHEMA, ["p"], use_statistics=use_statistics).to_pylist()

    assert hits(["p = 1"]) == [True, False]
    assert hits(["p = 1 AND rand() < 0.5"]) == [True, False]
    assert hits(["p = 1 OR my_udf(p)"]) == [True, True]
    assert hits(["NOT (p = 1 AND my_udf(p))"]) == [True, True]
    assert hits(["p = NULL"]) == [False, False]
    assert hits([], ["id = 1"]) == [True, True]
    assert hits([], ["id = 1"], True) == [True, False]
    assert hits([]) == [True, True]


def test_statistics_kept_by_the_caller_are_parsed_once():
    files = files_table(NUMBERS)
    held = FileStatistics(files, SCHEMA)
    split = split_conjuncts(Predicate.parse("id = 1"), [])
    assert prune(files, split, SCHEMA, [], statistics=held).num_rows == 2
    assert held.is_loaded([("id",)])
    first = held.column(("ID",))
    assert prune(files, split, SCHEMA, [], statistics=held).num_rows == 2
    assert held.column(("id",)) is first
    assert not held.is_loaded([("x",)])


def test_few_files_left_by_partition_are_parsed_alone():
    files = files_table(
        [stats({"id": i}, {"id": i}, {"id": 0}) for i in range(20)],
        [str(i % 10) for i in range(20)],
    )
    pruner = FilePruner(files, SCHEMA, ["p"])
    assert pruner.prune(Predicate.parse("p = 3 AND id > 5"))["path"].to_pylist() == ["f13"]
    assert not pruner.statistics.is_loaded([("id",)])
    assert pruner.prune(Predicate.parse("id > 17"))["path"].to_pylist() == ["f18", "f19"]
    assert pruner.statistics.is_loaded([("id",)])
    assert pruner.prune(Predicate.parse("p = 3 AND id > 5"))["path"].to_pylist() == ["f13"]


def test_no_files_and_many_chunks_prune_alike():
    whole = files_table(NUMBERS * 3)
    chunked = pa.concat_tables([whole.slice(i, 2) for i in range(0, whole.num_rows, 2)])
    predicate = Predicate.parse("id = 5")
    assert (
        FilePruner(chunked, SCHEMA, []).keep_mask(predicate).to_pylist()
        == [
            True,
            True,
            False,
            False,
            True,
        ]
        * 3
    )
    empty = whole.slice(0, 0)
    assert FilePruner(empty, SCHEMA, ["p"]).prune(Predicate.parse("id = 5 AND p = 1")).num_rows == 0
    assert len(keep_mask([predicate], empty, SCHEMA)) == 0


def test_long_lists_are_judged_by_their_ends():
    listed = ", ".join(str(i) for i in range(20, 200))
    assert not one_file(f"id IN ({listed})", NUMBERS[0])
    assert one_file(f"id IN (3, {listed})", NUMBERS[0])
    assert one_file(f"id NOT IN ({listed})", NUMBERS[0])


def test_decimal_bounds_survive_values_at_the_edge_of_the_type():
    top = Decimal("9999999999999999999999999999.9999999999")
    text = stats({"w": 1}, {"w": 2}, {"w": 0})
    assert not one_file(f"w = {top}", text)
    assert one_file(f"w < {top}", text)


@pytest.mark.parametrize(
    ("name", "values", "sql"),
    [
        ("x", [0.0, math.nan], "x > 1.5D"),
        ("f", [0.0, math.nan], "f = CAST('NaN' AS FLOAT)"),
        ("s", ["é" * 40], f"s > '{'é' * 33}'"),
        ("s", ["é" * 40], f"startswith(s, '{'é' * 35}')"),
        ("t", [dt.datetime(1970, 1, 1, 0, 0, 0, 999, tzinfo=UTC)], "t > TIMESTAMP '1970-01-01'"),
    ],
)
def test_values_that_a_bound_shows_only_in_part_are_not_skipped(name, values, sql):
    table = pa.table({name: pa.array(values, COLUMNS[name][0])})
    listed = files_table([footer_stats(table)])
    predicate = Predicate.parse(sql)
    assert True in evaluate(predicate, table).to_pylist()
    assert keep_mask(predicate.conjuncts(), listed, SCHEMA).to_pylist() == [True]
