"""FsspecLogStore where it writes: drivers of the table, and arbiters before the others."""

import io
from functools import partial
from pathlib import Path

import fsspec
import pytest
from fsspec.implementations.memory import MemoryFileSystem
from fsspec.spec import AbstractBufferedFile

from optimist.core import DeltaLog
from optimist.core.errors import ConfigError, StorageError
from optimist.core.forking import ForkSafeLock
from optimist.core.plugins.logstore import PutOutcome
from optimist.core.protocol.actions import AddFile, Metadata
from optimist.core.testing import LogStoreSuite
from optimist.core.transaction.conflicts.operations import Operation
from optimist.locks.sql_arbiter import SQLArbiter
from optimist.logstores.fsspec import drivers as fsspec_drivers
from optimist.logstores.fsspec import store as fsspec_store
from optimist.logstores.fsspec.arbiter import FsspecArbiterLogStore
from optimist.logstores.fsspec.store import FsspecLogStore

SCHEMA = '{"type":"struct","fields":[{"name":"a","type":"long","nullable":true,"metadata":{}}]}'
TABLE = "exclusive://box/table"
COMMIT = f"{TABLE}/_delta_log/00000000000000000000.json"


class ExclusiveFileSystem(MemoryFileSystem):
    """A driver as those of the table are: one step, and the server says whether it was there."""

    protocol = "exclusive"
    store = {}  # noqa: RUF012 - as the base class has it
    pseudo_dirs = [""]  # noqa: RUF012
    lock = ForkSafeLock()
    honours_condition = True
    sabotage = None

    def pipe_file(self, path, value, mode="overwrite", **kwargs):
        path = self._strip_protocol(path)
        with self.lock:
            if mode == "create" and path in self.store and self.honours_condition:
                raise FileExistsError(path)
            super().pipe_file(path, value)
        if self.sabotage is not None:
            self.sabotage(path)

    # What the base class has listed it looks up again, and by then it might be gone.

    def ls(self, path, detail=True, **kwargs):
        with self.lock:
            return super().ls(path, detail, **kwargs)

    def rm_file(self, path):
        with self.lock:
            super().rm_file(path)


@pytest.fixture
def driver(monkeypatch):
    fsspec.register_implementation("exclusive", ExclusiveFileSystem, clobber=True)
    row = fsspec_drivers.ExclusiveDriver(
        f"{__name__}:ExclusiveFileSystem", ("exclusive",), "fsspec", (2024, 6), "", "", ""
    )
    monkeypatch.setattr(
        fsspec_drivers, "EXCLUSIVE_DRIVERS", (*fsspec_drivers.EXCLUSIVE_DRIVERS, row)
    )
    monkeypatch.setattr(ExclusiveFileSystem, "store", {})
    monkeypatch.setattr(ExclusiveFileSystem, "pseudo_dirs", [""])
    ExclusiveFileSystem.clear_instance_cache()
    yield fsspec.filesystem("exclusive")
    ExclusiveFileSystem.clear_instance_cache()


@pytest.fixture(autouse=True)
def probed_anew(monkeypatch):
    monkeypatch.setattr("optimist.logstores.shared.create_probe._VERDICTS", {})


@pytest.fixture
def store(driver):
    return FsspecLogStore()


@pytest.fixture
def probed(driver, store):
    """The store when its driver has been probed already."""
    store.put_if_absent("exclusive://box/other", b"x")
    return store


class TestFsspecLogStoreOnAnExclusiveDriver(LogStoreSuite):
    store_factory = FsspecLogStore
    has_directories = False
    supports_processes = False

    @pytest.fixture
    def directory(self, driver):
        self.driver = driver
        return f"{TABLE}/_delta_log"

    def peek(self, path):
        return self.driver.cat_file(path) if self.driver.exists(path) else None

    def poke(self, path, data):
        MemoryFileSystem.pipe_file(self.driver, path, data)


