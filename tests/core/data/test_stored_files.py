"""Removing data files by a store."""

from __future__ import annotations

import pytest

from optimist.core.data.storage import stored_files
from optimist.core.errors import LogFileNotFoundError, StorageError
from optimist.core.plugins.logstore import PutOutcome
from optimist.logstores import MemoryLogStore


class Picky(MemoryLogStore):
    """A store that knows no long names."""

    def __init__(self, kind):
        super().__init__({}, namespace="picky")
        self.kind = kind

    def delete_data_files(self, paths):
        for path in paths:
            if len(path) > 100:
                raise StorageError("It is too long.", kind=self.kind, path=path, retryable=False)
            self.delete(path)


def test_a_name_that_the_store_knows_none_of_keeps_no_other_file(monkeypatch):
    store = Picky("OPTIMIST_INVALID_PATH")
    monkeypatch.setattr(stored_files, "store_of", lambda *_: store)
    assert store.put_if_absent("memory:///t/b", b"x") is PutOutcome.CREATED
    stored_files.remove_files(["memory:///t/" + "a" * 100, "memory:///t/b"])
    with pytest.raises(LogFileNotFoundError):
        store.read_bytes("memory:///t/b")
    store.kind = "OPTIMIST_PERMISSION_DENIED"
    with pytest.raises(StorageError):
        stored_files.remove_files(["memory:///t/" + "a" * 100])
