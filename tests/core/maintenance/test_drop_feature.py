"""DROP FEATURE without Spark: each feature, older versions, truncation, stops, and refusals."""

from __future__ import annotations

import json
import os
from pathlib import Path

import deltalake
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from optimist.core import ColumnChange, DeltaLog, NewColumn
from optimist.core.errors import ConcurrentWriteException, OptimistError, ProtocolError
from optimist.core.local.compaction import LocalBins
from optimist.core.log.file_table import add_files
from optimist.core.maintenance.features import drop_feature as dropping
from optimist.core.maintenance.features import feature_removal
from optimist.core.protocol.actions import Protocol
from optimist.core.protocol.gates import implied_features
from optimist.core.requests.table_definition import Column
from optimist.core.transaction.conflicts.operations import Operation

COLUMNS = pa.schema([("id", pa.int64()), ("v", pa.int32())])
EVEN = f"id IN ({', '.join(map(str, range(0, 20, 2)))})"
FAST = "spark.databricks.delta.tableFeatures.fastDropFeature.enabled"
HOUR_S = 3600


def rows(first: int, end: int) -> pa.Table:
    return pa.table({"id": range(first, end), "v": [i % 3 for i in range(first, end)]}, COLUMNS)


def made(path: Path, options: dict[str, str] | None = None, **given: object) -> DeltaLog:
    """Version 0: no rows; 1 and 2: ten rows each."""
    log = DeltaLog.for_path(str(path / "table"), options)
    log.create(given.pop("columns", COLUMNS), **given)
    log.append(rows(0, 10))
    log.append(rows(10, 20))
    return log


def features(log: DeltaLog) -> set[str]:
    return set(implied_features(log.snapshot().protocol))


def found(log: DeltaLog) -> list[tuple[int, int]]:
    table = log.to_arrow()
    return sorted(zip(table["id"].to_pylist(), table[1].to_pylist(), strict=True))


def operations(log: DeltaLog) -> list[str]:
    return [record.info.operation for record in reversed(list(log.history())) if record.info]


def deltalake_rows(log: DeltaLog) -> list[int]:
    return sorted(deltalake.DeltaTable(log.table_path).to_pyarrow_table()["id"].to_pylist())


def kind_of(log: DeltaLog, name: str, **given: bool) -> str:
    with pytest.raises(OptimistError) as caught:
        log.drop_feature(name, **given)
    return caught.value.kind


def age(log: DeltaLog, hours: float, upto: int) -> None:
    """Make the log of the first versions so old."""
    for file in Path(log.log_path).iterdir():
        if file.is_file() and file.name[:20].isdigit() and int(file.name[:20]) <= upto:
            before = file.stat().st_mtime - hours * HOUR_S
            os.utime(file, (before, before))


def test_vectors_are_purged_and_older_versions_can_still_be_read(tmp_path, monkeypatch):
    monkeypatch.setattr("optimist.core.data.vectors.vector_writer._INLINE_BYTES", 0)
    log = made(tmp_path, properties={"delta.enableDeletionVectors": "true"})
    log.delete(EVEN)
    before, version = found(log), log.snapshot().version
    done = log.drop_feature("deletionVectors")
    assert operations(log)[version + 1 :] == [
        "UNSET TBLPROPERTIES",
        "REORG",
        "Deletion Vector Tombstones",
        "Empty Commit",
        "Empty Commit",
        "Empty Commit",
        "DROP FEATURE",
    ]
    assert features(log) == {"appendOnly", "invariants", "checkpointProtection"}
    assert log.snapshot().protocol.min_reader_version == 1
    assert log.snapshot().metadata.configuration == {
        "delta.requireCheckpointProtectionBeforeVersion": str(done.version)
    }
    assert found(log) == before
    assert deltalake_rows(log) == [i for i, _ in before]
    buried = [path for path in log.snapshot().tombstones["path"].to_pylist() if ".bin" in path]
    assert sorted(buried) == sorted(f.name for f in Path(log.table_path).glob("*.bin"))
    log.delete("id = 1")
    assert log.snapshot().files["deletionVector"].null_count == log.snapshot().num_files
    assert log.restore(version) is not None
    assert found(log) == before
    record = log.history()
    dropped = next(each for each in record if each.version == done.version)
    assert dropped.info is not None
    assert dropped.info.operation_parameters == {
        "featureName": "deletionVectors",
        "truncateHistory": False,
    }


