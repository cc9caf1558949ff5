from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from optimist.core.errors import ConfigError, ProtocolError, TableError
from optimist.core.options.engine import EngineOptions
from optimist.core.protocol.actions import Metadata, Protocol
from optimist.core.protocol.features import FEATURES
from optimist.core.protocol.gates import (
    ensure_features_listed,
    ensure_readable,
    ensure_upgrade_allowed,
    ensure_well_formed,
    ensure_writable,
    implied_features,
    merge,
    normalize,
    protocol_for_existing,
    protocol_for_new_table,
    requested_protocol,
    supports,
)
from optimist.core.schema.types import PrimitiveType, StructField, StructType, schema_to_json

PLACE = {"table_path": "/data/flights", "version": 12}
LEGACY = [Protocol(1, w) for w in (1, 2, 3, 4, 5, 6)] + [Protocol(2, w) for w in (1, 2, 5, 6)]


def metadata(*fields: StructField, **configuration: str) -> Metadata:
    schema = StructType(fields or (StructField("x", PrimitiveType("long")),))
    names = {"delta." + key.replace("__", "."): value for key, value in configuration.items()}
    return Metadata("id", schema_to_json(schema), configuration=names)


PLAIN = metadata()
MAPPED = metadata(columnMapping__mode="name")
IDENTITY = metadata(StructField("x", PrimitiveType("long"), True, {"delta.identity.start": 1}))
NTZ = metadata(StructField("t", PrimitiveType("timestamp_ntz")))


def writer_only(*names: str) -> Protocol:
    return Protocol(1, 7, None, names)


def reader_writer(*names: str) -> Protocol:
    return Protocol(3, 7, names, names)


# The gates


@pytest.mark.parametrize("protocol", LEGACY)
def test_every_legacy_version_is_open_while_its_features_are_unused(protocol: Protocol) -> None:
    ensure_writable(protocol, PLAIN, **PLACE)


@pytest.mark.parametrize(
    "protocol",
    [
        writer_only(),
        writer_only("appendOnly", "invariants", "checkConstraints", "generatedColumns"),
        writer_only("changeDataFeed", "rowTracking", "domainMetadata", "inCommitTimestamp"),
        writer_only("allowColumnDefaults", "clustering", "checkpointProtection"),
        reader_writer("timestampNtz"),
        reader_writer("vacuumProtocolCheck"),
        reader_writer("typeWidening", "typeWidening-preview"),
        reader_writer("variantType", "variantShredding"),
        Protocol(2, 7, None, ("columnMapping", "identityColumns")),
        Protocol(3, 7, ("columnMapping",), ("columnMapping", "identityColumns")),
    ],
)
def test_features_that_are_there_or_harmless_are_writable(protocol: Protocol) -> None:
    ensure_writable(protocol, PLAIN, **PLACE)


@pytest.mark.parametrize(
    "name",
    sorted(row.name for row in FEATURES.values() if not row.can_read),
)
def test_listed_feature_that_can_not_be_read_is_refused_by_name(name: str) -> None:
    with pytest.raises(ProtocolError) as caught:
        ensure_readable(reader_writer(name), PLAIN, **PLACE)
    assert caught.value.kind == "DELTA_UNSUPPORTED_FEATURES_FOR_READ"
    assert caught.value.fields["unsupported"] == (name,)
    assert name in str(caught.value)
    assert "/data/flights at version 12 (reader version 3, writer version 7" in str(caught.value)


@pytest.mark.parametrize(
    "protocol",
    [
        writer_only("icebergCompatV1"),
        writer_only("icebergCompatV2"),
    ],
)
def test_listed_feature_that_can_only_be_read_is_refused_for_writing(protocol: Protocol) -> None:
    (name,) = protocol.writer_features
    ensure_readable(protocol, PLAIN, **PLACE)
    with pytest.raises(ProtocolError) as caught:
        ensure_writable(protocol, PLAIN, **PLACE)
    assert caught.value.kind == "DELTA_UNSUPPORTED_FEATURES_FOR_WRITE"
    assert caught.value.fields["unsupported"] == (name,)


def test_vectors_of_deleted_rows_hinder_neither_reading_nor_writing() -> None:
    ensure_writable(reader_writer("deletionVectors"), PLAIN, **PLACE)
    ensure_writable(
        reader_writer("deletionVectors"), metadata(enableDeletionVectors="true"), **PLACE
    )


