"""Tables partitioned by odd values, and which partitions an OPTIMIZE takes there."""

from __future__ import annotations

import json
from typing import Any
from unittest.mock import patch

import pyarrow as pa

from odd_values import COLUMNS, OddColumn, table_of
from optimist.core import DeltaLog
from optimist.core.table import by_need
from row_model import Condition

__all__ = ["NOT_TEXT", "PARTITIONS", "chosen", "parted_twice"]

_PATH_LIKE = (".", "..", "/", "a/b", "a%2Fb", "a=b", "~", "+", "&", "#?", "{x}", "[y]", ":", "*")
NOT_TEXT = (b"\x80", b"\xff", b"\xff\xff")
PARTITIONS = {
    **COLUMNS,
    "text": OddColumn(pa.string(), (*COLUMNS["text"].values, *_PATH_LIKE), "string"),
    "bytes": OddColumn(
        pa.binary(), tuple(v for v in COLUMNS["bytes"].values if v not in NOT_TEXT), "binary"
    ),
}


def parted_twice(path: str, name: str) -> DeltaLog:
    """A table with two files for each value of a column, and for null."""
    log = DeltaLog.for_path(path)
    for _ in range(2):
        log.append(table_of(name, (*PARTITIONS[name].values, None)), partition_by=[name])
    return log


def chosen(log: DeltaLog, name: str, condition: Condition) -> tuple[set[int], set[int]]:
    """By their first ids, the files that OPTIMIZE takes, and those that it is asked for."""
    taken: set[int] = set()

    def write(_txn: Any, bins: list[pa.Table], *_: Any) -> tuple[()]:
        for files in bins:
            taken.update(_first_ids(files))
        return ()

    with patch.object(by_need, "LocalBins", lambda _: write):
        log.optimize(condition.sql)
    values = (*PARTITIONS[name].values, None)
    rows = {at: {name: None if value in ("", b"") else value} for at, value in enumerate(values)}
    asked = _first_ids(log.snapshot().files)
    return taken, {at for at in asked if condition.judge(rows[at]) is True}


def _first_ids(files: pa.Table) -> set[int]:
    return {json.loads(text)["minValues"]["id"] for text in files["stats"].to_pylist()}
