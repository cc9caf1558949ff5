"""Auto-compaction: when a write is followed by one, and what it may do."""

from __future__ import annotations

import shutil

import pyarrow as pa
import pytest

from optimist.core import DeltaLog
from optimist.core.local import compaction
from optimist.core.table import auto_compaction
from optimist.core.testing.forked_children import run_in_forked_children

PREFIX = "spark.databricks.delta."
FEW = {f"{PREFIX}autoCompact.minNumFiles": "5"}
ON = {**FEW, f"{PREFIX}autoCompact.enabled": "true"}


def append(log: DeltaLog, number: int, partition: str | None = "a", count: int = 1):
    rows = pa.table({"id": range(number, number + count), "p": pa.array([partition] * count)})
    return log.append(rows, partition_by=["p"])


def operations(log: DeltaLog) -> list[str]:
    return [commit.info.operation for commit in log.history()][::-1]


def ids(log: DeltaLog) -> list[int]:
    return sorted(log.to_arrow(columns=["id"])["id"].to_pylist())


def test_the_write_that_makes_a_file_too_many_is_followed_by_a_compaction(tmp_path):
    log = DeltaLog.for_path(str(tmp_path / "t"), ON)
    for number in range(4):
        append(log, number)
    assert operations(log) == ["WRITE"] * 4
    result = append(log, 4)
    assert result.version == 4
    assert ("Auto Compact", None) in [(hook.name, hook.error) for hook in result.hooks]
    assert operations(log) == ["WRITE"] * 5 + ["OPTIMIZE"]
    assert log.history(1)[0].info.operation_parameters["auto"] is True
    assert (log.snapshot().num_files, ids(log)) == (1, [0, 1, 2, 3, 4])
    append(log, 5)
    assert operations(log)[-1] == "WRITE"


@pytest.mark.parametrize("key", ["autoOptimize.autoCompact", "autoOptimize"])
def test_a_table_asks_for_it_by_a_property_and_the_session_has_the_last_word(tmp_path, key):
    log = DeltaLog.for_path(str(tmp_path / "t"), FEW)
    append(log, 0)
    log.alter.set_properties({f"delta.{key}": "true"})
    off = DeltaLog.for_path(log.table_path, {**FEW, f"{PREFIX}autoCompact.enabled": "false"})
    for number in range(1, 6):
        append(off, number)
    assert "OPTIMIZE" not in operations(log)
    append(log, 6)
    assert operations(log)[-1] == "OPTIMIZE"
    assert ids(log) == list(range(7))


def test_without_either_no_write_is_followed_by_anything(tmp_path):
    log = DeltaLog.for_path(str(tmp_path / "t"), FEW)
    results = [append(log, number) for number in range(6)]
    assert "OPTIMIZE" not in operations(log)
    assert all(hook.name != "Auto Compact" for result in results for hook in result.hooks)


@pytest.mark.parametrize("odd", ["a b%20", "", None, "x=y/z", "é"])
def test_only_partitions_that_were_changed_and_have_many_are_compacted(tmp_path, odd):
    off = DeltaLog.for_path(str(tmp_path / "t"), FEW)
    for number in range(6):
        append(off, number, "other")
    for number in range(10, 14):
        append(off, number, odd)
    log = DeltaLog.for_path(off.table_path, ON)
    append(log, 20, "third")
    assert operations(log)[-1] == "WRITE"
    before = ids(log)
    append(log, 21, odd)
    assert operations(log)[-1] == "OPTIMIZE"
    assert log.snapshot().num_files == 6 + 1 + 1
    assert ids(log) == [*before, 21]


def test_files_that_are_large_enough_are_left(tmp_path):
    log = DeltaLog.for_path(str(tmp_path / "t"), {**ON, f"{PREFIX}autoCompact.minFileSize": "2000"})
    append(log, 1000, count=2_000)
    (large,) = log.snapshot().files["path"].to_pylist()
    for number in range(5):
        append(log, number)
    assert large in log.snapshot().files["path"].to_pylist()
    assert log.snapshot().num_files == 2


