"""A handle and its transactions, kept while another writer drops the table, makes it anew, restores
it from a copy, or cleans up its log."""

from __future__ import annotations

import contextlib
import shutil
import threading
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from hypothesis import given, settings
from hypothesis import strategies as st

from optimist.core import DeltaLog
from optimist.core.errors import (
    CommitOutcomeUnknownError,
    LogFileNotFoundError,
    OptimistError,
    StorageError,
    TableError,
)
from optimist.core.log.names import commit_path
from optimist.core.options.engine import EngineOptions
from optimist.core.protocol.actions import AddFile
from optimist.core.testing import Fault, FaultyLogStore, Pause, When
from optimist.core.transaction.conflicts.operations import Operation
from optimist.core.transaction.hooks.symlink_manifest import (
    MANIFEST_DIRECTORY,
    SymlinkManifests,
    all_partitions,
)
from optimist.logstores import LocalLogStore, MemoryLogStore

WRITE = Operation("WRITE", {"mode": "Append"})
DEFAULTS = "spark.databricks.delta.properties.defaults."
GROUPED = {"optimist.commit.group.enabled": "true"}


def rows(column, value):
    return pa.table({column: pa.array([value], pa.int64())})


def handle(path, options=None):
    return DeltaLog(str(path), LocalLogStore(), EngineOptions.from_options(options or {}))


def anew(path, column, versions):
    """The table dropped, and made anew by another engine."""
    shutil.rmtree(path)
    for value in range(versions):
        write_deltalake(str(path), rows(column, value), mode="append")


def as_others_see_it(path):
    return sorted(str(row) for row in DeltaTable(str(path)).to_pyarrow_table().to_pylist())


def as_it_sees_it(log):
    return sorted(str(row) for row in log.to_arrow().to_pylist())


@pytest.fixture(params=[None, GROUPED], ids=["alone", "grouped"])
def known(request, tmp_path):
    """A table at version 3, all of its commits made by the handle that knows it."""
    log = handle(tmp_path / "t", request.param)
    for value in range(4):
        log.append(rows("a", value))
    return log, tmp_path / "t"


@pytest.mark.parametrize("versions", [1, 3, 4, 5, 9])
def test_a_table_made_anew_is_read_and_written_as_what_it_is_now(known, versions):
    log, path = known
    anew(path, "b", versions)
    assert log.snapshot().schema.names == ("b",)
    assert as_it_sees_it(log) == as_others_see_it(path)
    assert log.append(rows("b", 100)).version == versions
    assert as_it_sees_it(handle(path)) == as_it_sees_it(log) == as_others_see_it(path)


@pytest.mark.parametrize("versions", [1, 3, 4, 5, 9])
def test_an_append_after_a_table_was_made_anew_goes_on_top_of_the_new_one(known, versions):
    log, path = known
    anew(path, "a", versions)
    assert log.append(rows("a", 100)).version == versions
    assert as_it_sees_it(handle(path)) == as_others_see_it(path)
    assert len(as_others_see_it(path)) == versions + 1


@pytest.mark.parametrize("how", ["commit", "commit_large"])
@pytest.mark.parametrize("versions", [0, 1, 3, 4, 5, 9])
@pytest.mark.parametrize("column", ["a", "b"])
def test_an_open_transaction_commits_nothing_into_a_table_made_anew(known, versions, column, how):
    log, path = known
    txn = log.start_transaction()
    anew(path, column, versions)
    before = sorted(path.rglob("*.json"))
    with pytest.raises(StorageError, match="Nothing was committed") as caught:
        getattr(txn, how)([AddFile("x", {}, 1, 1, True)], WRITE)
    assert caught.value.kind == "OPTIMIST_PREDECESSOR_MISSING"
    assert sorted(path.rglob("*.json")) == before


