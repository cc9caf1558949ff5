"""Options of reads and writes: their spelling, and the session's confs that stand in for them."""

from __future__ import annotations

import json
import logging
import re
from dataclasses import fields
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from pyspark.sql import functions as sf

from optimist.core.errors import ConfigError, SchemaError, UsageError
from optimist.core.log.file_table import add_files
from optimist.core.options.engine import EngineOptions
from optimist.spark import DeltaTable, read, write
from optimist.spark.commands.reading.change_feed import CHANGE_OPTIONS
from optimist.spark.commands.writing.write_options import WRITE_OPTIONS
from read_back import ids

DYNAMIC = "spark.sql.sources.partitionOverwriteMode"
RESET = "spark.databricks.delta.write.txnVersion.autoReset.enabled"
VERSION = "spark.databricks.delta.write.txnVersion"


@pytest.fixture
def rows(spark):
    return spark.range(12).coalesce(1).selectExpr("id", "CAST(id % 3 AS INT) AS p")


@pytest.fixture
def table(rows, copied):
    return copied("a dozen", lambda path: write(rows, path, partitionBy="p"))


# Options and the confs they fall back to


class Seen:
    """What a write with some conf or option did."""

    def __init__(self, spark, path, rows, log_of):
        self.spark, self.path, self.rows, self.log_of = spark, path, rows, log_of

    def evolves(self, **options):
        more = self.rows.withColumn("more", sf.lit(1))
        try:
            return write(more, self.path, mode="append", **options) is not None
        except SchemaError:
            return False

    def keeps_other_partitions(self, **options):
        write(self.rows.where("p = 1"), self.path, mode="overwrite", **options)
        kept = read(self.spark, self.path).select("p").distinct().count() == 3
        write(self.rows, self.path, mode="overwrite", partitionOverwriteMode="static")
        return kept

    def metadata(self, **options):
        write(self.rows, self.path, mode="append", **options)
        return self.log_of(self.path).history(1)[0].info.user_metadata

    def sizes(self, **options):
        write(self.rows, self.path, mode="overwrite", **options)
        adds = add_files(self.log_of(self.path).snapshot().files)
        return sorted(json.loads(add.stats)["numRecords"] for add in adds)

    def has_few_files(self, **options):
        write(self.rows.repartition(6, "id"), self.path, mode="overwrite", **options)
        return self.log_of(self.path).snapshot().num_files == 3

    def codec(self, **options):
        write(self.rows, self.path, mode="overwrite", **options)
        add, *_ = add_files(self.log_of(self.path).snapshot().files)
        footer = pq.read_metadata(Path(self.path) / add.path.replace("%3D", "="))
        return footer.row_group(0).column(0).compression


CONFS = {
    # option: value in the conf, what is seen, option of the call, what is seen then
    "mergeSchema": ("true", Seen.evolves, True, {"mergeSchema": False}, False),
    "partitionOverwriteMode": (
        *("Dynamic", Seen.keeps_other_partitions, True),
        *({"partitionOverwriteMode": "static"}, False),
    ),
    "userMetadata": ("by conf", Seen.metadata, "by conf", {"userMetadata": "mine"}, "mine"),
    "optimizeWrite": ("true", Seen.has_few_files, True, {"optimizeWrite": False}, False),
    "maxRecordsPerFile": ("3", Seen.sizes, [1, 1, 1, 3, 3, 3], {"maxRecordsPerFile": 0}, [4, 4, 4]),
    "compression": ("gzip", Seen.codec, "GZIP", {"compression": "zstd"}, "ZSTD"),
}


@pytest.mark.again
@pytest.mark.usefixtures("plane")
def test_an_option_that_is_left_out_falls_back_to_the_conf(spark, table, rows, conf, log_of):
    seen = Seen(spark, table, rows, log_of)
    for name, (value, look, by_conf, options, by_option) in CONFS.items():
        conf(WRITE_OPTIONS[name].conf, value)
        assert look(seen, **options) == by_option, name
        assert look(seen) == by_conf, name
        spark.conf.unset(WRITE_OPTIONS[name].conf)


def test_every_option_with_a_conf_is_tried_and_in_the_table_of_the_docs():
    assert {name for name, option in WRITE_OPTIONS.items() if option.conf} == {
        *CONFS,
        "txnAppId",
        "txnVersion",
    }
    page = (Path(__file__).parents[3] / "docs" / "options.md").read_text(encoding="utf-8")
    documented = dict(re.findall(r"^\| `(\w+)` \| (?:`(spark[\w.]+)`|none) \|", page, re.MULTILINE))
    wanted = {name: option.conf or "" for name, option in WRITE_OPTIONS.items()}
    wanted |= dict.fromkeys(("versionAsOf", "timestampAsOf", *CHANGE_OPTIONS), "")
    assert documented == wanted
    engine = {key for item in fields(EngineOptions) for key in item.metadata.get("keys", ())}
    ours = {c for c in wanted.values() if c.startswith("spark.databricks.")}
    assert ours <= engine