def test_unknown_reader_features_are_listed_sorted() -> None:
    with pytest.raises(ProtocolError) as caught:
        ensure_readable(reader_writer("zeta", "timestampNtz", "alpha"), PLAIN, **PLACE)
    assert caught.value.kind == "DELTA_UNSUPPORTED_FEATURES_FOR_READ"
    assert caught.value.fields["unsupported"] == ("alpha", "zeta")


def test_unknown_reader_feature_is_named_before_the_schema_is_looked_at() -> None:
    strange = Metadata("id", '{"type":"struct","fields":[{"name":"g","type":"geometry(4326)"}]}')
    with pytest.raises(ProtocolError) as caught:
        ensure_readable(reader_writer("geospatial"), strange, **PLACE)
    assert caught.value.fields["unsupported"] == ("geospatial",)


def test_unknown_writer_feature_does_not_hinder_reading() -> None:
    protocol = writer_only("novel")
    ensure_readable(protocol, PLAIN, **PLACE)
    with pytest.raises(ProtocolError) as caught:
        ensure_writable(protocol, PLAIN, **PLACE)
    assert caught.value.kind == "DELTA_UNSUPPORTED_FEATURES_FOR_WRITE"
    assert caught.value.fields["unsupported"] == ("novel",)


def test_feature_names_are_compared_to_the_letter() -> None:
    with pytest.raises(ProtocolError) as caught:
        ensure_writable(writer_only("appendonly"), PLAIN, **PLACE)
    assert caught.value.fields["unsupported"] == ("appendonly",)


@pytest.mark.parametrize(
    "protocol",
    [
        Protocol(2, 5),
        Protocol(2, 6),
        Protocol(2, 7, None, ("columnMapping",)),
        reader_writer("columnMapping"),
        Protocol(3, 7, (), ("columnMapping",)),
    ],
)
def test_table_with_column_mapping_in_use_is_read_and_written(protocol) -> None:
    ensure_readable(protocol, MAPPED, **PLACE)
    ensure_writable(protocol, MAPPED, **PLACE)


@pytest.mark.parametrize("writer", [1, 2, 5, 6])
@pytest.mark.parametrize("mode", ["name", "id"])
def test_table_that_is_mapped_below_reader_version_2_is_read_if_its_names_are_the_same(
    writer: int, mode: str
) -> None:
    named = {"delta.columnMapping.id": 1, "delta.columnMapping.physicalName": "x"}
    same = {"id": {}, "name": named}
    other = {"id": named, "name": {**named, "delta.columnMapping.physicalName": "col-1"}}
    for keys, is_readable in ((same[mode], True), (other[mode], False)):
        field = StructField("s", StructType((StructField("x", PrimitiveType("long"), True, keys),)))
        used = metadata(field, columnMapping__mode=mode)
        gates = [ensure_writable] if is_readable else [ensure_readable, ensure_writable]
        if is_readable:
            ensure_readable(Protocol(1, writer), used, **PLACE)
        for gate in gates:
            with pytest.raises(ProtocolError) as caught:
                gate(Protocol(1, writer), used, **PLACE)
            assert caught.value.kind == "DELTA_FEATURES_PROTOCOL_METADATA_MISMATCH"
            assert caught.value.fields["missing"] == ("columnMapping",)


def test_mode_of_mapping_that_does_not_parse_stops_readers_where_names_differ() -> None:
    keys = {"delta.columnMapping.id": 1, "delta.columnMapping.physicalName": "col-1"}
    field = StructField("x", PrimitiveType("long"), True, keys)
    ensure_readable(Protocol(2, 5), metadata(columnMapping__mode="names"), **PLACE)
    with pytest.raises(TableError) as caught:
        ensure_readable(Protocol(2, 5), metadata(field, columnMapping__mode="names"), **PLACE)
    assert caught.value.kind == "OPTIMIST_MALFORMED_TABLE_PROPERTY"
    assert caught.value.fields["properties"] == {"delta.columnMapping.mode": "names"}


