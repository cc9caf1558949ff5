"""The engine's options, parsed once from a plain mapping such as the entries of a Spark conf.

Two families of keys: those that Delta's users have in their conf already
(`spark.databricks.delta.maxCommitAttempts`, spec 7.2), and our own
(`spark.optimist.conflict.granularity`; `optimist.` without `spark.` means the same). Keys of other
prefixes are none of our business. Unknown keys of our own prefix, values that do not parse, and two
spellings
that disagree are a `ConfigError`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import MISSING, Field, dataclass, field, fields
from typing import Any

from optimist.core.errors import ConfigError

__all__ = [
    "DELTA_PREFIX",
    "OWN_PREFIX",
    "STORE_PREFIX",
    "EngineOptions",
    "RetryPolicy",
    "parse_bool",
]

DELTA_PREFIX = "spark.databricks.delta."
OWN_PREFIX = "optimist."
STORE_PREFIX = OWN_PREFIX + "store."
PROPERTY_DEFAULTS_PREFIX = DELTA_PREFIX + "properties.defaults."


def parse_bool(text: str) -> bool:
    """`true` or `false`, in any case."""
    folded = text.strip().lower()
    if folded not in ("true", "false"):
        raise ValueError("must be true or false")
    return folded == "true"


def _one_of(*allowed: str) -> Callable[[str], str]:
    def parse(text: str) -> str:
        folded = text.strip().lower()
        if folded not in allowed:
            raise ValueError(f"must be one of {', '.join(allowed)}")
        return folded

    return parse


def _at_least(minimum: int) -> Callable[[str], int]:
    def parse(text: str) -> int:
        value = int(text.strip())
        if value < minimum:
            raise ValueError(f"must be at least {minimum}")
        return value

    return parse


def _seconds(text: str) -> float:
    value = float(text.strip())
    if not math.isfinite(value) or value < 0:
        raise ValueError("must be a number of seconds, not negative")
    return value


def _lasting(text: str) -> float:
    value = _seconds(text)
    if value < 1:
        raise ValueError("must be at least 1 second")
    return value


def _key(default: Any, parse: Callable[[str], Any], *, delta: str = "", own: str = "") -> Any:
    """An option: its default, its parser, and its key in either family (without the prefix)."""
    names = tuple(
        name
        for name in (
            DELTA_PREFIX + delta if delta else "",
            OWN_PREFIX + own if own else "",
            "spark." + OWN_PREFIX + own if own else "",
        )
        if name
    )
    return field(default=default, metadata={"keys": names, "parse": parse})


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """How long a commit keeps trying against other writers.

    The pause after the n-th lost race is drawn evenly from 0 to `min(cap_s, base_s * 2**n)` ("full
    jitter"); after `budget_s` of trying the commit gives up.
    """

    max_attempts: int
    max_non_conflict_attempts: int
    base_s: float
    cap_s: float
    budget_s: float


@dataclass(frozen=True, slots=True)
class EngineOptions:
    """Every option of the engine. Build it with `from_options`; the defaults are Delta's."""

    max_commit_attempts: int = _key(10_000_000, _at_least(0), delta="maxCommitAttempts")
    max_non_conflict_commit_attempts: int = _key(
        10, _at_least(0), delta="maxNonConflictCommitAttempts"
    )
    commit_lock_enabled: bool | None = _key(
        None, parse_bool, delta="commitLock.enabled", own="commit.lock.enabled"
    )
    commit_info_enabled: bool = _key(True, parse_bool, delta="commitInfo.enabled")
    user_metadata: str | None = _key(None, str, delta="commitInfo.userMetadata")
    history_metrics_enabled: bool = _key(True, parse_bool, delta="history.metricsEnabled")
    partition_column_validity_enabled: bool = _key(
        True, parse_bool, delta="partitionColumnValidity.enabled"
    )
    schema_type_check_enabled: bool = _key(True, parse_bool, delta="schema.typeCheck.enabled")
    schema_auto_merge_enabled: bool = _key(False, parse_bool, delta="schema.autoMerge.enabled")
    skip_recording_empty_commits: bool = _key(True, parse_bool, delta="skipRecordingEmptyCommits")
    commit_validation_enabled: bool = _key(True, parse_bool, delta="commitValidation.enabled")
    consistent_data_change_mode: str = _key(
        "log", _one_of("off", "log", "fatal"), delta="commitValidation.consistentDataChange.mode"
    )
    duplicate_action_check_enabled: bool = _key(
        True, parse_bool, delta="duplicateActionCheck.enabled"
    )
    feature_enablement_resolution_enabled: bool = _key(
        True, parse_bool, delta="featureEnablement.conflictResolution.enabled"
    )
    conflict_granularity: str = _key(
        "file", _one_of("file", "partition"), own="conflict.granularity"
    )
    retry_base_s: float = _key(0.005, _seconds, own="commit.retry.baseSeconds")
    retry_cap_s: float = _key(1.0, _seconds, own="commit.retry.capSeconds")
    retry_budget_s: float = _key(600.0, _seconds, own="commit.retry.budgetSeconds")
    allow_arbitrary_properties: bool = _key(
        False, parse_bool, delta="allowArbitraryProperties.enabled"
    )
    allow_unenforced_not_null: bool = _key(
        False, parse_bool, delta="constraints.allowUnenforcedNotNull.enabled"
    )
    post_commit_hook_throw_on_error: bool = _key(
        False, parse_bool, delta="postCommitHook.throwOnError"
    )
    checkpoint_exception_throwing_enabled: bool = _key(
        False, parse_bool, delta="checkpoint.exceptionThrowing.enabled"
    )
    last_checkpoint_checksum_enabled: bool = _key(
        True, parse_bool, delta="lastCheckpoint.checksum.enabled"
    )
    last_checkpoint_suppress_optional_fields: bool = _key(
        False, parse_bool, delta="lastCheckpoint.suppressOptionalFields"
    )
    checkpoint_schema_write_threshold: int = _key(
        20_000, _at_least(0), delta="checkpointSchema.writeThresholdLength"
    )
    last_checkpoint_sidecars_threshold: int = _key(
        30, _at_least(0), delta="lastCheckpoint.sidecars.threshold"
    )
    last_checkpoint_non_file_actions_threshold: int = _key(
        30, _at_least(0), delta="lastCheckpoint.nonFileActions.threshold"
    )
    checkpoint_part_size: int | None = _key(None, _at_least(1), delta="checkpoint.partSize")
    checkpoint_v2_top_level_format: str = _key(
        "json", _one_of("json", "parquet"), delta="checkpointV2.topLevelFileFormat"
    )
    log_compaction_interval: int = _key(0, _at_least(0), own="log.compactionInterval")
    post_commit_background: bool = _key(False, parse_bool, own="postCommit.background")
    write_checksum_enabled: bool = _key(True, parse_bool, delta="writeChecksumFile.enabled")
    checksum_mismatch_fatal: bool = _key(True, parse_bool, delta="checksum.mismatch.fatal")
    set_transactions_in_crc_max: int = _key(
        100, _at_least(0), delta="setTransactionsInCrc.maxAllowed"
    )
    domain_metadatas_in_crc_max: int = _key(
        10, _at_least(0), delta="domainMetadatasInCrc.maxAllowed"
    )
    snapshot_loading_max_retries: int = _key(2, _at_least(0), delta="snapshotLoading.maxRetries")
    use_compacted_for_reads: bool = _key(
        True, parse_bool, delta="deltaLog.minorCompaction.useForReads"
    )
    log_cache_size: int = _key(10_000, _at_least(0), delta="delta.log.cacheSize")
    log_cache_retention_minutes: int = _key(
        60, _at_least(0), delta="delta.log.cacheRetentionMinutes"
    )
    enforce_time_travel_within_retention: bool = _key(
        True,
        parse_bool,
        delta="vacuum.enforceTimeTravelWithinDeletedFileRetentionDuration",
    )
    enforce_retention_compatibility: bool = _key(
        True,
        parse_bool,
        delta="vacuum.enforceDeletedFileAndLogRetentionDurationCompatibility",
    )
    stats_collect: bool = _key(True, parse_bool, delta="stats.collect")
    stats_skipping: bool = _key(True, parse_bool, delta="stats.skipping")
    stats_trust_float_maximum: bool = _key(False, parse_bool, own="stats.trustFloatMaximum")
    cdf_allow_out_of_range: bool = _key(
        False, parse_bool, delta="changeDataFeed.timestampOutOfRange.enabled"
    )
    string_prefix_length: int = field(
        default=32,
        metadata={
            "keys": ("spark.databricks.io.skipping.stringPrefixLength",),
            "parse": _at_least(1),
        },
    )
    replace_where_data_columns_enabled: bool = _key(
        True, parse_bool, delta="replaceWhere.dataColumns.enabled"
    )
    replace_where_constraint_check_enabled: bool = _key(
        True, parse_bool, delta="replaceWhere.constraintCheck.enabled"
    )
    write_txn_app_id: str | None = _key(None, str, delta="write.txnAppId")
    write_txn_version: int | None = _key(None, int, delta="write.txnVersion")
    utc_timestamp_partition_values: bool = _key(
        True, parse_bool, delta="write.utcTimestampPartitionValues"
    )
    engine_info: str | None = _key(None, str, own="engineInfo")
    spark_plane: str = _key("auto", _one_of("auto", "native", "arrow"), own="spark.plane")
    commit_lock_lease_s: float = _key(60.0, _lasting, own="commit.lock.leaseSeconds")
    property_defaults: Mapping[str, str] = field(default_factory=dict)
    """Properties of new tables by full name (`delta.appendOnly`), from `properties.defaults.*`."""

    @property
    def retry_policy(self) -> RetryPolicy:
        """The limits of the commit loop."""
        return RetryPolicy(
            max_attempts=self.max_commit_attempts,
            max_non_conflict_attempts=self.max_non_conflict_commit_attempts,
            base_s=self.retry_base_s,
            cap_s=self.retry_cap_s,
            budget_s=self.retry_budget_s,
        )

    @classmethod
    def from_options(cls, options: Mapping[str, str] | None = None) -> EngineOptions:
        """Parse the keys that are the engine's.

        Raises:
            ConfigError: A value does not parse, two spellings of an option differ, or a key with
                our own
                prefix is unknown.
        """
        given = dict(options or {})
        _refuse_unknown(given)
        values: dict[str, Any] = {}
        for item in fields(cls):
            if "keys" not in item.metadata:
                continue
            parsed = _parse_option(item, given)
            if parsed is not MISSING:
                values[item.name] = parsed
        values["property_defaults"] = {
            "delta." + key[len(PROPERTY_DEFAULTS_PREFIX) :]: value
            for key, value in given.items()
            if key.startswith(PROPERTY_DEFAULTS_PREFIX)
        }
        return cls(**values)


def _parse_option(item: Field[Any], given: Mapping[str, str]) -> Any:
    present = [(key, given[key]) for key in item.metadata["keys"] if key in given]
    if not present:
        return MISSING
    if len({value for _, value in present}) > 1:
        names = " and ".join(f"{key}={value}" for key, value in present)
        raise ConfigError(
            f"{names} contradict each other: they are two spellings of one option. Keep one.",
            kind="OPTIMIST_CONTRADICTING_OPTIONS",
            keys=tuple(key for key, _ in present),
        )
    key, value = present[0]
    try:
        return item.metadata["parse"](value)
    except (ValueError, TypeError) as error:
        raise ConfigError(
            f"The value {value!r} of {key} does not parse: {error}.",
            kind="OPTIMIST_INVALID_OPTION",
            key=key,
        ) from None


def _refuse_unknown(given: Mapping[str, str]) -> None:
    known = {key for item in fields(EngineOptions) for key in item.metadata.get("keys", ())}
    for key in given:
        own = key.removeprefix("spark.")
        if own.startswith(STORE_PREFIX):
            continue  # the store that the key is for parses it
        if own.startswith(OWN_PREFIX) and key not in known:
            close = sorted(name for name in known if name.startswith("spark." + OWN_PREFIX))
            raise ConfigError(
                f"Unknown option {key}. Known options of ours: {', '.join(close)}.",
                kind="OPTIMIST_UNKNOWN_OPTION",
                key=key,
            )
