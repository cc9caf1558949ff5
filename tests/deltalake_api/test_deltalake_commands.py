"""Each command of `DeltaTable` leaves the table that deltalake leaves, and tells the same of it."""

from __future__ import annotations

import pickle
import shutil
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import deltalake as real
import deltalake.schema as real_schema
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import optimist.deltalake as ours
import optimist.deltalake.schema as our_schema
from optimist.core import DeltaLog
from optimist.core import errors as core
from optimist.deltalake import metrics
from optimist.deltalake.exceptions import (
    CommitFailedError,
    DeltaError,
    DeltaProtocolError,
    DeltaUsageError,
    NotSupportedError,
    SchemaMismatchError,
    TableNotFoundError,
    errors_translated,
)

ROWS = pa.table({"k": [1, 2, 3, 4], "p": ["a", "a", "b", "b"], "v": [1.0, None, 3.0, 4.0]})
MORE = pa.table({"k": [3, 9], "p": ["b", "z"], "v": [30.0, 90.0]})
COUNTS = ("rows", "files")
DEFAULTS = "spark.databricks.delta.properties.defaults."


def rows_of(path: Path) -> list[dict[str, Any]]:
    """The rows as the real deltalake reads them."""
    return real.DeltaTable(path).to_pyarrow_table().sort_by("k").to_pylist()


def counts(told: dict[str, Any]) -> dict[str, Any]:
    """The metrics that count rows and files, not times."""
    scanned = ("num_target_files_scanned", "num_target_files_skipped_during_scan")
    return {k: v for k, v in told.items() if k.endswith(COUNTS) and k not in scanned}


def merged(table: Any, **options: Any) -> Any:
    return table.merge(MORE, "t.k = s.k", source_alias="s", target_alias="t", **options)


COMMANDS: dict[str, Callable[[Any], Any]] = {
    "delete": lambda t: t.delete("k > 2"),
    "delete of nothing": lambda t: t.delete("k > 99"),
    "delete of all": lambda t: t.delete(),
    "delete of a partition": lambda t: t.delete("p = 'a'"),
    "update": lambda t: t.update({"k": "k + 10", "p": "'q'"}, predicate="k = 1"),
    "update of a quoted column": lambda t: t.update({'"v"': "7.0"}, predicate='"k" = 2'),
    "update of all": lambda t: t.update(updates={"v": "k"}),
    "update by values": lambda t: t.update(new_values={"p": "new", "v": 7.5}, predicate="k = 2"),
    "upsert": lambda t: merged(t).when_matched_update_all().when_not_matched_insert_all().execute(),
    "merge but a column": lambda t: (
        merged(t)
        .when_matched_update_all(except_cols=["p"])
        .when_not_matched_insert_all(except_cols=["v"])
        .execute()
    ),
    "merge by SQL": lambda t: (
        merged(t)
        .when_matched_update({"v": "s.v"}, predicate="t.v > 1")
        .when_not_matched_insert({"k": "s.k", "p": "s.p"}, predicate="s.k > 5")
        .when_not_matched_by_source_update({"v": "0.0"}, predicate="t.k = 1")
        .execute()
    ),
    "merge that deletes": lambda t: (
        merged(t).when_matched_delete().when_not_matched_by_source_delete("t.k = 4").execute()
    ),
}


@pytest.mark.parametrize("name", COMMANDS)
@pytest.mark.parametrize("partitions", [None, ["p"]], ids=["plain", "partitioned"])
def test_a_command_changes_the_rows_that_deltalake_changes(
    tmp_path: Path, name: str, partitions: list[str] | None
) -> None:
    told = {}
    for module in (real, ours):
        path = tmp_path / module.__name__
        module.write_deltalake(path, ROWS, partition_by=partitions)
        table = module.DeltaTable(path)
        told[module] = counts(COMMANDS[name](table))
        if told[module].get("num_removed_files", 1):
            assert table.version() == 1
    assert rows_of(tmp_path / ours.__name__) == rows_of(tmp_path / real.__name__)
    rows = {k: v for k, v in told[ours].items() if k.endswith("rows") and "copied" not in k}
    assert rows.items() <= {**told[real], "num_output_rows": rows.get("num_output_rows")}.items()