@pytest.mark.parametrize("partition_by", [(), ("v",)])
def test_columns_that_were_renamed_get_their_names_in_the_files(tmp_path, partition_by):
    log = made(
        tmp_path,
        properties={"delta.columnMapping.mode": "name", "delta.enableDeletionVectors": "true"},
        partition_by=partition_by,
    )
    log.alter.rename_column("id", "key")
    log.alter.add_columns([NewColumn("gone", "int"), NewColumn("kept", "string")])
    log.append(pa.table({"key": [50], "v": pa.array([7], pa.int32()), "kept": ["x"]}))
    log.delete("key = 3")
    log.alter.drop_columns(["gone"])
    before = log.to_arrow().sort_by("key").to_pylist()
    log.drop_feature("columnMapping")
    assert "REMOVE COLUMN MAPPING" in operations(log)
    assert "columnMapping" not in features(log)
    assert "columnMapping" not in log.snapshot().metadata.schema_string
    assert log.to_arrow().sort_by("key").to_pylist() == before
    log.append(pa.table({"key": [60], "v": pa.array([7], pa.int32()), "kept": ["y"]}))
    assert log.to_arrow("v = 7")["key"].to_pylist() in ([50, 60], [60, 50])
    log.drop_feature("deletionVectors")
    table = deltalake.DeltaTable(log.table_path).to_pyarrow_table().sort_by("key")
    assert table["key"].to_pylist() == [row["key"] for row in before] + [60]


@pytest.mark.parametrize("spelled", ["1", "01"])
def test_columns_that_have_each_other_s_names_keep_their_partition_values(tmp_path, spelled):
    log = DeltaLog.for_path(str(tmp_path / "t"))
    for number in range(2):
        row = {"id": [number], "a": pa.array([1], pa.int32()), "b": pa.array([2], pa.int32())}
        log.append(pa.table(row), partition_by=["a", "b"])
    commit = Path(log.table_path, "_delta_log", f"{1:020}.json")
    commit.write_text(commit.read_text().replace('"a":"1"', f'"a":"{spelled}"'))
    log = DeltaLog.for_path(log.table_path)
    log.alter.set_properties({"delta.columnMapping.mode": "name"})
    for old, new in (("a", "x"), ("b", "a"), ("x", "b")):
        log.alter.rename_column(old, new)
    before = log.to_arrow().sort_by("id").to_pylist()
    assert before[0] == {"id": 0, "b": 1, "a": 2}
    log.drop_feature("columnMapping")
    assert log.snapshot().num_files == 1
    assert log.to_arrow().sort_by("id").to_pylist() == before


def test_clustering_and_row_ids_outlast_the_mapping(tmp_path):
    properties = {"delta.columnMapping.mode": "name", "delta.enableRowTracking": "true"}
    log = made(tmp_path, properties=properties, cluster_by=["id"])
    log.alter.rename_column("id", "key")
    before = log.to_arrow(columns=["key", "_metadata.row_id"]).sort_by("key")
    log.drop_feature("columnMapping")
    assert log.detail().clustering_columns == ("key",)
    assert log.to_arrow(columns=["key", "_metadata.row_id"]).sort_by("key") == before


def test_the_files_without_mapping_have_statistics_of_clustering_columns(tmp_path):
    log = made(tmp_path, properties={"delta.columnMapping.mode": "name"}, cluster_by=["v"])
    log.alter.set_properties({"delta.dataSkippingNumIndexedCols": "1"})
    log.drop_feature("columnMapping")
    assert log.files("v > 2").num_rows == 0
    assert log.files("v = 2").num_rows == log.snapshot().num_files


