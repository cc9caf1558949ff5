"""What lies between Spark and the log: file statuses, filters, callbacks."""

from __future__ import annotations

import datetime as dt
import re
from decimal import Decimal
from pathlib import Path

import deltalake
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark.sql import functions as sf

from optimist.core import DeltaLog
from optimist.core.errors import TableError
from optimist.core.predicates.tree import In, Predicate
from optimist.core.schema.column_paths import logical_path, named_path
from optimist.spark import read, write
from optimist.spark.conditions.connector_predicates import ConnectorPredicates
from optimist.spark.conditions.data_filters import data_predicate
from optimist.spark.native import listing as listing_module
from optimist.spark.native.file_statuses import encode_statuses, file_statuses
from optimist.spark.native.index import TableFileIndex
from optimist.spark.native.listing import FileListing, digest_of
from optimist.spark.planes.sources import table_sources
from optimist.spark.session.callback_errors import callback, original_errors
from optimist.spark.session.jvm import Jvm, iterate

SIZES = st.integers(0, 2**56 - 1)
NAMES = st.text(st.characters(exclude_categories=("Cs",), exclude_characters="\0/:"), min_size=1)


def statuses_of(spark, files):
    paths, sizes, times = zip(*files, strict=True)
    arrays = (
        pa.array(paths, pa.string()),
        pa.array(sizes, pa.int64()),
        pa.array(times, pa.int64()),
    )
    return [
        (status.getPath().toString(), status.getLen(), status.getModificationTime())
        for status in iterate(file_statuses(Jvm.of(spark), *arrays))
    ]


@settings(max_examples=25, deadline=None)
@given(st.lists(st.tuples(NAMES, SIZES, SIZES), min_size=1, max_size=5))
def test_file_statuses_arrive_as_they_were_sent(spark, files):
    files = [(f"/t/x{name.strip()}", size, time) for name, size, time in files]
    assert statuses_of(spark, files) == files


def test_no_files_are_an_empty_buffer():
    empty = pa.array([], pa.int64())
    assert encode_statuses(pa.array([], pa.string()), empty, empty) == b"\0\0\0\0"


def test_columns_cut_out_of_larger_ones_are_encoded_alone(spark):
    paths = pa.array([f"/t/{i}" for i in range(10)])
    numbers = pa.array(range(10), pa.int64())
    cut = [array.slice(3, 2) for array in (paths, numbers, numbers)]
    whole = encode_statuses(*(pa.array(array.to_pylist(), array.type) for array in cut))
    assert encode_statuses(*cut) == whole


def filters_of(spark, path, condition):
    """The predicate that the data filters of a query become."""
    plan = read(spark, path).where(condition)._jdf.queryExecution().sparkPlan()
    (scan,) = iterate(plan.collectLeaves())
    schema = DeltaLog.for_path(path).snapshot().schema
    return data_predicate(iterate(scan.dataFilters()), schema, logical_path)


@pytest.fixture(scope="module")
def typed(spark, tmp_path_factory):
    path = str(tmp_path_factory.mktemp("typed") / "table")
    frame = spark.sql(
        "SELECT 1L AS i, 'a' AS s, 1.5D AS f, CAST(1.5 AS DECIMAL(10, 2)) AS dec, "
        "DATE '2024-01-01' AS d, TIMESTAMP '2024-01-01 00:00:00' AS ts, "
        "TIMESTAMP_NTZ '2024-01-01 00:00:00' AS n, named_struct('x', 1, 'a-b', 2) AS st, "
        "X'01' AS bin, true AS b"
    )
    write(frame, path)
    return path


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("i = 1", "i = 1"),
        ("s = '1'", "s = '1'"),
        ("f > 1.5", "f > 1.5D"),
        ("dec < 2.25", "dec < 2.25"),
        ("d >= DATE '1901-01-01'", "d >= DATE'1901-01-01'"),
        (
            "ts = TIMESTAMP '2024-06-01 12:00:00.123456'",
            "ts = TIMESTAMP'2024-06-01 12:00:00.123456Z'",
        ),
        ("n = TIMESTAMP_NTZ '2024-06-01 12:00:00.5'", "n = TIMESTAMP_NTZ'2024-06-01 12:00:00.5'"),
        ("st.x = 1", "st.x = 1"),
        ("st.`a-b` = 1", "st.`a-b` = 1"),
        ("i IN (1, 2)", "i IN (1, 2)"),
        ("s LIKE 'a%'", "startswith(s, 'a')"),
        ("i = 1 OR s = 'b'", "i = 1 OR s = 'b'"),
        ("NOT (i IN (1, 2))", "NOT (i IN (1, 2))"),
        ("i <=> 1", "i <=> 1"),
        ("i IS NULL", "i IS NULL"),
        ("f = double('NaN')", "f = CAST('NaN' AS DOUBLE)"),
        ("d > DATE '1500-01-01'", "d > DATE'1500-01-01'"),
        ("ts > TIMESTAMP '1880-01-01 00:00:00'", "ts > TIMESTAMP'1880-01-01 00:00:00Z'"),
        ("s LIKE '%a%'", "s LIKE '%a%'"),
        ("s LIKE '%a'", "s LIKE '%a'"),
        ("ST.X = st.`a-b`", "st.x = st.`a-b`"),
        ("(i = 1 OR s = 'b') <=> true", "(i = 1 OR s = 'b') IS TRUE"),
        ("b", "b = TRUE"),
    ],
)
def test_filters_that_spark_can_translate_become_predicates(spark, typed, condition, expected):
    conjuncts = set(map(str, filters_of(spark, typed, condition).conjuncts()))
    wanted = set(map(str, Predicate.parse(expected).conjuncts()))
    assert wanted <= conjuncts
    assert all("IS NULL" in extra for extra in conjuncts - wanted)