@pytest.mark.parametrize("module", [real, ours], ids=["real", "ours"])
def test_writes_of_each_mode_leave_the_same_rows(tmp_path: Path, module: ModuleType) -> None:
    write = module.write_deltalake
    write(tmp_path, ROWS, configuration={"delta.appendOnly": "false"})
    write(str(tmp_path), MORE.to_batches(), mode="append")
    assert [row["k"] for row in rows_of(tmp_path)] == [1, 2, 3, 3, 4, 9]
    write(module.DeltaTable(tmp_path), MORE, mode="overwrite", predicate="k = 3 or k = 9")
    assert [row["k"] for row in rows_of(tmp_path)] == [1, 2, 3, 4, 9]
    write(tmp_path, ROWS, mode="ignore")
    wider = MORE.append_column("w", pa.array([1, 2]))
    write(tmp_path, wider, mode="append", schema_mode="merge")
    assert len(rows_of(tmp_path)) == 7
    write(tmp_path, pa.table({"k": [5]}), mode="overwrite", schema_mode="overwrite")
    assert rows_of(tmp_path) == [{"k": 5}]
    with pytest.raises(module.exceptions.DeltaError):
        write(tmp_path, ROWS)
    table = module.DeltaTable(tmp_path)
    assert table.metadata().configuration == {"delta.appendOnly": "false"}


def test_writes_through_a_table_move_it_to_the_new_version(tmp_path: Path) -> None:
    ours.write_deltalake(tmp_path, ROWS)
    table = ours.DeltaTable(tmp_path)
    DeltaLog.for_path(tmp_path).append(MORE)
    assert (table.version(), table.count()) == (0, 4), "a table stays where it is"
    ours.write_deltalake(table, MORE, mode="append")
    assert (table.version(), table.count()) == (2, 8)


def test_small_files_become_few(tmp_path: Path) -> None:
    told = {}
    for module in (real, ours):
        path = tmp_path / module.__name__
        for start in range(4):
            module.write_deltalake(path, ROWS.slice(start, 1), mode="append", partition_by=["p"])
        table = module.DeltaTable(path)
        told[module] = table.optimize.compact(partition_filters=[("p", "=", "a")])
        assert len(table.file_uris()) == 3
        table.optimize.z_order(["k"])
    assert rows_of(tmp_path / ours.__name__) == rows_of(tmp_path / real.__name__)
    for name in ("numFilesAdded", "numFilesRemoved", "partitionsOptimized", "totalFilesSkipped"):
        assert told[ours][name] == told[real][name], name
    with pytest.raises(ValueError, match="column"):
        ours.DeltaTable(tmp_path / ours.__name__).optimize.z_order([])
    with pytest.raises(ValueError, match="target_size"):
        ours.DeltaTable(tmp_path / ours.__name__).optimize.compact(target_size=1 << 63)


def test_restore_vacuum_and_the_log(tmp_path: Path) -> None:
    ours.write_deltalake(tmp_path, ROWS)
    table = ours.DeltaTable(tmp_path)
    table.delete("k = 1")
    table.delete("k = 2")
    assert table.restore(0) == {"numRemovedFile": 1, "numRestoredFile": 1}
    assert (table.version(), table.count()) == (3, 4)
    assert table.restore(table.version()) == {"numRemovedFile": 0, "numRestoredFile": 0}
    with pytest.raises(ValueError, match="retention"):
        table.vacuum(retention_hours=0)
    dead = table.vacuum(retention_hours=0, enforce_retention_duration=False)
    assert len(dead) == 2
    assert all((tmp_path / name).is_file() for name in dead)
    stray = tmp_path / "stray.parquet"
    pq.write_table(ROWS, stray)
    gone = table.vacuum(0, False, False, full=True)
    assert set(gone) == {*dead, "stray.parquet"}
    assert not any((tmp_path / name).exists() for name in gone)
    table.create_checkpoint()
    assert (tmp_path / "_delta_log" / "_last_checkpoint").is_file()
    table.compact_logs(0, 2)
    assert (tmp_path / "_delta_log" / f"{0:020}.{2:020}.compacted.json").is_file()
    table.cleanup_metadata()
    table.generate()
    assert (tmp_path / "_symlink_format_manifest" / "manifest").is_file()
    assert len(rows_of(tmp_path)) == 4