def test_a_file_that_comes_while_the_mapping_goes_is_not_left_behind(tmp_path, monkeypatch):
    """It has the columns under their physical names, by which nobody would look for them."""
    log = made(tmp_path, properties={"delta.columnMapping.mode": "name"})
    log.alter.rename_column("id", "key")
    real = LocalBins.__call__
    others = [lambda: log.append(pa.table({"key": [50], "v": pa.array([7], pa.int32())}))]

    def overtaken(*given):
        written = real(*given)
        if others:
            others.pop()()
        return written

    monkeypatch.setattr(LocalBins, "__call__", overtaken)
    assert kind_of(log, "columnMapping") == "DELTA_CONCURRENT_WRITE"
    assert sorted(log.to_arrow()["key"].to_pylist()) == [*range(20), 50]
    log.drop_feature("columnMapping")
    assert sorted(log.to_arrow()["key"].to_pylist()) == [*range(20), 50]


def test_an_old_file_that_comes_back_while_its_type_goes_is_written_again(tmp_path, monkeypatch):
    log = made(tmp_path, properties={"delta.enableTypeWidening": "true"})
    log.alter.change_columns([ColumnChange("v", data_type="bigint")])
    log.alter.unset_properties(["delta.enableTypeWidening"])
    version = log.snapshot().version
    real = feature_removal.optimize
    others = [lambda: log.restore(version)]

    def overtaken(*given):
        done = real(*given)
        if others:
            others.pop()()
        return done

    monkeypatch.setattr(feature_removal, "optimize", overtaken)
    log.drop_feature("typeWidening")
    assert found(log) == [(i, i % 3) for i in range(20)]
    paths = log.snapshot().data_paths.full_paths(log.snapshot().files["path"].combine_chunks())
    assert {str(pq.read_schema(path).field("v").type) for path in paths.to_pylist()} == {"int64"}


def test_names_that_only_mapping_allows_are_refused(tmp_path):
    log = made(tmp_path, properties={"delta.columnMapping.mode": "name"})
    log.alter.rename_column("v", "v w")
    version = log.snapshot().version
    assert kind_of(log, "columnMapping") == "DELTA_INVALID_CHARACTERS_IN_COLUMN_NAMES"
    assert log.snapshot().version == version


def test_files_of_narrower_types_are_written_again(tmp_path):
    log = made(tmp_path, properties={"delta.enableTypeWidening": "true"})
    log.alter.change_columns([ColumnChange("v", data_type="bigint")])
    log.append(pa.table({"id": [90], "v": [1 << 40]}))
    before = found(log)
    kept = log.snapshot().files["path"].to_pylist()[-1]
    newest = log.snapshot().files["path"].to_pylist()
    log.drop_feature("typeWidening")
    assert found(log) == before
    assert "typeChanges" not in log.snapshot().metadata.schema_string
    assert not {"typeWidening"} & features(log)
    assert len(set(newest) & set(log.snapshot().files["path"].to_pylist())) == 1
    assert kept in newest
    assert deltalake_rows(log) == [i for i, _ in before]


@pytest.mark.parametrize("mode", ["none", "id"])
def test_files_of_narrower_types_are_known_as_readers_find_their_columns(tmp_path, mode):
    """By ids, whatever a file calls its columns, and else by their names in any case."""
    log = DeltaLog.for_path(str(tmp_path / "table"))
    properties = {"delta.enableTypeWidening": "true", "delta.columnMapping.mode": mode}
    log.create(COLUMNS, properties=properties)
    log.append(rows(0, 10))
    (file,) = Path(log.table_path).rglob("*.parquet")
    stored = pq.read_table(file)
    names = [
        f"c{number}" if mode == "id" else name.upper()
        for number, name in enumerate(stored.schema.names)
    ]
    fields = [item.with_name(name) for item, name in zip(stored.schema, names, strict=True)]
    pq.write_table(pa.table(stored.columns, pa.schema(fields)), file)
    log = DeltaLog.for_path(log.table_path)
    log.alter.change_columns([ColumnChange("v", data_type="bigint")])
    before = found(log)
    log.drop_feature("typeWidening")
    assert found(log) == before == [(i, i % 3) for i in range(10)]
    (path,) = log.snapshot().data_paths.full_paths(log.snapshot().files["path"].combine_chunks())
    assert {str(kind) for kind in pq.read_schema(path.as_py()).types} == {"int64"}


