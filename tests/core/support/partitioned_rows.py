"""Rows of two columns in a table with partitions, as tests of `DeltaLog.write` look at them."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa

from optimist.core import DeltaLog


def table_of(ids: list[int], parts: list[str | None]) -> pa.Table:
    return pa.table({"id": ids, "p": pa.array(parts, pa.string())})


def files_below(log: DeltaLog) -> list[str]:
    return sorted(str(path) for path in Path(log.table_path).rglob("*") if path.is_file())


def parted(log: DeltaLog) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {}
    for row in sorted(log.to_arrow().to_pylist(), key=lambda row: row["id"]):
        found.setdefault(row["p"], []).append(row["id"])
    return found