def test_changes_of_the_table_are_those_of_deltalake(tmp_path: Path) -> None:
    for module, schema in ((real, real_schema), (ours, our_schema)):
        path = tmp_path / module.__name__
        fields = [schema.Field("k", "long", nullable=False), schema.Field("p", "string")]
        table = module.DeltaTable.create(
            path,
            schema.Schema(fields),
            name="people",
            description="all of them",
            partition_by="p",
            configuration={"delta.appendOnly": "false", "delta.logRetentionDuration": None},
        )
        table.alter.add_columns(schema.Field("n", "string"))
        table.alter.add_columns([])
        table.alter.add_constraint({"positive": "k > 0"})
        table.alter.drop_constraint("none", raise_if_not_exists=False)
        table.alter.drop_column_not_null("k")
        table.alter.set_table_description("others")
        table.alter.set_column_metadata("n", {"comment": "a name"})
        table.alter.set_table_properties({"delta.enableChangeDataFeed": "true"})
        assert (table.metadata().name, table.metadata().description) == ("people", "others")
        with pytest.raises(module.exceptions.DeltaError):
            module.write_deltalake(
                table, pa.table({"k": [0], "p": ["a"], "n": ["x"]}), mode="append"
            )
        with pytest.raises(module.exceptions.DeltaError):
            table.alter.drop_constraint("none")
    mine, theirs = (module.DeltaTable(tmp_path / module.__name__) for module in (ours, real))
    assert mine.schema().to_json() == theirs.schema().to_json()
    assert mine.metadata().configuration == theirs.metadata().configuration


def test_features_join_the_protocol_only_when_versions_may_rise(tmp_path: Path) -> None:
    ours.write_deltalake(tmp_path, ROWS)
    table = ours.DeltaTable(tmp_path)
    with pytest.raises(DeltaProtocolError, match="allow_protocol_versions_increase"):
        table.alter.add_feature(ours.TableFeatures.DeletionVectors)
    table.alter.add_feature([ours.TableFeatures.DeletionVectors], True)
    assert table.protocol().reader_features == ["deletionVectors"]
    assert {item.in_protocol for item in ours.TableFeatures} >= {"v2Checkpoint", "timestampNtz"}


def test_the_history_keeps_what_the_caller_says(tmp_path: Path) -> None:
    ours.write_deltalake(
        tmp_path,
        ROWS,
        commit_properties=ours.CommitProperties(
            {"userName": "ada", "job": {"id": 5}, "userMetadata": "first"}, max_commit_retries=3
        ),
    )
    table = ours.DeltaTable(tmp_path)
    (commit,) = table.history()
    assert commit["userName"] == "ada"
    assert (commit["job"], commit["userMetadata"]) == ({"id": 5}, "first")
    assert real.DeltaTable(tmp_path).history()[0]["job"] == {"id": 5}
    table.delete("k = 1", commit_properties=ours.CommitProperties({"job": 2}))
    assert table.history(1)[0]["job"] == 2
    with pytest.warns(DeprecationWarning, match="by name"):
        table.delete("k = 2", None, None, ours.CommitProperties({"job": 3}))
    assert table.history(1)[0]["job"] == 3


@pytest.mark.parametrize(
    "custom",
    [{"txnId": "x"}, {"operation": "x"}, {1: 2}, [("a", 1)], {"a": float("nan")}, {"a": {1}}],
)
def test_metadata_that_a_commit_can_not_have_is_refused(tmp_path: Path, custom: Any) -> None:
    with pytest.raises(ValueError, match="custom_metadata"):
        ours.write_deltalake(tmp_path, ROWS, commit_properties=ours.CommitProperties(custom))
    assert not ours.DeltaTable.is_deltatable(tmp_path)


