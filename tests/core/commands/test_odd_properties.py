"""Tables whose log holds properties that do not parse: read on, and written only once mended."""

from __future__ import annotations

import json

import deltalake
import pyarrow as pa
import pytest

from altered_tables import commit_metadata, configuration, table
from optimist.core import DeltaLog
from optimist.core.errors import ArgumentTypeError
from optimist.core.protocol.properties import PROPERTIES
from refusals import fails

KIND = "OPTIMIST_MALFORMED_TABLE_PROPERTY"
ROWS = pa.table({"id": [7], "s": ["x"]})
BINDING = sorted(name for name, row in PROPERTIES.items() if row.is_binding)
OF_MEANING = {"delta.parquet.compression.codec", "delta.universalFormat.enabledFormats"}
"""Any text is one that another engine may understand."""
HARMLESS = sorted(n for n, row in PROPERTIES.items() if not row.is_binding and n not in OF_MEANING)


def foreign(path, **properties):
    """A table into whose log another engine wrote properties as they are."""
    commit_metadata(table(path), configuration=properties)
    return DeltaLog.for_path(str(path))


def test_the_properties_that_bind_writers_are_these():
    assert [name.removeprefix("delta.") for name in BINDING] == [
        "appendOnly",
        "columnMapping.maxColumnId",
        "columnMapping.mode",
        "compatibility.symlinkFormatManifest.enabled",
        "enableChangeDataFeed",
        "enableIcebergCompatV1",
        "enableIcebergCompatV2",
        "enableIcebergCompatV3",
        "enableInCommitTimestamps",
        "enableRowTracking",
        "inCommitTimestampEnablementTimestamp",
        "inCommitTimestampEnablementVersion",
        "isolationLevel",
        "parquet.format.version",
        "rowTrackingSuspended",
    ]


@pytest.mark.parametrize("name", BINDING)
def test_a_binding_property_that_does_not_parse_stops_every_write_and_no_reader(tmp_path, name):
    log = foreign(tmp_path, **{name: "yes"})
    assert log.to_arrow().num_rows == 3
    calls = [(log.append, ROWS), (log.delete, "id = 1")]
    if "Enablement" not in name:  # new metadata without timestamps in commits do without it
        calls.append((log.alter.set_properties, {"mine": "1"}))
    for call, *arguments in calls:
        error = fails(KIND, call, *arguments)
        assert error.fields["properties"] == {name: "yes"}
        assert name in str(error)
    assert log.snapshot().version == 1
    assert not list(tmp_path.glob("data-*"))


@pytest.mark.parametrize("name", [name for name in BINDING if PROPERTIES[name].user_settable])
def test_a_binding_property_is_mended_by_unsetting_it(tmp_path, name):
    log = foreign(tmp_path, **{name: "yes"})
    log.alter.unset_properties([name])
    assert name not in configuration(log)
    log.append(ROWS)
    assert log.to_arrow().num_rows == 4


def test_a_binding_property_is_mended_by_setting_it(tmp_path):
    log = foreign(tmp_path, **{"delta.appendOnly": "yes", "delta.isolationLevel": "none"})
    good = {"delta.appendOnly": "true", "delta.isolationLevel": "Serializable"}
    for name, value in good.items():
        fails(KIND, log.alter.set_properties, {name: value})
    log.alter.set_properties(good)
    log.append(ROWS)
    fails("DELTA_CANNOT_MODIFY_APPEND_ONLY", log.delete, "id = 1")


@pytest.mark.parametrize("name", HARMLESS)
def test_other_properties_that_do_not_parse_stop_nobody(tmp_path, name):
    log = foreign(tmp_path, **{name: "%"})
    log.append(ROWS)
    log.delete("id = 1")
    assert sorted(log.to_arrow()["id"].to_pylist()) == [2, 3, 7]


@pytest.mark.parametrize(
    ("names", "counted"),
    [
        ("gone", []),
        ("gone,id", ["id"]),
        ("b", ["b"]),  # a boolean, which has no minimum
        ("p,s", ["s"]),
        ("ID, id,`s`", ["id", "s"]),
        ("id..x,s", ["s"]),
    ],
)
def test_stale_names_of_columns_with_statistics_stop_no_write_and_no_other_change(
    tmp_path, names, counted
):
    rows = pa.table({"id": [1], "s": ["a"], "b": [True], "p": ["x"]})
    log = table(tmp_path, rows, partition_by=["p"])
    stale = {"delta.dataSkippingStatsColumns": names, "delta.checkpoint.writeStatsAsStruct": "true"}
    commit_metadata(log, configuration=stale)
    log = DeltaLog.for_path(str(tmp_path))
    log.append(rows)
    newest = json.loads(log.snapshot().files["stats"].to_pylist()[-1])
    assert sorted(newest["nullCount"]) == counted
    assert log.delete("id = 2").num_deleted == 0
    log.checkpoint()
    assert DeltaLog.for_path(str(tmp_path)).count("id = 1") == 2
    log.alter.set_properties({"mine": "1"})
    log.alter.add_constraint("c", "id > 0")


