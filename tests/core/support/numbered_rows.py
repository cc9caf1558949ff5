"""What a table's rows are known by, and the files that mark deleted ones."""

from __future__ import annotations


def row_ids(log):
    """The row id of each row, by its `id`."""
    rows = log.to_arrow(columns=["id", "_metadata.row_id"]).to_pylist()
    return {row["id"]: row["_metadata.row_id"] for row in rows}


def vector_files(path):
    """The files of deletion vectors in a table's directory."""
    return sorted(path.glob("deletion_vector_*.bin"))