def test_a_put_without_an_answer_is_not_repeated_into_a_table_made_anew(tmp_path):
    path = tmp_path / "t"
    handle(path).append(rows("a", 0))
    handle(path).append(rows("a", 1))
    store = FaultyLogStore(LocalLogStore())
    log = DeltaLog(str(path), store)
    txn = log.start_transaction()
    store.plan(Fault("put_if_absent", When.BEFORE))
    store.plan(Pause("read_bytes", When.BEFORE, lambda _: anew(path, "b", 1)))
    with pytest.raises(CommitOutcomeUnknownError):
        txn.commit([AddFile("x", {}, 1, 1, True)], WRITE)
    assert DeltaTable(str(path)).version() == 0


@pytest.mark.parametrize("versions", [4, 5, 9])
@pytest.mark.parametrize("is_checkpointed", [False, True])
def test_a_snapshot_is_not_rebuilt_from_the_commits_of_a_table_made_anew(
    tmp_path, versions, is_checkpointed
):
    path = tmp_path / "t"
    for value in range(4):
        handle(path).append(rows("a", value))
    handle(path).checkpoint()
    held = handle(path).snapshot()  # its files are read when they are asked for
    anew(path, "a", versions)
    if is_checkpointed:
        DeltaTable(str(path)).create_checkpoint()
    with pytest.raises((TableError, LogFileNotFoundError)):
        held.files  # noqa: B018 - reading it is the test


def test_commits_cut_off_by_hand_are_not_remembered(known):
    log, path = known
    for name in ("00000000000000000003.json", "00000000000000000003.crc"):
        (path / "_delta_log" / name).unlink()
    assert log.snapshot().version == 2
    assert log.append(rows("a", 9)).version == 3
    assert as_it_sees_it(log) == as_others_see_it(path)


def test_the_creator_of_a_table_knows_one_that_took_its_place(tmp_path):
    log = handle(tmp_path / "t")
    log.append(rows("a", 1))
    anew(tmp_path / "t", "b", 1)
    assert log.snapshot().schema.names == ("b",)


def test_two_tables_made_within_one_tick_of_the_clock_are_two():
    log, other = (DeltaLog("memory://identity/t", MemoryLogStore({})) for _ in range(2))
    for each in (log, other):
        MemoryLogStore({})._directories.clear()
        each.append(rows("a", 1))
        each.append(rows("a", 2))
        each.snapshot()
    [path] = set(log.snapshot().files["path"][:1].to_pylist()) - {""}
    assert path in other.snapshot().files["path"].to_pylist()


def test_a_retention_shortened_by_another_writer_is_no_reason_to_commit_below_it(tmp_path):
    path = tmp_path / "t"
    write_deltalake(str(path), rows("a", 0))
    txn = handle(path).start_transaction()
    table = DeltaTable(str(path))
    table.alter.set_table_properties({"delta.logRetentionDuration": "interval 0 days"})
    for value in range(10):
        write_deltalake(str(path), rows("a", value), mode="append")
    DeltaTable(str(path)).create_checkpoint()
    for version in range(10):
        (path / "_delta_log" / f"{version:020}.json").unlink()
    with pytest.raises(StorageError) as caught:
        txn.commit([AddFile("x", {}, 1, 1, True)], WRITE)
    assert caught.value.kind == "OPTIMIST_PREDECESSOR_MISSING"
    assert DeltaTable(str(path)).version() == 11


def test_work_of_the_background_writes_nothing_into_a_table_made_anew(tmp_path):
    path = tmp_path / "t"
    every = {f"{DEFAULTS}checkpointInterval": "1", "optimist.postCommit.background": "true"}
    log = handle(path, every)
    log.append(rows("a", 0))
    log.append(rows("a", 1))
    assert log._commits.background.wait()
    go = threading.Event()
    log._commits.background.submit(go.wait)
    outcomes = log.append(rows("a", 2)).hooks
    anew(path, "b", 1)
    go.set()
    assert {each.wait().error.kind for each in outcomes} == {"OPTIMIST_PREDECESSOR_MISSING"}
    assert as_it_sees_it(handle(path)) == as_others_see_it(path)
    assert not list((path / "_delta_log").glob("*2.*"))


