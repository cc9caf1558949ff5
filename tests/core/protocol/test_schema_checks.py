from __future__ import annotations

from dataclasses import replace

import pytest

from optimist.core.errors import ConfigError, SchemaError
from optimist.core.options.engine import EngineOptions
from optimist.core.protocol.actions import Metadata, Protocol
from optimist.core.protocol.schema_checks import (
    ensure_no_cdc_columns,
    ensure_no_duplicate_columns,
    verify_new_metadata,
)
from optimist.core.schema.types import (
    ArrayType,
    DecimalType,
    MapType,
    PrimitiveType,
    StructField,
    StructType,
    schema_to_json,
    walk_fields,
)

LONG, STRING, DATE = PrimitiveType("long"), PrimitiveType("string"), PrimitiveType("date")
LEGACY = Protocol(1, 2)
CDF = {"delta.enableChangeDataFeed": "true"}


def field(name: str, data_type=LONG, **metadata) -> StructField:
    return StructField(name, data_type, True, metadata)


def struct(*items) -> StructType:
    return StructType(tuple(field(item) if isinstance(item, str) else item for item in items))


def metadata(schema: StructType, *, by=(), configuration=None, **rest) -> Metadata:
    return Metadata(
        "id",
        schema_to_json(schema),
        partition_columns=tuple(by),
        configuration=configuration or {},
        **rest,
    )


def refusal(wanted: Metadata, protocol=LEGACY, previous=None, **options) -> SchemaError:
    with pytest.raises(SchemaError) as caught:
        verify_new_metadata(wanted, protocol, EngineOptions(**options), previous=previous)
    assert "Nothing was written." in str(caught.value)
    return caught.value


def accept(wanted: Metadata, protocol=LEGACY, previous=None, **options) -> None:
    verify_new_metadata(wanted, protocol, EngineOptions(**options), previous=previous)


def test_ordinary_metadata_passes() -> None:
    accept(metadata(struct("id", field("day", DATE)), by=["day"], configuration=CDF))


# Names


@pytest.mark.parametrize(
    ("schema", "columns"),
    [
        (struct("a", "A"), ("A",)),
        (struct("a", field("s", struct("x", "y", "X"))), ("s.X",)),
        (struct(field("l", ArrayType(struct("x", "X")))), ("l.element.X",)),
        (struct(field("m", MapType(struct("k", "K"), struct("v", "V")))), ("m.key.K", "m.value.V")),
    ],
)
def test_names_that_differ_only_in_case_are_refused_at_any_depth(schema, columns) -> None:
    error = refusal(metadata(schema))
    assert error.kind == "DELTA_DUPLICATE_COLUMNS_FOUND"
    assert error.fields["columns"] == columns


def test_same_name_in_two_structs_is_no_duplicate() -> None:
    accept(metadata(struct("a", field("s", struct("a")), field("t", struct("a")))))


def test_duplicates_are_named_with_the_kind_and_place_asked_for() -> None:
    with pytest.raises(SchemaError) as caught:
        ensure_no_duplicate_columns(struct("a", "A"), kind="K", where="the data to write")
    assert caught.value.kind == "K"
    assert "the data to write" in str(caught.value)


@pytest.mark.parametrize("character", list(" ,;{}()\n\t="))
def test_illegal_character_in_a_column_name_is_refused(character: str) -> None:
    error = refusal(metadata(struct("ok", f"a{character}b")))
    assert error.kind == "DELTA_INVALID_CHARACTERS_IN_COLUMN_NAMES"
    assert error.fields["columns"] == (f"a{character}b",)


def test_illegal_character_in_a_nested_name_is_refused_by_path() -> None:
    error = refusal(metadata(struct(field("s", ArrayType(struct("a b"))))))
    assert error.kind == "DELTA_INVALID_CHARACTERS_IN_COLUMN_NAMES"
    assert error.fields["columns"] == ("s.element.a b",)


def test_column_mapping_allows_any_character() -> None:
    mapping = {"delta.columnMapping.id": 1, "delta.columnMapping.physicalName": "col-1"}
    column = StructField("a b", PrimitiveType("long"), metadata=mapping)
    accept(metadata(struct(column), configuration={"delta.columnMapping.mode": "name"}))


def test_illegal_partition_column_name_is_refused_unless_the_check_is_off() -> None:
    wanted = metadata(struct("x", "a b"), by=["a b"])
    error = refusal(wanted)
    assert error.kind == "DELTA_INVALID_PARTITION_COLUMN_NAME"
    assert error.fields["columns"] == ("a b",)
    accept(wanted, partition_column_validity_enabled=False)