def test_statistics_for_a_column_that_is_not_there_can_not_be_asked_for(tmp_path):
    stale = {"delta.dataSkippingStatsColumns": "gone"}
    commit_metadata(table(tmp_path), configuration=stale)
    log = DeltaLog.for_path(str(tmp_path))
    wanted = {"delta.dataSkippingStatsColumns": "gone,s"}
    fails("DELTA_COLUMN_NOT_FOUND_IN_SCHEMA", log.alter.set_properties, wanted)
    log.alter.set_properties({"delta.dataSkippingStatsColumns": "s"})


def test_properties_whose_features_are_not_there_mean_nothing_to_readers_and_commands(tmp_path):
    asked = {
        "delta.enableRowTracking": "true",
        "delta.enableInCommitTimestamps": "true",
        "delta.enableDeletionVectors": "true",
        "delta.enableChangeDataFeed": "true",
        "delta.enableTypeWidening": "true",
    }
    log = foreign(tmp_path, **asked)
    assert log.snapshot().timestamp_ms > 0
    log.append(ROWS)
    log.delete("id = 2")
    log.update(set={"s": "'y'"}, predicate="id = 3")
    source = pa.table({"id": [1, 9], "s": ["m", "n"]})
    log.merge(source, ["id"]).when_matched_update_all().when_not_matched_insert_all().execute()
    rows = sorted(log.to_arrow().to_pylist(), key=lambda row: row["id"])
    assert [(row["id"], row["s"]) for row in rows] == [(1, "m"), (3, "y"), (7, "x"), (9, "n")]
    files = log.snapshot().files
    assert files["baseRowId"].null_count == files["deletionVector"].null_count == files.num_rows
    assert log.snapshot(timestamp=log.snapshot().timestamp_ms).version == log.snapshot().version
    assert deltalake.DeltaTable(str(tmp_path)).to_pyarrow_table().num_rows == 4
    fails("OPTIMIST_ROW_TRACKING_NEEDS_BACKFILL", log.alter.set_properties, {"mine": "1"})
    log.alter.unset_properties(["delta.enableRowTracking"])
    log.append(ROWS)
    assert log.count() == 5


@pytest.mark.parametrize("version", ["3.0", "3.0.0", "2.12", "v2"])
def test_no_file_is_written_in_a_format_of_parquet_that_is_not_known(tmp_path, version):
    log = foreign(tmp_path, **{"delta.parquet.format.version": version})
    assert fails(KIND, log.append, ROWS).fields["properties"]
    log.alter.set_properties({"delta.parquet.format.version": "2.12.0"})
    log.append(ROWS)


def test_a_mode_of_mapping_that_was_stored_with_blanks_is_read_and_mended(tmp_path):
    log = table(tmp_path, properties={"delta.columnMapping.mode": "NAME"})
    assert configuration(log)["delta.columnMapping.mode"] == "name"
    fails(
        "OPTIMIST_INVALID_TABLE_PROPERTY",
        log.alter.set_properties,
        {"delta.columnMapping.mode": " name "},
    )
    stored = {**configuration(log), "delta.columnMapping.mode": " NAME "}
    commit_metadata(log, configuration=stored)
    log = DeltaLog.for_path(str(tmp_path))
    assert log.to_arrow().num_rows == 3
    log.alter.set_properties({"delta.columnMapping.mode": "name"})
    assert configuration(log)["delta.columnMapping.mode"] == "name"


def test_true_false_and_whole_numbers_are_the_text_that_sql_makes_of_them(tmp_path):
    log = DeltaLog.for_path(str(tmp_path / "t"))
    given = {"delta.enableChangeDataFeed": True, "delta.checkpointInterval": 7}
    log.create([("id", "bigint")], properties=given)
    log.alter.set_properties({"delta.appendOnly": False, "mine": 12})
    assert log.snapshot().metadata.configuration == {
        "delta.enableChangeDataFeed": "true",
        "delta.checkpointInterval": "7",
        "delta.appendOnly": "false",
        "mine": "12",
    }


@pytest.mark.parametrize("odd", [1.5, None, ["x"], b"true"])
def test_a_property_of_another_type_is_refused_by_its_name(tmp_path, odd):
    log = DeltaLog.for_path(str(tmp_path / "t"))
    for call in (
        lambda: log.create([("id", "bigint")], properties={"mine": odd}),
        lambda: log.alter.set_properties({"mine": odd}),
    ):
        with pytest.raises(ArgumentTypeError, match="mine, must be text"):
            call()
        log.create([("id", "bigint")], mode="create_if_not_exists")
    assert log.snapshot().metadata.configuration == {}
