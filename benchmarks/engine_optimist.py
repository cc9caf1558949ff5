"""Optimist behind the calls of `engines.py`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import pyarrow as pa

from big_log import EVEN_BATCH, one_even_row
from engines import FEW_BELOW, Engine
from optimist.core import DeltaLog

if TYPE_CHECKING:
    from locations import Location

__all__ = ["ENGINE"]


def _append(location: Location, rows: pa.Table) -> object:
    return DeltaLog.for_path(location.url, location.ours).append(rows)


def _appender(location: Location) -> Callable[[pa.Table], object]:
    return DeltaLog.for_path(location.url, location.ours).append


def _open(path: str) -> int:
    return DeltaLog.for_path(path).snapshot().version


def _files(path: str) -> int:
    snapshot = DeltaLog.for_path(path).snapshot()

    def uris(batches: Iterator[pa.RecordBatch]) -> list[str]:
        found = (snapshot.data_paths.full_paths(batch.column("path")) for batch in batches)
        return [uri for part in found for uri in part.to_pylist()]

    return len(snapshot.read_columns(("path",), uris))


def _find(path: str) -> int:
    return int(DeltaLog.for_path(path).snapshot().scan(f"batch = {EVEN_BATCH}").files.num_rows)


def _append_row(path: str) -> int:
    return DeltaLog.for_path(path).append(one_even_row()).version


def _planner(path: str) -> Callable[[], int]:
    snapshot = DeltaLog.for_path(path).snapshot()
    snapshot.scan(f"flight_id > {FEW_BELOW}")
    return lambda: int(snapshot.scan(f"flight_id < {FEW_BELOW}").files.num_rows)


ENGINE = Engine(_append, _append, _appender, _open, _files, _find, _append_row, _planner)