def test_predicates_of_the_connector_api_say_the_same(spark, typed):
    """PySpark 4.0 gives them to the arrow plane."""
    known = (
        "i > 1 AND NOT (s <=> 'it''s' OR dec <= 2.25) AND f < double('NaN') AND b = true AND "
        "d IN (DATE '2024-01-01', NULL) AND (ts >= TIMESTAMP '2024-06-01 12:00:00.5' OR n < "
        "TIMESTAMP_NTZ '2024-06-01 12:00:00') AND st.`a-b` = 1 AND s LIKE 'a%' AND s LIKE '%b' "
        "AND contains(s, 'c') AND (bin IS NULL OR i IS NOT NULL)"
    )
    for condition, is_exact in ((known, True), (f"{known} AND i % 2 = 1", False)):
        frame = read(spark, typed).where(condition)
        expression = frame._jdf.queryExecution().optimizedPlan().condition()
        builder = Jvm.of(spark).catalyst.util.V2ExpressionBuilder(expression, True)
        schema = DeltaLog.for_path(typed).snapshot().schema
        wanted = data_predicate([expression], schema, named_path)
        predicate = builder.buildPredicate().get()
        found = data_predicate([predicate], schema, named_path, ConnectorPredicates)
        assert (str(found), found.is_exact) == (str(wanted), is_exact)


@pytest.mark.parametrize(
    ("column", "values"),
    [
        ("i", [*range(11), None]),
        ("s", ["", "null", ",", "a b", "*", *map(str, range(10))]),
        ("s", ["", "null", None, *map(str, range(10))]),
        ("d", [dt.date(1500, 1, 1), *(dt.date(2024, 1, day) for day in range(1, 12))]),
        ("dec", [Decimal(n) / 4 for n in range(12)]),
    ],
)
def test_long_lists_arrive_whole(spark, typed, column, values):
    found = filters_of(spark, typed, sf.col(column).isin(*values))
    (listed,) = [part for part in found.conjuncts() if isinstance(part, In)]
    assert {item.value for item in listed.values} == set(values)


def test_lists_of_thousands_arrive_whole(spark, typed):
    found = filters_of(spark, typed, f"i IN ({', '.join(map(str, range(3000)))})")
    (listed,) = [part for part in found.conjuncts() if isinstance(part, In)]
    assert {item.value for item in listed.values} == set(range(3000))


def test_lists_whose_texts_run_into_each_other_skip_nothing(spark, typed):
    values = ["a\0,b", *map(str, range(12))]
    found = filters_of(spark, typed, sf.col("s").isin(*values))
    assert all("IS NULL" in str(part) for part in found.conjuncts())


@pytest.mark.parametrize(
    "condition",
    [
        "i + 1 = 2",
        "s RLIKE 'a'",
        "bin = X'01'",
        "upper(s) = 'A'",
        "i = 1 OR length(s) = 1",
        "CAST(st AS STRUCT<`a-b`: INT, x: INT>).x = 1",
        "NOT (i = 1 AND length(s) = 1)",
        "d > DATE '+12024-01-01'",
    ],
)
def test_filters_that_are_not_understood_skip_nothing(spark, typed, condition):
    conjuncts = filters_of(spark, typed, condition).conjuncts()
    assert all("IS NULL" in str(part) for part in conjuncts)


def test_filters_on_instants_mean_the_same_in_every_zone(spark, typed, conf):
    conf("spark.sql.session.timeZone", "Asia/Tokyo")
    predicate = filters_of(spark, typed, "ts = TIMESTAMP '2024-06-01 12:00:00'")
    assert "2024-06-01 03:00:00" in str(predicate)


