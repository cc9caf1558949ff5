"""What writers and CLONE of a client do with names: their own code, and rows without Spark."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import NoReturn
from unittest.mock import patch

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.errors import AnalysisException

from optimist.core import DeltaLog
from optimist.core.commands.command import Changes, run_command
from optimist.core.commands.create.create import begin_creation
from optimist.core.local.write import write
from optimist.core.local.write_request import LocalWrite
from optimist.core.protocol.actions import AddFile
from optimist.core.requests.table_definition import CreateMode, TableDefinition, columns_of
from optimist.core.schema.types import StructField, StructType
from optimist.core.statements.clones import CloneOptions
from optimist.core.statements.context import StatementContext
from optimist.spark.commands.catalog import missing_tables, named_tables, server_entries
from optimist.spark.commands.maintenance import clone
from optimist.spark.commands.writing.write import ensure_may_create
from optimist.spark.commands.writing.write_options import WriteRequest
from optimist.spark.drop_in.connect import sql, tables, writers

__all__ = [
    "CLONES",
    "COLUMNS",
    "SAVES",
    "VERBS",
    "Rows",
    "WantedError",
    "call",
    "log_at",
    "rows_on_disk",
    "written",
]

COLUMNS = StructType((StructField("id", "long"),))
SAVES = {
    "save": "error",
    "save if new": "ignore",
    "save append": "append",
    "save overwrite": "overwrite",
}
VERBS = {
    "to append": "append",
    "to overwrite": "overwrite",
    "to overwrite parts": "overwritePartitions",
    "to create": "create",
    "to replace": "replace",
    "to create or replace": "createOrReplace",
    "insert into": "insertInto",
}
CLONES = {
    "clone": CreateMode.CREATE,
    "clone if new": CreateMode.CREATE_IF_NOT_EXISTS,
    "clone or replace": CreateMode.CREATE_OR_REPLACE,
}


class WantedError(Exception):
    """A query that fails."""


@dataclass(frozen=True)
class Rows:
    """A frame of one row, whose query another client may come before, or which fails."""

    sparkSession: object  # noqa: N815 - as PySpark calls it
    row: int
    before: Callable[[], None] = lambda: None
    fails: bool = False
    schema: None = None

    def file_at(self, path: str) -> Path:
        """Return the file of a table for the row."""
        return Path(path.removeprefix("file:"), f"{self.row}.parquet")

    def write(self, file: Path) -> AddFile:
        """Write the row to its file."""
        self.before()
        if self.fails:
            raise WantedError
        file.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(pa.table({"id": [self.row]}), file)
        return AddFile(file.name, {}, file.stat().st_size, 0, data_change=True)


def written(rows: Rows, path: str, *given: object) -> None:
    """Write to a table, as `write_rows` and `write_clustered` do."""
    request = given[-1]
    txn = DeltaLog.for_path(path).start_transaction()
    ensure_may_create(txn, request)
    rows.before()
    data = pa.table({"id": [rows.row]}).to_reader()
    write(txn, data, LocalWrite(mode=request.mode))


def _created(
    rows: Rows,
    log: DeltaLog,
    definition: TableDefinition,
    request: WriteRequest,
    *,
    before_commit: Callable[[], None],
) -> None:
    """Make or replace a table with a row, as `create_as_select` does."""
    txn = log.start_transaction()
    completed = replace(definition, columns=columns_of(COLUMNS))
    creation = begin_creation(txn, completed, as_select=True)
    if creation is None:
        return

    file = rows.file_at(txn.table.table_path)

    def work(_: object) -> Changes:
        add = rows.write(file)
        before_commit()
        operation = creation.operation(request.user_metadata)
        return Changes((*creation.actions(0), add), operation, must_land=True)

    try:
        run_command(txn, work)
    except Exception:
        file.unlink(missing_ok=True)
        raise


class _Files(StatementContext):
    """Who copies the files of a clone."""

    def open_path(self, path: str) -> NoReturn:
        raise AssertionError(path)

    def open_name(self, name: object) -> NoReturn:
        raise AssertionError(name)

    def named_rows(self, name: object) -> NoReturn:
        raise AssertionError(name)


def log_at(_: object, path: str, *__: object) -> DeltaLog:
    """Open a table, as `open_log` and `open_target` do."""
    return DeltaLog.for_path(path)


@contextmanager
def rows_on_disk() -> Iterator[None]:
    """Let a client's own code open tables and write rows without Spark."""
    as_they_are = SimpleNamespace(cast=lambda rows: rows, by_position=lambda rows: rows)
    for_rows = SimpleNamespace(of=lambda *_: as_they_are)
    with (
        patch.object(server_entries, "ensure_format_known", lambda _: None),
        patch.object(server_entries, "open_log", log_at),
        patch.object(sql, "ensure_format_known", lambda _: None),
        patch.object(missing_tables, "open_log", log_at),
        patch.object(named_tables, "open_target", log_at),
        patch.object(tables, "open_target", log_at),
        patch.object(tables, "create_as_select", _created),
        patch.object(clone, "open_target", log_at),
        patch.object(clone, "SparkStatements", lambda _: _Files()),
        patch.multiple(
            writers,
            _rows=lambda writer: writer.rows,
            _fitting=lambda writer, *_: writer.rows,
            InsertedRows=for_rows,
            open_log=log_at,
            open_target=log_at,
            write_clustered=written,
            write_inserted=lambda _, *given: written(*given),
        ),
    ):
        yield


def call(client: object, what: str, name: str, rows: Rows, source: str = "delta") -> None:
    """Call a method of a writer of a format, or clone a table; errors are raised."""
    if what in CLONES:
        _clone(client, name, rows, CLONES[what])
        return
    asked = SimpleNamespace(
        source=source,
        provider=source,
        mode=SAVES.get(what),
        options={},
        bucket_cols=[],
        sort_cols=[],
        partitioning_cols=[],
        partitioning_columns=[],
        clustering_cols=[],
        table_properties={},
    )
    writer = SimpleNamespace(_spark=client, _write=asked, _table_name=name, rows=rows)
    if what in SAVES:
        writers.WRITER["saveAsTable"](partial(_on_server, client, name), writer, name)
    elif VERBS[what] == "insertInto":
        writers.WRITER["insertInto"](partial(_on_server, client, name), writer, name)
    else:
        writers.WRITER_TO[VERBS[what]](partial(_on_server, client, name), writer)


def _on_server(client: object, name: str, *_: object, **__: object) -> NoReturn:
    """Answer as a server does, which has no rows of Delta tables."""
    client.server.before()
    known = "an entry without rows" if name.strip("`") in client.server.entries else "no entry"
    raise AnalysisException(known, errorClass="TABLE_OR_VIEW_NOT_FOUND")


def _clone(client: object, name: str, rows: Rows, mode: CreateMode) -> None:
    source = DeltaLog.for_path(f"{client.server.folder}/sources/{rows.row}")
    write(
        source.start_transaction(),
        pa.table({"id": [rows.row]}).to_reader(),
        LocalWrite(),
    )
    rows.before()
    if rows.fails:
        raise WantedError
    clone.clone_to_name(client, source, name, CloneOptions(mode))
