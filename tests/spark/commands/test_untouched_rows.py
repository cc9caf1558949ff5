"""Rows that a command does not mean stay as they are, whatever would be computed of them now."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyspark.sql import functions as sf

from hand_made_tables import array_of, data_file, field, make_table, struct_of
from optimist.core import DeltaLog
from optimist.core.errors import SchemaError
from optimist.spark import DeltaTable, read, write
from table_contents import read_locally, values

VECTORS = {"delta.enableDeletionVectors": "true"}
FEED = {"delta.enableChangeDataFeed": "true"}
EVENING = dt.datetime(2024, 3, 1, 2, tzinfo=dt.timezone.utc)
"""In New York it is another day."""
NOON, DAWN = EVENING.replace(hour=12), EVENING.replace(tzinfo=None)
FINE = NOON.replace(microsecond=1)
OLD = dt.datetime(1, 1, 1, 0, 0, 0, 999_999, tzinfo=dt.timezone.utc)
"""Before the calendar of today, and finer than milliseconds."""
GONE = pa.array(["update_preimage", "delete"])


def generated(name, kind, sql):
    return field(name, kind, **{"delta.generationExpression": sql})


DAY = generated("day", "date", "CAST(ts AS DATE)")
ZERO = generated("zero", "double", "x * 1.0D")
ODD = [
    field("ts", "timestamp"),
    field("old", "date"),
    field("f", "float"),
    field("d", "decimal(38,10)"),
    field("ntz", "timestamp_ntz"),
    field("bin", "binary"),
    field("st", struct_of(field("a", "integer"), field("b", "string"))),
    field("list", array_of("double")),
]


def odd_rows():
    """Values that a careless copy changes; `zero` is not the zero that would be computed."""
    st = pa.struct([("a", pa.int32()), ("b", pa.string())])
    return pa.table(
        {
            "id": pa.array([1, 2, 3, 4], pa.int64()),
            "s": ["a", "", None, " d "],
            "x": [-0.0, -0.0, float("nan"), 5e-324],
            "zero": [0.0, 0.0, float("nan"), 5e-324],
            "ts": pa.array([EVENING, OLD, FINE, None], pa.timestamp("us", "UTC")),
            "old": pa.array([None, dt.date(1, 1, 1), dt.date(1582, 10, 10), dt.date(9999, 12, 31)]),
            "f": pa.array([1.5, -0.0, float("inf"), None], pa.float32()),
            "d": pa.array([Decimal("1.5"), None, Decimal(10) ** 27, 0], pa.decimal128(38, 10)),
            "ntz": pa.array(
                [dt.datetime(1582, 10, 10), None, dt.datetime(1, 1, 1), DAWN],
                pa.timestamp("us"),
            ),
            "bin": [b"\xff\x00", b"", None, b"\xc3"],
            "st": pa.array([{"a": 1, "b": ""}, {"a": None, "b": None}, None, {"a": 2}], st),
            "list": [[-0.0, None], [], None, [float("nan")]],
        }
    )


def update(spark, path):
    DeltaTable.forPath(spark, path).update("id = 1", {"s": "'new'"})


def merge(spark, path):
    source = spark.sql("SELECT 1L AS id, 'new' AS s").alias("o")
    builder = DeltaTable.forPath(spark, path).alias("t").merge(source, "t.id = o.id")
    builder.whenMatchedUpdate(set={"s": "o.s"}).execute()


def merge_by_source(spark, path):
    source = spark.range(2, 9).toDF("key").alias("o")
    builder = DeltaTable.forPath(spark, path).alias("t").merge(source, "t.id = o.key")
    builder.whenNotMatchedBySourceUpdate(set={"s": "'new'"}).execute()


def delete(spark, path):
    DeltaTable.forPath(spark, path).delete("id = 1")


def merge_delete(spark, path):
    source = spark.sql("SELECT 1L AS id").alias("o")
    builder = DeltaTable.forPath(spark, path).alias("t").merge(source, "t.id = o.id")
    builder.whenMatchedDelete().execute()


def replace_where(spark, path):
    rows = read(spark, path).where("id = 1").withColumn("s", sf.lit("new"))
    write(rows, path, mode="overwrite", replaceWhere="id = 1")


def replace_using(spark, path):
    rows = read(spark, path).where("id = 1").withColumn("s", sf.lit("new"))
    write(rows, path, mode="overwrite", replaceUsing="id")


UPDATES = [update, merge, merge_by_source]
OVERWRITES = [replace_where, replace_using]
COMMANDS = [*UPDATES, delete, merge_delete]
PARQUET = "spark.sql.parquet."
SESSIONS = {
    "zone": {"spark.sql.session.timeZone": "Asia/Kathmandu"},
    "lenient": {"spark.sql.ansi.enabled": "false", "spark.sql.caseSensitive": "true"},
    "milliseconds": {f"{PARQUET}outputTimestampType": "TIMESTAMP_MILLIS"},
    "int96": {f"{PARQUET}outputTimestampType": "INT96"},
    "rebased": {
        f"{PARQUET}datetimeRebaseModeInWrite": "LEGACY",
        f"{PARQUET}int96RebaseModeInWrite": "LEGACY",
    },
    "old files": {f"{PARQUET}writeLegacyFormat": "true"},
    "old times": {
        "spark.sql.legacy.timeParserPolicy": "LEGACY",
        f"{PARQUET}inferTimestampNTZ.enabled": "false",
        "spark.sql.timestampType": "TIMESTAMP_NTZ",
    },
    "binary": {f"{PARQUET}binaryAsString": "true", f"{PARQUET}fieldId.write.enabled": "false"},
    "many parts": {
        "spark.sql.files.maxPartitionBytes": "200",
        "spark.sql.leafNodeDefaultParallelism": "3",
        "spark.sql.files.maxRecordsPerFile": "1",
    },
}
"""What a user may have set; none of it may change how a row that stays is stored."""


@pytest.mark.again
@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("properties", [{}, FEED, VECTORS], ids=["copies", "feed", "vectors"])
@pytest.mark.usefixtures("every_plane")
def test_only_rows_that_match_differ_afterwards(spark, tmp_path, conf, command, properties):
    fields = [field("id", "long"), field("s", "string"), field("x", "double"), ZERO, *ODD]
    rows = odd_rows()
    root = make_table(
        tmp_path / "table",
        fields,
        [data_file(tmp_path / "table", "a.parquet", rows)],
        configuration=properties,
        features=["deletionVectors", "generatedColumns", "changeDataFeed", "timestampNtz"],
    )
    before = read_locally(root)
    conf("spark.sql.session.timeZone", "America/New_York")
    command(spark, str(root))
    after = read_locally(root)
    others = [at for at, id in enumerate(after["id"].to_pylist()) if id != 1]
    assert values(after.take(others)) == values(before.slice(1))
    if properties is FEED:
        log = DeltaLog.for_path(str(root), {})
        changes = log.changes(starting_version=1, columns=[*before.column_names, "_change_type"])
        assert set(changes["id"].to_pylist()) == {1}
        old = changes.filter(pc.is_in(changes["_change_type"], GONE))
        assert values(old.select(before.column_names)) == values(before.slice(0, 1))


@pytest.mark.sample(75)
@pytest.mark.parametrize("properties", [{}, VECTORS], ids=["copies", "vectors"])
@pytest.mark.parametrize("command", [*COMMANDS, *OVERWRITES])
@pytest.mark.parametrize("session", SESSIONS)
@pytest.mark.usefixtures("plane")
def test_rows_that_stay_are_the_same_bits_whatever_is_set(
    spark, tmp_path, conf, session, command, properties
):
    root = tmp_path / "table"
    fields = [field("id", "long"), field("s", "string"), field("x", "double"), *ODD]
    rows = odd_rows().drop_columns(["zero"])
    features = ["deletionVectors", "timestampNtz"]
    files = [data_file(root, "a.parquet", rows)]
    make_table(root, fields, files, configuration=properties, features=features)
    before = read_locally(root)
    for key, value in SESSIONS[session].items():
        conf(key, value)
    command(spark, str(root))
    after = read_locally(root).sort_by("id")
    others = [at for at, id in enumerate(after["id"].to_pylist()) if id != 1]
    assert values(after.take(others)) == values(before.slice(1))
    assert after.schema == before.schema


@pytest.mark.parametrize("command", UPDATES)
@pytest.mark.usefixtures("plane")
def test_rows_that_would_be_generated_otherwise_now_are_refused_rather_than_changed(
    spark, tmp_path, conf, command
):
    """As in Delta: the rows that are written again must keep the table's rules."""
    fields = [field("id", "long"), field("s", "string"), field("ts", "timestamp"), DAY]
    rows = pa.table(
        {
            "id": pa.array([1, 2], pa.int64()),
            "s": ["a", "b"],
            "ts": pa.array([NOON, EVENING], pa.timestamp("us", "UTC")),
            "day": pa.array([NOON.date(), EVENING.date()], pa.date32()),
        }
    )
    root = tmp_path / "table"
    make_table(root, fields, [data_file(root, "a.parquet", rows)], features=["generatedColumns"])
    conf("spark.sql.session.timeZone", "America/New_York")
    with pytest.raises(SchemaError) as caught:
        command(spark, str(root))
    assert caught.value.kind == "DELTA_VIOLATE_CONSTRAINT_WITH_VALUES"
    assert caught.value.fields["constraint"] == "day"
    assert DeltaLog.for_path(str(root), {}).snapshot().version == 0
