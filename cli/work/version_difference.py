"""What differs between two versions of a table: files, columns, layout, rules, number of rows."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from optimist.core.log.file_table import table_keys
from optimist.core.protocol.clustering import clustering_columns
from optimist.core.protocol.gates import implied_features
from optimist.core.schema.types import StructField, StructType, data_type_to_json
from optimist.core.snapshot import Snapshot
from optimist.core.statements.type_texts import short_type_text
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
        changes: All else that differs: `what` (a column, a property, the layout, the protocol or
            a text about the table), `name`, `before` and `after`.
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
        *_changed_columns(before.schema, after.schema),
        *_changed("property", before.metadata.configuration, after.metadata.configuration),
        *_changed("layout", _layout(before, after), _layout(after, before)),
        *_changed("protocol", _protocol(before), _protocol(after)),
        *_changed("table", _texts(before), _texts(after)),
    ]
    files = pa.concat_tables([_labelled("removed", removed), _labelled("added", added)])
    return Difference(facts, pa.Table.from_pylist(changes, schema=_CHANGES), files)


def _only_in(one: Snapshot, other: Snapshot) -> pa.Table:
    known = pc.is_in(table_keys(one.files), value_set=table_keys(other.files))
    return one.files.filter(pc.invert(known)).select(["path", "size"])


def _labelled(change: str, files: pa.Table) -> pa.Table:
    return files.add_column(0, "change", pa.repeat(change, files.num_rows))


def _changed_columns(before: StructType, after: StructType) -> list[dict[str, str | None]]:
    """Tell which columns differ, by all that the log says of them if their types are equal."""
    one, other = ({item.name: item for item in schema} for schema in (before, after))
    old = {name: _column_text(item, other.get(name)) for name, item in one.items()}
    new = {name: _column_text(item, one.get(name)) for name, item in other.items()}
    return _changed("column", old, new)


def _column_text(item: StructField, other: StructField | None) -> str:
    if other is None or item == other or _short_text(item) != _short_text(other):
        return _short_text(item)
    return json.dumps(data_type_to_json(StructType((item,))), ensure_ascii=False)


def _short_text(item: StructField) -> str:
    return short_type_text(item) + ("" if item.nullable else " NOT NULL")


def _layout(snapshot: Snapshot, other: Snapshot) -> dict[str, str]:
    """Return how a version arranges its rows, and the order of columns that both have."""
    common = {*snapshot.schema.names} & {*other.schema.names}
    clustering = clustering_columns(snapshot.domain_metadata, snapshot.schema)
    found = {
        "partitioned by": _list(snapshot.partition_columns),
        "clustered by": _list(".".join(path) for path in clustering),
        "order of columns": _list(name for name in snapshot.schema.names if name in common),
    }
    return {name: text for name, text in found.items() if text}


def _protocol(snapshot: Snapshot) -> dict[str, str]:
    protocol = snapshot.protocol
    versions = {
        "minReaderVersion": str(protocol.min_reader_version),
        "minWriterVersion": str(protocol.min_writer_version),
    }
    return versions | dict.fromkeys(sorted(implied_features(protocol)), "supported")


def _texts(snapshot: Snapshot) -> dict[str, str]:
    metadata = snapshot.metadata
    found = {"id": metadata.id, "name": metadata.name, "description": metadata.description}
    return {name: text for name, text in found.items() if text is not None}


def _list(names: Iterable[str]) -> str:
    return ", ".join(names)


def _changed(
    what: str, before: Mapping[str, str], after: Mapping[str, str]
) -> list[dict[str, str | None]]:
    names = dict.fromkeys((*before, *after))
    return [
        {"what": what, "name": name, "before": before.get(name), "after": after.get(name)}
        for name in names
        if before.get(name) != after.get(name)
    ]
