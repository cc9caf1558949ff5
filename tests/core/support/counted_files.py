"""Files whose rows are counted by their statistics alone."""

import json

import pyarrow as pa

from optimist.core.log.file_table import DELETION_VECTOR_TYPE
from optimist.core.schema.types import schema_from_json
from optimist.core.skipping.aggregates import CountedFiles
from optimist.core.skipping.statistics import FileStatistics

TYPES = {
    "i": "integer",
    "n": "long",
    "d": "date",
    "t": "timestamp",
    "s": "string",
    "x": "double",
    "m": "decimal(9,2)",
    "a": {"type": "array", "elementType": "long", "containsNull": True},
    "p": "string",
    "f": "float",
}
SCHEMA = schema_from_json(
    json.dumps(
        {
            "type": "struct",
            "fields": [
                {"name": name, "type": kind, "nullable": True, "metadata": {}}
                for name, kind in TYPES.items()
            ],
        }
    )
)
VECTOR = {"storageType": "u", "pathOrInlineDv": "x", "offset": 1, "sizeInBytes": 9}


def stats(rows=10, low=None, high=None, nulls=None, **more):
    given = {"minValues": low, "maxValues": high, "nullCount": nulls}
    return json.dumps({"numRecords": rows} | {k: v for k, v in given.items() if v} | more)


def files_of(*texts, deleted=None, p=None, f=None, mask=None):
    """Files with these statistics, of which some have vectors that delete so many rows."""
    deleted = deleted or [None] * len(texts)
    vectors = [None if each is None else VECTOR | {"cardinality": each} for each in deleted]
    table = pa.table(
        {
            "path": [f"f{at}" for at in range(len(texts))],
            "stats": pa.array(texts, pa.string()),
            "deletionVector": pa.array(vectors, DELETION_VECTOR_TYPE),
        }
    )
    partitions = {
        "p": pa.array(p or [None] * len(texts), pa.string()),
        "f": pa.array(f or [None] * len(texts), pa.float32()),
    }
    statistics = FileStatistics(table, SCHEMA)
    return CountedFiles(statistics, pa.table(partitions), None if mask is None else pa.array(mask))


TWO = (
    stats(10, {"i": 1, "n": 4, "d": "2026-01-02"}, {"i": 5, "n": 4, "d": "2026-02-01"},
          {"i": 0, "n": 3, "d": 0}),
    stats(4, {"i": -1, "d": "1582-10-15"}, {"i": 2, "d": "2025-02-01"},
          {"i": 1, "n": 4, "d": 0}),
)  # fmt: skip
