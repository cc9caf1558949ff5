"""Real files of two writers: what is skipped, counted and left out by a limit is never wrong."""

import datetime as dt
import json
import math
import tempfile
from decimal import Decimal
from pathlib import Path

import deltalake
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from optimist.core import DeltaLog
from optimist.core.data.partition_values import partition_columns_of
from optimist.core.errors import UsageError
from optimist.core.log.file_table import DELETION_VECTOR_TYPE
from optimist.core.predicates import Predicate, evaluate
from optimist.core.predicates.tree import (
    CastComparison,
    Column,
    Comparison,
    In,
    IsNull,
    Like,
    Literal,
    Not,
    NullSafeEqual,
    StartsWith,
)
from optimist.core.skipping.pruner import FilePruner

UTC = dt.timezone.utc
EPOCH = dt.datetime(1970, 1, 1)
TEXTS = st.text("ab\x7fé\ufffd😀\U0010ffff", max_size=3)
MICROS = st.sampled_from([-(10**15), -1001, -1000, -1, 0, 1, 999, 1000, 1001, 10**15])
COLUMNS = {
    "p": (pa.int32(), "integer", st.integers(0, 1)),
    "id": (pa.int64(), "integer", st.integers(-3, 3) | st.sampled_from([2**63 - 1, -(2**63)])),
    "i8": (pa.int8(), "integer", st.integers(-128, 127)),
    "x": (pa.float64(), "double", st.sampled_from([math.nan, math.inf, -0.0, 0.0, 0.1, -2.0])),
    "f": (pa.float32(), "float", st.sampled_from([math.nan, -math.inf, -0.0, 0.0, 1.5])),
    "s": (pa.string(), "string", TEXTS | TEXTS.map(lambda text: "é" * 31 + text)),
    "n": (pa.decimal128(9, 2), "decimal", st.decimals(-3, 3, places=2)),
    "w": (pa.decimal128(38, 10), "decimal", st.decimals(-(10**25), 10**25, places=10)),
    "d": (pa.date32(), "date", st.dates(dt.date(1969, 12, 28), dt.date(1970, 1, 4))
          | st.sampled_from([dt.date(1, 1, 1), dt.date(1582, 10, 10), dt.date(9999, 12, 31)])),
    "t": (pa.timestamp("us", "UTC"), "timestamp",
          MICROS.map(lambda us: (EPOCH + dt.timedelta(microseconds=us)).replace(tzinfo=UTC))),
    "c": (pa.timestamp("us"), "timestamp_ntz",
          MICROS.map(lambda us: EPOCH + dt.timedelta(microseconds=us))),
    "b": (pa.bool_(), "boolean", st.booleans()),
    "q": (pa.int32(), "integer", st.integers(-2, 2)),
}  # fmt: skip
PATHS = {name: (name,) for name in COLUMNS} | {"q": ("st", "q")}
CASTS = {"i8": "long", "q": "double", "f": "double", "d": "timestamp", "t": "date", "c": "date"}


def batches_of(name):
    """Rows of the partition column and one other, for one file or two each."""
    names = dict.fromkeys(("p", name))
    row = st.fixed_dictionaries({item: st.none() | COLUMNS[item][2] for item in names})
    rows = st.lists(row, min_size=1, max_size=4)
    return st.lists(st.tuples(st.sampled_from(["ours", "deltalake"]), rows), min_size=1, max_size=2)


@st.composite
def leaves(draw, names):
    name = draw(st.sampled_from(names))
    _, kind, values = COLUMNS[name]
    column = Column(PATHS[name])
    literals = values.map(lambda value: Literal(value, kind)) | st.just(Literal(None, "null"))
    op = draw(st.sampled_from(["=", "<>", "<", "<=", ">", ">="]))
    choices = [
        Comparison(op, column, draw(literals)),
        IsNull(column),
        In(column, tuple(draw(st.lists(literals, min_size=1, max_size=3)))),
        NullSafeEqual(column, draw(literals)),
    ]
    if name == "s":
        prefix = draw(values)
        choices += [StartsWith(column, prefix), Like(column, ((False, prefix + "a"), (True, "%")))]
    if name in CASTS:
        choices.append(CastComparison(op, column, CASTS[name], draw(literals)))
    return draw(st.sampled_from(choices))