@pytest.mark.parametrize("protocol", [Protocol(1, 6), writer_only("identityColumns")])
def test_table_with_identity_columns_is_written(protocol: Protocol) -> None:
    ensure_writable(protocol, IDENTITY, **PLACE)


@pytest.mark.parametrize("formats", ["hudi", "iceberg, hudi"])
def test_table_that_is_kept_in_other_formats_is_read_but_not_written(formats: str) -> None:
    configuration = {"delta.universalFormat.enabledFormats": formats}
    kept = replace(PLAIN, configuration=configuration)
    ensure_readable(Protocol(1, 2), kept, **PLACE)
    with pytest.raises(ProtocolError) as caught:
        ensure_writable(Protocol(1, 2), kept, **PLACE)
    assert caught.value.kind == "DELTA_UNIVERSAL_FORMAT_VIOLATION"
    assert ", ".join(caught.value.fields["formats"]) == formats
    none = dict.fromkeys(configuration, "")
    ensure_writable(Protocol(1, 2), replace(kept, configuration=none), **PLACE)


def test_without_metadata_listed_features_count_as_used_and_implied_ones_as_unused() -> None:
    ensure_writable(Protocol(2, 6), None, **PLACE)
    with pytest.raises(ProtocolError) as caught:
        ensure_writable(writer_only("icebergCompatV1"), None, **PLACE)
    assert caught.value.fields["unsupported"] == ("icebergCompatV1",)


def test_reader_version_of_the_future_is_refused_with_both_sides_versions() -> None:
    with pytest.raises(ProtocolError) as caught:
        ensure_readable(Protocol(4, 7, ("a",), ("a",)), PLAIN, **PLACE)
    assert caught.value.kind == "DELTA_INVALID_PROTOCOL_VERSION"
    assert caught.value.fields["reader_version"] == 4
    assert caught.value.fields["supported_reader_versions"] == (1, 2, 3)
    assert "reader version 4" in str(caught.value)


@pytest.mark.parametrize(
    "protocol",
    [
        Protocol(1, 8),
        Protocol(1, 8, None, ("a",)),
        Protocol(2, 9),
        Protocol(3, 8, ("timestampNtz",), ("timestampNtz", "a")),
        Protocol(3, 8, ("timestampNtz",), None),
    ],
)
def test_writer_version_of_the_future_may_be_read_but_not_written(protocol) -> None:
    ensure_readable(protocol, PLAIN, **PLACE)
    with pytest.raises(ProtocolError) as caught:
        ensure_writable(protocol, PLAIN, **PLACE)
    assert caught.value.kind == "DELTA_INVALID_PROTOCOL_VERSION"
    assert caught.value.fields["writer_version"] == protocol.min_writer_version
    assert "needs a newer engine" in str(caught.value)


@pytest.mark.parametrize(
    ("protocol", "kind"),
    [
        (Protocol(3, 6, ("timestampNtz",), None), "DELTA_READ_FEATURE_PROTOCOL_REQUIRES_WRITE"),
        (Protocol(2, 7, ("timestampNtz",), ("timestampNtz",)), "DELTA_INVALID_PROTOCOL_VERSION"),
        (Protocol(1, 6, None, ("appendOnly",)), "DELTA_INVALID_PROTOCOL_VERSION"),
        (Protocol(3, 7, None, ("appendOnly",)), "DELTA_INVALID_PROTOCOL_VERSION"),
        (Protocol(1, 7, None, None), "DELTA_INVALID_PROTOCOL_VERSION"),
        (Protocol(0, 2), "DELTA_INVALID_PROTOCOL_VERSION"),
        (Protocol(1, -1), "DELTA_INVALID_PROTOCOL_VERSION"),
        (Protocol(1, 7, None, ("columnMapping",)), "DELTA_INVALID_PROTOCOL_VERSION"),
        (Protocol(2, 7, None, ("deletionVectors",)), "DELTA_INVALID_PROTOCOL_VERSION"),
        (Protocol(3, 7, (), ("deletionVectors",)), "DELTA_INVALID_PROTOCOL_VERSION"),
        (Protocol(3, 7, ("columnMapping",), ()), "DELTA_INVALID_PROTOCOL_VERSION"),
        (Protocol(3, 7, ("timestampNtz",), ("appendOnly",)), "DELTA_INVALID_PROTOCOL_VERSION"),
        (Protocol(3, 7, ("novel",), ("appendOnly",)), "DELTA_INVALID_PROTOCOL_VERSION"),
    ],
)
def test_versions_and_lists_that_do_not_go_together_are_refused(protocol, kind) -> None:
    for gate in (lambda: ensure_well_formed(protocol, **PLACE), lambda: _read(protocol)):
        with pytest.raises(ProtocolError) as caught:
            gate()
        assert caught.value.kind == kind
        assert caught.value.fields["table_path"] == "/data/flights"
        assert caught.value.fields["version"] == 12


