"""`write_deltalake`: rows into a table, in one commit."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from optimist.core import DeltaLog
from optimist.core.errors import UsageError
from optimist.core.options.handles import options_given
from optimist.deltalake.arguments import rows_given
from optimist.deltalake.exceptions import errors_translated, refuse_given
from optimist.deltalake.handles import Call, open_log
from optimist.deltalake.quoting import optional_spark_sql
from optimist.deltalake.table import DeltaTable
from optimist.deltalake.transaction import CommitProperties, PostCommitHookProperties
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
        name: Not supported; give it to `DeltaTable.create`.
        description: Not supported; give it to `DeltaTable.create`.
        configuration: The properties of a new table.
        schema_mode: `merge` adds new columns, `overwrite` replaces the columns.
        storage_options: As for `DeltaTable`.
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
    if mode not in _MODES:
        raise ValueError(f"The mode {mode!r} is unknown. Use one of {', '.join(_MODES)}.")
    refuse_given("name", name, "Give it to DeltaTable.create before.")
    refuse_given("description", description, "Give it to DeltaTable.create before.")
    call = Call(commit_properties, post_commithook_properties, writer_properties)
    table = table_or_uri if isinstance(table_or_uri, DeltaTable) else None
    with errors_translated():
        storage_options = options_given(storage_options)  # no crash report shows a value
        if isinstance(table_or_uri, DeltaTable):
            log = table_or_uri._log
        else:
            log = open_log(table_or_uri, storage_options)
        if mode == "ignore" and log.table_exists():
            return
        call.handle(log, **_defaults(log, configuration)).write(
            rows_given(data, "data"),
            mode,
            predicate=optional_spark_sql(predicate),
            partition_by=[partition_by] if isinstance(partition_by, str) else partition_by,
            schema_mode=schema_mode,
            target_file_size=target_file_size,
            txn=call.app_txn,
        )
    if table is not None:
        table._catch_up()


def _defaults(log: DeltaLog, configuration: Mapping[str, str | None] | None) -> dict[str, Any]:
    """Return the option by which a new table gets properties in the commit that makes it."""
    given = {key: value for key, value in (configuration or {}).items() if value is not None}
    if not given:
        return {}
    strange = sorted(key for key in given if not key.startswith("delta."))
    if strange:
        raise UsageError(
            f"configuration has {strange[0]}, which is no property of Delta. Nothing was written. "
            "Make the table with DeltaTable.create, which takes other properties, too.",
            kind="OPTIMIST_INVALID_ARGUMENT",
            argument="configuration",
        )
    return {"property_defaults": {**log.options.property_defaults, **given}}