def predicates_on(*names):
    return st.recursive(
        leaves(names),
        lambda inner: st.one_of(
            st.builds(lambda a, b: a & b, inner, inner),
            st.builds(lambda a, b: a | b, inner, inner),
            st.builds(Not, inner),
        ),
        max_leaves=3,
    )


def arrow_table(rows):
    columns = {name: pa.array([row[name] for row in rows], COLUMNS[name][0]) for name in rows[0]}
    inner = columns.pop("q", None)
    if inner is not None:
        columns["st"] = pa.StructArray.from_arrays([inner], ["q"])
    return pa.table({**columns, "more": pa.nulls(len(rows), pa.int32())})


def written(path, batches):
    log = DeltaLog.for_path(path)
    for writer, rows in batches:
        table = arrow_table(rows)
        if writer == "ours":
            log.append(table, partition_by=["p"])
        else:
            deltalake.write_deltalake(path, table, mode="append", partition_by=["p"])
    return log.snapshot()


def rows_of(snapshot):
    """The rows of each file, as Parquet has them, with the partition value."""
    values = partition_columns_of(snapshot.files, snapshot.partition_schema)["p"].to_pylist()
    found = []
    for path, value in zip(snapshot.files["path"].to_pylist(), values, strict=True):
        rows = pq.ParquetFile(Path(snapshot.table_path) / path).read()
        found.append(rows.append_column("p", pa.array([value] * rows.num_rows, pa.int32())))
    return found


def without_some(stats, dropped):
    """Statistics as a writer may leave them that knows fewer columns, or none."""
    parsed = json.loads(stats)
    for part, name in dropped:
        if name is None:
            parsed.pop(part, None)
        elif isinstance(parsed.get(part), dict):
            parsed[part].pop(name, None)
    return json.dumps(parsed)


DROPPED = st.lists(
    st.tuples(
        st.sampled_from(["numRecords", "minValues", "maxValues", "nullCount"]),
        st.none() | st.sampled_from([*COLUMNS, "st"]),
    ),
    max_size=3,
)
DAMAGE = st.tuples(st.sampled_from(["whole", "whole", "partial", "absent", "deleted"]), DROPPED)


def damaged(files, rows, damages, deleted):
    """The files with some of their statistics gone, and some of their rows deleted."""
    stats, vectors, left = [], [], []
    for text, table, (kind, dropped) in zip(files["stats"].to_pylist(), rows, damages, strict=True):
        gone = [i for i in deleted if i < table.num_rows] if kind == "deleted" else []
        kept = [i for i in range(table.num_rows) if i not in gone]
        left.append(table.take(pa.array(kept, pa.int64())))
        vectors.append(
            {"storageType": "u", "pathOrInlineDv": "x", "sizeInBytes": 1, "cardinality": len(gone)}
            if gone
            else None
        )
        if kind == "partial":
            text = without_some(text, dropped)
        elif kind == "deleted":
            text = json.dumps({**json.loads(text), "tightBounds": False})
        stats.append(None if kind == "absent" else text)
    for name, values in (
        ("stats", pa.array(stats, pa.string())),
        ("deletionVector", pa.array(vectors, DELETION_VECTOR_TYPE)),
    ):
        files = files.set_column(files.column_names.index(name), name, values)
    return files, left


