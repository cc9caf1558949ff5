from __future__ import annotations

import dataclasses
import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from optimist.core.errors import ConfigError
from optimist.core.protocol.properties import (
    PROPERTIES,
    IsolationLevel,
    TableProperties,
    canonical_name,
    constraint_keys,
    ensure_retention_compatible,
    normalize_configuration,
)
from optimist.core.protocol.property_values import COLUMN_LIST, TEXT, parse_interval_ms

ODD_TEXTS = [
    *(
        "true",
        "TRUE ",
        "1",
        "+1",
        " 1",
        "2147483648",
        "9" * 30,
        "name",
        "Id",
        "v2",
        "1.0.0",
        "zstd",
    ),
    *("1 day", "2 Weeks 3 hours", "interval 5 minutes -1 second", ".25 seconds", "7  days"),
]
DAY_MS = 24 * 60 * 60 * 1000


def normalized(user, **rest):
    return normalize_configuration(user, allow_arbitrary=False, **rest)


def test_empty_configuration_has_the_specified_defaults() -> None:
    properties = TableProperties.from_configuration({})
    assert properties == TableProperties()
    assert not properties.append_only
    assert properties.checkpoint_interval == 10
    assert properties.checkpoint_policy == "classic"
    assert properties.isolation_level is IsolationLevel.SERIALIZABLE
    assert properties.log_retention_ms == 30 * DAY_MS
    assert properties.deleted_file_retention_ms == 7 * DAY_MS
    assert properties.set_transaction_retention_ms is None
    assert properties.enable_expired_log_cleanup
    assert properties.data_skipping_num_indexed_cols == 32
    assert properties.data_skipping_stats_columns is None
    assert properties.checkpoint_write_stats_as_json
    assert not properties.checkpoint_write_stats_as_struct
    assert properties.column_mapping_mode == "none"
    assert properties.constraints == {}


@pytest.mark.parametrize(
    ("key", "text", "attribute", "expected"),
    [
        ("delta.appendOnly", "true", "append_only", True),
        ("delta.appendOnly", "TRUE", "append_only", True),
        ("delta.checkpointInterval", "3", "checkpoint_interval", 3),
        ("delta.checkpointPolicy", "v2", "checkpoint_policy", "v2"),
        ("delta.columnMapping.mode", "NAME", "column_mapping_mode", "name"),
        ("delta.checkpointInterval", "+05", "checkpoint_interval", 5),
        ("delta.logRetentionDuration", "interval 1 day", "log_retention_ms", DAY_MS),
        (
            "delta.setTransactionRetentionDuration",
            "2 days",
            "set_transaction_retention_ms",
            2 * DAY_MS,
        ),
        ("delta.dataSkippingNumIndexedCols", "-1", "data_skipping_num_indexed_cols", -1),
        (
            "delta.dataSkippingStatsColumns",
            "a, b.c,`d,e`",
            "data_skipping_stats_columns",
            ("a", "b.c", "`d,e`"),
        ),
        ("delta.dataSkippingStringPrefixLength", "8", "data_skipping_string_prefix_length", 8),
        ("delta.enableChangeDataFeed", "true", "enable_change_data_feed", True),
        ("delta.enableChangeDataCapture", "true", "enable_change_data_feed", True),
        (
            "delta.inCommitTimestampEnablementVersion",
            "4",
            "in_commit_timestamp_enablement_version",
            4,
        ),
        ("delta.columnMapping.mode", "name", "column_mapping_mode", "name"),
        ("delta.columnMapping.maxColumnId", "12", "max_column_id", 12),
        ("delta.parquet.compression.codec", "zstd", "parquet_compression_codec", "zstd"),
    ],
)
def test_property_in_the_log_is_typed(key, text, attribute, expected) -> None:
    assert getattr(TableProperties.from_configuration({key: text}), attribute) == expected


def test_canonical_property_wins_over_its_older_name() -> None:
    both = {"delta.enableChangeDataFeed": "false", "delta.enableChangeDataCapture": "true"}
    assert not TableProperties.from_configuration(both).enable_change_data_feed


@given(st.sampled_from(sorted(PROPERTIES)), st.text(max_size=20))
def test_no_value_in_a_log_makes_the_table_unreadable(name: str, text: str) -> None:
    properties = TableProperties.from_configuration({name: text})
    assert set(properties.unparsed) <= {name}


