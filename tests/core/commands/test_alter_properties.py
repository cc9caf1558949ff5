"""Properties and the protocol of a table, changed without Spark."""

from __future__ import annotations

import pyarrow as pa
import pytest
from deltalake import DeltaTable as OtherTable

from altered_tables import MAPPED, configuration, said, table
from optimist.core import DeltaLog
from optimist.core.errors import ConfigError, TableNotFoundError
from optimist.core.protocol.gates import supports
from refusals import fails


def test_properties_are_set_in_their_canonical_spelling_and_unset_in_any(tmp_path):
    log = table(tmp_path)
    log.alter.set_properties({"delta.APPENDONLY": "true", "Own": "1", "comment": "of tests"})
    assert said(log) == (
        "SET TBLPROPERTIES",
        {"properties": {"delta.appendOnly": "true", "Own": "1", "comment": "of tests"}},
    )
    assert configuration(log) == {"delta.appendOnly": "true", "Own": "1"}
    assert log.metadata.description == "of tests"

    log.alter.unset_properties(["delta.appendonly", "comment"])
    assert said(log) == (
        "UNSET TBLPROPERTIES",
        {"properties": ["delta.appendOnly", "comment"], "ifExists": False},
    )
    assert configuration(log) == {"Own": "1"}
    assert log.metadata.description is None


def test_a_property_that_is_not_there_is_unset_only_if_that_is_allowed(tmp_path):
    log = table(tmp_path)
    error = fails("DELTA_UNSET_NON_EXISTENT_PROPERTY", log.alter.unset_properties, ["own"])
    assert isinstance(error, ConfigError)
    assert error.fields["property"] == "own"
    fails("DELTA_UNSET_NON_EXISTENT_PROPERTY", log.alter.unset_properties, ["comment"])
    assert log.snapshot().version == 0
    assert log.alter.unset_properties(["own", "comment"], if_exists=True).version == 1


@pytest.mark.parametrize(
    ("properties", "kind"),
    [
        ({"delta.constraints.c": "id > 0"}, "DELTA_ADD_CONSTRAINTS"),
        ({"location": "/elsewhere"}, "DELTA_CANNOT_CHANGE_LOCATION"),
        ({"Provider": "parquet"}, "DELTA_CANNOT_CHANGE_PROVIDER"),
        ({"clusteringColumns": "id"}, "DELTA_CANNOT_MODIFY_TABLE_PROPERTY"),
        ({"delta.columnMapping.maxColumnId": "9"}, "DELTA_CANNOT_MODIFY_TABLE_PROPERTY"),
        (
            {"delta.feature.clustering": "supported"},
            "DELTA_ALTER_TABLE_SET_CLUSTERING_TABLE_FEATURE_NOT_ALLOWED",
        ),
        ({"delta.nonsense": "1"}, "DELTA_UNKNOWN_CONFIGURATION"),
        ({"delta.appendOnly": "perhaps"}, "OPTIMIST_INVALID_TABLE_PROPERTY"),
        ({"delta.feature.nonsense": "supported"}, "DELTA_UNSUPPORTED_FEATURES_IN_CONFIG"),
        ({"delta.columnMapping.mode": "id"}, "DELTA_UNSUPPORTED_COLUMN_MAPPING_MODE_CHANGE"),
        ({"delta.enableIcebergCompatV2": "true"}, "DELTA_UNSUPPORTED_FEATURES_FOR_WRITE"),
    ],
)
def test_what_is_no_property_of_users_is_refused_by_name(tmp_path, properties, kind):
    log = table(tmp_path)
    fails(kind, log.alter.set_properties, properties)
    assert log.snapshot().version == 0


def test_the_engines_own_properties_are_not_unset(tmp_path):
    log = table(tmp_path, properties=MAPPED)
    key = "delta.columnMapping.maxColumnId"
    fails("DELTA_CANNOT_MODIFY_TABLE_PROPERTY", log.alter.unset_properties, [key])
    kind = "DELTA_UNSUPPORTED_COLUMN_MAPPING_MODE_CHANGE"
    fails(kind, log.alter.unset_properties, ["delta.columnMapping.mode"])


