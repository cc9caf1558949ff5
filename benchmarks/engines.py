"""The engines under comparison, each behind the same few calls, made to do the same work.

Two defaults differ and would otherwise be what is measured. deltalake checkpoints every 100
commits, so that appends grow dearer along the log: its tables get our interval, Delta's own.
`DeltaTable(path)` loads every file, where we wait until they are asked for: its open leaves them
out too. Retries are left at each engine's default; deltalake gives up after 15.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import deltalake
import pyarrow as pa
import pyarrow.compute as pc

from locations import Location
from optimist.core import DeltaLog

__all__ = ["ENGINES", "OURS", "THEIRS", "Engine"]

CHECKPOINTS: dict[str, str | None] = {"delta.checkpointInterval": "10"}

_FEW_BELOW = 100_000_000
"""About one in a hundred of the files of `big_log.py` begins with a smaller `flight_id`."""


@dataclass(frozen=True, slots=True)
class Engine:
    """What one engine does for each measurement.

    Attributes:
        name: As it stands in the results.
        create: Make a table at the location with the rows as its first commit.
        append: Append rows to the table at the location, as a job does that knows only the path.
        appender: An append to the location that keeps the table open from call to call.
        open_table: Open the table without its files; returns the version.
        list_files: Open the table and list its live files; returns their number.
        planner: Open the table and plan a query, as a service does that keeps it open; what comes
            back plans another one, which is left about 1 % of the files, and returns their number.
    """

    name: str
    create: Callable[[Location, pa.Table], object]
    append: Callable[[Location, pa.Table], object]
    appender: Callable[[Location], Callable[[pa.Table], object]]
    open_table: Callable[[str], int]
    list_files: Callable[[str], int]
    planner: Callable[[str], Callable[[], int]]


def _our_append(location: Location, rows: pa.Table) -> object:
    return DeltaLog.for_path(location.url, location.ours).append(rows)


def _our_appender(location: Location) -> Callable[[pa.Table], object]:
    return DeltaLog.for_path(location.url, location.ours).append


def _our_open(path: str) -> int:
    return DeltaLog.for_path(path).update().version


def _our_files(path: str) -> int:
    return int(DeltaLog.for_path(path).update().files.num_rows)


def _our_planner(path: str) -> Callable[[], int]:
    snapshot = DeltaLog.for_path(path).update()
    snapshot.scan(f"flight_id > {_FEW_BELOW}")
    return lambda: int(snapshot.scan(f"flight_id < {_FEW_BELOW}").files.num_rows)


def _their_create(location: Location, rows: pa.Table) -> object:
    return deltalake.write_deltalake(
        location.url, rows, configuration=CHECKPOINTS, storage_options=dict(location.theirs)
    )


def _their_append(location: Location, rows: pa.Table) -> object:
    return deltalake.write_deltalake(
        location.url, rows, mode="append", storage_options=dict(location.theirs)
    )


def _their_appender(location: Location) -> Callable[[pa.Table], object]:
    table = deltalake.DeltaTable(location.url, storage_options=dict(location.theirs))
    return lambda rows: deltalake.write_deltalake(table, rows, mode="append")


def _their_open(path: str) -> int:
    return deltalake.DeltaTable(path, without_files=True).version()


def _their_files(path: str) -> int:
    return len(deltalake.DeltaTable(path).file_uris())


def _their_planner(path: str) -> Callable[[], int]:
    dataset = deltalake.DeltaTable(path).to_pyarrow_dataset()
    column = pc.field("flight_id")
    for _ in dataset.get_fragments(filter=column > _FEW_BELOW):
        pass
    return lambda: sum(1 for _ in dataset.get_fragments(filter=column < _FEW_BELOW))


OURS = Engine(
    "optimist", _our_append, _our_append, _our_appender, _our_open, _our_files, _our_planner
)
THEIRS = Engine(
    "deltalake",
    _their_create,
    _their_append,
    _their_appender,
    _their_open,
    _their_files,
    _their_planner,
)
ENGINES = {engine.name: engine for engine in (OURS, THEIRS)}