def test_deletes_and_changes_of_the_table_are_not_followed_by_one(tmp_path):
    off = DeltaLog.for_path(str(tmp_path / "t"), FEW)
    for number in range(6):
        append(off, number)
    log = DeltaLog.for_path(off.table_path, ON)
    log.alter.set_properties({"delta.appendOnly": "false"})
    log.delete("id = 3")
    assert "OPTIMIZE" not in operations(log)
    log.optimize()
    assert operations(log).count("OPTIMIZE") == 1


def test_clustered_tables_are_left_to_optimize(tmp_path):
    log = DeltaLog.for_path(str(tmp_path / "t"), ON)
    log.append(pa.table({"id": [0]}))
    log.alter.cluster_by(["id"])
    for number in range(1, 7):
        log.append(pa.table({"id": [number]}))
    assert "OPTIMIZE" not in operations(log)


def test_a_compaction_that_fails_leaves_the_write_as_it_is(tmp_path, monkeypatch):
    log = DeltaLog.for_path(str(tmp_path / "t"), ON)
    for number in range(4):
        append(log, number)

    def fails(*_):
        raise OSError("no space left")

    monkeypatch.setattr(auto_compaction.LocalBins, "__call__", fails)
    result = append(log, 4)
    assert result.version == 4
    assert [str(hook.error) for hook in result.hooks if hook.name == "Auto Compact"] == [
        "no space left"
    ]
    assert ids(log) == [0, 1, 2, 3, 4]
    monkeypatch.undo()
    append(log, 5)  # its turn was given back
    assert operations(log)[-1] == "OPTIMIZE"


@pytest.mark.parametrize("moment", ["before", "after"])
def test_an_interrupt_costs_neither_the_rows_nor_the_next_turn(tmp_path, monkeypatch, moment):
    log = DeltaLog.for_path(str(tmp_path / "t"), ON)
    for number in range(4):
        append(log, number)
    written = auto_compaction.LocalBins.__call__

    def interrupted(*given):
        if moment == "after":
            written(*given)
        raise KeyboardInterrupt

    monkeypatch.setattr(auto_compaction.LocalBins, "__call__", interrupted)
    with pytest.raises(KeyboardInterrupt):
        append(log, 4)
    monkeypatch.undo()
    assert (operations(log), ids(log)) == (["WRITE"] * 5, [0, 1, 2, 3, 4])
    named = {tmp_path / "t" / path for path in log.snapshot().files["path"].to_pylist()}
    assert set((tmp_path / "t").rglob("*.parquet")) == named
    append(log, 5)
    assert operations(log)[-1] == "OPTIMIZE"


def test_a_child_forked_during_a_compaction_has_turns_of_its_own(tmp_path, monkeypatch):
    log = DeltaLog.for_path(str(tmp_path / "t"), ON)
    for number in range(4):
        append(log, number)
    written = auto_compaction.LocalBins.__call__

    def compact_elsewhere(_):
        monkeypatch.setattr(auto_compaction.LocalBins, "__call__", written)
        append(log, 10)
        assert "OPTIMIZE" in operations(log)

    def forking(*given):
        found = written(*given)
        run_in_forked_children(compact_elsewhere, children=1)
        return found

    monkeypatch.setattr(auto_compaction.LocalBins, "__call__", forking)
    result = append(log, 4)
    assert [hook.error for hook in result.hooks] == [None] * len(result.hooks)
    assert ids(log) == [0, 1, 2, 3, 4, 10]


def test_a_file_removed_meanwhile_is_left_to_the_next_write(tmp_path, monkeypatch):
    log = DeltaLog.for_path(str(tmp_path / "t"), ON)
    for number in range(4):
        append(log, number)
    other = DeltaLog.for_path(log.table_path, FEW)
    written = compaction.LocalBins.__call__

    def late(*given):
        found = written(*given)
        other.delete("id = 2")
        return found

    monkeypatch.setattr(auto_compaction.LocalBins, "__call__", late)
    assert append(log, 4).version == 4
    monkeypatch.undo()
    assert ids(log) == [0, 1, 3, 4]
    append(log, 5)
    assert ids(log) == [0, 1, 3, 4, 5]