def test_row_ids_are_taken_away_and_the_domain_with_them(tmp_path, monkeypatch):
    log = made(tmp_path, properties={"delta.enableRowTracking": "true"})
    before, version = found(log), log.snapshot().version
    assert kind_of(log, "domainMetadata") == "DELTA_FEATURE_DROP_DEPENDENT_FEATURE"
    assert kind_of(log, "rowTracking", truncate_history=True) == (
        "DELTA_FEATURE_DROP_HISTORY_TRUNCATION_NOT_ALLOWED"
    )
    log.drop_feature("rowTracking")
    assert operations(log)[version + 1 :] == [
        "SET TBLPROPERTIES",
        "ROW TRACKING UNBACKFILL",
        "DROP FEATURE",
    ]
    assert found(log) == before
    assert log.snapshot().metadata.configuration == {}
    assert log.snapshot().files["baseRowId"].null_count == log.snapshot().num_files
    assert dict(log.snapshot().domain_metadata) == {}
    log.alter.set_domain("mine", "{}")
    others = [lambda: log.alter.set_domain("late", "{}")]
    real = dropping._metadata_without

    def overtaken(txn, feature, *, protects):
        if others:
            others.pop()()
        return real(txn, feature, protects=protects)

    with monkeypatch.context() as patched:
        patched.setattr(dropping, "_metadata_without", overtaken)
        assert kind_of(log, "domainMetadata") == "DELTA_FEATURE_DROP_CONFLICT_REVALIDATION_FAIL"
    log.drop_feature("domainMetadata")
    assert "DOMAIN METADATA CLEANUP" in operations(log)
    assert log.snapshot().protocol == Protocol(1, 2)
    log.append(rows(20, 21))
    assert deltalake_rows(log) == list(range(21))


def test_row_ids_go_in_batches_and_a_run_that_was_stopped_goes_on(tmp_path):
    options = {"spark.databricks.delta.rowTracking.backfill.maxNumFiles": "1"}
    log = made(tmp_path, options, properties={"delta.enableRowTracking": "true"})
    log.append(rows(20, 30))
    before = found(log)
    log.drop_feature("rowTracking")
    assert operations(log).count("ROW TRACKING UNBACKFILL") == 3
    assert found(log) == before


def test_checkpoints_become_classic_and_timestamps_stop(tmp_path):
    log = made(
        tmp_path,
        properties={"delta.checkpointPolicy": "v2", "delta.enableInCommitTimestamps": "true"},
    )
    log.checkpoint()
    log.drop_feature("inCommitTimestamp")
    assert "inCommitTimestamp" not in features(log)
    log.drop_feature("v2Checkpoint")
    assert features(log) == {"appendOnly", "invariants", "checkpointProtection"}
    newest = sorted(Path(log.log_path).glob("*.checkpoint*.parquet"))[-1]
    assert len(newest.name.split(".")) == 3
    log.append(rows(20, 21))
    assert [i for i, _ in found(log)] == list(range(21))
    assert deltalake_rows(log) == list(range(21))


def test_constraints_are_dropped_first(tmp_path):
    log = made(tmp_path)
    log.alter.add_constraint("k", "id >= 0")
    assert kind_of(log, "checkConstraints") == "DELTA_CANNOT_DROP_CHECK_CONSTRAINT_FEATURE"
    log.alter.drop_constraint("k")
    log.drop_feature("checkconstraints")
    assert log.snapshot().protocol == Protocol(1, 2)


def test_clustering_goes_with_its_domain(tmp_path):
    log = made(tmp_path, cluster_by=["id"])
    log.drop_feature("clustering")
    assert log.detail().clustering_columns == ()
    assert dict(log.snapshot().domain_metadata) == {}
    assert features(log) == {"appendOnly", "invariants", "domainMetadata"}