# Partition columns


@pytest.mark.parametrize("is_checked", [True, False])
def test_missing_partition_column_is_named_with_the_candidates(is_checked: bool) -> None:
    wanted = metadata(struct("year", "month"), by=["day"])
    error = refusal(wanted, partition_column_validity_enabled=is_checked)
    assert error.kind == "DELTA_PARTITION_COLUMN_NOT_FOUND"
    assert error.fields["column"] == "day"
    assert error.fields["candidates"] == ("year", "month")
    assert "day" in str(error)
    assert "year, month" in str(error)


def test_nested_field_is_no_partition_column() -> None:
    error = refusal(metadata(struct("x", field("s", struct("y"))), by=["y"]))
    assert error.kind == "DELTA_PARTITION_COLUMN_NOT_FOUND"


def test_partition_column_named_twice_is_refused() -> None:
    error = refusal(metadata(struct("x", "y", "z"), by=["y", "y"]))
    assert error.kind == "DELTA_DUPLICATE_COLUMNS_FOUND"
    assert error.fields["columns"] == ("y",)


def test_table_needs_a_column_that_is_no_partition_column() -> None:
    error = refusal(metadata(struct("x", "y"), by=["y", "x"]))
    assert error.kind == "DELTA_NON_PARTITION_COLUMN_ABSENT"
    assert error.fields["partition_columns"] == ("y", "x")


@pytest.mark.parametrize(
    "data_type",
    [struct("a"), ArrayType(LONG), MapType(STRING, LONG), PrimitiveType("void")],
)
def test_type_without_one_spelling_per_value_can_not_partition(data_type) -> None:
    wanted = metadata(struct("x", field("p", data_type)), by=["p"])
    error = refusal(wanted)
    assert error.kind == "DELTA_INVALID_PARTITION_COLUMN_TYPE"
    assert error.fields["column"] == "p"
    assert error.fields["type"] == str(data_type)
    accept(wanted, schema_type_check_enabled=False)


@pytest.mark.parametrize(
    "data_type",
    [
        *map(PrimitiveType, ("string", "binary", "boolean", "timestamp", "double")),
        DecimalType(5, 2),
    ],
)
def test_plain_types_can_partition(data_type) -> None:
    accept(metadata(struct("x", field("p", data_type)), by=["p"]))


# Types


@pytest.mark.parametrize("bad", [DecimalType(39, 0), DecimalType(5, 6), DecimalType(0, 0)])
def test_impossible_decimal_is_no_type(bad: DecimalType) -> None:
    wanted = metadata(struct("x", field("s", struct(field("d", MapType(STRING, bad))))))
    with pytest.raises(SchemaError) as caught:
        accept(wanted, schema_type_check_enabled=False)
    assert caught.value.kind == "OPTIMIST_UNKNOWN_TYPE"
    assert caught.value.fields["type"] == str(bad)


# Identity columns and defaults


@pytest.mark.parametrize(
    ("schema", "by", "kind", "column"),
    [
        (
            struct("x", field("i", STRING, **{"delta.identity.start": 1})),
            (),
            "DELTA_IDENTITY_COLUMNS_UNSUPPORTED_DATA_TYPE",
            "i",
        ),
        (
            struct("x", field("i", LONG, **{"delta.identity.step": 0})),
            (),
            "DELTA_IDENTITY_COLUMNS_ILLEGAL_STEP",
            "i",
        ),
        (
            struct("x", field("i", LONG, **{"delta.identity.start": 1})),
            ("i",),
            "DELTA_IDENTITY_COLUMNS_PARTITION_NOT_SUPPORTED",
            "i",
        ),
        (
            struct(field("s", struct(field("i", LONG, **{"delta.identity.start": 1})))),
            (),
            "OPTIMIST_NESTED_IDENTITY_COLUMN",
            "s.i",
        ),
    ],
)
def test_impossible_identity_column_is_refused(schema, by, kind, column) -> None:
    error = refusal(metadata(schema, by=by))
    assert error.kind == kind
    assert error.fields["column"] == column


def test_proper_identity_column_passes() -> None:
    identity = {"delta.identity.start": 1, "delta.identity.step": -2}
    accept(metadata(struct("x", field("i", LONG, **identity))))