def test_in_the_background_the_write_does_not_wait(tmp_path):
    options = {**ON, "spark.optimist.postCommit.background": "true"}
    log = DeltaLog.for_path(str(tmp_path / "t"), options)
    for number in range(5):
        result = append(log, number)
    (hook,) = (hook for hook in result.hooks if hook.name == "Auto Compact")
    assert hook.wait(30).error is None
    assert operations(log)[-1] == "OPTIMIZE"
    assert ids(log) == [0, 1, 2, 3, 4]


def test_a_restore_that_brings_back_many_small_files_is_followed_by_a_compaction(tmp_path):
    quiet = DeltaLog.for_path(str(tmp_path / "t"), FEW)
    for number in range(5):
        append(quiet, number)
    quiet.delete()
    DeltaLog.for_path(quiet.table_path, ON).restore(4)
    assert operations(quiet)[-2:] == ["RESTORE", "OPTIMIZE"]
    assert ids(quiet) == list(range(5))


def test_an_interrupt_as_the_turn_is_taken_leaves_it_to_the_next(tmp_path):
    class Interrupted(auto_compaction.CompactsOne):
        """Is interrupted once, after the turn was taken and before the caller knows."""

        strikes = True

        def take(self, whose):
            taken = super().take(whose)
            if self.strikes:
                self.strikes = False
                raise KeyboardInterrupt
            return taken

    log = DeltaLog.for_path(str(tmp_path / "t"), ON)
    log._compacts = Interrupted()
    for number in range(4):
        append(log, number)
    with pytest.raises(KeyboardInterrupt):
        append(log, 4)
    append(log, 5)
    assert operations(log)[-1] == "OPTIMIZE"


def test_a_turn_is_given_back_by_whoever_has_it():
    turn, one, other = auto_compaction.CompactsOne(), object(), object()
    assert turn.take(one)
    assert not turn.take(other)
    turn.give_back(other)
    assert not turn.take(other)
    turn.give_back(one)
    assert turn.take(other)


@pytest.mark.parametrize("source_format", ["parquet", "delta"])
def test_the_files_of_a_shallow_clones_source_are_left_where_they_are(tmp_path, source_format):
    source, clone = str(tmp_path / "source"), str(tmp_path / "clone")
    for number in range(6):
        append(DeltaLog.for_path(source, {}), number)
    if source_format == "parquet":
        shutil.rmtree(f"{source}/_delta_log")
    columns = pa.schema([("p", pa.string())]) if source_format == "parquet" else ()
    DeltaLog.for_path(source, {}).clone(
        clone, is_shallow=True, source_format=source_format, partition_columns=columns
    )
    log = DeltaLog.for_path(clone, ON)
    for number in range(10, 15):
        assert all(hook.error is None for hook in append(log, number).hooks)
    assert operations(log) == ["CLONE"] + ["WRITE"] * 5 + ["OPTIMIZE"]
    assert (log.snapshot().num_files, ids(log)) == (7, [*range(6), *range(10, 15)])


def test_a_write_to_a_large_table_looks_at_the_files_of_its_partitions_only(tmp_path, read_in_part):
    small = {"optimist.checkpoint.rowGroupRows": "2"}
    off = DeltaLog.for_path(str(tmp_path / "t"), {**FEW, **small})
    for number, partition in enumerate("abcd" * 4):
        append(off, number, partition)
    off.checkpoint()
    log = DeltaLog.for_path(off.table_path, {**ON, **small})
    append(log, 16, "b")
    assert operations(log)[-1] == "OPTIMIZE"
    assert log.snapshot().num_files == 13
    assert log.snapshot().in_partitions([{"p": "b"}], ("size",)).num_rows == 1
