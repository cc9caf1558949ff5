"""Data files are created in one step whose outcome is known, whatever the store answers."""

import pytest
from fsspec.implementations.memory import MemoryFileSystem
from pyarrow import fs

from optimist.core.data.storage.new_file import new_file
from optimist.core.errors import LogFileNotFoundError, StorageError
from optimist.core.options.engine import EngineOptions
from optimist.core.plugins.data_access import DataAccess
from optimist.core.plugins.data_origin import DataOrigin
from optimist.core.plugins.logstore import PutOutcome
from optimist.core.testing import ManualClock
from optimist.logstores.memory import MemoryLogStore

POLICY = EngineOptions().retry_policy
PATH = "script://box/t/part-1.parquet"
stored = {}
"""What the store of the tests holds."""
planned = []
"""What it does to the next files: `created`, `lost before`, `lost after`, `twice`, `refused`."""


class ScriptedStore(MemoryLogStore):
    """Keeps files in `stored`; made by class path, as in the task of an executor."""

    def put_data_file(self, path, file):
        file.seek(0)
        answer = planned.pop(0) if planned else "created"
        if answer == "refused":
            raise StorageError("no", kind="OPTIMIST_STORE_UNREACHABLE", path=path, retryable=True)
        if answer == "lost before":
            return PutOutcome.UNKNOWN
        outcome = PutOutcome.EXISTS if path in stored else PutOutcome.CREATED
        stored.setdefault(path, file.read())
        return {"lost after": PutOutcome.UNKNOWN, "twice": PutOutcome.EXISTS}.get(answer, outcome)

    def read_bytes(self, path):
        if path not in stored:
            raise LogFileNotFoundError(
                "gone", kind="OPTIMIST_FILE_NOT_FOUND", path=path, retryable=False
            )
        return stored[path]


@pytest.fixture(autouse=True)
def fresh():
    stored.clear()
    planned.clear()


def begin(path=PATH, **given):
    options = {"delta.logStore.class": f"{__name__}:ScriptedStore"}
    access = DataAccess.of("fsspec", DataOrigin.of(PATH), {}, store_options=options)
    filesystem = given.pop("filesystem", None)
    return new_file(
        path, filesystem, path, access=access, clock=ManualClock(), policy=POLICY, **given
    )


@pytest.mark.parametrize(
    "answers",
    [
        ["created"],
        ["lost before"],
        ["lost after"],
        ["twice"],
        ["refused", "created"],
        ["lost before", "lost before", "lost after"],
        ["refused", "twice"],
    ],
    ids=" ".join,
)
@pytest.mark.parametrize("size", [0, 10, 9 << 20])
def test_file_is_there_whole_whatever_became_of_the_answers(answers, size):
    planned.extend(answers)
    file = begin()
    file.sink.write(b"x" * size)
    assert file.publish() == size
    assert stored == {PATH: b"x" * size}


@pytest.mark.parametrize("other", [b"", b"thers", b"others"])
def test_other_content_under_the_name_is_no_success(other):
    stored[PATH] = other
    file = begin()
    file.sink.write(b"mine !")
    with pytest.raises(StorageError) as caught:
        file.publish()
    assert caught.value.kind == "OPTIMIST_DATA_FILE_DIFFERS"
    assert stored == {PATH: other}


def test_silence_ends_and_says_that_nothing_is_known():
    planned.extend(["lost before"] * 50)
    file = begin()
    file.sink.write(b"x")
    with pytest.raises(StorageError) as caught:
        file.publish()
    assert caught.value.kind == "OPTIMIST_WRITE_OUTCOME_UNKNOWN"


def test_discarded_file_is_never_created():
    file = begin()
    file.sink.write(b"x")
    file.discard()
    assert stored == {}


def test_local_file_takes_no_name_that_is_taken(tmp_path):
    path = str(tmp_path / "part-1.parquet")
    file = begin(path, filesystem=fs.LocalFileSystem())
    file.sink.write(b"first")
    assert file.publish() == 5
    with pytest.raises(FileExistsError):
        begin(path, filesystem=fs.LocalFileSystem())
    assert (tmp_path / "part-1.parquet").read_bytes() == b"first"


class Emptied(MemoryFileSystem):
    """Says that every file is empty, as one is that was emptied behind our back."""

    cachable = False

    def info(self, path, **kwargs):
        return {**super().info(path, **kwargs), "size": 0}


def test_file_of_a_driver_that_is_short_at_the_end_is_an_error():
    filesystem = fs.PyFileSystem(fs.FSSpecHandler(Emptied()))
    file = new_file(
        "memory://new/x", filesystem, "/new/x", access=None, clock=ManualClock(), policy=POLICY
    )
    file.sink.write(b"content")
    with pytest.raises(StorageError) as caught:
        file.publish()
    assert caught.value.kind == "OPTIMIST_DATA_FILE_DIFFERS"
