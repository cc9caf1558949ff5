"""The current time is one value for all of a command, however often Spark is asked."""

from __future__ import annotations

import pytest
from pyspark.sql import functions as sf

from optimist.core import Column, DeltaLog
from optimist.core.requests.columns import ColumnChange
from optimist.core.runtime.clock import SystemClock
from optimist.spark import DeltaTable, count, read, write
from optimist.spark.conditions.fixed_now import FixedNow

DEFAULTS = {"delta.feature.allowColumnDefaults": "supported"}
MICROS = 1_700_000_000_123_000
VECTORS = "spark.databricks.delta.properties.defaults.enableDeletionVectors"
FORMS = {
    "current_timestamp()": "timestamp_micros({})",
    "CURRENT_TIMESTAMP": "timestamp_micros({})",
    "now()": "timestamp_micros({})",
    "current_date": "CAST(timestamp_micros({}) AS DATE)",
    "curdate()": "CAST(timestamp_micros({}) AS DATE)",
    "localtimestamp()": "CAST(timestamp_micros({}) AS TIMESTAMP_NTZ)",
    "unix_timestamp()": "1700000000L",
    **(
        {
            "current_time()": "CAST(timestamp_micros({}) AS TIME)",
            "current_time": "CAST(timestamp_micros({}) AS TIME)",
            "current_time(1)": "CAST(timestamp_micros({}) AS TIME(1))",
        }
        if hasattr(sf, "current_time")
        else {}  # PySpark 4.0 has no such type
    ),
    "date_add(current_date(), CAST(id AS INT))": (
        "date_add(CAST(timestamp_micros({}) AS DATE), CAST(id AS INT))"
    ),
    "if(id > 1, array(now()), NULL)": "if(id > 1, array(timestamp_micros({})), NULL)",
    "unix_timestamp(now())": "unix_timestamp(timestamp_micros({}))",
}


def values(spark, *columns):
    return spark.range(3).select(*columns).collect()


def test_whatever_asks_for_the_time_gets_the_same(spark, conf):
    conf("spark.sql.timeType.enabled", "true")
    fixed_now = FixedNow(spark, MICROS, frozenset({"id"}))
    fixed = [fixed_now.fixed(sf.expr(text)) for text in FORMS]
    fixed.append(fixed_now.fixed(sf.when(sf.col("id") > 0, sf.current_timestamp())))
    expected = [sf.expr(text.format(MICROS)) for text in FORMS.values()]
    expected.append(sf.when(sf.col("id") > 0, sf.expr(f"timestamp_micros({MICROS})")))
    assert values(spark, *fixed) == values(spark, *expected)


@pytest.mark.parametrize(
    "text", ["id", "current_date", "s.now", "'now()'", "`current_timestamp`", "id + rand(1)"]
)
def test_what_does_not_ask_for_the_time_stays_what_it_is(spark, text):
    column = sf.expr(text)
    names = frozenset({"current_date", "current_timestamp"})
    assert FixedNow(spark, MICROS, names).fixed(column) is column


CASTS = {
    "TIMESTAMP 'now'": "CAST({now} AS TIMESTAMP)",
    "id > 1 AND at < timestamp_ntz ' Now '": "id > 1 AND at < CAST({now} AS TIMESTAMP_NTZ)",
    "DATE'now'": "date_add(CAST({now} AS DATE), 0)",
    "CAST('today' AS timestamp) > at": ("CAST(date_add(CAST({now} AS DATE), 0) AS TIMESTAMP) > at"),
    "try_cast('tomorrow' AS DATE)": "date_add(CAST({now} AS DATE), 1)",
    "'yesterday'::date = day": "date_add(CAST({now} AS DATE), -1) = day",
    "to_date('today') = date('now')": (
        "date_add(CAST({now} AS DATE), 0) = date_add(CAST({now} AS DATE), 0)"
    ),
    "to_timestamp('now')": "CAST({now} AS TIMESTAMP)",
    "now() > TIMESTAMP 'now'": "{now} > CAST({now} AS TIMESTAMP)",
    "name = 'now' OR s.date('now') OR CAST('now' AS STRING) = 'x'": None,
    "TIMESTAMP '2026-01-01' < at AND 'date' = 'today' AND DATE 'epoch' < day": None,
    "to_date('now', 'yyyy') IS NULL AND CAST(concat('now') AS DATE) IS NULL": None,
}


@pytest.mark.parametrize("text", CASTS)
def test_a_client_sends_one_time_for_texts_that_are_cast_by_the_clock(spark, text):
    fixed_now = FixedNow(spark, MICROS, frozenset({"id", "at", "day", "name", "s"}))
    expected = text if CASTS[text] is None else CASTS[text]
    now = f"timestamp_micros({MICROS}L)"
    assert fixed_now._replace_in_text(text) == expected.replace("{now}", now)