def test_driver_is_probed_once_and_the_probe_removed(driver, store):
    assert store.put_if_absent(COMMIT, b"x") is PutOutcome.CREATED
    assert list(driver.store) == [COMMIT]
    assert "refuses a second creation" in store.describe()["probed"]


def test_server_that_ignores_the_condition_is_not_written(driver, store, monkeypatch):
    monkeypatch.setattr(ExclusiveFileSystem, "honours_condition", False)
    with pytest.raises(ConfigError) as caught:
        store.put_if_absent(COMMIT, b"x")
    assert caught.value.kind == "OPTIMIST_NO_ATOMIC_CREATE"
    assert driver.store == {}


def test_older_version_is_refused_and_the_newer_one_named(driver, store, monkeypatch):
    monkeypatch.setattr(fsspec_drivers, "_installed_version", lambda package: (2024, 5, 9))
    with pytest.raises(ConfigError) as caught:
        store.put_if_absent(COMMIT, b"x")
    assert caught.value.kind == "OPTIMIST_NO_ATOMIC_CREATE"
    assert "fsspec>=2024.6" in str(caught.value)
    assert driver.store == {}


def test_subclass_of_a_driver_of_the_table_is_refused(driver, store):
    class Wrapped(ExclusiveFileSystem):
        protocol = "wrapped"

    fsspec.register_implementation("wrapped", Wrapped, clobber=True)
    with pytest.raises(ConfigError) as caught:
        store.put_if_absent("wrapped://box/0", b"x")
    assert caught.value.kind == "OPTIMIST_NO_ATOMIC_CREATE"


def test_error_after_the_write_leaves_the_outcome_open(driver, probed, monkeypatch):
    def fail(path):
        raise RuntimeError("the answer was lost; signature=hunter2")

    monkeypatch.setattr(ExclusiveFileSystem, "sabotage", staticmethod(fail))
    assert probed.put_if_absent(COMMIT, b"x") is PutOutcome.UNKNOWN
    with pytest.raises(StorageError) as caught:
        probed.put_overwrite(f"{TABLE}/_delta_log/_last_checkpoint", b"x")
    assert "hunter2" not in str(caught.value)


def test_file_that_the_drivers_own_repetition_met_is_not_taken_for_anothers(driver, probed):
    MemoryFileSystem.pipe_file(driver, COMMIT, b"ours")
    assert probed.put_if_absent(COMMIT, b"ours") is PutOutcome.UNKNOWN
    assert probed.put_if_absent(COMMIT, b"another's") is PutOutcome.EXISTS


def test_commit_whose_answer_was_lost_is_made_once(driver, probed, monkeypatch):
    log = _new_table(probed, TABLE)
    lost = []

    def lose(path):
        if path.endswith("00001.json") and not lost:
            lost.append(path)
            raise ConnectionResetError

    monkeypatch.setattr(ExclusiveFileSystem, "sabotage", staticmethod(lose))
    assert _append(log, "a").version == 1
    assert lost
    assert log.snapshot().files["path"].to_pylist() == ["a"]


def test_objects_appear_whole_and_other_drivers_files_may_not(driver, store):
    assert not store.is_partial_write_visible(COMMIT)
    assert store.is_partial_write_visible("file:///tmp/x")


# With an arbiter


@pytest.fixture
def arbitrated(memory, tmp_path):
    arbiter = SQLArbiter({"optimist.store.sql.url": f"sqlite:///{tmp_path}/arbiter"})
    return FsspecArbiterLogStore(arbiter=arbiter)


class TestFsspecArbiterLogStoreOnMemory(LogStoreSuite):
    has_directories = False
    forgets_deleted = False
    supports_processes = False
    survives_forks = False  # a commit caught between entry and file is finished by its thread

    @pytest.fixture(autouse=True)
    def with_arbiter(self, memory, tmp_path):
        options = {
            "optimist.store.arbiter": "sql",
            "optimist.store.sql.url": f"sqlite:///{tmp_path}/arbiter",
        }
        type(self).store_factory = partial(FsspecArbiterLogStore, options)
        self.driver = memory

    @pytest.fixture
    def directory(self):
        return "memory://box/table/_delta_log"

    def peek(self, path):
        return self.driver.cat_file(path) if self.driver.exists(path) else None

    def poke(self, path, data):
        self.driver.pipe_file(path, data)