def test_no_manifest_is_written_of_a_table_that_was_made_anew(tmp_path):
    path = tmp_path / "t"
    log = handle(path)
    log.append(rows("a", 0))
    log.append(rows("a", 1))
    manifests = SymlinkManifests(log.table, log.snapshot())
    anew(path, "b", 4)
    with pytest.raises(StorageError) as caught:
        manifests.bring_up_to_date(all_partitions, is_asked_for=True)
    assert caught.value.kind == "OPTIMIST_PREDECESSOR_MISSING"
    assert not (path / MANIFEST_DIRECTORY).exists()


class World:
    """A table on disk that others change, one handle that is kept, and its open transactions."""

    def __init__(self, path: Path, options: dict[str, str]) -> None:
        self.path, self.copy = path, path.with_name("copy")
        self.log = handle(path, options)
        self.open: list[tuple[object, int, bytes]] = []
        self.touched = self.next_value = 0
        self.column = "a"
        self.remake("a")

    def value(self) -> int:
        self.next_value += 1
        return self.next_value

    def remake(self, column: str) -> None:
        shutil.rmtree(self.path, ignore_errors=True)
        self.touched, self.column = self.touched + 1, column
        self.others_append()

    def others_append(self) -> None:
        write_deltalake(str(self.path), rows(self.column, self.value()), mode="append")

    def save(self) -> None:
        shutil.rmtree(self.copy, ignore_errors=True)
        shutil.copytree(self.path, self.copy)

    def restore(self) -> None:
        """The log as it was when it was copied, with the times that it had."""
        if not self.copy.exists():
            return
        shutil.rmtree(self.path)
        shutil.copytree(self.copy, self.path)
        [self.column] = DeltaTable(str(self.path)).schema().to_arrow().names
        self.touched += 1

    def clean(self) -> None:
        self.touched += 1
        table = DeltaTable(str(self.path))
        table.create_checkpoint()
        for version in range(table.version()):
            (self.path / "_delta_log" / f"{version:020}.json").unlink(missing_ok=True)

    def append(self) -> None:
        self.log.append(rows(self.column, self.value()))

    def begin(self) -> None:
        txn = self.log.start_transaction()
        self.open.append((txn, self.touched, self.commit(txn.read_version)))

    def commit(self, version: int) -> bytes:
        path = self.path / "_delta_log" / f"{version:020}.json"
        return path.read_bytes() if path.exists() else b""

    def end(self) -> None:
        """An open transaction lands in the log that it read, or not at all."""
        if not self.open:
            return
        txn, touched, was_read = self.open.pop(0)
        before = DeltaTable(str(self.path)).version()
        is_same = bool(was_read) and self.commit(txn.read_version) == was_read
        try:
            landed = txn.commit([], WRITE).version
        except OptimistError as error:
            assert error.kind == "OPTIMIST_PREDECESSOR_MISSING"
            assert touched != self.touched
            assert DeltaTable(str(self.path)).version() == before
        else:
            assert is_same
            assert landed == DeltaTable(str(self.path)).version() == before + 1

    def look(self) -> None:
        newest = self.log.snapshot()
        assert newest.schema.names == (self.column,)
        assert newest.version == DeltaTable(str(self.path)).version()
        assert as_it_sees_it(self.log) == as_others_see_it(self.path)


STEPS = st.one_of(
    st.sampled_from(["append", "append", "begin", "end", "end", "look", "others_append"]),
    st.sampled_from(["save", "restore", "clean"]),
    st.tuples(st.just("remake"), st.sampled_from("ab")),
)


@settings(max_examples=2 * settings.default.max_examples)
@given(st.lists(STEPS, min_size=3, max_size=25), st.sampled_from([{}, GROUPED]))
def test_nothing_is_served_from_the_memory_of_another_log(tmp_path_factory, steps, options):
    world = World(tmp_path_factory.mktemp("world") / "t", options)
    for step in steps:
        name, *arguments = (step,) if isinstance(step, str) else step
        getattr(world, name)(*arguments)
    while world.open:
        world.end()
    world.look()
    with contextlib.suppress(OSError):
        shutil.rmtree(world.path.parent)