def test_what_a_call_replaces_wins_over_a_dynamic_conf(spark, table, rows, conf, log_of):
    conf(DYNAMIC, "dynamic")
    write(rows.where("p = 1 AND id < 5"), table, mode="overwrite", replaceWhere="p > 0")
    assert ids(read(spark, table)) == [0, 1, 3, 4, 6, 9]
    parameters = log_of(table).history(1)[0].info.operation_parameters
    assert "isDynamicPartitionOverwrite" not in parameters
    with pytest.raises(UsageError) as caught:
        write(rows, table, mode="overwrite", overwriteSchema=True, partitionBy="p")
    assert caught.value.kind == "DELTA_OVERWRITE_SCHEMA_WITH_DYNAMIC_PARTITION_OVERWRITE"
    write(
        rows.select("id"),
        table,
        mode="overwrite",
        overwriteSchema=True,
        partitionOverwriteMode="static",
    )
    write(rows.where("id = 1"), table, mode="overwrite", overwriteSchema=True)
    assert ids(read(spark, table)) == [1]  # no partitions, so all of it


def test_rewritten_files_follow_the_conf_as_written_ones_do(spark, table, conf, log_of):
    conf("spark.sql.files.maxRecordsPerFile", "2")
    DeltaTable.forPath(spark, table).update("id = 1", {"id": "100"})
    adds = add_files(log_of(table).snapshot().files)
    assert sorted(json.loads(add.stats)["numRecords"] for add in adds) == [2, 2, 4, 4]


def test_a_table_follows_confs_that_change_after_it_was_asked_for(spark, table, conf):
    target = DeltaTable.forPath(spark, table)
    conf("spark.databricks.delta.write.txnAppId", "job")
    for _ in range(2):  # the second is a replay
        conf(VERSION, "1")
        target.update("id < 100", {"id": "id + 1000"})
    assert max(ids(target.toDF())) == 1011


def test_the_version_of_a_session_is_taken_back_after_each_write(spark, table, rows, conf):
    conf(RESET, "true")
    conf("spark.databricks.delta.write.txnAppId", "job")
    target = DeltaTable.forPath(spark, table)
    for version, change in enumerate(
        (
            lambda: write(rows, table, mode="append"),
            lambda: target.update("id = 1", {"id": "100"}),
            lambda: target.delete("id = 100"),
        )
    ):
        for _ in range(2):  # a replay takes it back, too
            conf(VERSION, str(version))
            change()
            assert spark.conf.get(VERSION, None) is None
    with pytest.raises(UsageError) as caught:
        write(rows, table, mode="append")
    assert caught.value.kind == "DELTA_INVALID_IDEMPOTENT_WRITES_OPTIONS"
    write(rows, table, mode="append", txnAppId="job", txnVersion=7)
    conf(VERSION, "8")
    with pytest.raises(SchemaError):
        write(rows.withColumn("x", sf.lit(1)), table, mode="append")
    assert spark.conf.get(VERSION) == "8"  # to be played again
    assert read(spark, table).count() == 12 + 12 + 12 - 2


# Spelling


def test_options_of_a_read_are_taken_in_any_case(spark, table_path, rows):
    write(rows, table_path, **{"delta.enableChangeDataFeed": True})
    write(rows, table_path, mode="append")
    assert read(spark, table_path, VERSIONASOF="0").count() == 12
    feed = read(spark, table_path, READCHANGEFEED="true", startingversion=1)
    assert feed.count() == 12
    assert read(spark, table_path, readChangeData=True, startingVersion=0).count() == 24
    with pytest.raises(UsageError) as caught:
        read(spark, table_path, versionAsOf=0, versionasof=1)
    assert caught.value.kind == "OPTIMIST_CONTRADICTING_OPTIONS"
    with pytest.raises(UsageError) as caught:
        read(spark, table_path, versionsAsOf=0)
    assert caught.value.kind == "OPTIMIST_UNKNOWN_OPTION"
    assert "versionAsOf" in caught.value.fields["known"]


# Properties


def test_a_first_write_gives_the_table_its_properties(spark, table_path, rows, log_of, caplog):
    properties = {"delta.appendOnly": True, "delta.CHECKPOINTInterval": 7}
    feature = {"delta.feature.allowColumnDefaults": "supported"}
    write(rows, table_path, **properties, **feature)
    log = log_of(table_path)
    assert log.metadata.configuration == {
        "delta.appendOnly": "true",
        "delta.checkpointInterval": "7",
    }
    assert "allowColumnDefaults" in log.protocol.writer_features
    with caplog.at_level(logging.WARNING, "optimist.spark"):
        write(rows, table_path, mode="append", **properties)
    assert caplog.messages == []
    with caplog.at_level(logging.WARNING, "optimist.spark"):
        write(rows, table_path, mode="append", **{"delta.appendOnly": "false"})
    assert "delta.appendOnly" in caplog.messages[0]
    assert log.metadata.configuration["delta.appendOnly"] == "true"


@pytest.mark.parametrize("options", [{"delta.nope": "1"}, {"delta.appendOnly": "perhaps"}])
def test_properties_that_make_no_sense_are_refused(table_path, rows, options):
    with pytest.raises(ConfigError):
        write(rows, table_path, **options)
    assert not Path(table_path).exists()