def _read(protocol: Protocol) -> None:
    ensure_readable(protocol, PLAIN, **PLACE)


# Sets of features


@pytest.mark.parametrize(
    ("protocol", "features"),
    [
        (Protocol(1, 1), set()),
        (Protocol(1, 2), {"appendOnly", "invariants"}),
        (Protocol(1, 3), {"appendOnly", "invariants", "checkConstraints"}),
        (Protocol(2, 4), implied_features(Protocol(1, 4))),
        (Protocol(1, 5), implied_features(Protocol(1, 4))),
        (Protocol(2, 5), implied_features(Protocol(1, 4)) | {"columnMapping"}),
        (Protocol(2, 6), implied_features(Protocol(2, 5)) | {"identityColumns"}),
        (Protocol(2, 7, None, ("appendOnly",)), {"appendOnly", "columnMapping"}),
        (Protocol(3, 7, ("timestampNtz",), ("timestampNtz",)), {"timestampNtz"}),
    ],
)
def test_protocol_stands_for_a_set_of_features(protocol, features) -> None:
    assert implied_features(protocol) == features


def test_supports_looks_at_lists_and_versions() -> None:
    assert supports(Protocol(1, 2), "appendOnly")
    assert not supports(Protocol(1, 1), "appendOnly")
    assert supports(writer_only("rowTracking"), "rowTracking")
    assert not supports(writer_only("rowTracking"), "appendOnly")


@pytest.mark.parametrize(
    ("features", "expected"),
    [
        (set(), Protocol(1, 1)),
        ({"appendOnly", "invariants"}, Protocol(1, 2)),
        ({"appendOnly", "invariants", "checkConstraints"}, Protocol(1, 3)),
        ({"appendOnly"}, writer_only("appendOnly")),
        ({"columnMapping"}, Protocol(2, 7, None, ("columnMapping",))),
        (
            {"timestampNtz", "appendOnly"},
            Protocol(3, 7, ("timestampNtz",), ("appendOnly", "timestampNtz")),
        ),
        (
            {"appendOnly", "invariants", "changeDataFeed"},
            writer_only("appendOnly", "changeDataFeed", "invariants"),
        ),
    ],
)
def test_normalize_finds_the_weakest_spelling(features, expected) -> None:
    assert normalize(features) == expected


_feature_sets = st.frozensets(st.sampled_from(sorted(FEATURES)), max_size=8)


@given(_feature_sets)
def test_normalized_protocol_has_exactly_the_features_and_is_well_formed(features) -> None:
    protocol = normalize(features)
    assert implied_features(protocol) == features
    ensure_well_formed(protocol, **PLACE)


@given(_feature_sets, _feature_sets)
def test_merge_is_the_union_and_an_upgrade_of_both(first, second) -> None:
    merged = merge(normalize(first), normalize(second))
    assert implied_features(merged) == first | second
    ensure_upgrade_allowed(normalize(first), merged)
    ensure_upgrade_allowed(normalize(second), merged)


@given(_feature_sets, _feature_sets)
def test_upgrade_is_allowed_exactly_if_no_feature_is_lost(old, new) -> None:
    if old <= new:
        ensure_upgrade_allowed(normalize(old), normalize(new))
    else:
        with pytest.raises(ProtocolError):
            ensure_upgrade_allowed(normalize(old), normalize(new))


def test_merge_that_adds_nothing_leaves_the_spelling_alone() -> None:
    odd = Protocol(2, 7, None, ("invariants", "appendOnly", "columnMapping"))
    assert merge(odd, Protocol(1, 2)) is odd


