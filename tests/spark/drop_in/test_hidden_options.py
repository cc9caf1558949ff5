"""Options of calls that hold secrets: Spark shows them nowhere once a session is enabled."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from optimist.spark import DeltaTable, disable, enable

MARK = "hunter2"
NAMES = (
    "fs.azure.account.key.box.dfs.core.windows.net",
    "fs.azure.sas.fixed.token.box",
    "fs.azure.sas.box.us.blob.core.windows.net",
    "fs.azure.account.oauth2.client.secret",
    "fs.gs.auth.service.account.private.key",
    "fs.s3a.encryption.key",
    "fs.s3a.access.key",
    "fs.s3a.session.token",
)
SECRETS = {name: f"{MARK}.{at}" for at, name in enumerate(NAMES)}
REGEX = "spark.sql.redaction.options.regex"


@pytest.fixture
def event_log(enabled, tmp_path):
    """Gives what Spark has written into its event log since the test began."""
    root = enabled._jvm
    context = enabled.sparkContext._jsc.sc()
    folder = tmp_path / "events"
    folder.mkdir()
    settings = context.getConf().set("spark.eventLog.compress", "false")
    kind = root.org.apache.spark.scheduler.EventLoggingListener
    listener = kind(
        "app",
        root.scala.Option.empty(),
        root.java.net.URI(folder.as_uri()),
        settings,
        context.hadoopConfiguration(),
    )
    listener.start()
    context.addSparkListener(listener)

    def written() -> str:
        context.listenerBus().waitUntilEmpty()
        context.removeSparkListener(listener)
        listener.stop()
        return "".join(path.read_text() for path in folder.rglob("*") if path.is_file())

    return written


def every_kind_of_call(spark, folder):
    path, rows = f"{folder}/t", spark.range(3)
    rows.write.format("delta").options(**SECRETS).save(path)
    rows.write.format("delta").options(**SECRETS).mode("append").save(path)
    rows.write.format("delta").options(**SECRETS).mode("overwrite").save(path)
    rows.writeTo(f"delta.`{path}`").options(**SECRETS).append()
    rows.writeTo(f"delta.`{path}`").options(**SECRETS).overwritePartitions()
    rows.write.format("delta").options(**SECRETS).saveAsTable("with_secrets", path=f"{folder}/u")
    rows.write.format("delta").options(**SECRETS).mode("append").saveAsTable("with_secrets")
    spark.read.format("delta").options(**SECRETS).load(path).collect()
    spark.read.options(**SECRETS).table("with_secrets").collect()
    spark.read.format("delta").options(**SECRETS, versionAsOf=0).load(path).collect()
    table = DeltaTable.forPath(spark, path, SECRETS)
    table.toDF().collect()
    table.delete("id = 2")
    table.merge(table.toDF(), "1 = 0").whenNotMatchedInsertAll().execute()
    stream = spark.readStream.format("delta").options(**SECRETS).load(path)
    writer = stream.writeStream.format("delta").options(**SECRETS)
    writer = writer.option("checkpointLocation", f"{folder}/checkpoint").trigger(availableNow=True)
    writer.start(f"{folder}/s").awaitTermination()
    spark.sql("DROP TABLE with_secrets")
    spark.sql(f"SELECT * FROM delta.`{path}` WITH ({_in_sql()})").collect()


def test_no_kind_of_call_writes_a_secret_among_its_options_into_the_event_log(
    enabled, event_log, tmp_path
):
    every_kind_of_call(enabled, tmp_path)
    told = event_log()
    assert NAMES[0] in told
    shown = {_around(line) for line in told.splitlines() if MARK in line}
    assert not shown


def test_no_secret_among_the_options_of_a_table_comes_into_its_log(enabled, tmp_path):
    create = f"CREATE TABLE with_secrets USING delta OPTIONS ({_in_sql()})"
    enabled.sql(f"{create} LOCATION '{tmp_path}/t' AS SELECT 1 AS id")
    enabled.sql("INSERT INTO with_secrets VALUES (2)")
    enabled.sql("DROP TABLE with_secrets")
    assert not [file for file in tmp_path.rglob("*.json") if MARK in file.read_text()]


def _in_sql():
    return ", ".join(f"'{key}' = '{value}'" for key, value in SECRETS.items())


def _around(line):
    at = line.index(MARK)
    return line[max(0, at - 300) : at + 20]


@pytest.fixture
def not_enabled(enabled):
    disable(enabled)
    yield enabled
    enable(enabled)


def test_new_sessions_and_clones_hide_them_and_a_disabled_session_is_as_before(not_enabled, conf):
    spark, before = not_enabled, not_enabled.conf.get(REGEX)
    enable(spark)
    other = spark.newSession()
    other.sql("SELECT 1")
    clone = SparkSession(spark.sparkContext, spark._jsparkSession.cloneSession())
    clone.sql("SELECT 1")
    widened = spark.conf.get(REGEX)
    assert widened != before
    assert other.conf.get(REGEX) == clone.conf.get(REGEX) == widened
    disable(spark)
    assert spark.conf.get(REGEX) == before
    conf(REGEX, "mine")
    enable(spark)
    assert spark.conf.get(REGEX).startswith("(?:mine)|")
    disable(spark)
    assert spark.conf.get(REGEX) == "mine"
    enable(spark)
    spark.conf.set(REGEX, "chosen since")
    disable(spark)
    assert spark.conf.get(REGEX) == "chosen since"
