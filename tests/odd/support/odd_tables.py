"""Tables of odd values whose files are known row by row."""

from __future__ import annotations

import datetime as dt
import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import deltalake
import pyarrow as pa

from optimist.core import DeltaLog
from optimist.core.data.column_shape import arrow_rows
from optimist.core.data.parquet.parquet_writer import FileSpec, TaskFiles
from optimist.core.predicates import Predicate, evaluate
from optimist.core.transaction.conflicts.operations import Operation
from row_model import Condition, matching

__all__ = ["OddTable", "chunks_of", "disagreements", "is_read_by_deltalake", "plain", "spelled"]


def plain(value: Any) -> Any:
    """Without what only Arrow adds: zones by another name for UTC."""
    if isinstance(value, dt.datetime) and value.tzinfo is not None:
        return value.astimezone(dt.timezone.utc)
    if isinstance(value, Mapping):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    return value


def spelled(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """Rows as text, in which NaN is NaN and the zeros are two, in the order of their ids."""
    return [repr(plain(row)) for row in sorted(rows, key=lambda row: row["id"])]


def chunks_of(values: Sequence[Any]) -> list[tuple[Any, ...]]:
    """What the files hold: each value alone, with null and with its neighbour, then all of them."""
    alone = [(value,) for value in (*values, None)]
    with_null = [(value, None) for value in values]
    return [*alone, *with_null, *itertools.pairwise(values), (*values, None)]


@dataclass(frozen=True)
class OddTable:
    """A table, and its rows by the paths of its files."""

    log: DeltaLog
    files: Mapping[str, tuple[Mapping[str, Any], ...]]

    @property
    def rows(self) -> tuple[Mapping[str, Any], ...]:
        return tuple(row for rows in self.files.values() for row in rows)

    def anew(self) -> DeltaLog:
        """A handle that remembers nothing."""
        return DeltaLog(self.log.table_path, self.log.store, self.log.options)

    @classmethod
    def write(
        cls,
        path: str,
        chunks: Sequence[pa.Table],
        options: Mapping[str, str] | None = None,
        partition_by: Sequence[str] = (),
    ) -> OddTable:
        """One commit with at least a file per chunk; `id` is counted through."""
        log = DeltaLog.for_path(path, options or {})
        log.append(chunks[0].slice(0, 0), partition_by=partition_by)
        txn = log.start_transaction()
        spec = FileSpec.of(log.table_path, txn.metadata, log.options)
        found, start = {}, 0
        adds = []
        for chunk in chunks:
            ids = pa.array(range(start, start + chunk.num_rows), pa.int64())
            start += chunk.num_rows
            rows = chunk.set_column(0, "id", ids)
            files = TaskFiles(spec, log.clock)
            files.write(arrow_rows(rows, spec.schema))
            added = files.close()
            adds += added
            for add in added:
                assert len(added) == 1, "a chunk is a file"
                found[add.path] = tuple(rows.to_pylist())
        txn.commit(adds, Operation.write("Append"))
        return cls(log, found)


def is_read_by_deltalake(odd: OddTable) -> bool:
    """Whether `deltalake` reads every row as it is."""
    try:
        rows = deltalake.DeltaTable(odd.log.table_path).to_pyarrow_table().to_pylist()
    except pa.ArrowInvalid:
        return False
    return spelled(rows) == spelled(odd.rows)


_EVERY_FEW = 11
"""Every so many conditions the files themselves are read."""


def disagreements(odd: OddTable, log: DeltaLog, judged: Iterable[Condition]) -> list[Any]:
    """Where the engine and a look at each row say different things; empty where all is well.

    For each condition: which rows it holds for, whether a file with such a row is skipped, and how
    many there are by the log and the files that it does not decide.
    """
    snapshot, everything = log.snapshot(), log.to_arrow().sort_by("id")
    wrong: list[Any] = []
    for number, condition in enumerate(judged):
        wanted = matching(condition, odd.rows)
        predicate = Predicate.parse(condition.sql)
        mask = evaluate(predicate, everything)
        found = None if mask is None else everything.filter(mask)["id"].to_pylist()
        kept = set(snapshot.scan(predicate).files["path"].to_pylist())
        skipped = [row for path, rows in odd.files.items() if path not in kept for row in rows]
        lost = matching(condition, skipped)
        counted = snapshot.count(predicate)
        undecided = [odd.files[path] for path in counted.undecided["path"].to_pylist()]
        total = counted.rows + sum(len(matching(condition, rows)) for rows in undecided)
        if found != wanted or lost or total != len(wanted):
            wrong.append((condition, found, wanted, lost, total))
        if number % _EVERY_FEW == 0:
            read = sorted(log.to_arrow(condition.sql, ["id"])["id"].to_pylist())
            if read != wanted or log.count(condition.sql) != len(wanted):
                wrong.append((condition, read, wanted))
    return wrong