def test_a_repeated_write_of_an_application_is_skipped(tmp_path: Path) -> None:
    once = ours.CommitProperties(app_transactions=[ours.Transaction("job", 1)])
    for _ in range(2):
        ours.write_deltalake(tmp_path, ROWS, mode="append", commit_properties=once)
    table = ours.DeltaTable(tmp_path)
    assert (table.count(), table.transaction_version("job")) == (4, 1)
    twice = ours.CommitProperties(app_transactions=[ours.Transaction("a", 1)] * 2)
    with pytest.raises(NotSupportedError, match="several"):
        table.delete(commit_properties=twice)
    with pytest.raises(NotSupportedError, match="app_transactions"):
        table.restore(0, commit_properties=once)


def test_parquet_files_become_a_table(tmp_path: Path) -> None:
    with pytest.raises(DeltaError):
        ours.convert_to_deltalake(tmp_path)
    (tmp_path / "p=1").mkdir()
    pq.write_table(ROWS.drop(["p"]), tmp_path / "p=1" / "one.parquet")
    schema = our_schema.Schema([our_schema.Field("p", "integer")])
    ours.convert_to_deltalake(tmp_path, partition_by=schema, partition_strategy="hive")
    assert {row["p"] for row in rows_of(tmp_path)} == {1}
    ours.convert_to_deltalake(tmp_path, mode="ignore")
    with pytest.raises(DeltaError):
        ours.convert_to_deltalake(tmp_path)
    with pytest.raises(ValueError, match="partition_strategy"):
        ours.convert_to_deltalake(tmp_path, partition_by=schema)


@pytest.mark.parametrize(
    ("module", "schema"), [(real, real_schema), (ours, our_schema)], ids=["real", "ours"]
)
def test_fields_are_added_to_a_struct_that_is_there(
    tmp_path: Path, module: Any, schema: Any
) -> None:
    module.write_deltalake(tmp_path, pa.table({"k": [1], "s": [{"x": 1}]}))
    table = module.DeltaTable(tmp_path)
    inner = schema.StructType([schema.Field("y", "string")])
    new = schema.StructType([schema.Field("x", "long"), schema.Field("deep", inner)])
    table.alter.add_columns([schema.Field("s", new), schema.Field("n", "long")])
    more = schema.StructType([schema.Field("z", "date")])
    table.alter.add_columns(schema.Field("s", schema.StructType([schema.Field("deep", more)])))
    assert rows_of(tmp_path) == [
        {"k": 1, "s": {"x": 1, "deep": None}, "n": None},
    ]
    (_, struct, _) = table.schema().fields
    assert [field.name for field in struct.type.fields[1].type.fields] == ["y", "z"]


def test_a_merge_tells_how_many_files_it_searched(tmp_path: Path) -> None:
    ours.write_deltalake(tmp_path, ROWS, partition_by="p")
    ours.write_deltalake(tmp_path, MORE, mode="append")
    table, found = ours.DeltaTable(tmp_path), []
    for on in ("t.k = s.k AND t.p = 'b'", "t.k = s.k AND t.p = 'none'"):
        merge = table.merge(MORE, on, source_alias="s", target_alias="t")
        told = merge.when_matched_update({"v": "s.v"}).execute()
        found.append(
            (told["num_target_files_scanned"], told["num_target_files_skipped_during_scan"])
        )
    assert found == [(2, 2), (0, 3)]  # the first makes one file of two


def test_generated_columns_of_a_schema_are_computed(tmp_path: Path) -> None:
    fields = [
        our_schema.Field("k", "long"),
        our_schema.Field("twice", "long", metadata={"delta.generationExpression": '"k" * 2'}),
    ]
    table = ours.DeltaTable.create(tmp_path, our_schema.Schema(fields))
    ours.write_deltalake(table, pa.table({"k": [4]}), mode="append")
    assert table.to_pyarrow_table().to_pylist() == [{"k": 4, "twice": 8}]
    with pytest.raises(NotSupportedError, match="generated"):
        table.alter.add_columns(fields[1])