def test_value_that_does_not_parse_leaves_the_default_in_force_and_is_reported() -> None:
    properties = TableProperties.from_configuration({"delta.checkpointInterval": "0"})
    assert properties.checkpoint_interval == 10
    assert properties.unparsed == {"delta.checkpointInterval": "0"}


def test_what_destroys_nothing_holds_in_place_of_a_value_that_does_not_parse() -> None:
    names = ("enableExpiredLogCleanup", "logRetentionDuration", "deletedFileRetentionDuration")
    odd = {f"delta.{name}": "2 moons" for name in names}
    odd["delta.requireCheckpointProtectionBeforeVersion"] = "many"
    properties = TableProperties.from_configuration(odd)
    assert properties.unparsed == odd
    assert not properties.unparsed_binding
    assert not properties.enable_expired_log_cleanup
    assert properties.log_retention_ms > 10_000 * DAY_MS
    assert properties.deleted_file_retention_ms > 10_000 * DAY_MS
    assert properties.require_checkpoint_protection_before_version > 2**60


def test_no_constraint_is_lost_whatever_the_case_of_its_name_and_its_key() -> None:
    keys = (
        "delta.constraints.A",
        "delta.constraints.a",
        "Delta.Constraints.a",
        "delta.Constraints.b",
    )
    stored = {key: f"x > {number}" for number, key in enumerate(keys)}
    properties = TableProperties.from_configuration(stored)
    assert properties.constraints == {
        "A": "x > 0",
        "a": "x > 1",
        "Delta.Constraints.a": "x > 2",
        "b": "x > 3",
    }
    assert list(constraint_keys(stored).values()) == list(keys)


def test_properties_can_be_sent_to_executors() -> None:
    properties = TableProperties.from_configuration({"delta.constraints.c": "x > 0"})
    assert pickle.loads(pickle.dumps(properties)) == properties


@pytest.mark.parametrize(
    ("text", "level"),
    [
        ("Serializable", IsolationLevel.SERIALIZABLE),
        ("WRITESERIALIZABLE", IsolationLevel.WRITE_SERIALIZABLE),
        ("snapshotisolation", IsolationLevel.SNAPSHOT_ISOLATION),
    ],
)
def test_isolation_level_in_the_log_is_read_in_any_case(text, level) -> None:
    stored = {"delta.isolationLevel": text}
    assert TableProperties.from_configuration(stored).isolation_level is level


def test_unknown_isolation_level_in_the_log_counts_as_the_strictest_and_binds_writers() -> None:
    stored = {"delta.isolationLevel": "ReadCommitted"}
    properties = TableProperties.from_configuration(stored)
    assert properties.isolation_level is IsolationLevel.SERIALIZABLE
    assert properties.unparsed_binding == stored


@pytest.mark.parametrize(
    ("text", "expected_ms"),
    [
        ("interval 30 days", 30 * DAY_MS),
        ("1 week", 7 * DAY_MS),
        ("INTERVAL 2 Weeks 1 day", 15 * DAY_MS),
        ("interval 12  hours", DAY_MS // 2),
        ("- 1 day +2 days", DAY_MS),
        (".5 seconds", 500),
        ("5. seconds", 5000),
        ("1.9999999 second", 1999),
        ("90 minutes", 90 * 60 * 1000),
        ("1.5 seconds", 1500),
        ("1500 microseconds", 1),
        ("0 days", 0),
        ("interval 1 day -1 hour", 23 * 60 * 60 * 1000),
    ],
)
def test_interval_is_read_in_milliseconds(text: str, expected_ms: int) -> None:
    assert parse_interval_ms(text) == expected_ms


@pytest.mark.parametrize(
    "text",
    [
        "",
        "interval",
        "30",
        "days",
        "30days later",
        "1 month",
        "2 years",
        "1 day 1 month",
        "-1 days",
        "3 fortnights",
        "1 day x",
        "1.5 days",
        "0.5 weeks",
        "interval '7' day",
        "'7 days'",
        "interval interval 7 days",
        "interval\t7 days",
        "7\u00a0days",
        "\u0667 days",
        "1e1 days",
        "1.0000000001 seconds",
        "7 d",
        "1 day ago",
        "99999999999999 weeks",
    ],
)
def test_text_that_is_no_fixed_interval_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"must|fixed|unit"):
        parse_interval_ms(text)


