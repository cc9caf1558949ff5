"""Blocks whose deletion vectors are files, raced with other commits and with VACUUM."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import nullcontext, suppress
from dataclasses import replace
from pathlib import Path
from random import Random  # noqa: TID251 - the same rows each time

import pyarrow as pa
import pytest
from pyroaring import BitMap64

from local_tables import opened
from optimist.core import DeltaLog, Operation
from optimist.core.data.statistics.loose_bounds import loosen_bounds
from optimist.core.data.vectors.deletion_vectors import inline_vector
from optimist.core.errors import DeltaConcurrentModificationException, StorageError
from optimist.core.log.file_table import add_files
from optimist.core.plugins.logstore import PutOutcome
from optimist.core.protocol.actions import Action, AddFile
from optimist.core.transaction.conflicts import row_search
from optimist.core.transaction.optimistic import OptimisticTransaction
from optimist.logstores import LocalLogStore

_ROWS = 2_000
_NO_WAIT = {  # a VACUUM that waits for no lock, as our commit holds it
    "spark.databricks.delta.retentionDurationCheck.enabled": "false",
    "spark.databricks.delta.vacuum.logging.enabled": "false",
}


def rows(first: int, count: int = _ROWS) -> pa.Table:
    ids = range(first, first + count)
    return pa.table({"id": pa.array(ids, pa.int64()), "p": [each % 2 for each in ids]})


def scattered(seed: int, first: int = 0, count: int = 400) -> list[int]:
    """Rows so far from each other that their vector is too large for the log."""
    return sorted(Random(seed).sample(range(first, first + _ROWS), count))


def among(ids: Iterable[int]) -> str:
    return f"id IN ({', '.join(map(str, sorted(ids)))})"


def table(path: Path, **properties: str) -> DeltaLog:
    log = opened(path, has_vectors=True, **properties)
    log.append(rows(0))
    return log


def ids_of(log: DeltaLog) -> list[int]:
    return sorted(DeltaLog.for_path(log.table_path).to_arrow()["id"].to_pylist())


def vector_files(path: Path) -> set[str]:
    return {file.name for file in path.rglob("deletion_vector_*.bin")}


@pytest.mark.parametrize("winner", ["delete", "optimize"])
@pytest.mark.parametrize("step", ["append", "update"])
def test_a_rebase_keeps_a_vector_file_that_a_file_of_the_block_names(tmp_path, step, winner):
    log = table(tmp_path / "t", enableRowTracking="true")
    log.append(rows(5_000_000, 5))
    old, far = set(range(_ROWS)), 1_000_000
    with log.transaction() as txn:
        if step == "append":
            txn.append(rows(far))
            new = {each + far for each in old}
        else:
            txn.update(set={"id": f"id + {far}"}, predicate=f"id < {_ROWS} AND p = 0")
            new = {each + far for each in old if each % 2 == 0}
            old = {each for each in old if each % 2}
        gone = {
            *Random(1).sample(sorted(old), 400),
            *Random(2).sample(sorted(new), 400),
        }
        txn.delete(among(gone))
        if winner == "delete":
            others = Random(3).sample(sorted(old - gone), 200)
            log.delete(among(others))
            gone.update(others)
        else:
            log.optimize()
    assert ids_of(log) == sorted((old | new | set(range(5_000_000, 5_000_005))) - gone)


def test_files_of_vectors_that_a_rebase_has_replaced_are_removed(tmp_path):
    log = table(tmp_path / "t")
    with log.transaction() as txn:
        txn.delete(among(scattered(1)))
        (first,) = vector_files(tmp_path / "t")
        log.delete(among([each for each in scattered(2) if each not in scattered(1)]))
    assert first not in vector_files(tmp_path / "t")
    assert ids_of(log) == sorted(set(range(_ROWS)) - {*scattered(1), *scattered(2)})


class _BeforePut(LocalLogStore):
    """Does something once, right before the commit of one version is put."""

    def __init__(self, version: int, do: Callable[[], object]) -> None:
        super().__init__()
        self._name, self._do = f"{version:020}.json", do

    def put_if_absent(self, path: str, data: bytes) -> PutOutcome:
        if path.endswith(self._name):
            self._name, do = "", self._do
            do()
        return super().put_if_absent(path, data)


@pytest.mark.parametrize("lands", [True, False])
@pytest.mark.parametrize("how", ["block", "transaction"])
def test_a_vacuum_spares_the_vector_file_that_a_rebase_has_made(tmp_path, how, lands):
    log = table(tmp_path / "t")
    other = DeltaLog.for_path(log.table_path, _NO_WAIT)
    mine, theirs = scattered(1, count=100), scattered(2, count=100)
    theirs = [each for each in theirs if each not in mine]

    def race() -> None:
        other.vacuum(0)
        if not lands:
            raise StorageError("Full.", kind="OPTIMIST_NO_SPACE", retryable=False)

    ours = DeltaLog(log.table_path, _BeforePut(2, race))
    begun = ours.transaction() if how == "block" else ours.start_transaction()
    with suppress(StorageError), nullcontext(begun) if how == "transaction" else begun as txn:
        if how == "block":
            txn.delete(among(mine))
        else:
            actions = deleting(txn, mine)
        other.delete(among(theirs))
        assert not vector_files(tmp_path / "t")  # they are small, and stand in the log
        if how == "transaction":
            txn.commit(actions, Operation("DELETE"))
    gone = {*mine, *theirs} if lands else {*theirs}
    assert ids_of(log) == sorted(set(range(_ROWS)) - gone)
    assert len(vector_files(tmp_path / "t")) == lands
    assert not list((tmp_path / "t" / "_optimist_intents").glob("*"))


def deleting(txn: OptimisticTransaction, ids: list[int]) -> list[Action]:
    """The actions of a transaction that deletes rows of the first file by a small vector."""
    files = txn.filter_files(among(ids))
    txn.need_only(files, [BitMap64(ids)])
    (file,) = add_files(files)
    return [file.remove(1), with_vector(file, ids)]


def raced(path: Path) -> tuple[DeltaLog, OptimisticTransaction, list[Action]]:
    """A transaction that removes a file without live rows, while OPTIMIZE rewrites it."""
    log = table(path)
    log.append(rows(_ROWS))
    log.append(rows(2 * _ROWS))
    empty, marked, _ = sorted(add_files(log.files()), key=lambda file: file.stats or "")
    txn = log.start_transaction()
    txn.commit([empty.remove(1), with_vector(empty, range(_ROWS))], Operation("DELETE"))
    txn = log.start_transaction()
    files = txn.filter_files()
    now = {file.path: file for file in add_files(files)}
    paths = [file.path for file in add_files(files)]
    txn.need_only(files, [BitMap64([1] if path == marked.path else []) for path in paths])
    empty, marked = now[empty.path], now[marked.path]
    actions = [empty.remove(2), marked.remove(2), with_vector(marked, [1])]
    log.optimize()
    return log, txn, actions


def with_vector(file: AddFile, gone: Iterable[int]) -> AddFile:
    marked = BitMap64(gone)
    stats = loosen_bounds(file.stats, num_rows=_ROWS, num_live=_ROWS - len(marked))
    return replace(file, deletion_vector=inline_vector(marked), stats=stats)


def test_a_file_without_live_rows_is_passed_with_its_rearrangement(tmp_path):
    log, txn, actions = raced(tmp_path / "t")
    txn.commit(actions, Operation("DELETE"))
    assert ids_of(log) == [each for each in range(_ROWS, 3 * _ROWS) if each != _ROWS + 1]


def test_an_error_of_the_closer_look_is_a_conflict_and_no_error(tmp_path, monkeypatch):
    log, txn, actions = raced(tmp_path / "t")
    before = ids_of(log)

    def fail(*_: object) -> None:
        raise IndexError

    monkeypatch.setattr(row_search, "_find_in_order", fail)
    with pytest.raises(DeltaConcurrentModificationException):
        txn.commit(actions, Operation("DELETE"))
    assert not txn.may_be_in_table
    assert ids_of(log) == before
