"""Large commits whose put was repeated without a word, or whose winner no listing shows yet."""

from __future__ import annotations

import pyarrow as pa
import pytest

from local_tables import DEFAULTS
from optimist.core import DeltaLog
from optimist.core.errors import ConcurrentWriteException
from optimist.core.log.file_table import files_table
from optimist.core.log.many_files import ManyFiles
from optimist.core.options.engine import EngineOptions
from optimist.core.transaction.conflicts.operations import Operation
from optimist.logstores import LocalLogStore, MemoryLogStore

RESTORE = Operation("RESTORE")


class _Twice:
    """A client that sends each commit twice, and tells only the second answer."""

    def put_if_absent(self, path, data):
        if path.endswith(".json"):
            super().put_if_absent(path, data)
        return super().put_if_absent(path, data)


class Repeats(_Twice, MemoryLogStore):
    """A store in memory with such a client."""


class RepeatsOnDisk(_Twice, LocalLogStore):
    """A store on disk with such a client."""


class Lags(MemoryLogStore):
    """A store whose listings do not show the newest commit."""

    hidden = ""

    def list_from(self, path):
        return (
            each for each in super().list_from(path) if not self.hidden or each.name < self.hidden
        )


@pytest.mark.parametrize("as_columns", [False, True])
def test_a_commit_knows_itself_after_a_put_that_was_repeated(make_table, as_columns):
    table = make_table(store=Repeats()).create()
    txn = table.log.start_transaction()
    adds = [table.add("a"), table.add("b")]
    if as_columns:
        files = ManyFiles(files_table(adds), files_table(()), 1)
        result = txn.commit_large((), RESTORE, files=files)
    else:
        result = txn.commit_large(adds, RESTORE)
    assert (result.version, result.attempts, txn.has_landed) == (1, 1, True)
    assert not result.failed_hooks
    assert table.live() == ["a", "b"] == sorted(table.log.snapshot().files["path"].to_pylist())
    assert table.handle().snapshot().version == 1


def test_commands_tell_of_their_commit_and_keep_its_files(tmp_path):
    options = EngineOptions.from_options({f"{DEFAULTS}columnMapping.mode": "name"})
    log = DeltaLog(str(tmp_path / "t"), RepeatsOnDisk(), options)
    for number in range(3):
        log.append(pa.table({"id": [number]}))
    log.restore(version=1)
    assert log.history(1)[0].version == 3
    log.drop_feature("columnMapping")  # writes all files again
    fresh = DeltaLog.for_path(str(tmp_path / "t"))
    assert sorted(fresh.to_arrow()["id"].to_pylist()) == [0, 1]


def test_a_winner_that_no_listing_shows_is_told_by_its_name(make_table):
    store = Lags()
    table = make_table(store=store).create()
    txn = table.log.start_transaction()
    table.handle().start_transaction().commit([table.add("a")], Operation("CLONE"))
    store.hidden = f"{1:020}"
    with pytest.raises(ConcurrentWriteException, match="CLONE") as raised:
        txn.commit_large([table.add("b")], RESTORE)
    assert raised.value.conflict.winning_version == 1
