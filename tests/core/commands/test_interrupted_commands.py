"""Commands interrupted between any two lines: done or not done, and no file of theirs is lost."""

from __future__ import annotations

import threading
from pathlib import Path

import pyarrow as pa
import pytest

from interrupts import Interrupt, interrupted, places
from optimist.core import DeltaLog
from optimist.core.commands.reruns import run_until_it_lands
from optimist.core.commands.uncommitted_files import UncommittedFiles
from optimist.core.errors import ConcurrentAppendException, SchemaError
from optimist.core.options.engine import EngineOptions
from optimist.core.plugins.logstore import PutOutcome
from optimist.core.protocol.actions import AddFile
from optimist.core.testing import FaultyLogStore, Pause, When
from optimist.core.transaction.conflicts.operations import Operation
from optimist.core.transaction.optimistic import OptimisticTransaction
from optimist.logstores import LocalLogStore

pytestmark = pytest.mark.usefixtures("quiet_log")
COMMITTING = tuple(
    f"transaction/{name}.py" for name in ("commit_files", "log_committer", "optimistic")
)
STEPS = ("commands/command.py", "commands/uncommitted_files.py", *COMMITTING)
ALL = ("commands/", "transaction/", "plugins/creation.py", "table/own_commits.py")
PREPARING = tuple(
    f"transaction/{name}.py"
    for name in ("optimistic", "pending_metadata", "log_committer", "prepare", "prepared_commit")
)
"""Where no request can be under way yet, so that no file may be left."""
WRITE = Operation.write("Append")
_PATIENCE_S = 60


class Scene:
    """A table with the rows 1 and 2, whose log can be watched."""

    def __init__(self, path: Path) -> None:
        self.path = str(path)
        self.store = FaultyLogStore(LocalLogStore())
        self.log = DeltaLog(self.path, self.store, EngineOptions())
        self.log.append(rows(1, 2))
        self.store.clear()

    def append(self) -> None:
        self.log.append(rows(3))

    def delete(self) -> None:
        self.log.delete("id = 2")

    def replace(self) -> None:
        self.log.write(rows(3), "overwrite", predicate="id > 1")

    def live(self) -> set[str]:
        return set(self.log.snapshot().files.column("path").to_pylist())

    def there(self) -> set[str]:
        root = Path(self.path)
        names = {str(each.relative_to(root)) for each in root.rglob("*") if each.is_file()}
        return {name for name in names if not name.startswith("_delta_log")}

    def ids(self) -> list[int]:
        return sorted(DeltaLog(self.path, LocalLogStore()).to_arrow()["id"].to_pylist())


def rows(*ids: int) -> pa.Table:
    return pa.table({"id": pa.array(ids, pa.int64())})


@pytest.mark.parametrize(
    ("folders", "one_in"), [(STEPS, 3), pytest.param(ALL, 1, marks=pytest.mark.again)]
)
@pytest.mark.parametrize(
    ("command", "before", "after"),
    [
        ("append", [1, 2], [1, 2, 3]),
        ("delete", [1, 2], [1]),
        pytest.param("replace", [1, 2], [1, 3], marks=pytest.mark.again),
    ],
)
def test_an_interrupted_command_is_done_or_not(tmp_path, folders, one_in, command, before, after):
    struck = 0
    found = list(places(getattr(Scene(tmp_path / "t"), command), folders))
    for number, place in enumerate(found[::one_in]):
        scene = Scene(tmp_path / f"t{number}")
        old = scene.there()
        struck += interrupted(getattr(scene, command), folders, place)
        ids = scene.ids()
        assert ids in (before, after), place
        if ids == after:
            assert scene.live() <= scene.there(), place
        elif not scene.store.counts["put_if_absent"] and place.file in PREPARING:
            assert scene.there() == old, place
        goes_on(scene)
        assert scene.ids() == [*ids, 9], place
    assert struck > 20


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # of open files
@pytest.mark.parametrize("one_in", [60, pytest.param(1, marks=pytest.mark.again)])
@pytest.mark.parametrize("command", ["append", "replace"])
def test_an_interrupt_while_files_are_written_leaves_none(tmp_path, command, one_in):
    folders = ("local/write.py", "data/parquet/stream_files.py", "data/parquet/parquet_writer.py")
    found = list(places(getattr(Scene(tmp_path / "t"), command), folders))
    for number, place in enumerate(found[::one_in]):
        scene = Scene(tmp_path / f"t{number}")
        old = scene.there()
        assert interrupted(getattr(scene, command), folders, place)
        if scene.ids() == [1, 2]:
            assert scene.there() == old, place
        else:
            assert scene.live() <= scene.there(), place


