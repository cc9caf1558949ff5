"""A MERGE into a table that asks much of its writer, in a session of either kind."""

from __future__ import annotations

import pyarrow as pa

from optimist.core import DeltaLog
from optimist.core.requests.table_definition import Column, Identity
from optimist.spark import DeltaTable

__all__ = ["MERGED_TOLD", "merged"]

_ID, _VERSION = "_metadata.row_id", "_metadata.row_commit_version"
_COLUMNS = (
    Column("id", "long"),
    Column("n", "long", identity=Identity(7, 2)),
    Column("twice", "long", generated_as="id * 2"),
    Column("word", "string", default="'default'"),
)
_VECTORS = "delta.enableDeletionVectors"
_PROPERTIES = {
    "delta.enableChangeDataFeed": "true",
    "delta.enableRowTracking": "true",
    "delta.feature.allowColumnDefaults": "supported",
}
MERGED_TOLD = {
    "counts": [5, 2, 1, 2],
    "rows": [
        [0, 0, "old", "stays"],
        [1, 2, "old", "stays"],
        [4, 8, "four", "changed"],
        [5, 10, "five", "new"],
        [6, 12, "default", "new"],
        [30, 60, "old", "changed"],
    ],
    "changes": [
        ["delete", 2, 4, "old"],
        ["insert", 5, 10, "five"],
        ["insert", 6, 12, "default"],
        ["update_postimage", 4, 8, "four"],
        ["update_postimage", 30, 60, "old"],
        ["update_preimage", 3, 6, "old"],
        ["update_preimage", 4, 8, "old"],
    ],
    "numbers": True,
    "row ids": True,
}


def merged(spark, path: str, *, vectors: bool) -> dict[str, object]:
    """Run the MERGE at a path where nothing is; `MERGED_TOLD` is what it does everywhere."""
    log = DeltaLog.for_path(path, {})
    log.create(_COLUMNS, properties=_PROPERTIES | {_VECTORS: str(vectors).lower()})
    log.append(pa.table({"id": range(5), "word": ["old"] * 5}))
    before = _rows(log)
    counts = _merge(spark, path).execute().collect()[0]
    after, old = _rows(log), {row["n"]: row for row in before}
    new = [row for row in after if row["n"] not in old]
    columns = ["_change_type", "id", "twice", "word"]
    changes = log.changes(columns=columns, starting_version=2).to_pylist()
    return {
        "counts": list(counts),
        "rows": [[*_values(row), _what_became_of(row, old)] for row in after],
        "changes": sorted(list(row.values()) for row in changes),
        "numbers": all(row["n"] > max(old) and row["n"] % 2 for row in new),
        "row ids": len({row[_ID] for row in (*before, *new)}) == len(before) + len(new),
    }


def _merge(spark, path: str):
    text = "SELECT id, IF(id = 5, 'five', 'four') AS word FROM range(1, 7) WHERE id != 3"
    source = spark.sql(text).alias("s")
    merge = DeltaTable.forPath(spark, path).alias("t").merge(source, "t.id = s.id")
    merge = merge.whenMatchedDelete("s.id = 2").whenMatchedUpdate("s.id = 4", {"word": "s.word"})
    merge = merge.whenNotMatchedInsert("s.id = 5", {"id": "s.id", "word": "s.word"})
    merge = merge.whenNotMatchedInsert(values={"id": "s.id"})
    return merge.whenNotMatchedBySourceUpdate("t.id = 3", {"id": "t.id * 10"})


def _rows(log: DeltaLog) -> list[dict[str, object]]:
    names = [column.name for column in _COLUMNS]
    found = log.to_arrow(columns=[*names, _ID, _VERSION]).to_pylist()
    return sorted(found, key=lambda row: row["id"])


def _values(row: dict[str, object]) -> list[object]:
    return [row["id"], row["twice"], row["word"]]


def _what_became_of(row: dict[str, object], old: dict[object, dict[str, object]]) -> str:
    before = old.get(row["n"])
    if before is None or before[_ID] != row[_ID]:
        return "new" if row[_VERSION] == 2 else "wrong"
    return {1: "stays", 2: "changed"}[row[_VERSION]]