@pytest.mark.sample(3)
@pytest.mark.parametrize("name", sorted(COLUMNS))
@settings(
    max_examples=5,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
@given(st.data())
def test_nothing_that_matches_is_skipped_miscounted_or_cut_off(name, data):
    batches = data.draw(batches_of(name))
    with tempfile.TemporaryDirectory() as path:
        snapshot = written(path, batches)
        rows = rows_of(snapshot)
    count = len(rows)
    files, rows = damaged(
        snapshot.files,
        rows,
        data.draw(st.lists(DAMAGE, min_size=count, max_size=count)),
        data.draw(st.sets(st.integers(0, 3))),
    )
    pruner = FilePruner(files, snapshot.schema, snapshot.partition_columns)
    for predicate in data.draw(st.lists(predicates_on(name, name, "p"), min_size=5, max_size=5)):
        matching = []
        for table in rows:
            answer = evaluate(predicate, table)
            assert answer is not None
            matching.append(answer.to_pylist().count(True))
        kept = pruner.keep_mask(predicate).to_pylist()
        assert [n for n, keeps in zip(matching, kept, strict=True) if n and not keeps] == []
        by_path = dict(zip(files["path"].to_pylist(), matching, strict=True))
        counted = pruner.count(predicate)
        undecided = [by_path[name] for name in counted.undecided["path"].to_pylist()]
        assert counted.rows + sum(undecided) == sum(matching)
        for limit in (0, 1, 3):
            chosen = pruner.enough(predicate, limit)["path"].to_pylist()
            assert sum(by_path[name] for name in chosen) >= min(limit, sum(matching))


NUMBERS = [[1, 5], [5, 5], [6, 9], [None, None]]


@pytest.fixture(params=["ours", "deltalake"])
def numbers(request, tmp_path):
    path = str(tmp_path)
    log = DeltaLog.for_path(path)
    for values in NUMBERS:
        rows = pa.table(
            {
                "id": pa.array(values, pa.int32()),
                "s": [None if value is None else f"n{value}" for value in values],
                "at": [
                    None if value is None else dt.datetime(2024, 1, value, 12, tzinfo=UTC)
                    for value in values
                ],
            },
            schema=pa.schema({"id": pa.int32(), "s": pa.string(), "at": pa.timestamp("us", "UTC")}),
        )
        if request.param == "ours":
            log.append(rows)
        else:
            deltalake.write_deltalake(path, rows, mode="append")
    return log


@pytest.mark.parametrize(
    ("sql", "values"),
    [
        ("id = 5", [1, 5, 5, 5]),
        ("id <=> 5", [1, 5, 5, 5]),
        ("id <> 5", [1, 5, 6, 9]),
        ("id < 5", [1, 5]),
        ("id <= 1", [1, 5]),
        ("id > 5", [6, 9]),
        ("id >= 9", [6, 9]),
        ("id IN (7, 0)", [6, 9]),
        ("id NOT IN (5)", [1, 5, 6, 9]),
        ("id BETWEEN 2 AND 4", [1, 5]),
        ("id IS NULL", [None, None]),
        ("id IS NOT NULL", [1, 5, 5, 5, 6, 9]),
        ("id <=> NULL", [None, None]),
        ("CAST(id AS BIGINT) > 5", [6, 9]),
        ("CAST(at AS DATE) = DATE '2024-01-09'", [6, 9]),
        ("to_date(at) > '2024-01-05'", [6, 9]),
        ("s LIKE 'n6%'", [6, 9]),
        ("startswith(s, 'n5')", [1, 5, 5, 5]),
        ("at >= '2024-01-06 12:00:00'", [6, 9]),
        ("id = 12", []),
        ("s = 'm'", []),
        ("length(s) = 2", [1, 5, 5, 5, 6, 9, None, None]),
    ],
)
def test_each_operator_reads_these_files_of_either_writer(numbers, sql, values):
    snapshot = numbers.snapshot()
    files = snapshot.scan(sql).files
    lows = {0: [1, 5], 1: [5, 5], 2: [6, 9], 3: [None, None]}
    order = _versions_of(numbers, files)
    found = [value for version in sorted(order) for value in lows[version]]
    assert sorted(map(str, found)) == sorted(map(str, values))


def _versions_of(log, files):
    """Which commit added each file; every commit added one."""
    paths = {}
    for version in range(len(NUMBERS)):
        paths |= dict.fromkeys(log.snapshot(version).files["path"].to_pylist(), None)
    return [list(paths).index(path) for path in files["path"].to_pylist()]


@pytest.mark.parametrize(
    ("predicate", "rows", "undecided"),
    [
        (None, 8, 0),
        ("id >= 5", 4, 1),
        ("id IS NULL", 2, 0),
        ("id IS NOT NULL", 6, 0),
        ("id > 100", 0, 0),
        ("id = 5", 2, 1),
        ("length(s) = 2", 0, 4),
        ("id > 5 OR length(s) = 2", 2, 3),
        ("id NOT IN (100, NULL)", 0, 3),
    ],
)
def test_a_count_is_taken_from_the_log_as_far_as_it_goes(numbers, predicate, rows, undecided):
    counted = numbers.snapshot().count(predicate)
    assert (counted.rows, counted.undecided.num_rows) == (rows, undecided)
    assert counted.total == (None if undecided else rows)


def test_a_count_reads_only_files_that_are_undecided(numbers):
    snapshot = numbers.snapshot()
    undecided = set(snapshot.count("id >= 5").undecided["path"].to_pylist())
    for path in snapshot.files["path"].to_pylist():
        Path(numbers.table_path, path).rename(Path(numbers.table_path, path + ".away"))
    for path in undecided:
        Path(numbers.table_path, path + ".away").rename(Path(numbers.table_path, path))
    assert numbers.count() == 8
    assert numbers.count("id IS NULL") == 2
    assert numbers.count("id >= 5") == 5


def test_a_count_without_statistics_reads_the_files(tmp_path):
    log = DeltaLog.for_path(str(tmp_path), {"spark.databricks.delta.stats.collect": "false"})
    log.append(pa.table({"id": [1, 2, 3]}))
    assert log.snapshot().count().undecided.num_rows == 1
    assert log.count() == 3
    assert log.count("id > 1") == 2


def test_nothing_is_counted_from_statistics_where_skipping_is_switched_off(tmp_path):
    log = DeltaLog.for_path(str(tmp_path), {"spark.databricks.delta.stats.skipping": "false"})
    log.append(pa.table({"id": [1, 2, 3]}))
    assert log.snapshot().count().undecided.num_rows == 1
    assert log.snapshot().scan(limit=0).files.num_rows == 1
    assert log.count() == 3


def test_a_limit_reads_only_the_files_that_it_needs(numbers):
    snapshot = numbers.snapshot()
    assert [snapshot.scan(limit=limit).files.num_rows for limit in (0, 1, 2, 3, 8, 9)] == [
        0, 1, 1, 2, 4, 4
    ]  # fmt: skip
    assert snapshot.scan("id IS NULL", limit=1).files.num_rows == 1
    assert snapshot.scan("length(s) = 2", limit=1).files.num_rows == 4
    assert [numbers.to_arrow(limit=limit).num_rows for limit in (0, 3, 100)] == [0, 3, 8]
    assert numbers.to_arrow("id = 5", ["s"], limit=2)["s"].to_pylist() == ["n5", "n5"]


@pytest.mark.parametrize(
    ("limit", "kind"),
    [(-1, "OPTIMIST_INVALID_ARGUMENT"), (True, "OPTIMIST_INVALID_ARGUMENT_TYPE")],
)
def test_a_limit_that_is_no_number_of_rows_is_refused(numbers, limit, kind):
    with pytest.raises(UsageError) as caught:
        numbers.to_arrow(limit=limit)
    assert caught.value.kind == kind


def test_a_maximum_is_trusted_where_the_option_says_so(tmp_path):
    path = str(tmp_path)
    deltalake.write_deltalake(path, pa.table({"x": [1.0, math.nan]}))
    assert DeltaLog.for_path(path).count("x > 5") == 1
    trusting = DeltaLog.for_path(path, {"spark.optimist.stats.trustFloatMaximum": "true"})
    assert trusting.snapshot().scan("x > 5").files.num_rows == 0


def test_decimals_keep_all_their_digits(tmp_path):
    log = DeltaLog.for_path(str(tmp_path))
    wide = Decimal("1234567890123456789012345678.0123456789")
    log.append(pa.table({"w": pa.array([wide], pa.decimal128(38, 10))}))
    assert log.snapshot().scan(f"w = {wide}").files.num_rows == 1
    assert log.count(f"w > {wide}") == 0
    assert Predicate.parse(f"w = {wide}").is_exact