def test_crossing_to_lists_writes_out_what_the_versions_implied() -> None:
    assert merge(Protocol(2, 5), normalize({"rowTracking", "domainMetadata"})) == Protocol(
        2,
        7,
        None,
        (
            "appendOnly",
            "changeDataFeed",
            "checkConstraints",
            "columnMapping",
            "domainMetadata",
            "generatedColumns",
            "invariants",
            "rowTracking",
        ),
    )


def test_downgrade_is_refused_and_says_what_would_be_lost() -> None:
    with pytest.raises(ProtocolError) as caught:
        ensure_upgrade_allowed(Protocol(1, 3), Protocol(1, 2))
    assert caught.value.kind == "DELTA_INVALID_PROTOCOL_DOWNGRADE"
    assert caught.value.fields["lost"] == ("checkConstraints",)
    assert caught.value.fields["old_versions"] == (1, 3)
    assert caught.value.fields["new_versions"] == (1, 2)


def test_versions_below_one_are_refused_even_if_nothing_is_lost() -> None:
    with pytest.raises(ProtocolError) as caught:
        ensure_upgrade_allowed(Protocol(1, 1), Protocol(1, 0))
    assert caught.value.kind == "DELTA_INVALID_PROTOCOL_DOWNGRADE"


def test_lower_versions_that_keep_all_features_are_allowed() -> None:
    ensure_upgrade_allowed(writer_only("appendOnly", "invariants"), Protocol(1, 2))


# What metadata needs


def test_lists_must_name_what_the_metadata_uses() -> None:
    with pytest.raises(ProtocolError) as caught:
        ensure_features_listed(
            writer_only("invariants"), metadata(appendOnly="true"), **PLACE, to_write=True
        )
    assert "/data/flights at version 12 (reader version 1, writer version 7" in str(caught.value)
    assert caught.value.kind == "DELTA_FEATURES_PROTOCOL_METADATA_MISMATCH"
    assert caught.value.fields["missing"] == ("appendOnly",)


def test_lists_without_what_concerns_writers_alone_are_readable() -> None:
    ensure_features_listed(writer_only("invariants"), metadata(appendOnly="true"), **PLACE)
    with pytest.raises(ProtocolError) as caught:
        ensure_features_listed(reader_writer("timestampNtz"), MAPPED, **PLACE)
    assert caught.value.fields["missing"] == ("columnMapping",)
    assert "Nothing was read" in str(caught.value)


@pytest.mark.parametrize(
    ("protocol", "used"),
    [
        (Protocol(1, 1), metadata(appendOnly="true")),
        (writer_only("appendOnly"), metadata(appendOnly="true")),
        (reader_writer("typeWidening-preview"), metadata(enableTypeWidening="true")),
    ],
)
def test_legacy_versions_and_complete_lists_pass(protocol, used) -> None:
    ensure_features_listed(protocol, used, **PLACE, to_write=True)


@pytest.mark.parametrize(
    ("configuration", "fields", "expected"),
    [
        ({}, (), Protocol(1, 2)),
        ({"delta.appendOnly": "true"}, (), Protocol(1, 2)),
        (
            {"delta.enableChangeDataFeed": "true"},
            (),
            writer_only("appendOnly", "changeDataFeed", "invariants"),
        ),
        ({"delta.minWriterVersion": "4"}, (), Protocol(1, 4)),
        ({"delta.minReaderVersion": "3", "delta.minWriterVersion": "7"}, (), Protocol(1, 2)),
        ({"delta.minReaderVersion": "1", "delta.minWriterVersion": "1"}, (), Protocol(1, 2)),
        ({"delta.ignoreProtocolDefaults": "true"}, (), Protocol(1, 1)),
        (
            {"delta.feature.rowTracking": "supported"},
            (),
            writer_only("appendOnly", "domainMetadata", "invariants", "rowTracking"),
        ),
        (
            {},
            (StructField("t", PrimitiveType("timestamp_ntz")),),
            Protocol(3, 7, ("timestampNtz",), ("appendOnly", "invariants", "timestampNtz")),
        ),
    ],
)
def test_new_table_gets_the_weakest_protocol_that_serves(configuration, fields, expected) -> None:
    wanted = Metadata("id", metadata(*fields).schema_string, configuration=configuration)
    assert protocol_for_new_table(configuration, wanted, EngineOptions()) == expected