def test_an_error_is_of_the_class_that_deltalake_has(tmp_path: Path) -> None:
    with pytest.raises(TableNotFoundError) as missing:
        ours.DeltaTable(tmp_path / "none")
    assert isinstance(missing.value, FileNotFoundError)
    assert missing.value.kind == "PATH_NOT_FOUND"
    assert pickle.loads(pickle.dumps(missing.value)).fields == missing.value.fields
    ours.write_deltalake(tmp_path, ROWS)
    table = ours.DeltaTable(tmp_path)
    with pytest.raises(SchemaMismatchError, match="nope"):
        table.delete("nope = 1")
    with pytest.raises(SchemaMismatchError):
        ours.write_deltalake(tmp_path, pa.table({"other": [1]}), mode="append")
    with pytest.raises(DeltaError, match="DELTA_VERSION_NOT_FOUND"):
        ours.DeltaTable(tmp_path, version=99)
    with pytest.raises(ValueError, match="updates"):
        table.update()
    with pytest.raises(TypeError, match="new_values"):
        table.update({"v": 1})  # type: ignore[dict-item]
    with pytest.raises(TypeError, match="new_values"):
        table.update(new_values={"v": object()})
    with pytest.raises(TypeError, match="new_values"):
        table.update(new_values={"v": [1, "a"]})
    for error in (CommitFailedError, SchemaMismatchError, DeltaProtocolError, TableNotFoundError):
        assert issubclass(error, DeltaError)


@pytest.mark.parametrize(
    ("raised", "expected"),
    [
        (core.ConcurrentAppendException, CommitFailedError),
        (core.ConcurrentWriteException, CommitFailedError),
        (core.MaxCommitAttemptsExceededError, CommitFailedError),
        (core.CommitOutcomeUnknownError, DeltaError),
        (core.StorageError, DeltaError),
        (core.LeaseLapsedError, DeltaError),
        (core.TableError, DeltaError),
        (core.TableNotFoundError, TableNotFoundError),
        (core.SchemaError, SchemaMismatchError),
        (core.ProtocolError, DeltaProtocolError),
        (core.UsageError, DeltaUsageError),
        (core.ConfigError, DeltaUsageError),
    ],
)
def test_only_what_was_certainly_not_committed_may_be_tried_again(
    raised: type[core.OptimistError], expected: type[DeltaError]
) -> None:
    cause = raised("the message", kind="TEST_KIND", txn_id="x", version=7)
    with pytest.raises(DeltaError) as error, errors_translated():
        raise cause
    assert type(error.value) is expected
    assert isinstance(error.value, CommitFailedError) <= issubclass(raised, core.NOTHING_COMMITTED)
    assert str(error.value) == "[TEST_KIND] the message"
    assert error.value.fields == {"txn_id": "x", "version": 7}
    assert error.value.__cause__ is cause


def test_a_commit_that_stands_is_told_even_if_the_table_can_not_be_read_after_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ours.write_deltalake(tmp_path, ROWS)
    table = ours.DeltaTable(tmp_path)

    def fail(*_: object, **__: object) -> None:
        raise core.StorageError("the store is gone", kind="OPTIMIST_STORE_FAILED", retryable=True)

    real_delete = DeltaLog.delete

    def delete_and_lose_the_store(self: DeltaLog, *args: Any, **options: Any) -> Any:
        done = real_delete(self, *args, **options)
        monkeypatch.setattr(DeltaLog, "snapshot", fail)
        monkeypatch.setattr(metrics, "read_commit_info", fail)
        return done

    monkeypatch.setattr(DeltaLog, "delete", delete_and_lose_the_store)
    told = table.delete("k = 1")
    assert (told["num_deleted_rows"], told["num_added_files"]) == (1, None)
    assert table.version() == 0
    monkeypatch.undo()
    table.update_incremental()
    assert (table.version(), table.count()) == (1, 3)


