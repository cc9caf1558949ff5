"""The engine's options, parsed once from a mapping such as the entries of a Spark conf.

There are two families of keys: keys that Delta's users have in their conf already
(`spark.databricks.delta.maxCommitAttempts`, spec 7.2), and our own
(`spark.optimist.conflict.granularity`; `optimist.` without `spark.` means the same). Of Spark's own
keys only `spark.sql.files.ignoreMissingFiles` and `spark.sql.session.timeZone` count. Keys with
other prefixes are ignored. An unknown key with our own prefix, a value that does not parse, or two
spellings that differ raise a `ConfigError`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from optimist.core.options.commit_keys import parse_commit_keys
from optimist.core.options.fields import option, own_keys, parse_fields, unknown_option
from optimist.core.options.handles import options_given
from optimist.core.options.packing import FilePacking
from optimist.core.options.values import (
    at_least,
    one_of,
    parse_bool,
    parse_bytes,
    parse_positive,
    parse_ratio,
    parse_seconds,
    parse_whole,
)
from optimist.core.runtime.budget import DEFAULT_BUDGET_S
from optimist.core.runtime.retry import RetryPolicy

__all__ = [
    "DELTA_PREFIX",
    "OWN_PREFIX",
    "STORE_PREFIX",
    "EngineOptions",
]

DELTA_PREFIX = "spark.databricks.delta."
OWN_PREFIX = "optimist."
STORE_PREFIX = OWN_PREFIX + "store."
_SPARKS_OWN = "spark." + OWN_PREFIX
PROPERTY_DEFAULTS_PREFIX = DELTA_PREFIX + "properties.defaults."


def _parse_lease_seconds(text: str) -> float:
    value = parse_seconds(text)
    if value < 1:
        raise ValueError("must be at least 1 second")
    return value


def _parse_hours(text: str) -> int:
    value = parse_whole(text)
    if not 1 <= value <= 9999:
        raise ValueError("must be from 1 to 9999 hours")
    return value


def _key(default: Any, parse: Callable[[str], Any], *, delta: str = "", own: str = "") -> Any:
    """Make an option: its default, its parser, and its key in each family (without the prefix)."""
    names = tuple(
        name
        for name in (
            DELTA_PREFIX + delta if delta else "",
            OWN_PREFIX + own if own else "",
            _SPARKS_OWN + own if own else "",
        )
        if name
    )
    return option(default, parse, *names)


@dataclass(frozen=True, slots=True)
class EngineOptions:
    """All options of the engine. Build it with `from_options`; the defaults are Delta's."""

    max_commit_attempts: int = _key(10_000_000, at_least(0), delta="maxCommitAttempts")
    max_non_conflict_commit_attempts: int = _key(
        10, at_least(0), delta="maxNonConflictCommitAttempts"
    )
    commit_lock_enabled: bool | None = _key(
        None, parse_bool, delta="commitLock.enabled", own="commit.lock.enabled"
    )
    commit_info_enabled: bool = _key(True, parse_bool, delta="commitInfo.enabled")
    user_metadata: str | None = _key(None, str, delta="commitInfo.userMetadata")
    commit_info_extra: Mapping[str, object] | None = _key(
        None, parse_commit_keys, own="commitInfo.extra"
    )
    history_metrics_enabled: bool = _key(True, parse_bool, delta="history.metricsEnabled")
    partition_column_validity_enabled: bool = _key(
        True, parse_bool, delta="partitionColumnValidity.enabled"
    )
    schema_type_check_enabled: bool = _key(True, parse_bool, delta="schema.typeCheck.enabled")
    schema_auto_merge_enabled: bool = _key(False, parse_bool, delta="schema.autoMerge.enabled")
    skip_recording_empty_commits: bool = _key(True, parse_bool, delta="skipRecordingEmptyCommits")
    commit_validation_enabled: bool = _key(True, parse_bool, delta="commitValidation.enabled")
    consistent_data_change_mode: str = _key(
        "log", one_of("off", "log", "fatal"), delta="commitValidation.consistentDataChange.mode"
    )
    duplicate_action_check_enabled: bool = _key(
        True, parse_bool, delta="duplicateActionCheck.enabled"
    )
    feature_enablement_resolution_enabled: bool = _key(
        True, parse_bool, delta="featureEnablement.conflictResolution.enabled"
    )
    group_commit_enabled: bool = _key(False, parse_bool, own="commit.group.enabled")
    group_commit_max_actions: int = _key(1000, at_least(1), own="commit.group.maxActions")
    group_commit_max_bytes: int = _key(1 << 20, at_least(1), own="commit.group.maxBytes")
    conflict_granularity: str = _key(
        "row", one_of("row", "file", "partition"), own="conflict.granularity"
    )
    conflict_retry: bool = _key(False, parse_bool, own="conflict.retry")
    conflict_read_files: int = _key(8, at_least(0), own="conflict.readFiles")
    conflict_read_bytes: int = _key(32 << 20, at_least(0), own="conflict.readBytes")
    retry_base_s: float = _key(0.005, parse_seconds, own="commit.retry.baseSeconds")
    retry_cap_s: float = _key(1.0, parse_seconds, own="commit.retry.capSeconds")
    retry_budget_s: float = _key(600.0, parse_seconds, own="commit.retry.budgetSeconds")
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
        20_000, at_least(0), delta="checkpointSchema.writeThresholdLength"
    )
    last_checkpoint_sidecars_threshold: int = _key(
        30, at_least(0), delta="lastCheckpoint.sidecars.threshold"
    )
    last_checkpoint_non_file_actions_threshold: int = _key(
        30, at_least(0), delta="lastCheckpoint.nonFileActions.threshold"
    )
    checkpoint_part_size: int | None = _key(None, at_least(1), delta="checkpoint.partSize")
    checkpoint_row_group_rows: int = _key(50_000, at_least(1), own="checkpoint.rowGroupRows")
    checkpoint_v2_top_level_format: str = _key(
        "json", one_of("json", "parquet"), delta="checkpointV2.topLevelFileFormat"
    )
    log_compaction_interval: int = _key(0, at_least(0), own="log.compactionInterval")
    post_commit_background: bool | None = _key(None, parse_bool, own="postCommit.background")
    write_checksum_enabled: bool = _key(True, parse_bool, delta="writeChecksumFile.enabled")
    checksum_mismatch_fatal: bool = _key(True, parse_bool, delta="checksum.mismatch.fatal")
    checksum_mismatch_fatal_for_reads: bool = _key(
        False, parse_bool, own="checksum.mismatchFatalForReads"
    )
    set_transactions_in_crc_max: int = _key(
        100, at_least(0), delta="setTransactionsInCrc.maxAllowed"
    )
    domain_metadatas_in_crc_max: int = _key(
        10, at_least(0), delta="domainMetadatasInCrc.maxAllowed"
    )
    snapshot_loading_max_retries: int = _key(2, at_least(0), delta="snapshotLoading.maxRetries")
    use_compacted_for_reads: bool = _key(
        True, parse_bool, delta="deltaLog.minorCompaction.useForReads"
    )
    log_max_files: int = _key(50_000_000, at_least(1), own="log.maxFiles")
    log_max_file_bytes: int = _key(2 << 30, at_least(1), own="log.maxFileBytes")
    log_cache_bytes: int = _key(256 << 20, parse_bytes, own="log.cacheBytes")
    log_cache_size: int = _key(10_000, at_least(0), delta="delta.log.cacheSize")
    log_cache_retention_minutes: int = _key(
        60, at_least(0), delta="delta.log.cacheRetentionMinutes"
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
    retention_duration_check_enabled: bool = _key(
        True, parse_bool, delta="retentionDurationCheck.enabled"
    )
    vacuum_ignores_retention_window: bool = _key(
        True, parse_bool, delta="vacuum.retentionWindowIgnore.enabled"
    )
    vacuum_logging_enabled: bool | None = _key(None, parse_bool, delta="vacuum.logging.enabled")
    vacuum_lite_enabled: bool = _key(False, parse_bool, delta="vacuum.lite.enabled")
    vacuum_parallel_delete_enabled: bool = _key(
        False, parse_bool, delta="vacuum.parallelDelete.enabled"
    )
    vacuum_parallel_delete_parallelism: int | None = _key(
        None, at_least(1), delta="vacuum.parallelDelete.parallelism"
    )
    intents_enabled: bool = _key(True, parse_bool, own="intents.enabled")
    intents_hours: int = _key(24, _parse_hours, own="intents.hours")
    stats_collect: bool = _key(True, parse_bool, delta="stats.collect")
    stats_skipping: bool = _key(True, parse_bool, delta="stats.skipping")
    metadata_query_enabled: bool = _key(True, parse_bool, delta="optimizeMetadataQuery.enabled")
    stats_trust_float_maximum: bool = _key(False, parse_bool, own="stats.trustFloatMaximum")
    cdf_allow_out_of_range: bool = _key(
        False, parse_bool, delta="changeDataFeed.timestampOutOfRange.enabled"
    )
    streaming_schema_tracking: bool = _key(
        True, parse_bool, delta="streaming.schemaTracking.enabled"
    )
    streaming_merge_schema_changes: bool = _key(
        True, parse_bool, delta="streaming.schemaTracking.mergeConsecutiveSchemaChanges.enabled"
    )
    streaming_schema_path_check: bool = _key(
        True, parse_bool, delta="streaming.schemaTracking.metadataPathCheck.enabled"
    )
    streaming_schema_outside_checkpoint: bool = _key(
        False, parse_bool, delta="streaming.allowSchemaLocationOutsideCheckpointLocation"
    )
    string_prefix_length: int = option(
        32, at_least(1), "spark.databricks.io.skipping.stringPrefixLength"
    )
    replace_where_data_columns_enabled: bool = _key(
        True, parse_bool, delta="replaceWhere.dataColumns.enabled"
    )
    replace_where_constraint_check_enabled: bool = _key(
        True, parse_bool, delta="replaceWhere.constraintCheck.enabled"
    )
    delete_by_vectors: bool = _key(True, parse_bool, delta="delete.deletionVectors.persistent")
    update_by_vectors: bool = _key(True, parse_bool, delta="update.deletionVectors.persistent")
    merge_by_vectors: bool = _key(True, parse_bool, delta="merge.deletionVectors.persistent")
    optimize_min_file_size: int = _key(1 << 30, at_least(1), delta="optimize.minFileSize")
    optimize_max_file_size: int = _key(1 << 30, at_least(1), delta="optimize.maxFileSize")
    optimize_batch_size: int | None = _key(None, at_least(1), delta="optimize.batchSize")
    optimize_max_threads: int = _key(15, at_least(1), delta="optimize.maxThreads")
    optimize_max_deleted_rows_ratio: float = _key(
        0.05, parse_ratio, delta="optimize.maxDeletedRowsRatio"
    )
    optimize_z_order_checks_stats: bool = _key(
        True, parse_bool, delta="optimize.zorder.checkStatsCollection.enabled"
    )
    optimize_stable_cube_size: int = _key(
        100 << 30, at_least(0), delta="optimize.clustering.mergeStrategy.minCubeSize.threshold"
    )
    optimize_target_cube_size: int = _key(
        150 << 30,
        at_least(0),
        delta="optimize.clustering.mergeStrategy.minCubeSize.targetCubeSize",
    )
    optimize_write_enabled: bool | None = _key(None, parse_bool, delta="optimizeWrite.enabled")
    optimize_write_bin_size: int = _key(512 << 20, parse_bytes, delta="optimizeWrite.binSize")
    auto_compact_enabled: bool | None = _key(None, parse_bool, delta="autoCompact.enabled")
    auto_compact_max_file_size: int = _key(128 << 20, at_least(1), delta="autoCompact.maxFileSize")
    auto_compact_min_file_size: int | None = _key(
        None, at_least(0), delta="autoCompact.minFileSize"
    )
    auto_compact_min_num_files: int = _key(50, at_least(0), delta="autoCompact.minNumFiles")
    auto_compact_max_partitions: int = _key(
        128, at_least(1), delta="autoCompact.maxNumModifiedPartitions"
    )
    storage_budget_s: float = _key(DEFAULT_BUDGET_S, parse_positive, own="storage.budgetSeconds")
    write_txn_app_id: str | None = _key(None, str, delta="write.txnAppId")
    write_txn_version: int | None = _key(None, parse_whole, delta="write.txnVersion")
    write_txn_auto_reset: bool = _key(False, parse_bool, delta="write.txnVersion.autoReset.enabled")
    utc_timestamp_partition_values: bool = _key(
        True, parse_bool, delta="write.utcTimestampPartitionValues"
    )
    engine_info: str | None = _key(None, str, own="engineInfo")
    fast_drop_feature_enabled: bool = _key(
        True, parse_bool, delta="tableFeatures.fastDropFeature.enabled"
    )
    backfill_max_files: int = _key(22_000, at_least(1), delta="rowTracking.backfill.maxNumFiles")
    paths_outside_table: str = _key(
        "same-store", one_of("same-store", "any", "never"), own="paths.outsideTable"
    )
    session_time_zone: str | None = option(None, str, "spark.sql.session.timeZone")
    ignore_missing_files: bool = option(False, parse_bool, "spark.sql.files.ignoreMissingFiles")
    spark_plane: str = _key("auto", one_of("auto", "native", "arrow"), own="spark.plane")
    driver_shortcut_max_bytes: int = _key(
        128 << 20, at_least(0), own="spark.driverShortcut.maxBytes"
    )
    commit_lock_lease_s: float = _key(60.0, _parse_lease_seconds, own="commit.lock.leaseSeconds")
    property_defaults: Mapping[str, str] = field(default_factory=dict)
    """Properties of new tables by full name (`delta.appendOnly`), from `properties.defaults.*`."""
    packing: FilePacking = field(default_factory=FilePacking)
    """How new files are packed. One call may set it."""
    post_commit_checkpoint: bool = True
    """Whether a commit that is due for a checkpoint writes it. One call may set it."""
    post_commit_cleanup: bool | None = None
    """Whether it then deletes expired files of the log; None for what the table says."""

    def __repr__(self) -> str:
        """Show what differs from the defaults."""
        defaults = EngineOptions()
        shown = (
            f"{each.name}={getattr(self, each.name)!r}"
            for each in fields(self)
            if getattr(self, each.name) != getattr(defaults, each.name)
        )
        return f"EngineOptions({', '.join(shown)})"

    @property
    def zone(self) -> str:
        """The time zone of the session: that of the options, or UTC."""
        return self.session_time_zone or "UTC"

    @property
    def answers_from_log(self) -> bool:
        """Whether queries may be answered by statistics alone."""
        return self.metadata_query_enabled and self.stats_skipping

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
        """Parse the engine's keys out of a mapping that may hold other keys.

        Raises:
            ConfigError: A value does not parse, two spellings of an option differ, or a key with
                our own prefix is unknown.
        """
        known = own_keys(cls)
        given = options_given(options)

        def name_of(key: str) -> str | None:
            if key in known:
                return known[key].name
            own = key.removeprefix("spark.")
            if own.startswith(OWN_PREFIX) and not own.startswith(STORE_PREFIX):
                raise unknown_option(key, (name for name in known if name.startswith(_SPARKS_OWN)))
            return None  # another component's: a store parses its own options

        values = parse_fields(cls, given, name_of)
        values["property_defaults"] = {
            "delta." + key[len(PROPERTY_DEFAULTS_PREFIX) :]: value
            for key, value in given.items()
            if key.startswith(PROPERTY_DEFAULTS_PREFIX)
        }
        return cls(**values)