def test_a_version_is_told_from_the_same_one_of_a_log_that_was_restored(tmp_path):
    path = tmp_path / "table"
    write_deltalake(str(path), rows("a", 0))
    shutil.copytree(path, tmp_path / "copy")
    log = handle(path)
    write_deltalake(str(path), rows("a", 1), mode="append")
    before = log.snapshot()
    shutil.rmtree(path)
    shutil.copytree(tmp_path / "copy", path)
    write_deltalake(str(path), rows("a", 2), mode="append")
    after, same = log.snapshot(), handle(path).snapshot()
    assert (before.version, before.metadata.id) == (after.version, after.metadata.id)
    assert not after.is_same_version(before) and after.is_same_version(log.snapshot())
    assert before.log_identity != after.log_identity == same.log_identity


# Our own newest commit, which no listing has shown


@pytest.mark.parametrize("has_tags", [True, False])
def test_an_own_commit_that_another_writer_has_replaced_is_not_served(has_tags):
    class Store(MemoryLogStore):
        """Tells tags of puts, or none."""

        def is_as_created(self, listed):
            return has_tags and super().is_as_created(listed)

    MemoryLogStore.clear("replaced")
    mine, theirs = (DeltaLog("memory:///t", Store(namespace="replaced")) for _ in range(2))
    add = AddFile("a", {}, 1, 1, data_change=True, stats='{"numRecords":1}')
    mine.create(pa.schema([("id", pa.int64())]))
    mine.start_transaction().commit([add], WRITE)
    assert mine.snapshot().version == 1  # a listing has shown these two
    mine.start_transaction().commit([replace(add, path="mine")], WRITE)
    mine.store.delete(commit_path(mine.log_path, 2))
    theirs.start_transaction().commit([replace(add, path="theirs")], WRITE)
    found = mine.snapshot()
    assert sorted(found.files["path"].to_pylist()) == ["a", "theirs"]
    mine.checkpoint()
    fresh = DeltaLog("memory:///t", Store(namespace="replaced")).snapshot()
    assert fresh.segment.checkpoint_version == 2
    assert sorted(fresh.files["path"].to_pylist()) == ["a", "theirs"]


def test_an_own_commit_is_confirmed_without_a_request_where_the_put_told_its_tag():
    MemoryLogStore.clear("tagged")
    store = FaultyLogStore(MemoryLogStore(namespace="tagged"))
    log = DeltaLog("memory:///t", store)
    log.create(pa.schema([("id", pa.int64())]))
    log.snapshot()
    for name in "ab":
        add = AddFile(name, {}, 1, 1, data_change=True, stats='{"numRecords":1}')
        log.start_transaction().commit([add], WRITE)
    reads = store.counts["read_bytes"]
    assert log.snapshot().version == 2
    assert store.counts["read_bytes"] == reads


# A commit in the middle that somebody has removed


@pytest.mark.parametrize("begun", [True, False])
@pytest.mark.parametrize("width", [1, 2])
def test_a_hole_is_refused_and_not_filled_where_versions_are_looked_for_by_name(
    tmp_path, width, begun
):
    mine, theirs = handle(tmp_path / "t"), handle(tmp_path / "t")
    for value in range(3):
        mine.append(rows("a", value))
    txn = mine.start_transaction() if begun else None
    for value in range(3, 7):
        theirs.append(rows("a", value))
    for version in range(3, 3 + width):
        (tmp_path / "t" / "_delta_log" / f"{version:020}.json").unlink()
    with pytest.raises((StorageError, TableError)) as error:
        (txn or mine.start_transaction()).commit([], WRITE)
    assert error.value.kind in ("DELTA_VERSIONS_NOT_CONTIGUOUS", "OPTIMIST_PREDECESSOR_MISSING")
    assert not (tmp_path / "t" / "_delta_log" / f"{3:020}.json").exists()
    with pytest.raises(TableError):
        mine.snapshot()
