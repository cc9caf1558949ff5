from __future__ import annotations

import pytest

from optimist.core.protocol.actions import Metadata
from optimist.core.protocol.features import (
    FEATURES,
    Enablement,
    active_features,
    covers,
    feature_by_any_case,
    with_requirements,
)
from optimist.core.schema.types import (
    ArrayType,
    MapType,
    PrimitiveType,
    StructField,
    StructType,
    schema_to_json,
)

LONG = PrimitiveType("long")
NTZ = PrimitiveType("timestamp_ntz")


def metadata(*fields: StructField, **configuration: str) -> Metadata:
    schema = StructType(fields or (StructField("x", LONG),))
    names = {"delta." + key.replace("__", "."): value for key, value in configuration.items()}
    return Metadata("id", schema_to_json(schema), configuration=names)


def with_key(key: str, value: object = "1") -> Metadata:
    return metadata(StructField("x", LONG, True, {key: value}))


ACTIVATIONS = {
    "appendOnly": metadata(appendOnly="true"),
    "invariants": metadata(StructField("x", LONG, False)),
    "checkConstraints": metadata(constraints__c="x > 0"),
    "changeDataFeed": metadata(enableChangeDataFeed="true"),
    "generatedColumns": with_key("delta.generationExpression"),
    "columnMapping": metadata(columnMapping__mode="name"),
    "identityColumns": with_key("delta.identity.start", 1),
    "allowColumnDefaults": with_key("CURRENT_DEFAULT"),
    "rowTracking": metadata(enableRowTracking="true"),
    "icebergCompatV1": metadata(enableIcebergCompatV1="true"),
    "icebergCompatV2": metadata(enableIcebergCompatV2="true"),
    "icebergCompatV3": metadata(enableIcebergCompatV3="true"),
    "inCommitTimestamp": metadata(enableInCommitTimestamps="true"),
    "deletionVectors": metadata(enableDeletionVectors="true"),
    "timestampNtz": metadata(StructField("t", NTZ)),
    "v2Checkpoint": metadata(checkpointPolicy="v2"),
    "typeWidening": metadata(enableTypeWidening="true"),
    "variantType": metadata(StructField("v", PrimitiveType("variant"))),
    "variantShredding": metadata(enableVariantShredding="true"),
}


def test_plain_metadata_activates_nothing() -> None:
    assert active_features(metadata()) == frozenset()


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_metadata_activates_exactly_its_feature(name: str) -> None:
    assert active_features(ACTIVATIONS[name]) == {name}


def test_every_row_with_an_activation_rule_has_a_case() -> None:
    assert {row.name for row in FEATURES.values() if row.is_active is not None} == set(ACTIVATIONS)


@pytest.mark.parametrize(
    "data_type",
    [
        ArrayType(NTZ),
        MapType(PrimitiveType("string"), NTZ),
        MapType(NTZ, LONG),
        StructType((StructField("inner", ArrayType(NTZ)),)),
    ],
)
def test_nested_types_activate_features(data_type) -> None:
    assert active_features(metadata(StructField("x", data_type))) == {"timestampNtz"}


def test_invariant_in_field_metadata_counts_at_any_struct_depth() -> None:
    inner = StructField("y", LONG, True, {"delta.invariants": "{}"})
    assert active_features(metadata(StructField("x", StructType((inner,))))) == {"invariants"}


def test_not_null_below_an_array_can_not_be_enforced_and_activates_nothing() -> None:
    inner = StructType((StructField("y", LONG, False),))
    assert active_features(metadata(StructField("x", ArrayType(inner)))) == frozenset()


@pytest.mark.parametrize(
    "values",
    [
        {"appendOnly": "false"},
        {"columnMapping__mode": "none"},
        {"checkpointPolicy": "classic"},
        {"enableDeletionVectors": "perhaps"},
    ],
)
def test_property_that_is_off_activates_nothing(values) -> None:
    assert active_features(metadata(**values)) == frozenset()


def test_rows_are_consistent() -> None:
    for row in FEATURES.values():
        assert row.reader_writer or row.can_read, row.name
        assert set(row.requires) <= set(FEATURES), row.name
        assert row.can_read or not row.can_write, row.name
        assert (row.legacy_reader is None) or row.reader_writer, row.name


def test_automatic_features_have_a_rule_that_says_when() -> None:
    automatic = {r.name for r in FEATURES.values() if r.enablement is Enablement.AUTOMATIC}
    assert all(FEATURES[name].is_active is not None for name in automatic)


def test_requirements_are_followed_to_the_end() -> None:
    assert with_requirements(frozenset({"rowTracking"})) == {"rowTracking", "domainMetadata"}
    assert with_requirements(frozenset({"catalogManaged"})) == {
        "catalogManaged",
        "inCommitTimestamp",
        "vacuumProtocolCheck",
    }
    assert with_requirements(frozenset({"novel"})) == {"novel"}


def test_preview_name_covers_the_feature() -> None:
    assert covers(frozenset({"typeWidening-preview"}), "typeWidening")
    assert not covers(frozenset({"typeWidening"}), "typeWidening-preview")


def test_requirement_that_two_features_share_is_taken_once() -> None:
    both = with_requirements(frozenset({"rowTracking", "clustering"}))
    assert both == {"rowTracking", "clustering", "domainMetadata"}


def test_field_metadata_inside_maps_activates_features() -> None:
    inner = StructType((StructField("y", LONG, True, {"CURRENT_DEFAULT": "1"}),))
    for data_type in (MapType(inner, LONG), MapType(LONG, inner)):
        assert active_features(metadata(StructField("x", data_type))) == {"allowColumnDefaults"}


def test_feature_is_found_in_any_case_only_where_asked() -> None:
    assert feature_by_any_case("DELETIONVECTORS") is FEATURES["deletionVectors"]
    assert feature_by_any_case("nonsense") is None
    assert "deletionvectors" not in FEATURES