def test_the_sent_times_are_those_of_spark(spark):
    texts = [f"CAST('{word}' AS {kind})" for word in ("now", "today", "tomorrow", "yesterday")
             for kind in ("DATE", "TIMESTAMP", "TIMESTAMP_NTZ")]  # fmt: skip
    micros = spark.sql("SELECT unix_micros(now())").collect()[0][0]
    fixed_now = FixedNow(spark, micros, frozenset())
    pairs = ", ".join(
        f"abs(unix_micros(CAST({text} AS TIMESTAMP)) - "
        f"unix_micros(CAST({fixed_now._replace_in_text(text)} AS TIMESTAMP)))"
        for text in texts
    )
    assert max(spark.sql(f"SELECT {pairs}").collect()[0]) < 600 * 1_000_000


@pytest.mark.parametrize("vectors", ["true", "false"])
def test_all_rows_that_a_merge_writes_have_one_time(spark, table_path, vectors):
    log = DeltaLog.for_path(table_path, {VECTORS: vectors})
    nothing = "CAST(NULL AS TIMESTAMP) AS at"
    log.append(spark.range(4).selectExpr("id", nothing, "current_date() AS day").toArrow())
    merge = (
        DeltaTable.forPath(spark, table_path)
        .alias("t")
        .merge(spark.range(2, 6).alias("s"), "t.id = s.id AND t.day <= current_date()")
    )
    merge = merge.whenMatchedUpdate("now() > '2000-01-01'", {"at": "current_timestamp()"})
    merge = merge.whenNotMatchedInsert(values={"id": "s.id", "at": sf.now(), "day": "current_date"})
    merge.whenNotMatchedBySourceUpdate(set={"at": "current_timestamp"}).execute()
    rows = read(spark, table_path).collect()
    assert {row.id for row in rows} == set(range(6))
    assert len({row["at"] for row in rows}) == 1
    assert len({row.day for row in rows}) == 1


def test_replace_where_means_one_time_where_it_deletes_and_where_it_checks(
    spark, table_path, monkeypatch
):
    days = "timestamp_micros({} + 86400000000L * (id - 2)) AS at"
    rows = spark.range(5).selectExpr("id", days.format(MICROS))
    write(rows.coalesce(1), table_path)
    monkeypatch.setattr(SystemClock, "now_ms", lambda self: MICROS // 1000)
    new = spark.sql(f"SELECT 9L AS id, timestamp_micros({MICROS}) AS at")
    write(new, table_path, mode="overwrite", replaceWhere="at >= current_timestamp()")
    assert sorted(row.id for row in read(spark, table_path).collect()) == [0, 1, 9]


@pytest.mark.again
def test_a_count_decides_by_the_log_and_by_rows_at_one_time(spark, table_path, monkeypatch):
    hours = f"timestamp_micros({MICROS} + 3600000000L * (id - 2)) AS at"
    write(spark.range(5).selectExpr("id", hours).coalesce(1), table_path)
    monkeypatch.setattr(SystemClock, "now_ms", lambda self: MICROS // 1000)
    assert count(spark, table_path, "at < current_timestamp()") == 2


@pytest.mark.parametrize("ansi", ["true", "false"])
@pytest.mark.usefixtures("every_plane")
def test_texts_that_mean_a_day_by_the_clock_are_conditions_and_values(
    spark, table_path, conf, ansi
):
    conf("spark.sql.ansi.enabled", ansi)
    days = "date_sub(current_date(), CAST(id AS INT)) AS day"
    write(spark.range(6).selectExpr("id", days).coalesce(1), table_path)
    table = DeltaTable.forPath(spark, table_path)
    assert count(spark, table_path, "day = 'today'") == 1
    table.delete("day = 'today'")
    table.update(
        "day < 'yesterday'", {"id": "CASE WHEN day >= date_sub('today', 2) THEN 22L ELSE id END"}
    )
    source = spark.range(1, 4).alias("s")
    merge = table.alias("t").merge(source, "t.id = s.id AND t.day < CAST('today' AS DATE)")
    merge.whenMatchedDelete("t.day >= 'yesterday'").whenMatchedUpdate(set={"id": "33"}).execute()
    assert sorted(row.id for row in read(spark, table_path).collect()) == [4, 5, 22, 33]


def test_a_default_by_the_clock_is_no_null(spark, table_path, conf):
    conf("spark.sql.ansi.enabled", "false")
    log = DeltaLog.for_path(table_path, {})
    log.create([Column("id", "bigint"), Column("day", "date")], properties=DEFAULTS)
    DeltaTable.forPath(spark, table_path).alter.change_columns(
        [ColumnChange("day", default="CAST('today' AS DATE)")]
    )
    write(spark.range(1), table_path, mode="append")
    assert read(spark, table_path).where("day >= date_sub(current_date(), 1)").count() == 1
