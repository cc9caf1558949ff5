"""Reading tables that another engine wrote, through Spark's own reader."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal

import deltalake
import pyarrow as pa
import pytest
from pyspark.sql import functions as sf

from optimist.core import DeltaLog
from optimist.core.errors import TableError, TableNotFoundError, UsageError
from optimist.core.log.file_table import files_table
from optimist.core.protocol.actions import AddFile
from optimist.spark import read
from optimist.spark.native.file_selection import file_selections
from optimist.spark.native.frame import scan_frame

UTC = dt.timezone.utc


@pytest.fixture
def months(table_path):
    """Six files: three partitions of two commits, ids 0-29 and 30-59."""
    for start in (0, 30):
        ids = range(start, start + 30)
        data = pa.table(
            {
                "id": pa.array(ids, pa.int64()),
                "p": pa.array([i % 3 for i in ids], pa.int32()),
                "name": pa.array([f"n{i:03d}" for i in ids]),
            }
        )
        deltalake.write_deltalake(table_path, data, mode="append", partition_by=["p"])
    return table_path


def files_of(frame):
    (selection,) = file_selections(frame)
    return selection.num_files


def test_a_table_of_deltalake_reads_with_all_its_rows(spark, months):
    rows = read(spark, months).orderBy("id").collect()
    assert [(row.id, row.p, row.name) for row in rows] == [
        (i, i % 3, f"n{i:03d}") for i in range(60)
    ]


def test_columns_keep_the_order_of_the_table(spark, months):
    assert read(spark, months).columns == ["id", "p", "name"]


def test_a_partition_filter_leaves_only_the_files_of_the_partition(spark, months):
    frame = read(spark, months).where("p = 1")
    assert files_of(frame) == 2
    assert frame.count() == 20


def test_a_data_filter_skips_files_by_their_statistics(spark, months):
    frame = read(spark, months).where("id >= 30")
    assert files_of(frame) == 3
    assert frame.count() == 30


def test_both_kinds_of_filter_together_leave_one_file(spark, months):
    frame = read(spark, months).where("p = 2 AND name LIKE 'n05%'")
    assert files_of(frame) == 1
    assert sorted(row.id for row in frame.collect()) == [50, 53, 56, 59]


def test_explain_shows_partition_filters_pushed_filters_and_pruned_columns(spark, months, capsys):
    read(spark, months).where("p = 1 AND id > 40").select("id").explain()
    shown = capsys.readouterr().out
    assert "PartitionFilters: [isnotnull(p#" in shown
    assert "PushedFilters: [IsNotNull(id), GreaterThan(id,40)]" in shown
    assert "ReadSchema: struct<id:bigint>" in shown


def test_a_selection_tells_files_partitions_and_filters(spark, months):
    (selection,) = file_selections(read(spark, months).where("p = 1 AND id > 40"))
    assert (selection.num_files, selection.num_files_total, selection.num_partitions) == (1, 6, 1)
    assert "1 of 6 files" in str(selection)


@pytest.mark.again
@pytest.mark.parametrize(
    "condition",
    [
        "p IN (0, 2)",
        "p <> 1",
        "NOT (p = 1)",
        "p IS NULL",
        "coalesce(p, 7) = 2",
        "p + 1 = 2",
        "cast(p AS string) LIKE '%1'",
        "p BETWEEN 1 AND 2",
        "p <=> 1",
        "p = 1 OR p = 2",
        "p = 1 OR id = 5",
        "false",
        "p % 2 = id % 2",
        "CASE WHEN p = 1 THEN true ELSE false END",
        "exists(array(p), x -> x = 2)",
        "p IN (SELECT explode(array(1)))",
        "P = 1",
        "id IN (3, 33)",
        "NOT (id > 10 AND name > 'n020')",
        "id > 10 OR name = 'n001'",
        "id IS NULL",
        "name IN ('n001', 'x')",
        "startswith(name, 'n04')",
        "id <=> 3",
        "id + 1 > 50",
    ],
)
def test_every_filter_gives_the_rows_that_a_plain_frame_gives(spark, months, condition):
    plain = spark.createDataFrame(
        [(i, i % 3, f"n{i:03d}") for i in range(60)], "id long, p int, name string"
    )
    expected = sorted(row.id for row in plain.where(condition).collect())
    assert sorted(row.id for row in read(spark, months).where(condition).collect()) == expected


@pytest.mark.again
def test_a_join_of_a_table_with_itself_and_a_union_are_right(spark, months):
    frame = read(spark, months)
    assert frame.alias("a").join(frame.alias("b"), "id").count() == 60
    assert frame.where("p = 1").union(frame.where("p = 2")).count() == 40


def test_a_cached_frame_serves_another_frame_of_the_same_version(spark, months):
    cached = read(spark, months).cache()
    assert cached.count() == 60
    again = read(spark, months).where("id < 10")
    assert "InMemoryTableScan" in again._jdf.queryExecution().executedPlan().toString()
    cached.unpersist(blocking=True)


def test_a_cached_frame_does_not_serve_another_version(spark, months):
    cached = read(spark, months).cache()
    assert cached.count() == 60
    assert read(spark, months, versionAsOf=0).count() == 30
    cached.unpersist(blocking=True)


def test_broadcast_joins_prune_partitions_while_the_query_runs(spark, months):
    few = spark.createDataFrame([(1,)], "p int")
    assert read(spark, months).join(sf.broadcast(few), "p").count() == 20


def test_a_frame_stays_at_its_version(spark, months):
    frame = read(spark, months)
    extra = pa.table({"id": [99], "p": pa.array([0], pa.int32()), "name": ["x"]})
    deltalake.write_deltalake(months, extra, mode="append")
    assert frame.count() == 60
    assert read(spark, months).count() == 61


@pytest.mark.parametrize("travel", [{"versionAsOf": 0}, {"versionAsOf": "0"}])
def test_an_older_version_is_read_by_its_number(spark, months, travel):
    assert read(spark, months, **travel).count() == 30


def test_an_older_version_is_read_by_a_number_in_the_path(spark, months):
    assert read(spark, f"{months}@v0").count() == 30


@pytest.mark.parametrize("form", ["text", "datetime", "path"])
def test_an_older_version_is_read_by_its_time(spark, months, form):
    record = next(r for r in DeltaLog.for_path(months).history() if r.version == 0)
    moment = dt.datetime.fromtimestamp(record.timestamp_ms / 1000, UTC)
    path, options = months, {}
    if form == "text":
        options = {"timestampAsOf": moment.strftime("%Y-%m-%d %H:%M:%S.%f")}
    elif form == "datetime":
        options = {"timestampAsOf": moment}
    else:
        path = f"{months}@{moment:%Y%m%d%H%M%S}{record.timestamp_ms % 1000:03d}"
    assert read(spark, path, **options).count() == 30


def test_a_version_that_does_not_exist_is_refused(spark, months):
    with pytest.raises(TableError):
        read(spark, months, versionAsOf=7)


def test_a_version_and_a_time_together_are_refused(spark, months):
    with pytest.raises(UsageError) as caught:
        read(spark, months, versionAsOf=0, timestampAsOf="2026-01-01")
    assert caught.value.kind == "DELTA_ONEOF_IN_TIMETRAVEL"


@pytest.mark.parametrize("value", ["soon", "2026-13-01"])
def test_a_time_that_does_not_parse_is_refused(spark, months, value):
    with pytest.raises(UsageError) as caught:
        read(spark, months, timestampAsOf=value)
    assert caught.value.kind == "DELTA_TIMESTAMP_INVALID"


def test_versions_and_times_of_odd_digits_are_refused(spark, months):
    many = "9" * 5_000
    with pytest.raises(UsageError, match="must be a version number"):
        read(spark, months, versionAsOf=many)
    with pytest.raises(UsageError, match=r"9\.\.\.9+\) of .* is not a valid version"):
        read(spark, months, readChangeFeed="true", startingVersion=many)
    with pytest.raises(TableNotFoundError):
        read(spark, f"{months}@v{'9' * 20}")
    with pytest.raises(UsageError) as caught:
        read(spark, f"{months}@{'9' * 17}")
    assert caught.value.kind == "DELTA_TIMESTAMP_INVALID"


def test_an_unknown_option_is_refused_and_the_known_ones_are_named(spark, months):
    with pytest.raises(UsageError, match="versionAsOf, timestampAsOf") as caught:
        read(spark, months, versionAsOff="1")
    assert caught.value.fields["key"] == "versionAsOff"


def test_a_path_without_a_table_is_refused(spark, tmp_path):
    with pytest.raises(TableNotFoundError):
        read(spark, str(tmp_path))


PARTITION_VALUES = {
    "boolean": (pa.bool_(), [True, False, None]),
    "byte": (pa.int8(), [-128, 127, None]),
    "short": (pa.int16(), [-5, 5, None]),
    "integer": (pa.int32(), [-1, 2**31 - 1, None]),
    "long": (pa.int64(), [-(2**62), 3, None]),
    "float": (pa.float32(), [1.5, -0.25, None]),
    "double": (pa.float64(), [1.5e10, 1e-7, None]),
    "decimal": (pa.decimal128(12, 4), [Decimal("1.5000"), Decimal("99999999.0001"), None]),
    "string": (pa.string(), ["a b/c%20=ü'\"", "x", None]),
    "date": (pa.date32(), [dt.date(1500, 1, 1), dt.date(2024, 2, 29), None]),
    "timestamp": (
        pa.timestamp("us", "UTC"),
        [
            dt.datetime(2024, 3, 31, 1, 30, 0, 123456, UTC),
            dt.datetime(1969, 1, 1, tzinfo=UTC),
            None,
        ],
    ),
    "timestamp_ntz": (
        pa.timestamp("us"),
        [dt.datetime(2024, 3, 31, 2, 30, 0, 5), dt.datetime(1500, 1, 1), None],
    ),
}


@pytest.mark.sample(3)
@pytest.mark.parametrize("name", sorted(PARTITION_VALUES))
def test_partition_values_of_every_type_are_read_and_filtered(spark, table_path, name):
    arrow_type, values = PARTITION_VALUES[name]
    data = pa.table({"p": pa.array(values, arrow_type), "id": pa.array([0, 1, 2], pa.int64())})
    deltalake.write_deltalake(table_path, data, partition_by=["p"])
    frame = read(spark, table_path)
    read_back = frame.orderBy("id").toArrow()
    assert read_back["p"].cast(arrow_type).to_pylist() == values
    first = frame.where("id = 0").select(sf.col("p").alias("wanted"))
    matching = frame.join(first, frame.p == first.wanted).select("id").collect()
    assert [row.id for row in matching] == [0]
    assert files_of(frame.where("p IS NULL")) == 1
    assert [row.id for row in frame.where("p IS NULL").collect()] == [2]


def test_partition_times_without_a_zone_are_read_in_the_zone_of_the_session(
    spark, table_path, conf
):
    moment = dt.datetime(2024, 7, 1, 12, 0, tzinfo=UTC)
    data = pa.table({"p": pa.array([moment], pa.timestamp("us", "UTC")), "id": [1]})
    deltalake.write_deltalake(table_path, data, partition_by=["p"])
    conf("spark.sql.session.timeZone", "Europe/Paris")
    # deltalake leaves the zone out, and the protocol reads such times in the reader's own.
    assert read(spark, table_path).where("p = '2024-07-01 12:00:00'").count() == 1


@pytest.mark.again
def test_two_partition_columns_and_many_values_come_together_right(spark, table_path):
    ids = list(range(400))
    data = pa.table(
        {"a": [i % 20 for i in ids], "id": ids, "b": [f"v{i % 7}" if i % 5 else None for i in ids]}
    )
    deltalake.write_deltalake(table_path, data, partition_by=["a", "b"])
    rows = read(spark, table_path).collect()
    expected = sorted((i % 20, i, f"v{i % 7}" if i % 5 else None) for i in ids)
    assert sorted((row.a, row.id, row.b) for row in rows) == expected
    assert read(spark, table_path).where("a = 3 AND b = 'v3'").count() == sum(
        1 for i in ids if i % 20 == 3 and i % 7 == 3 and i % 5
    )


@pytest.mark.again
@pytest.mark.parametrize("condition", ["b = 1", "c = 1", "a = 0 AND c = 1", "b <> c", "c IS NULL"])
def test_each_of_several_partition_columns_is_asked_for_its_own_values(
    spark, table_path, condition
):
    values = [(a, b, c) for a in (0, 1) for b in (0, 1) for c in (0, 1, None)]
    columns = dict(zip("abc", map(list, zip(*values, strict=True)), strict=True))
    data = pa.table({"id": list(range(len(values))), **columns})
    deltalake.write_deltalake(table_path, data, partition_by=["a", "b", "c"])
    found = read(spark, table_path).where(condition)
    every = spark.createDataFrame(data).where(condition)
    assert files_of(found) == found.count() == every.count() > 0
    assert sorted(row.id for row in found.collect()) == sorted(row.id for row in every.collect())


def test_files_written_before_a_column_was_added_give_null(spark, table_path):
    deltalake.write_deltalake(table_path, pa.table({"id": [1]}))
    deltalake.write_deltalake(
        table_path, pa.table({"id": [2], "x": ["b"]}), mode="append", schema_mode="merge"
    )
    rows = read(spark, table_path).orderBy("id").collect()
    assert [(row.id, row.x) for row in rows] == [(1, None), (2, "b")]
    assert read(spark, table_path).where("x IS NULL").count() == 1


def test_nested_types_are_read_and_pruned_to_the_leaf(spark, table_path, capsys):
    data = pa.table(
        {
            "id": [1, 2],
            "s": [{"a": 1, "b": {"c": "x"}}, None],
            "l": [[1, 2], []],
            "m": pa.array([[("k", 1)], None], pa.map_(pa.string(), pa.int64())),
        }
    )
    deltalake.write_deltalake(table_path, data)
    frame = read(spark, table_path)
    first = frame.orderBy("id").first()
    assert (first.s.b.c, first.l, first.m) == ("x", [1, 2], {"k": 1})
    frame.select("s.b.c").explain()
    assert "ReadSchema: struct<s:struct<b:struct<c:string>>>" in capsys.readouterr().out


def test_absolute_paths_of_files_are_read_where_they_are(spark, table_path, log_of, tmp_path):
    deltalake.write_deltalake(table_path, pa.table({"id": [1, 2]}))
    snapshot = log_of(table_path).snapshot()
    (name,) = snapshot.files["path"].to_pylist()
    elsewhere = tmp_path / "else where%20" / "file.parquet"
    elsewhere.parent.mkdir()
    elsewhere.write_bytes((tmp_path / "table" / name).read_bytes())
    references = [
        f"{elsewhere.as_uri()}",
        str(elsewhere).replace("%", "%25").replace(" ", "%20"),
    ]
    for reference in references:
        size = elsewhere.stat().st_size
        add = AddFile(reference, {}, size, 1, True)
        assert scan_frame(spark, snapshot, files_table([add])).count() == 2


def test_a_scan_of_some_files_reads_only_those(spark, months, log_of):
    snapshot = log_of(months).snapshot()
    frame = scan_frame(spark, snapshot, snapshot.files.slice(0, 2))
    assert frame.count() == 20
    assert len(frame.inputFiles()) == 2


def test_input_files_are_the_full_paths(spark, months):
    paths = read(spark, months).inputFiles()
    assert len(paths) == 6
    assert all(path.startswith(f"file:{months}/p=") for path in paths)


def test_an_empty_table_has_no_rows_and_no_files(spark, table_path):
    schema = pa.schema([("id", pa.int64()), ("p", pa.int32())])
    deltalake.DeltaTable.create(table_path, schema, partition_by=["p"])
    frame = read(spark, table_path)
    assert (frame.count(), frame.columns, frame.where("p = 1").count()) == (0, ["id", "p"], 0)


def test_a_damaged_partition_value_is_one_clear_error(spark, table_path, log_of):
    deltalake.write_deltalake(
        table_path, pa.table({"p": pa.array([1], pa.int32()), "id": [1]}), partition_by=["p"]
    )
    snapshot = log_of(table_path).snapshot()
    broken = files_table([AddFile("p=x/f.parquet", {"p": "x"}, 10, 1, True)])
    with pytest.raises(TableError) as caught:
        scan_frame(spark, snapshot, broken)
    assert caught.value.kind == "OPTIMIST_MALFORMED_PARTITION_VALUE"
