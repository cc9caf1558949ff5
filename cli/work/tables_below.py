"""The tables below a directory, found by the names of their logs."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa
import pyarrow.compute as pc

from optimist.core.data.storage.listed_files import listed_pages
from optimist.core.errors import OptimistError
from optimist.core.log.names import parse_log_file_name
from optimist.core.paths import join
from optimist.core.plugins.logstore_registry import find_store
from optimist.core.plugins.table_path import resolve_table_path
from optimist.core.table.delta_log import DeltaLog

__all__ = ["tables_below"]

_LOG = "_delta_log"
_TABLES = pa.schema(
    [
        ("table", pa.string()),
        ("version", pa.int64()),
        ("files", pa.int64()),
        ("bytes", pa.int64()),
        ("error", pa.string()),
    ]
)


def tables_below(url: str, options: Mapping[str, str]) -> pa.Table:
    """Return a row for each table below a directory, sorted by path.

    A table that can't be read has its error instead of its numbers.

    Raises:
        UsageError: The URL or an option is wrong.
        StorageError: The store failed.
    """
    store = find_store(url, options)
    directory = resolve_table_path(url, store)
    pages = listed_pages(directory, store.data_access(directory), _enters, _ignore_link)
    found = [pc.unique(_parents(page)) for page in pages]
    paths = pc.unique(pa.chunked_array(found, pa.string())).to_pylist()
    rows = [_row_of(join(directory, path) if path else directory, options) for path in paths]
    return pa.Table.from_pylist(sorted(rows, key=lambda row: str(row["table"])), schema=_TABLES)


def _enters(parent: str, name: str) -> bool:
    """Return whether a name may lead to a commit or checkpoint of a table."""
    is_in_log = parent == _LOG or parent.endswith(f"/{_LOG}")
    return parse_log_file_name(name) is not None if is_in_log else True


def _ignore_link(path: str) -> None:
    """Take no notice of a link: what it leads to is found where it is."""


def _parents(page: pa.RecordBatch) -> pa.Array:
    """Return the tables to whose logs the files of a page belong, relative to the directory."""
    paths = page.column("path").filter(pc.invert(page.column("is_directory")))
    inside = pc.extract_regex(paths, rf"(?s)^(?P<table>(?:.*/)?){_LOG}/[^/]+$")
    return pc.utf8_rtrim(pc.struct_field(inside.drop_null(), "table"), "/")


def _row_of(path: str, options: Mapping[str, str]) -> dict[str, object]:
    try:
        snapshot = DeltaLog.for_path(path, options).snapshot()
        files, size = snapshot.num_files, snapshot.size_in_bytes
    except OptimistError as error:
        return {"table": path, "error": str(error)}
    return {"table": path, "version": snapshot.version, "files": files, "bytes": size}