def test_column_default_needs_its_feature() -> None:
    wanted = metadata(struct("x", field("d", LONG, CURRENT_DEFAULT="7")))
    error = refusal(wanted)
    assert error.kind == "WRONG_COLUMN_DEFAULTS_FOR_DELTA_FEATURE_NOT_ENABLED"
    assert error.fields["columns"] == ("d",)
    accept(wanted, Protocol(1, 7, None, ("allowColumnDefaults",)))


def test_column_default_that_was_there_needs_no_feature() -> None:
    before = metadata(struct("x", field("d", LONG, CURRENT_DEFAULT="7")))
    after = metadata(struct("y", field("D", LONG, CURRENT_DEFAULT="7", comment="c")))
    accept(after, previous=before)
    changed = metadata(struct("y", field("d", LONG, CURRENT_DEFAULT="8")))
    error = refusal(changed, previous=before)
    assert error.kind == "WRONG_COLUMN_DEFAULTS_FOR_DELTA_FEATURE_NOT_ENABLED"


# Statistics columns


@pytest.mark.parametrize(
    ("text", "kind", "subject"),
    [
        ("p", "DELTA_COLUMN_DATA_SKIPPING_NOT_SUPPORTED_PARTITIONED_COLUMN", "p"),
        ("x,P", "DELTA_COLUMN_DATA_SKIPPING_NOT_SUPPORTED_PARTITIONED_COLUMN", "P"),
        ("l", "DELTA_COLUMN_DATA_SKIPPING_NOT_SUPPORTED_TYPE", "l"),
        ("b", "DELTA_COLUMN_DATA_SKIPPING_NOT_SUPPORTED_TYPE", "b"),
        ("s.m", "DELTA_COLUMN_DATA_SKIPPING_NOT_SUPPORTED_TYPE", "s.m"),
        ("nope", "DELTA_COLUMN_NOT_FOUND_IN_SCHEMA", "nope"),
        ("s.nope", "DELTA_COLUMN_NOT_FOUND_IN_SCHEMA", "s.nope"),
        ("x.y", "DELTA_COLUMN_NOT_FOUND_IN_SCHEMA", "x.y"),
        ("t.x", "DELTA_COLUMN_NOT_FOUND_IN_SCHEMA", "t.x"),
        ("x.", "DELTA_COLUMN_NOT_FOUND_IN_SCHEMA", "x."),
        ("`x", "DELTA_COLUMN_NOT_FOUND_IN_SCHEMA", "`x"),
        ("`x``y`", "DELTA_COLUMN_NOT_FOUND_IN_SCHEMA", "`x``y`"),
    ],
)
def test_statistics_column_that_can_have_none_is_refused(text, kind, subject) -> None:
    error = refusal(_with_stats_columns(text))
    assert error.kind == kind
    assert error.fields["column"] == subject


@pytest.mark.parametrize(
    ("text", "columns"), [("x,x", ("x",)), ("s,s.a", ("s.a",)), ("X,`x`", ("x",))]
)
def test_statistics_column_named_twice_is_refused(text, columns) -> None:
    error = refusal(_with_stats_columns(text))
    assert error.kind == "DELTA_DUPLICATE_DATA_SKIPPING_COLUMNS"
    assert error.fields["columns"] == columns


@pytest.mark.parametrize("text", ["", "x", "X", "s", "s.a, x", "`x`"])
def test_statistics_columns_that_exist_pass(text: str) -> None:
    accept(_with_stats_columns(text))


def _with_stats_columns(text: str) -> Metadata:
    inner = struct("a", field("m", MapType(STRING, LONG)))
    schema = struct(
        "x",
        "p",
        field("l", ArrayType(LONG)),
        field("b", PrimitiveType("boolean")),
        field("s", inner),
    )
    return metadata(schema, by=["p"], configuration={"delta.dataSkippingStatsColumns": text})


# Properties that exclude each other


def test_row_tracking_is_not_both_enabled_and_suspended() -> None:
    both = {"delta.enableRowTracking": "true", "delta.rowTrackingSuspended": "true"}
    error = refusal(metadata(struct("x"), configuration=both))
    assert error.kind == "DELTA_ROW_TRACKING_ILLEGAL_PROPERTY_COMBINATION"
    assert set(error.fields["properties"]) == set(both)