def test_session_defaults_ask_for_more_unless_they_are_ignored() -> None:
    defaults = {"delta.minWriterVersion": "3", "delta.feature.inCommitTimestamp": "supported"}
    options = EngineOptions(property_defaults=defaults)
    assert protocol_for_new_table({}, PLAIN, options) == writer_only(
        "appendOnly", "checkConstraints", "inCommitTimestamp", "invariants"
    )
    ignoring = {"delta.ignoreProtocolDefaults": "true"}
    assert protocol_for_new_table(ignoring, PLAIN, options) == Protocol(1, 1)


def test_flag_to_ignore_defaults_must_be_a_boolean() -> None:
    with pytest.raises(ConfigError) as caught:
        protocol_for_new_table({"delta.ignoreProtocolDefaults": "x"}, PLAIN, EngineOptions())
    assert caught.value.kind == "OPTIMIST_INVALID_TABLE_PROPERTY"


def test_existing_table_keeps_its_protocol_if_nothing_is_missing() -> None:
    current = Protocol(1, 4)
    assert protocol_for_existing(current, metadata(enableChangeDataFeed="true")) is current


def test_automatic_features_are_added_to_an_existing_table() -> None:
    grown = protocol_for_existing(Protocol(1, 2), metadata(enableRowTracking="true"))
    assert grown == writer_only("appendOnly", "domainMetadata", "invariants", "rowTracking")


def test_feature_that_locks_old_readers_out_must_be_asked_for_on_an_existing_table() -> None:
    with pytest.raises(ProtocolError) as caught:
        protocol_for_existing(Protocol(1, 2), NTZ)
    assert caught.value.kind == "DELTA_FEATURES_REQUIRE_MANUAL_ENABLEMENT"
    assert caught.value.fields["features"] == ("timestampNtz",)
    assert "delta.feature.timestampNtz = 'supported'" in str(caught.value)


def test_preview_feature_satisfies_its_activation_on_an_existing_table() -> None:
    current = reader_writer("typeWidening-preview")
    assert protocol_for_existing(current, metadata(enableTypeWidening="true")) is current


# Requests


@pytest.mark.parametrize("status", ["supported", "enabled", "SUPPORTED"])
def test_feature_is_requested_in_any_case(status: str) -> None:
    asked = requested_protocol({"DELTA.feature.DELETIONVECTORS": status})
    assert asked == reader_writer("deletionVectors")


def test_unknown_feature_in_the_configuration_is_refused() -> None:
    with pytest.raises(ConfigError) as caught:
        requested_protocol({"delta.feature.teleport": "supported"})
    assert caught.value.kind == "DELTA_UNSUPPORTED_FEATURES_IN_CONFIG"
    assert caught.value.fields["feature"] == "teleport"


@pytest.mark.parametrize(
    ("is_new_table", "verb"), [(True, "CREATE"), (False, "ALTER")], ids=["new", "existing"]
)
def test_clustering_is_not_a_matter_of_properties(is_new_table: bool, verb: str) -> None:
    with pytest.raises(ConfigError) as caught:
        requested_protocol({"delta.feature.CLUSTERING": "supported"}, is_new_table=is_new_table)
    assert caught.value.kind == (f"DELTA_{verb}_TABLE_SET_CLUSTERING_TABLE_FEATURE_NOT_ALLOWED")


@pytest.mark.parametrize("status", ["disabled", "", "true"])
def test_feature_status_other_than_supported_is_refused(status: str) -> None:
    with pytest.raises(ConfigError) as caught:
        requested_protocol({"delta.feature.rowTracking": status})
    assert caught.value.kind == "DELTA_UNSUPPORTED_FEATURE_STATUS"
    assert caught.value.fields["feature"] == "rowTracking"
    assert caught.value.fields["status"] == status


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("delta.minReaderVersion", "0"),
        ("delta.minReaderVersion", "4"),
        ("delta.minWriterVersion", "8"),
        ("delta.minWriterVersion", "seven"),
    ],
)
def test_requested_version_out_of_range_is_refused(key: str, value: str) -> None:
    with pytest.raises(ConfigError) as caught:
        requested_protocol({key: value})
    assert caught.value.kind == "OPTIMIST_INVALID_TABLE_PROPERTY"
    assert caught.value.fields["property"] == key