@given(st.sampled_from(sorted(PROPERTIES)), st.randoms(use_true_random=False))
def test_name_in_any_case_is_canonical(name: str, random) -> None:
    mixed = "".join(random.choice([c.lower(), c.upper()]) for c in name)
    assert canonical_name(mixed) == name


def test_old_name_of_a_property_is_normalised_to_the_new_one() -> None:
    assert normalized({"delta.enableChangeDataCapture": "true"}) == {
        "delta.enableChangeDataFeed": "true"
    }


def test_users_own_keys_pass_as_they_are() -> None:
    assert normalized({"Owner": "team A", "my.delta.key": "1"}) == {
        "Owner": "team A",
        "my.delta.key": "1",
    }


def test_feature_requests_and_uniform_settings_pass() -> None:
    user = {"DELTA.FEATURE.rowTracking": "supported", "delta.universalFormat.config.x": "y"}
    assert normalized(user) == {
        "delta.feature.rowTracking": "supported",
        "delta.universalformat.config.x": "y",
    }


def test_unknown_property_is_refused_unless_arbitrary_ones_are_allowed() -> None:
    with pytest.raises(ConfigError) as caught:
        normalized({"delta.appendonIy": "true"})
    assert caught.value.kind == "DELTA_UNKNOWN_CONFIGURATION"
    assert caught.value.fields["property"] == "delta.appendonIy"
    kept = normalize_configuration({"delta.appendonIy": "true"}, allow_arbitrary=True)
    assert kept == {"delta.appendonIy": "true"}


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("delta.appendOnly", "yes"),
        ("delta.checkpointInterval", "0"),
        ("delta.checkpointInterval", "ten"),
        ("delta.checkpointPolicy", "v3"),
        ("delta.columnMapping.mode", "both"),
        ("delta.dataSkippingNumIndexedCols", "-2"),
        ("delta.logRetentionDuration", "1 month"),
        ("delta.minReaderVersion", "4"),
        ("delta.minWriterVersion", "0"),
        ("delta.parquet.format.version", "3.0.0"),
        ("delta.parquet.format.version", " 1.0.0"),
        ("delta.columnMapping.mode", " NAME "),
        ("delta.columnMapping.mode", "name\n"),
        ("delta.checkpointInterval", " 5 "),
        ("delta.checkpointInterval", "5\n"),
        ("delta.checkpointInterval", "9999999999"),
        ("delta.checkpointInterval", "1_0"),
        ("delta.randomPrefixLength", "2147483648"),
        ("delta.appendOnly", " true"),
        ("delta.appendOnly", "1"),
        ("delta.enableDeletionVectors", "true "),
        ("delta.checkpointPolicy", "V2"),
        ("delta.logRetentionDuration", "1.5 days"),
        ("delta.logRetentionDuration", "interval '7' day"),
        ("delta.parquet.compression.codec", "zip"),
        ("delta.parquet.compression.codec", " zstd"),
    ],
)
def test_value_that_does_not_fit_is_named(key: str, value: str) -> None:
    with pytest.raises(ConfigError) as caught:
        normalized({key: value})
    assert caught.value.kind == "OPTIMIST_INVALID_TABLE_PROPERTY"
    assert caught.value.fields["property"] == key
    assert caught.value.fields["value"] == value


@pytest.mark.parametrize(
    ("key", "value", "stored"),
    [
        ("delta.columnMapping.mode", "NAME", "name"),
        ("delta.appendOnly", "TRUE", "true"),
        ("delta.checkpointInterval", "+05", "5"),
        ("delta.dataSkippingNumIndexedCols", "-01", "-1"),
        ("delta.isolationLevel", "serializable", "Serializable"),
        ("delta.autoOptimize.autoCompact", "Auto", "auto"),
        ("delta.parquet.compression.codec", "ZSTD", "zstd"),
        ("delta.setTransactionRetentionDuration", "interval 30 days", "interval 30 days"),
        ("delta.setTransactionRetentionDuration", " INTERVAL  7 Day ", "interval 7 days"),
        ("delta.setTransactionRetentionDuration", "90 days", "interval 90 days"),
        ("delta.setTransactionRetentionDuration", "1 weeks", "interval 1 week"),
        ("delta.setTransactionRetentionDuration", "1 week 12 hours", "interval 180 hours"),
        ("delta.setTransactionRetentionDuration", "2.5 seconds", "interval 2500 milliseconds"),
        ("delta.setTransactionRetentionDuration", "0 days", "interval 0 days"),
    ],
)
def test_values_are_stored_in_the_spelling_that_every_engine_reads(key, value, stored) -> None:
    assert normalized({key: value}) == {key: stored}
    assert normalized({key: stored}) == {key: stored}