def test_no_column_has_the_name_of_those_that_carry_row_ids() -> None:
    names = {"delta.rowTracking.materializedRowIdColumnName": "_row-id"}
    error = refusal(metadata(struct("x", "_ROW-id"), configuration=names))
    assert error.kind == "DELTA_ADDING_COLUMN_WITH_INTERNAL_NAME_FAILED"
    assert error.fields["columns"] == ("_ROW-id",)


def test_deleted_files_are_not_kept_longer_than_the_log_that_names_them() -> None:
    long = metadata(
        struct("x"), configuration={"delta.deletedFileRetentionDuration": "interval 60 days"}
    )
    protocol = Protocol(1, 2)
    with pytest.raises(ConfigError) as caught:
        verify_new_metadata(long, protocol, EngineOptions())
    assert caught.value.kind == "OPTIMIST_RETENTION_CONFLICT"
    lenient = EngineOptions(enforce_retention_compatibility=False)
    verify_new_metadata(long, protocol, lenient)
    # A table that another engine has left so can still be changed in other ways.
    changed = replace(long, description="flights")
    verify_new_metadata(changed, protocol, EngineOptions(), previous=long)


def test_deletion_vectors_exclude_symlink_manifests() -> None:
    both = {
        "delta.enableDeletionVectors": "true",
        "delta.compatibility.symlinkFormatManifest.enabled": "true",
    }
    error = refusal(metadata(struct("x"), configuration=both))
    assert error.kind == "DELTA_VIOLATE_TABLE_PROPERTY_VALIDATION_FAILED"
    assert set(error.fields["properties"]) == set(both)


def test_deletion_vectors_need_parquet() -> None:
    wanted = metadata(
        struct("x"),
        configuration={"delta.enableDeletionVectors": "true"},
        format={"provider": "orc", "options": {}},
    )
    error = refusal(wanted)
    assert error.kind == "DELTA_VIOLATE_TABLE_PROPERTY_VALIDATION_FAILED"
    assert error.fields["properties"] == ("delta.enableDeletionVectors",)


# Change data feed


@pytest.mark.parametrize("name", ["_change_type", "_commit_version", "_Commit_Timestamp"])
@pytest.mark.parametrize(
    ("previous", "kind"),
    [
        (None, "DELTA_TABLE_ALREADY_CONTAINS_CDC_COLUMNS"),
        (metadata(struct("x")), "DELTA_TABLE_ALREADY_CONTAINS_CDC_COLUMNS"),
        (metadata(struct("x"), configuration=CDF), "RESERVED_CDC_COLUMNS_ON_WRITE"),
    ],
)
def test_names_of_the_change_data_feed_are_reserved_while_it_is_on(name, previous, kind) -> None:
    error = refusal(metadata(struct("x", name), configuration=CDF), previous=previous)
    assert error.kind == kind
    assert error.fields["columns"] == (name,)


def test_names_of_the_change_data_feed_are_free_while_it_is_off_or_nested() -> None:
    ensure_no_cdc_columns(metadata(struct("x", "_change_type")))
    ensure_no_cdc_columns(metadata(struct(field("s", struct("_change_type"))), configuration=CDF))


def test_walk_gives_every_field_with_its_path() -> None:
    schema = struct("a", field("m", MapType(struct("k"), ArrayType(struct("v")))))
    paths = [".".join(path) for path, _ in walk_fields(schema)]
    assert paths == ["a", "m", "m.key.k", "m.value.element.v"]


@pytest.mark.parametrize(
    "schema",
    [
        struct("id", field("s", STRING, __COLLATIONS={"s": "spark.UTF8_LCASE"})),
        struct(
            "id",
            field("s", StructType((field("a", STRING, __COLLATIONS={"a": "icu.UNICODE"}),))),
        ),
        struct("id", field("m", ArrayType(STRING), __COLLATIONS={"m.element": "icu.de"})),
    ],
)
def test_texts_get_no_collation_that_the_table_does_not_have(schema):
    plain = metadata(schema.without_field_keys(lambda _: True))
    for previous in (None, plain):
        with pytest.raises(SchemaError) as caught:
            verify_new_metadata(metadata(schema), LEGACY, EngineOptions(), previous=previous)
        assert caught.value.kind == "DELTA_UNSUPPORTED_DATA_TYPES"
    verify_new_metadata(metadata(schema), LEGACY, EngineOptions(), previous=metadata(schema))
    unchecked = EngineOptions(schema_type_check_enabled=False)
    verify_new_metadata(metadata(schema), LEGACY, unchecked, previous=None)
