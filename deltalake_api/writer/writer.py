"""`write_deltalake`: rows into a table, in one commit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from optimist.core import DeltaLog
from optimist.core.local.write import write
from optimist.core.local.write_request import LocalWrite
from optimist.core.options.handles import options_given
from optimist.core.requests.arguments import arrow_stream, names
from optimist.core.runtime.budget import one_operation
from optimist.deltalake.arguments import ensure_no_new_rule, rows_given
from optimist.deltalake.dialect import optional_same_meaning
from optimist.deltalake.exceptions import errors_translated
from optimist.deltalake.handles import Call, open_log
from optimist.deltalake.table import DeltaTable
from optimist.deltalake.transaction import CommitProperties, PostCommitHookProperties
from optimist.deltalake.writer.new_tables import new_table
from optimist.deltalake.writer.properties import WriterProperties

__all__ = ["write_deltalake"]

_MODES = ("error", "append", "overwrite", "ignore")


def write_deltalake(
    table_or_uri: str | Path | DeltaTable,
    data: Any,
    *,
    partition_by: list[str] | str | None = None,
    mode: str = "error",
    name: str | None = None,
    description: str | None = None,
    configuration: Mapping[str, str | None] | None = None,
    schema_mode: str | None = None,
    storage_options: Mapping[str, str] | None = None,
    predicate: str | None = None,
    target_file_size: int | None = None,
    writer_properties: WriterProperties | None = None,
    commit_properties: CommitProperties | None = None,
    post_commithook_properties: PostCommitHookProperties | None = None,
) -> None:
    """Write rows of Arrow to a table, which is made if there is none.

    Args:
        table_or_uri: The table, or its path or URL.
        data: The rows: an Arrow table, a stream, a batch, or a list of batches.
        partition_by: The partition columns of a new table.
        mode: What to do if there is a table: `error`, `append`, `overwrite` or `ignore`.
        name: What a new table calls itself.
        description: What a new table is, for people.
        configuration: The properties of a new table.
        schema_mode: `merge` adds new columns, `overwrite` replaces the columns.
        storage_options: As for `DeltaTable`. With a table, they count for this write; without any
            it has those of the table.
        predicate: An overwrite replaces only the rows for which this SQL is true.
        target_file_size: Bytes of a file.
        writer_properties: See `WriterProperties`.
        commit_properties: How the commit is made.
        post_commithook_properties: What happens after it.

    Raises:
        DeltaError: There is a table, and the mode is `error`; or an argument is wrong.
        SchemaMismatchError: The rows don't fit the table.
        CommitFailedError: Another commit conflicts with this one; nothing was written.
    """
    if not isinstance(table_or_uri, str | Path | DeltaTable):
        raise ValueError("table_or_uri is a path, a URL or a DeltaTable.")  # noqa: TRY004
    if not isinstance(mode, str) or mode not in _MODES:
        raise ValueError(f"The mode {mode!r} is unknown. Use one of {', '.join(_MODES)}.")
    call = Call(commit_properties, post_commithook_properties, writer_properties)
    table = table_or_uri if isinstance(table_or_uri, DeltaTable) else None
    with errors_translated():
        storage_options = options_given(storage_options)  # no crash report shows a value
        place = table_or_uri
        if isinstance(place, DeltaTable):
            place = place._log.table_path
        log = table._log if table and not storage_options else open_log(place, storage_options)
        if mode == "ignore" and log.table_exists():
            return
        request = LocalWrite(
            mode,
            optional_same_meaning(predicate, lambda: log.snapshot().schema),
            names(
                [partition_by] if isinstance(partition_by, str) else partition_by, "partition_by"
            ),
            schema_mode=schema_mode,
            target_file_size=target_file_size,
            app_txn=call.app_txn,
            new_table=new_table(name, description, configuration),
            keeps_not_null=True,
        )
        rows = rows_given(data, "data")
        ensure_no_new_rule(rows.schema, lambda: _columns_that_stay(log, request))
        _write(call.handle(log), rows, request)
    if table is not None:
        table._catch_up()


def _columns_that_stay(log: DeltaLog, request: LocalWrite) -> Sequence[str]:
    is_there = not request.overwrites_schema and log.table_exists()
    return list(log.snapshot().schema.names) if is_there else []


@one_operation
def _write(log: DeltaLog, rows: pa.RecordBatchReader | pa.Table, request: LocalWrite) -> None:
    """Write as `DeltaLog.write` does, which has no argument for what a new table gets."""
    write(log.start_transaction(), arrow_stream(rows, "data"), request)
