"""Rows with keys, and the ids and commit versions by which a table knows them."""

from __future__ import annotations

import pyarrow as pa

from optimist.core import DeltaLog

ID, VERSION = "_metadata.row_id", "_metadata.row_commit_version"


def rows_from(start: int, num_rows: int) -> pa.Table:
    numbers = range(start, start + num_rows)
    columns = {"k": list(numbers), "p": [k % 3 for k in numbers], "s": ["x"] * num_rows}
    return pa.table(columns)


def known(log: DeltaLog) -> dict[int, tuple[str, int, int]]:
    """By key: the text, the id and the version of each row; no id is there twice."""
    rows = log.to_arrow(columns=["k", "s", ID, VERSION]).to_pylist()
    assert len({row[ID] for row in rows}) == len({row["k"] for row in rows}) == len(rows)
    return {row["k"]: (row["s"], row[ID], row[VERSION]) for row in rows}