@given(st.sampled_from(sorted(PROPERTIES)), st.text(max_size=12) | st.sampled_from(ODD_TEXTS))
def test_what_is_stored_has_the_value_that_was_given(name: str, text: str) -> None:
    row = PROPERTIES[name]
    try:
        value, stored = row.kind.parse(text), row.kind.spell(text)
    except ValueError:
        return
    assert row.kind.parse(stored) == value or name == "delta.parquet.compression.codec"
    assert row.kind.spell(stored) == stored
    if row.kind not in (TEXT, COLUMN_LIST):
        assert stored == stored.strip()
        assert stored.isascii()


@pytest.mark.parametrize(
    "key",
    [name for name, row in PROPERTIES.items() if not row.user_settable],
)
def test_property_that_the_engine_keeps_can_not_be_set(key: str) -> None:
    with pytest.raises(ConfigError) as caught:
        normalized({key.upper(): "1"})
    assert caught.value.kind == "DELTA_CANNOT_MODIFY_TABLE_PROPERTY"
    assert caught.value.fields["property"] == key


def test_engine_kept_properties_include_those_the_protocol_manages() -> None:
    kept = {name for name, row in PROPERTIES.items() if not row.user_settable}
    assert kept >= {
        "delta.columnMapping.maxColumnId",
        "delta.inCommitTimestampEnablementVersion",
        "delta.inCommitTimestampEnablementTimestamp",
        "delta.requireCheckpointProtectionBeforeVersion",
    }


def test_constraints_are_not_set_as_properties() -> None:
    with pytest.raises(ConfigError) as caught:
        normalized({"delta.Constraints.c": "x > 0"})
    assert caught.value.kind == "DELTA_ADD_CONSTRAINTS"


@pytest.mark.parametrize("given_level", ["Serializable", "writeserializable"])
def test_settable_isolation_levels_get_their_canonical_spelling(given_level: str) -> None:
    level = normalized({"delta.isolationLevel": given_level})["delta.isolationLevel"]
    assert level.lower() == given_level.lower()
    assert level in ("Serializable", "WriteSerializable")


@pytest.mark.parametrize("level", ["SnapshotIsolation", "ReadCommitted", ""])
def test_other_isolation_levels_can_not_be_set(level: str) -> None:
    with pytest.raises(ConfigError) as caught:
        normalized({"delta.isolationLevel": level})
    assert caught.value.kind == "DELTA_INVALID_ISOLATION_LEVEL"


def test_two_spellings_of_one_property_must_agree() -> None:
    with pytest.raises(ConfigError) as caught:
        normalized({"delta.appendOnly": "true", "DELTA.APPENDONLY": "false"})
    assert caught.value.kind == "OPTIMIST_CONTRADICTING_OPTIONS"
    agreed = normalized({"delta.appendOnly": "true", "DELTA.APPENDONLY": "true"})
    assert agreed == {"delta.appendOnly": "true"}


def test_files_may_not_be_kept_longer_than_the_log() -> None:
    with pytest.raises(ConfigError) as caught:
        normalized({"delta.deletedFileRetentionDuration": "60 days"})
    assert caught.value.kind == "OPTIMIST_RETENTION_CONFLICT"
    assert caught.value.fields["deleted_file_retention_ms"] == 60 * DAY_MS


def test_retention_is_judged_with_the_tables_own_configuration() -> None:
    current = {"delta.logRetentionDuration": "90 days"}
    user = {"delta.deletedFileRetentionDuration": "interval 60 days"}
    assert normalized(user, current=current) == user


def test_retention_is_not_judged_when_switched_off_or_untouched() -> None:
    user = {"delta.deletedFileRetentionDuration": "interval 60 days"}
    assert normalized(user, enforce_retention=False) == user
    ensure_retention_compatible({"delta.appendOnly": "true"}, user)


def test_every_row_has_a_name_of_its_own_and_a_default_that_is_in_force() -> None:
    defaults = TableProperties()
    fields = [item for item in dataclasses.fields(TableProperties) if "row" in item.metadata]
    rows = {item.name: item.metadata["row"] for item in fields}
    assert len({row.name.lower() for row in rows.values()}) == len(rows)
    assert all(getattr(defaults, name) == row.default for name, row in rows.items())