def test_driver_without_exclusive_create_takes_commits_behind_an_arbiter(arbitrated):
    log = _new_table(arbitrated, "memory://box/table")
    assert [_append(log, name).version for name in "abc"] == [1, 2, 3]
    assert sorted(log.snapshot().files["path"].to_pylist()) == ["a", "b", "c"]


def test_driver_whose_files_may_show_in_part_is_refused_behind_an_arbiter_too(arbitrated, tmp_path):
    with pytest.raises(ConfigError) as caught:
        arbitrated.put_if_absent(f"simplecache::file://{tmp_path}/t/_delta_log/0.json", b"x")
    assert caught.value.kind == "OPTIMIST_NO_ATOMIC_CREATE"


def test_store_with_an_arbiter_demands_one():
    with pytest.raises(ConfigError) as caught:
        FsspecArbiterLogStore({})
    assert caught.value.kind == "OPTIMIST_NO_ARBITER"


# The table


def test_each_driver_of_the_table_stands_there_once():
    drivers = [row.driver for row in fsspec_drivers.EXCLUSIVE_DRIVERS]
    protocols = [name for row in fsspec_drivers.EXCLUSIVE_DRIVERS for name in row.protocols]
    assert len(set(drivers)) == len(drivers)
    assert len(set(protocols)) == len(protocols)


@pytest.mark.parametrize("row", fsspec_drivers.EXCLUSIVE_DRIVERS, ids=lambda row: row.driver)
def test_docs_have_each_driver_as_the_code_has_it(row):
    page = (Path(__file__).parents[2] / "docs" / "fsspec.md").read_text(encoding="utf-8")
    version = ".".join(map(str, row.version or ()))
    name = row.package or row.protocols[0]
    assert (
        f"| `{name}` | {version}{' ' * bool(version)}| {row.condition} | {row.raced_on} |" in page
    )


@pytest.mark.parametrize(
    ("installed", "is_exclusive"),
    [("2026.8.9", False), ("2026.9.0", True), ("2026.10.0rc1", True), ("2027.1", True)],
)
def test_version_decides(monkeypatch, installed, is_exclusive):
    monkeypatch.setattr(fsspec_drivers.importlib.metadata, "version", lambda package: installed)
    assert fsspec_drivers.EXCLUSIVE_DRIVERS[0].is_exclusive is is_exclusive


def _new_table(store, path):
    log = DeltaLog(path, store)
    txn = log.start_transaction()
    txn.update_metadata(Metadata(id="x", schema_string=SCHEMA, partition_columns=()))
    txn.commit([], Operation("CREATE TABLE"))
    return log


def _append(log, name):
    add = AddFile(name, {}, size=1, modification_time=1, data_change=True)
    return log.start_transaction().commit([add], Operation.write("Append"))


class Buffered(AbstractBufferedFile):
    """As drivers' files are: what was written so far is sent when it is closed."""

    def _upload_chunk(self, final=False):
        self.kwargs["sent"].append((self.buffer.tell(), final))
        return True


class CutOff(io.BytesIO):
    """A file of which only the beginning can be read."""

    def read(self, size=-1):
        if self.tell():
            raise OSError("the disk is gone")
        return super().read(size)


def test_a_file_that_could_not_be_sent_whole_is_not_published():
    sent = []
    target = Buffered(MemoryFileSystem(), "/x", "wb", sent=sent)
    with pytest.raises(OSError, match="the disk is gone"):
        fsspec_store._write_pieces(CutOff(bytes(fsspec_store.PIECE_BYTES + 1)), target)
    target.close()
    del target
    assert not any(final for _, final in sent)
