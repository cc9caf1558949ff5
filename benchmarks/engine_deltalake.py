"""deltalake behind the calls of `engines.py`.

`DeltaTable(path)` loads every file, but ours loads files when they are asked for: so `_open` leaves
them out here, too. Retries are left at deltalake's default; it gives up after 15.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import deltalake
import pyarrow as pa
import pyarrow.compute as pc

from big_log import EVEN_BATCH, one_even_row
from engines import CHECKPOINT_INTERVAL, FEW_BELOW, Engine

if TYPE_CHECKING:
    from locations import Location

__all__ = ["ENGINE"]

_CHECKPOINTS: dict[str, str | None] = {"delta.checkpointInterval": CHECKPOINT_INTERVAL}


def _create(location: Location, rows: pa.Table) -> object:
    return deltalake.write_deltalake(
        location.url, rows, configuration=_CHECKPOINTS, storage_options=dict(location.theirs)
    )


def _append(location: Location, rows: pa.Table) -> object:
    return deltalake.write_deltalake(
        location.url, rows, mode="append", storage_options=dict(location.theirs)
    )


def _appender(location: Location) -> Callable[[pa.Table], object]:
    table = deltalake.DeltaTable(location.url, storage_options=dict(location.theirs))
    return lambda rows: deltalake.write_deltalake(table, rows, mode="append")


def _open(path: str) -> int:
    return deltalake.DeltaTable(path, without_files=True).version()


def _files(path: str) -> int:
    return len(deltalake.DeltaTable(path).file_uris())


def _find(path: str) -> int:
    return len(deltalake.DeltaTable(path).file_uris([("batch", "=", str(EVEN_BATCH))]))


def _append_row(path: str) -> int:
    deltalake.write_deltalake(path, one_even_row(), mode="append")
    return deltalake.DeltaTable(path, without_files=True).version()


def _planner(path: str) -> Callable[[], int]:
    dataset = deltalake.DeltaTable(path).to_pyarrow_dataset()
    column = pc.field("flight_id")
    for _ in dataset.get_fragments(filter=column > FEW_BELOW):
        pass
    return lambda: sum(1 for _ in dataset.get_fragments(filter=column < FEW_BELOW))


ENGINE = Engine(_create, _append, _appender, _open, _files, _find, _append_row, _planner)
