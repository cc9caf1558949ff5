"""Small tables for blocks of several operations, and what they hold."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from local_tables import opened
from optimist.core import DeltaLog


def rows(*ids: int, s: str = "n") -> pa.Table:
    return pa.table({"id": pa.array(ids, pa.int64()), "s": [f"{s}{i}" for i in ids]})


def table(path: Path, *ids: int, has_vectors: bool = True, **properties: str) -> DeltaLog:
    log = opened(path, has_vectors=has_vectors, **properties)
    log.append(rows(*ids))
    return log


def ids_of(log: DeltaLog) -> list[int]:
    return sorted(log.to_arrow(columns=["id"])["id"].to_pylist())


def data_files(path: Path) -> set[str]:
    found = (*path.rglob("*.parquet"), *path.rglob("*.bin"))
    return {str(file.relative_to(path)) for file in found if "_delta_log" not in file.parts}


def kind_of(error: pytest.ExceptionInfo) -> str:
    return error.value.kind