def goes_on(scene: Scene) -> None:
    """Another thread appends: nothing that the interrupted one held is held any more."""
    thread = threading.Thread(target=lambda: scene.log.append(rows(9)), daemon=True)
    thread.start()
    thread.join(_PATIENCE_S)
    assert not thread.is_alive(), "a thread is stranded"


# What decides is the commit, and not what is raised


def written(scene: Scene, files: UncommittedFiles):
    """A transaction, and a file that it is about to add."""
    directory = Path(scene.path) / "data-1"
    directory.mkdir()
    (directory / "f").write_bytes(b"x")
    files.register(str(directory))
    return scene.log.start_transaction()


def added():
    return [AddFile("data-1/f", {}, size=1, modification_time=1, data_change=True)]


def test_an_error_after_the_commit_removes_no_file(tmp_path):
    scene = Scene(tmp_path / "t")
    with pytest.raises(SchemaError), UncommittedFiles(scene.log.start_transaction()) as files:
        files.commit(written(scene, files), added(), WRITE)
        raise SchemaError("of what follows the commit", kind="K")
    assert scene.live() <= scene.there()


def test_a_conflict_after_the_commit_does_not_have_the_command_done_again(tmp_path):
    scene = Scene(tmp_path / "t")
    tries = []

    def run(txn: OptimisticTransaction) -> None:
        tries.append(txn)
        txn.commit([], WRITE)
        raise ConcurrentAppendException("of a second table", kind="K")

    with pytest.raises(ConcurrentAppendException):
        run_until_it_lands(scene.log.start_transaction, run, retry=True)
    assert len(tries) == 1


@pytest.mark.parametrize("error", [SchemaError("no", kind="K"), Interrupt(), MemoryError()])
def test_whatever_ends_a_commit_before_its_first_request_leaves_no_file(
    tmp_path, error, monkeypatch
):
    def fail(_: object) -> None:
        raise error

    scene = Scene(tmp_path / "t")
    old = scene.there()
    monkeypatch.setattr("optimist.core.transaction.prepared_commit.prepare_commit", fail)
    with pytest.raises(type(error)), UncommittedFiles(scene.log.start_transaction()) as files:
        files.commit(written(scene, files), added(), WRITE)
    assert scene.there() == old


def test_an_interrupt_before_the_winner_is_seen_keeps_the_files(tmp_path):
    """The winner may be the commit itself: an SDK has tried again, and found its first try."""
    scene = Scene(tmp_path / "t")
    put = scene.store.put_if_absent

    def put_twice(path: str, data: bytes) -> PutOutcome:
        put(path, data)
        scene.store.plan(Pause("list_from", When.BEFORE, interrupt))
        return put(path, data)

    def interrupt(_: str) -> None:
        raise Interrupt

    with pytest.raises(Interrupt), UncommittedFiles(scene.log.start_transaction()) as files:
        txn = written(scene, files)
        scene.store.put_if_absent = put_twice
        files.commit(txn, added(), WRITE)
    assert "data-1/f" in scene.live()
    assert scene.live() <= scene.there()


def test_an_interrupt_of_a_request_without_an_answer_keeps_the_files(tmp_path):
    scene = Scene(tmp_path / "t")

    def interrupt(_: str) -> None:
        raise Interrupt

    with pytest.raises(Interrupt), UncommittedFiles(scene.log.start_transaction()) as files:
        txn = written(scene, files)
        scene.store.plan(Pause("put_if_absent", When.AFTER, interrupt))
        files.commit(txn, added(), WRITE)
    assert scene.live() <= scene.there()
    assert "data-1/f" in scene.live()
