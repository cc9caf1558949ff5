"""A directory of Parquet files that is not yet a table: its files and partition values.

As every reader of such directories does, it skips names that begin with `_` or `.`, except
partition directories. It also skips files that a Spark sink has not committed (`sink_log`). It
refuses everything that would give the table other rows than the directory: another table inside it,
a symbolic link, and a write in progress.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from optimist.core.data.hive_names import escape_hive, unescape_hive
from optimist.core.data.partition_values import canonical_partition_value, uri_reference
from optimist.core.data.storage.listed_files import is_on_disk, listed_pages
from optimist.core.data.table_ref import TableRef
from optimist.core.errors import SchemaError, TableError, TableNotFoundError, UsageError
from optimist.core.errors.foreign_text import listed, quoted, shown
from optimist.core.errors.kinds import NOT_NULL_VIOLATED
from optimist.core.maintenance.convert.sink_log import SINK_LOG, committed_by_sink
from optimist.core.paths import LOG_DIRECTORY, join, strip_file_scheme
from optimist.core.schema.types import StructType
from optimist.core.values.unicode_text import is_unicode

__all__ = ["ParquetFile", "parquet_files", "partition_values_of"]

_UNDER_WAY = "_temporary"


@dataclass(frozen=True, slots=True, order=True)
class ParquetFile:
    """One file.

    Attributes:
        path: The path below the directory, not percent-encoded.
        size_bytes: Its length.
        modified_ms: The time of its last change, in epoch milliseconds.
    """

    path: str
    size_bytes: int
    modified_ms: int

    @property
    def reference(self) -> str:
        """The path as a log has it."""
        return uri_reference(self.path)


def parquet_files(table: TableRef, partition_columns: StructType) -> tuple[ParquetFile, ...]:
    """Return the files of a directory, sorted by their paths.

    Args:
        table: The directory, as the table that it is to become.
        partition_columns: The partition columns.

    Raises:
        TableNotFoundError: The directory has no files (kind `DELTA_EMPTY_DIRECTORY`).
        UsageError: The directory has a table in it (kind `OPTIMIST_TABLE_WITHIN_DIRECTORY`), a link
            (`OPTIMIST_LINK_WITHIN_DIRECTORY`), or a name that is not Unicode text
            (`OPTIMIST_INVALID_TEXT`); or a write is in progress
            (`OPTIMIST_DIRECTORY_BEING_WRITTEN`).
        TableError: See `committed_by_sink`.
        StorageError: The store failed.
    """
    enters, at_root = _directory_filter(table, partition_columns), set()

    def enter_and_note(parent: str, name: str) -> bool:
        if not parent:
            at_root.add(name)
        return enters(parent, name)

    pages = listed_pages(table.table_path, table.data_access(), enter_and_note, lambda _: None)
    rows = [row for page in pages for row in page.to_pylist()]
    found = sorted(
        ParquetFile(row["path"], row["size"], row["modified_ms"])
        for row in rows
        if not row["is_directory"]
    )
    if SINK_LOG in at_root:
        committed = committed_by_sink(table, (file.path for file in found))
        found = [file for file in found if file.path in committed]
    if not found:
        raise TableNotFoundError(
            f"No file found in the directory {shown(table.table_path)}. Nothing was written. Check "
            "the path.",
            kind="DELTA_EMPTY_DIRECTORY",
            path=table.table_path,
        )
    if is_on_disk(table.table_path):
        _ensure_names_are_text(table, ["", *(row["path"] for row in rows if row["is_directory"])])
    return tuple(found)


def partition_values_of(
    file: ParquetFile, columns: StructType, *, zone: str
) -> dict[str, str | None]:
    """Return the partition values of a file, read from its directory names.

    Args:
        file: The file.
        columns: The partition columns.
        zone: The time zone for timestamps without one.

    Raises:
        SchemaError: Its directories name other columns (kinds
            `DELTA_UNEXPECTED_NUM_PARTITION_COLUMNS_FROM_FILE_NAME`,
            `DELTA_UNEXPECTED_PARTITION_COLUMN_FROM_FILE_NAME`); or a value does not fit its
            column's type (`DELTA_FAILED_CAST_PARTITION_VALUE`); or a value is null for a NOT NULL
            column (`DELTA_NOT_NULL_CONSTRAINT_VIOLATED`).
    """
    named = [part.partition("=") for part in file.path.split("/")[:-1] if "=" in part]
    pairs = [(unescape_hive(name) or name, unescape_hive(text)) for name, _, text in named]
    if len(pairs) != len(columns.fields):
        raise _cannot_be_part(
            file,
            f"{len(columns.fields)} partition columns ({listed(columns.names) or 'none'}) were "
            f"given, but its directories name {len(pairs)} ({listed(n for n, _ in pairs)})",
            "DELTA_UNEXPECTED_NUM_PARTITION_COLUMNS_FROM_FILE_NAME",
        )
    values: dict[str, str | None] = {}
    for column, (name, text) in zip(columns, pairs, strict=True):
        if name.lower() != column.name.lower():
            raise _cannot_be_part(
                file,
                f"the partition column {shown(column.name)} was given, but its directory names "
                f"{shown(name)}",
                "DELTA_UNEXPECTED_PARTITION_COLUMN_FROM_FILE_NAME",
            )
        try:
            values[column.name] = canonical_partition_value(text, column.data_type, zone=zone)
        except TableError:
            raise _cannot_be_part(
                file,
                f"the value {quoted(text)} of the partition column {shown(column.name)} is not of "
                f"the type {shown(column.data_type)}",
                "DELTA_FAILED_CAST_PARTITION_VALUE",
            ) from None
        if values[column.name] is None and not column.nullable:
            raise _cannot_be_part(
                file,
                f"the partition column {shown(column.name)} is NOT NULL, and null for this file",
                NOT_NULL_VIOLATED,
            )
    return values


def _cannot_be_part(file: ParquetFile, problem: str, kind: str) -> SchemaError:
    return SchemaError(
        f"The file {shown(file.path)} can't be part of the table: {problem}. Nothing was written. "
        "Give the partition columns as the directories have them (PARTITIONED BY).",
        kind=kind,
        path=file.path,
    )


def _directory_filter(table: TableRef, partition_columns: StructType) -> Callable[[str, str], bool]:
    seen = tuple(f"{escape_hive(name)}=".lower() for name in partition_columns.names)
    root = strip_file_scheme(table.table_path) if is_on_disk(table.table_path) else None

    def enters(parent: str, name: str) -> bool:
        if name == LOG_DIRECTORY and parent:
            raise _cannot_convert(
                table,
                f"it holds another Delta table, {shown(parent)}",
                "Convert the directories apart from each other",
                "OPTIMIST_TABLE_WITHIN_DIRECTORY",
            )
        if name == _UNDER_WAY:
            raise _cannot_convert(
                table,
                f"a write to it is under way, or was stopped: it has {join(parent, name)}",
                "Wait for the write; or remove what it has left",
                "OPTIMIST_DIRECTORY_BEING_WRITTEN",
            )
        if name.startswith(("_", ".")) and not name.lower().startswith(seen or ("\0",)):
            return False
        if root is not None and Path(root, parent, name).is_symlink():
            raise _cannot_convert(
                table,
                f"{shown(join(parent, name) if parent else name)} is a symbolic link",
                "Replace the link by its target",
                "OPTIMIST_LINK_WITHIN_DIRECTORY",
            )
        return True

    return enters


def _ensure_names_are_text(table: TableRef, directories: Sequence[str]) -> None:
    """Refuse file names that no log can hold, which a listing skips."""
    root = Path(strip_file_scheme(table.table_path))
    for directory in directories:
        for name in (entry.name for entry in (root / directory).iterdir()):
            if not is_unicode(name):
                raise _cannot_convert(
                    table,
                    f"the name {quoted(name)} in it is not valid text",
                    "Rename the file",
                    "OPTIMIST_INVALID_TEXT",
                )


def _cannot_convert(table: TableRef, problem: str, way_out: str, kind: str) -> UsageError:
    path = table.table_path
    return UsageError(
        f"The directory {shown(path)} can't be converted: {problem}. Nothing was written. "
        f"{way_out}.",
        kind=kind,
        path=path,
    )