def test_types_go_when_no_column_has_them(tmp_path):
    log = made(
        tmp_path,
        columns=[Column("id", "bigint"), Column("v", "int"), Column("t", "timestamp_ntz")],
        properties={"delta.columnMapping.mode": "name"},
    )
    assert kind_of(log, "timestampNtz") == "DELTA_FEATURE_DROP_NONREMOVABLE_FEATURE"
    log.alter.drop_columns(["t"])
    log.drop_feature("timestampNtz")
    assert "timestampNtz" not in features(log)
    assert [i for i, _ in found(log)] == list(range(20))


def test_what_can_not_be_dropped_is_refused_by_class(tmp_path):
    log = made(tmp_path)
    version = log.snapshot().version
    assert kind_of(log, "nosuch") == "DELTA_FEATURE_DROP_UNSUPPORTED_CLIENT_FEATURE"
    assert kind_of(log, "delta.appendOnly") == "DELTA_FEATURE_DROP_FEATURE_IS_DELTA_PROPERTY"
    assert kind_of(log, "appendOnly") == "DELTA_FEATURE_DROP_NONREMOVABLE_FEATURE"
    assert kind_of(log, "deletionVectors") == "DELTA_FEATURE_DROP_FEATURE_NOT_PRESENT"
    assert log.snapshot().version == version
    with pytest.raises(ProtocolError) as caught:
        log.start_transaction().commit([Protocol(1, 1)], Operation("DROP FEATURE"))
    assert caught.value.kind == "DELTA_INVALID_PROTOCOL_DOWNGRADE"
    with pytest.raises(ProtocolError):
        log.start_transaction().commit(
            [Protocol(1, 1)], Operation("DROP FEATURE", {"featureName": "appendOnly"})
        )


def test_history_that_uses_the_feature_must_go_first(tmp_path):
    log = made(tmp_path, properties={"delta.enableDeletionVectors": "true"})
    log.delete(EVEN)
    before = found(log)
    waits = "DELTA_FEATURE_DROP_WAIT_FOR_RETENTION_PERIOD"
    exist = "DELTA_FEATURE_DROP_HISTORICAL_VERSIONS_EXIST"
    assert kind_of(log, "deletionVectors", truncate_history=True) == waits
    assert kind_of(log, "deletionVectors", truncate_history=True) == exist
    assert "deletionVectors" in features(log)
    version = log.snapshot().version
    age(log, 23, version)
    assert kind_of(log, "deletionVectors", truncate_history=True) == exist
    age(log, 3, version)
    log.drop_feature("deletionVectors", truncate_history=True)
    assert features(log) == {"appendOnly", "invariants"}
    assert found(log) == before
    assert deltalake_rows(log) == [i for i, _ in before]
    assert not Path(log.log_path, f"{0:020}.json").exists()


def test_the_slow_way_is_taken_where_the_session_says_so(tmp_path):
    log = made(tmp_path, {FAST: "false"}, properties={"delta.enableDeletionVectors": "true"})
    assert kind_of(log, "deletionVectors") == "DELTA_FEATURE_DROP_WAIT_FOR_RETENTION_PERIOD"
    assert kind_of(log, "deletionVectors") == "DELTA_FEATURE_DROP_HISTORICAL_VERSIONS_EXIST"
    assert "checkpointProtection" not in features(log)


def test_protection_goes_with_the_history_that_it_protects(tmp_path):
    log = made(tmp_path, properties={"delta.enableDeletionVectors": "true"})
    log.drop_feature("deletionVectors")
    only = "DELTA_FEATURE_CAN_ONLY_DROP_CHECKPOINT_PROTECTION_WITH_HISTORY_TRUNCATION"
    waits = "DELTA_FEATURE_DROP_CHECKPOINT_PROTECTION_WAIT_FOR_RETENTION_PERIOD"
    assert kind_of(log, "checkpointProtection") == only
    assert kind_of(log, "checkpointProtection", truncate_history=True) == waits
    log.append(rows(20, 21))
    log.checkpoint()
    age(log, 25, log.snapshot().version)
    log.drop_feature("checkpointProtection", truncate_history=True)
    assert log.snapshot().protocol == Protocol(1, 2)
    assert log.snapshot().metadata.configuration == {}
    assert [i for i, _ in found(log)] == list(range(21))
    assert deltalake_rows(log) == list(range(21))