def test_listing_groups_files_by_typed_values(table_path, log_of):
    data = pa.table({"d": [dt.date(2024, 1, 1 + i % 2) for i in range(6)], "id": list(range(6))})
    for part in (data.slice(0, 3), data.slice(3)):
        deltalake.write_deltalake(table_path, part, mode="append", partition_by=["d"])
    snapshot = log_of(table_path).snapshot()
    listing = FileListing.of(
        snapshot.data_paths, snapshot.files, snapshot.partition_schema, zone="UTC"
    )
    assert sorted(listing.partitions["d"].to_pylist()) == [dt.date(2024, 1, 1), dt.date(2024, 1, 2)]
    assert sorted(listing.ordinals.to_pylist()) == [0, 0, 1, 1]
    assert all(path.startswith(f"file:{table_path}/d=") for path in listing.paths.to_pylist())


@pytest.fixture
def hours(table_path):
    """Three files, each a partition of one instant, which the log has without a zone."""
    times = [dt.datetime(2024, 1, day) for day in (1, 2, 3)]
    kind = pa.timestamp("us", "UTC")
    rows = pa.table({"t": pa.array(times, kind), "i": [1, 2, 3]})
    DeltaLog.for_path(table_path).append(rows, partition_by=["t"])
    commit = Path(table_path, "_delta_log", f"{0:020}.json")
    text = re.sub(r'"t":"(2024-01-0.)T00:00:00.000000Z"', r'"t":"\1 00:00:00"', commit.read_text())
    assert text.count(" 00:00:00") == 3
    commit.write_text(text)
    return table_path


def test_a_version_is_listed_once_for_each_zone_and_only_kept_files_get_full_paths(
    spark, hours, conf, monkeypatch
):
    listed, numbers_of_paths = [], []
    of, full_paths = FileListing.of, listing_module._full_paths

    def counted(*args, **options):
        listed.append(options["zone"])
        return of(*args, **options)

    def counted_paths(data_paths, references):
        numbers_of_paths.append(len(references))
        return full_paths(data_paths, references)

    monkeypatch.setattr(FileListing, "of", counted)
    monkeypatch.setattr(listing_module, "_full_paths", counted_paths)
    for zone, hour in [("UTC", 0), ("America/New_York", 5), ("UTC", 0)]:
        conf("spark.sql.session.timeZone", zone)
        for day in (1, 2):
            frame = read(spark, hours).where(f"t = TIMESTAMP '2024-01-0{day} 00:00:00'")
            (found,) = frame.selectExpr("i", "unix_seconds(t)").collect()
            midnight = dt.datetime(2024, 1, day, hour, tzinfo=dt.timezone.utc)
            assert tuple(found) == (day, midnight.timestamp())
    assert listed == ["UTC", "America/New_York"]
    assert set(numbers_of_paths) == {1}
    DeltaLog.for_path(hours).append(
        pa.table({"t": pa.array([dt.datetime(2024, 1, 4)], pa.timestamp("us", "UTC")), "i": [4]})
    )
    assert sorted(row.i for row in read(spark, hours).collect()) == [1, 2, 3, 4]


def test_digests_tell_choices_of_files_apart_however_they_lie_in_memory():
    files = pa.table({"path": ["a", "b", "c"]})
    chunked = pa.concat_tables([files.slice(0, 1), files.slice(1)])
    assert digest_of(files) == digest_of(chunked)
    assert digest_of(files.slice(1)) == digest_of(pa.table({"path": ["b", "c"]}))
    assert digest_of(files.slice(0, 2)) != digest_of(files.slice(1))
    assert digest_of(pa.table({"path": ["ab"]})) != digest_of(pa.table({"path": ["a", "b"]}))


def test_sources_tell_table_version_and_whether_it_was_asked_for(spark, typed):
    frame = read(spark, typed).union(read(spark, typed, versionAsOf=0))
    live, travelled = table_sources(frame)
    assert (live.path, live.version, live.is_time_travel) == (f"file:{typed}", 0, False)
    assert travelled.is_time_travel


def test_plain_frames_have_no_sources(spark, typed):
    assert table_sources(spark.range(3)) == ()
    assert table_sources(spark.read.parquet(f"{typed}/data-*")) == ()


@pytest.fixture
def broken(monkeypatch):
    def fail(*_):
        raise TableError("The log is damaged.", kind="OPTIMIST_TEST")

    monkeypatch.setattr(TableFileIndex, "_left", fail)


def test_an_error_in_a_callback_keeps_its_class_in_our_entry_points(spark, typed, tmp_path, broken):
    frame = read(spark, typed)
    with pytest.raises(TableError) as caught:
        write(frame, str(tmp_path / "copy"))
    assert caught.value.kind == "OPTIMIST_TEST"


def test_an_error_in_a_callback_keeps_its_message_in_the_users_own_action(spark, typed, broken):
    with pytest.raises(Exception, match="The log is damaged"):
        read(spark, typed).count()


def test_errors_without_a_ticket_pass_through():
    with pytest.raises(KeyError), original_errors():
        raise KeyError("x")


def test_a_ticket_leads_to_the_original_error():
    with pytest.raises(KeyError, match="first"), original_errors():
        try:
            with callback():
                raise KeyError("first")
        except RuntimeError as error:
            raise OSError(f"Java says: {error}") from None