def test_two_tables_that_change_other_rows_both_commit(tmp_path: Path) -> None:
    ours.write_deltalake(tmp_path, ROWS)
    one, other = ours.DeltaTable(tmp_path), ours.DeltaTable(tmp_path)
    one.delete("k = 1")
    assert other.delete("k = 2")["num_deleted_rows"] == 1
    assert (other.version(), other.count()) == (2, 2)


def test_what_is_not_there_says_so_before_anything_is_written(tmp_path: Path) -> None:
    ours.write_deltalake(tmp_path, ROWS)
    table = ours.DeltaTable(tmp_path)
    zip_them = ours.WriterProperties(statistics_truncate_length=9)
    calls: list[Callable[[], Any]] = [
        lambda: table.alter.set_column_metadata("k", {"other": "x"}),
        lambda: table.to_pyarrow_dataset(parquet_read_options=1),
        lambda: table.delete(writer_properties=zip_them),
        lambda: ours.convert_to_deltalake(tmp_path, partition_strategy="directory"),
    ]
    for call in calls:
        with pytest.raises(NotSupportedError) as error:
            call()
        assert isinstance(error.value, NotImplementedError)
        assert error.value.kind == "OPTIMIST_NOT_BUILT_YET"
    assert table.history()[0]["version"] == 0
    table.delete("k = 1", writer_properties=ours.WriterProperties(compression="ZSTD"))
    assert table.version() == 1


def test_the_page_of_those_who_come_from_deltalake_runs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = Path(__file__).resolve().parents[2] / "docs" / "deltalake.md"
    code = page.read_text(encoding="utf-8").split("```python\n")[1].partition("```")[0]
    exec(code.replace("/data/prices", str(tmp_path / "prices")), {})
    assert capsys.readouterr().out == "1\n2 2\n"


def test_a_command_goes_by_the_newest_version_and_not_by_the_loaded_one(tmp_path: Path) -> None:
    log = DeltaLog.for_path(str(tmp_path), {f"{DEFAULTS}enableTypeWidening": "true"})
    log.append(pa.table({"p": pa.array([1], pa.int32()), "x": [1]}), partition_by=["p"])
    old = ours.DeltaTable(tmp_path)
    log.alter.change_columns([("p", "bigint")])
    for _ in range(2):
        log.append(pa.table({"p": [2**40], "x": [2]}))
    told = old.optimize.compact([("p", "=", 2**40)])
    assert (told["numFilesAdded"], told["numFilesRemoved"]) == (1, 2)
    old.load_as_version(0)
    log.write(pa.table({"p": [1], "x": [1]}), mode="overwrite", schema_mode="overwrite")
    ours.DeltaTable.create(
        tmp_path, pa.schema([pa.field("x", pa.int64(), nullable=False)]), mode="overwrite"
    )
    old.alter.drop_column_not_null("x")
    assert old.schema().fields[0].nullable


def test_repair_takes_out_the_files_that_are_gone(tmp_path: Path) -> None:
    for part in (ROWS, MORE):
        ours.write_deltalake(tmp_path, part, mode="append", partition_by=["p"])
    table = ours.DeltaTable(tmp_path)
    assert table.repair() == {"dry_run": False, "files_removed": []}
    assert table.version() == 1
    (lost,) = tmp_path.glob("p=z/*.parquet")
    lost.unlink()
    told = table.repair(dry_run=True)
    assert told == {"dry_run": True, "files_removed": [f"p=z/{lost.name}"]}
    assert table.version() == 1
    assert table.repair() == {**told, "dry_run": False}
    assert table.history(1)[0]["operation"] == "FSCK"
    assert sorted(row["k"] for row in rows_of(tmp_path)) == [1, 2, 3, 3, 4]
    assert table.restore(0)["numRestoredFile"] == 0