STEPS = range(1, 9)


@pytest.mark.parametrize("step", STEPS)
def test_a_run_that_is_killed_at_a_commit_is_gone_on_with(tmp_path, monkeypatch, step):
    log = made(tmp_path, properties={"delta.enableDeletionVectors": "true"})
    log.delete(EVEN)
    before, left = found(log), [step]
    real = type(log.store).put_if_absent

    def killing(self, path, data, *more, **named):
        if path.endswith(".json"):
            left[0] -= 1
            if left[0] == 0:
                raise KeyboardInterrupt
        return real(self, path, data, *more, **named)

    with monkeypatch.context() as patched:
        patched.setattr(type(log.store), "put_if_absent", killing)
        try:
            log.drop_feature("deletionVectors")
        except KeyboardInterrupt:
            assert "deletionVectors" in features(log)
            assert found(log) == before
    if "deletionVectors" in features(log):
        log.drop_feature("deletionVectors")
    assert "deletionVectors" not in features(log)
    assert found(log) == before


def test_the_last_commit_is_tried_again_after_another_and_looks_first(tmp_path, monkeypatch):
    log = made(tmp_path, properties={"delta.enableDeletionVectors": "true"})
    others = [
        lambda: log.append(rows(20, 21)),
        lambda: log.alter.set_properties({"delta.enableDeletionVectors": "true"}),
    ]
    real = dropping._metadata_without

    def overtaken(txn, feature, *, protects):
        answer = real(txn, feature, protects=protects)
        if others:
            others.pop(0)()
        return answer

    monkeypatch.setattr(dropping, "_metadata_without", overtaken)
    assert kind_of(log, "deletionVectors") == "DELTA_FEATURE_DROP_CONFLICT_REVALIDATION_FAIL"
    assert "deletionVectors" in features(log)
    assert [i for i, _ in found(log)] == list(range(21))
    done = log.drop_feature("deletionVectors")
    protected = log.snapshot().metadata.configuration
    assert protected["delta.requireCheckpointProtectionBeforeVersion"] == str(done.version)


def test_a_write_by_vectors_that_began_before_is_refused(tmp_path):
    log = made(tmp_path, properties={"delta.enableDeletionVectors": "true"})
    late = log.start_transaction()
    late.filter_files("id = 1")
    log.drop_feature("deletionVectors")
    with pytest.raises(OptimistError):
        late.commit(
            [add_files(late.snapshot.files)[0].remove(0)], Operation("DELETE", {"predicate": "[]"})
        )


def test_the_file_actions_of_the_last_commit_are_few(tmp_path):
    log = made(tmp_path, properties={"delta.enableTypeWidening": "true"})
    done = log.drop_feature("typeWidening")
    lines = Path(log.log_path, f"{done.version:020}.json").read_text("utf-8").splitlines()
    assert [next(iter(json.loads(line))) for line in lines] == [
        "commitInfo",
        "metaData",
        "protocol",
    ]


def test_losing_again_and_again_ends_in_a_conflict(tmp_path, monkeypatch):
    log = made(tmp_path, properties={"delta.enableTypeWidening": "true"})
    real = dropping._metadata_without

    def overtaken(txn, feature, *, protects):
        answer = real(txn, feature, protects=protects)
        log.append(rows(20, 21))
        return answer

    monkeypatch.setattr(dropping, "_metadata_without", overtaken)
    with pytest.raises(ConcurrentWriteException):
        log.drop_feature("typeWidening")


@pytest.mark.parametrize("how", ["restore", "replace"])
def test_versions_of_a_dropped_feature_stay_protected_whatever_the_table_becomes(tmp_path, how):
    log = made(tmp_path, properties={"delta.enableDeletionVectors": "true"})
    log.drop_feature("deletionVectors")
    key = "delta.requireCheckpointProtectionBeforeVersion"
    protected = log.metadata.configuration[key]
    if how == "restore":
        log.restore(2)
    else:
        log.create(COLUMNS, mode="replace")
    assert "checkpointProtection" in features(log)
    assert log.metadata.configuration[key] == protected
