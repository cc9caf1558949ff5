"""What differs between two versions of a table: files, columns, properties, the number of rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from optimist.cli.work.columns import schema_rows
from optimist.core.log.file_table import table_keys
from optimist.core.snapshot import Snapshot
from optimist.core.values.exact_sums import exact_sum

__all__ = ["Difference", "difference_of"]

_CHANGES = pa.schema(
    [("what", pa.string()), ("name", pa.string()), ("before", pa.string()), ("after", pa.string())]
)


@dataclass(frozen=True, slots=True)
class Difference:
    """The difference of two versions.

    Attributes:
        facts: Numbers of both.
        changes: Columns and properties that differ: `what`, `name`, `before` and `after`.
        files: Files that only one of them has, or with other deleted rows: `change`, `path`,
            `size`.
    """

    facts: Mapping[str, object]
    changes: pa.Table
    files: pa.Table

    @property
    def is_none(self) -> bool:
        """Whether nothing differs."""
        return not self.changes.num_rows and not self.files.num_rows


def difference_of(before: Snapshot, after: Snapshot) -> Difference:
    """Compare two versions by the log; files are read only where it can't tell how many rows."""
    removed, added = _only_in(before, after), _only_in(after, before)
    facts = {
        "from": before.version,
        "to": after.version,
        "rowsFrom": before.count_rows(),
        "rowsTo": after.count_rows(),
        "filesAdded": added.num_rows,
        "bytesAdded": exact_sum(added.column("size")),
        "filesRemoved": removed.num_rows,
        "bytesRemoved": exact_sum(removed.column("size")),
    }
    changes = [
        *_changed("column", _columns(before), _columns(after)),
        *_changed("property", before.metadata.configuration, after.metadata.configuration),
    ]
    files = pa.concat_tables([_labelled("removed", removed), _labelled("added", added)])
    return Difference(facts, pa.Table.from_pylist(changes, schema=_CHANGES), files)


def _only_in(one: Snapshot, other: Snapshot) -> pa.Table:
    known = pc.is_in(table_keys(one.files), value_set=table_keys(other.files))
    return one.files.filter(pc.invert(known)).select(["path", "size"])


def _labelled(change: str, files: pa.Table) -> pa.Table:
    return files.add_column(0, "change", pa.repeat(change, files.num_rows))


def _columns(snapshot: Snapshot) -> dict[str, str]:
    rows: list[dict[str, Any]] = schema_rows(snapshot).to_pylist()
    return {row["column"]: row["type"] + ("" if row["nullable"] else " NOT NULL") for row in rows}


def _changed(
    what: str, before: Mapping[str, str], after: Mapping[str, str]
) -> list[dict[str, str | None]]:
    names = dict.fromkeys((*before, *after))
    return [
        {"what": what, "name": name, "before": before.get(name), "after": after.get(name)}
        for name in names
        if before.get(name) != after.get(name)
    ]
