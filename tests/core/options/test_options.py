from __future__ import annotations

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from optimist.core.errors import ConfigError
from optimist.core.options.engine import EngineOptions
from optimist.core.options.values import parse_bool

DELTA = "spark.databricks.delta."


def test_without_options_the_defaults_are_deltas() -> None:
    options = EngineOptions.from_options()
    assert options == EngineOptions()
    assert options.max_commit_attempts == 10_000_000
    assert options.commit_lock_enabled is None
    assert options.commit_info_enabled
    assert options.history_metrics_enabled
    assert options.partition_column_validity_enabled
    assert options.schema_type_check_enabled
    assert options.skip_recording_empty_commits
    assert not options.schema_auto_merge_enabled
    assert options.conflict_granularity == "row"
    assert options.property_defaults == {}


@pytest.mark.parametrize(
    ("key", "value", "attribute", "expected"),
    [
        (DELTA + "maxCommitAttempts", "3", "max_commit_attempts", 3),
        (DELTA + "commitLock.enabled", "TRUE", "commit_lock_enabled", True),
        ("spark.optimist.commit.lock.enabled", "false", "commit_lock_enabled", False),
        ("optimist.commit.lock.enabled", " true ", "commit_lock_enabled", True),
        (DELTA + "commitInfo.userMetadata", "nightly", "user_metadata", "nightly"),
        (DELTA + "schema.autoMerge.enabled", "true", "schema_auto_merge_enabled", True),
        ("optimist.conflict.granularity", "Partition", "conflict_granularity", "partition"),
        ("spark.optimist.commit.retry.capSeconds", "0.25", "retry_cap_s", 0.25),
        (DELTA + "write.txnVersion", "7", "write_txn_version", 7),
        ("spark.databricks.io.skipping.stringPrefixLength", "8", "string_prefix_length", 8),
    ],
)
def test_key_sets_its_option(key: str, value: str, attribute: str, expected: object) -> None:
    assert getattr(EngineOptions.from_options({key: value}), attribute) == expected


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (DELTA + "maxCommitAttempts", "many"),
        (DELTA + "maxCommitAttempts", "-1"),
        (DELTA + "commitLock.enabled", "yes"),
        (DELTA + "commitLock.enabled", ""),
        (DELTA + "commitValidation.consistentDataChange.mode", "loud"),
        ("optimist.conflict.granularity", "cell"),
        ("optimist.commit.retry.baseSeconds", "-0.1"),
        ("optimist.commit.retry.budgetSeconds", "soon"),
        ("spark.databricks.io.skipping.stringPrefixLength", "0"),
        (DELTA + "write.txnVersion", "one"),
    ],
)
def test_value_that_does_not_parse_is_named(key: str, value: str) -> None:
    with pytest.raises(ConfigError) as caught:
        EngineOptions.from_options({key: value})
    assert caught.value.kind == "OPTIMIST_INVALID_OPTION"
    assert caught.value.fields["key"] == key
    assert key in str(caught.value)


@pytest.mark.parametrize("value", ["nan", "inf", "-inf"])
def test_seconds_must_be_finite_numbers(value: str) -> None:
    with pytest.raises(ConfigError) as caught:
        EngineOptions.from_options({"optimist.commit.retry.capSeconds": value})
    assert caught.value.kind == "OPTIMIST_INVALID_OPTION"


@pytest.mark.parametrize("key", ["optimist.confict.granularity", "spark.optimist.x"])
def test_unknown_key_of_our_own_is_refused(key: str) -> None:
    with pytest.raises(ConfigError) as caught:
        EngineOptions.from_options({key: "file"})
    assert caught.value.kind == "OPTIMIST_UNKNOWN_OPTION"
    assert caught.value.fields["key"] == key
    assert "spark.optimist.conflict.granularity" in str(caught.value)


def test_keys_of_others_are_none_of_our_business() -> None:
    foreign = {
        DELTA + "someFutureConf": "x",
        "spark.sql.shuffle.partitions": "2",
        "optimistic": "1",
    }
    assert EngineOptions.from_options(foreign) == EngineOptions()


def test_two_spellings_that_differ_contradict_each_other() -> None:
    keys = {DELTA + "commitLock.enabled": "true", "optimist.commit.lock.enabled": "false"}
    with pytest.raises(ConfigError) as caught:
        EngineOptions.from_options(keys)
    assert caught.value.kind == "OPTIMIST_CONTRADICTING_OPTIONS"
    assert set(caught.value.fields["keys"]) == set(keys)


def test_two_spellings_that_agree_are_fine() -> None:
    keys = {"spark.optimist.conflict.granularity": "file", "optimist.conflict.granularity": "file"}
    assert EngineOptions.from_options(keys).conflict_granularity == "file"


def test_property_defaults_are_collected_by_full_name() -> None:
    options = EngineOptions.from_options({DELTA + "properties.defaults.appendOnly": "true"})
    assert options.property_defaults == {"delta.appendOnly": "true"}


def test_retry_policy_gathers_the_limits() -> None:
    options = EngineOptions.from_options(
        {DELTA + "maxCommitAttempts": "5", "optimist.commit.retry.budgetSeconds": "2"}
    )
    policy = options.retry_policy
    assert (policy.max_attempts, policy.budget_s) == (5, 2.0)
    assert policy.max_non_conflict_attempts == 10


def test_every_option_has_a_parser_and_keys_of_a_known_family() -> None:
    set_by_calls = {"property_defaults", "packing", "post_commit_checkpoint", "post_commit_cleanup"}
    rows = [item for item in dataclasses.fields(EngineOptions) if item.name not in set_by_calls]
    keys = [key for row in rows for key in row.metadata["keys"]]
    assert all(callable(row.metadata["parse"]) for row in rows)
    families = ("spark.databricks.", "optimist.", "spark.optimist.")
    others = [key for key in keys if not key.startswith(families)]
    sparks_own = ["spark.sql.session.timeZone", "spark.sql.files.ignoreMissingFiles"]
    assert others == sparks_own
    assert len(keys) == len(set(keys))


@given(st.text().filter(lambda text: text.strip().lower() not in ("true", "false")))
def test_parse_bool_takes_nothing_but_true_and_false(text: str) -> None:
    with pytest.raises(ValueError, match="true or false"):
        parse_bool(text)