def test_vacuum_keeps_the_files_of_chosen_versions(tmp_path: Path) -> None:
    for number in range(4):
        part = ROWS.slice(number, 1)
        ours.write_deltalake(tmp_path, part, mode="overwrite", partition_by=["p"])
    table = ours.DeltaTable(tmp_path)
    table.delete("k = 4")
    how = {"retention_hours": 0, "enforce_retention_duration": False, "full": True}
    everything = table.vacuum(**how)  # type: ignore[arg-type]
    kept = table.vacuum(keep_versions=[1, 3], **how)  # type: ignore[arg-type]
    assert (len(everything), len(kept)) == (4, 2)
    assert table.vacuum(dry_run=False, keep_versions=[3, 1], **how) == kept  # type: ignore[arg-type]
    for version, is_there in ((0, False), (1, True), (2, False), (3, True)):
        table.load_as_version(version)
        if is_there:
            assert table.to_pyarrow_table()["k"].to_pylist() == [version + 1]
        else:
            with pytest.raises(Exception, match="is missing"):
                table.to_pyarrow_table()
    with pytest.raises(DeltaError, match="99"):
        table.vacuum(keep_versions=[99])


def test_files_that_a_lite_vacuum_kept_for_a_version_go_with_the_next_one(tmp_path: Path) -> None:
    for number in range(3):
        ours.write_deltalake(tmp_path, ROWS.slice(number, 1), mode="overwrite")
    table = ours.DeltaTable(tmp_path)
    how = {"retention_hours": 0, "enforce_retention_duration": False, "dry_run": False}
    (gone,) = table.vacuum(keep_versions=[0], **how)  # type: ignore[arg-type]
    table.load_as_version(0)
    assert table.to_pyarrow_table()["k"].to_pylist() == [1]
    (kept,) = {*table.vacuum(**how)} - {gone}  # type: ignore[arg-type]
    assert not (tmp_path / kept).exists()
    assert table.vacuum(**how) == []  # type: ignore[arg-type]
    assert [row["k"] for row in rows_of(tmp_path)] == [3]


def test_a_table_can_be_pickled_at_its_version(tmp_path: Path) -> None:
    place = tmp_path / "t"
    for _ in range(2):
        ours.write_deltalake(place, ROWS, mode="append")
    table = ours.DeltaTable(place, version=0)
    stored = pickle.dumps(table)
    again = pickle.loads(stored)
    assert (again.version(), again.count()) == (0, ROWS.num_rows)
    shutil.rmtree(place)
    ours.write_deltalake(place, MORE)
    with pytest.raises(TableNotFoundError, match="made anew"):
        pickle.loads(stored)


def test_options_beside_a_table_count_for_the_write(tmp_path: Path) -> None:
    ours.write_deltalake(tmp_path, ROWS)
    table = ours.DeltaTable(tmp_path)
    options = {"spark.databricks.delta.commitInfo.userMetadata": "mine"}
    ours.write_deltalake(table, MORE, mode="append", storage_options=options)
    assert (table.version(), table.history(1)[0]["userMetadata"]) == (1, "mine")
    with pytest.raises(DeltaError, match="nonsense"):
        ours.write_deltalake(table, MORE, mode="append", storage_options={"nonsense": "1"})


def test_a_merge_takes_a_stream_and_changes_come_as_one(tmp_path: Path) -> None:
    ours.write_deltalake(tmp_path, ROWS, configuration={"delta.enableChangeDataFeed": "true"})
    table = ours.DeltaTable(tmp_path)
    stream = pa.RecordBatchReader.from_batches(MORE.schema, iter(MORE.to_batches(1)))
    merge = table.merge(stream, "t.k = s.k", "s", "t")
    told = merge.when_matched_update_all().when_not_matched_insert_all().execute()
    assert (told["num_target_rows_updated"], told["num_target_rows_inserted"]) == (1, 1)
    changes = table.load_cdf(1)
    assert isinstance(changes, pa.RecordBatchReader)
    assert sorted(row["k"] for batch in changes for row in batch.to_pylist()) == [3, 3, 9]