@pytest.mark.parametrize(
    ("properties", "feature"),
    [
        ({"delta.enableDeletionVectors": "true"}, "deletionVectors"),
        ({"delta.enableChangeDataFeed": "true"}, "changeDataFeed"),
        ({"delta.checkpointPolicy": "v2"}, "v2Checkpoint"),
        ({"delta.enableInCommitTimestamps": "true"}, "inCommitTimestamp"),
        ({"delta.enableTypeWidening": "true"}, "typeWidening"),
        (MAPPED, "columnMapping"),
        ({"delta.feature.allowColumnDefaults": "supported"}, "allowColumnDefaults"),
        ({"delta.feature.rowTracking": "enabled"}, "domainMetadata"),
    ],
)
def test_properties_bring_the_features_that_they_need(tmp_path, properties, feature):
    log = table(tmp_path)
    assert not supports(log.protocol, feature)
    log.alter.set_properties(properties)
    assert supports(log.protocol, feature)
    assert not any("feature" in key for key in configuration(log))
    log.append(pa.table({"id": [4], "s": ["d"]}))
    assert log.count() == 4


def test_mapping_keeps_the_names_in_files_that_are_there(tmp_path):
    log = table(tmp_path, partition_by=["s"])
    log.alter.set_properties(MAPPED)
    assert [item.physical_name for item in log.snapshot().schema] == ["id", "s"]
    log.append(pa.table({"id": [4], "s": ["d"]}))
    assert sorted(log.to_arrow()["id"].to_pylist()) == [1, 2, 3, 4]
    assert OtherTable(str(tmp_path)).count() == 4


def test_the_protocol_is_upgraded_and_never_downgraded(tmp_path):
    log = table(tmp_path)
    log.alter.upgrade_protocol(2, 5)
    assert (log.protocol.min_reader_version, log.protocol.min_writer_version) == (2, 5)
    assert said(log)[0] == "SET TBLPROPERTIES"
    log.alter.upgrade_protocol(1, 2)
    assert (log.protocol.min_reader_version, log.protocol.min_writer_version) == (2, 5)
    fails("OPTIMIST_INVALID_TABLE_PROPERTY", log.alter.upgrade_protocol, 4, 7)
    log.alter.add_feature("deletionvectors")
    assert supports(log.protocol, "deletionVectors")
    assert configuration(log) == {}


OF_2_5 = "appendOnly changeDataFeed checkConstraints columnMapping generatedColumns invariants"


@pytest.mark.parametrize(
    ("before", "asked", "after", "features"),
    [
        ("", (1, 2), (1, 2), ""),
        ("", (1, 1), (1, 2), ""),
        ("", (2, 2), (1, 2), ""),
        ("", (1, 7), (1, 2), ""),
        ("old", (1, 4), (2, 5), ""),
        ("old", (3, 7), (2, 5), ""),
        ("old", (2, 6), (2, 6), ""),
        ("deletionVectors", (2, 5), (3, 7), "deletionVectors " + OF_2_5),
        ("deletionVectors", (1, 2), (3, 7), "appendOnly deletionVectors invariants"),
        ("deletionVectors", (1, 7), (3, 7), "appendOnly deletionVectors invariants"),
        ("domainMetadata", (2, 5), (2, 7), "domainMetadata " + OF_2_5),
        ("domainMetadata", (1, 2), (1, 7), "appendOnly domainMetadata invariants"),
    ],
)
def test_versions_add_their_features_and_take_none_away(tmp_path, before, asked, after, features):
    """As delta-spark 4.4.0 answered, asked for each of these on a table made so."""
    log = table(tmp_path)
    if before == "old":
        log.alter.upgrade_protocol(2, 5)
    elif before:
        log.alter.add_feature(before)
    log.alter.upgrade_protocol(*asked)
    protocol = log.protocol
    assert (protocol.min_reader_version, protocol.min_writer_version) == after
    assert set(protocol.writer_features or ()) == set(features.split())


def test_there_must_be_a_table(tmp_path):
    with pytest.raises(TableNotFoundError):
        DeltaLog.for_path(str(tmp_path)).alter.set_comment("of nothing")
