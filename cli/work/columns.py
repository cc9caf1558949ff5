"""The columns of a version, as rows."""

from __future__ import annotations

import pyarrow as pa

from optimist.core.schema.types import StructField
from optimist.core.snapshot import Snapshot
from optimist.core.statements.type_texts import short_type_text

__all__ = ["schema_rows"]

_COLUMNS = pa.schema(
    [
        ("column", pa.string()),
        ("type", pa.string()),
        ("nullable", pa.bool_()),
        ("partition", pa.bool_()),
        ("comment", pa.string()),
    ]
)


def schema_rows(snapshot: Snapshot) -> pa.Table:
    """Return a row for each column of a version, in order."""
    partition = set(snapshot.partition_columns)
    rows = [
        {
            "column": field.name,
            "type": short_type_text(field),
            "nullable": field.nullable,
            "partition": field.name in partition,
            "comment": _comment_of(field),
        }
        for field in snapshot.schema.fields
    ]
    return pa.Table.from_pylist(rows, schema=_COLUMNS)


def _comment_of(field: StructField) -> str | None:
    comment = field.metadata.get("comment")
    return comment if isinstance(comment, str) else None
