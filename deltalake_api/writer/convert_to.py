"""`convert_to_deltalake`: Parquet files where they are become a Delta table."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from optimist.core import DeltaLog
from optimist.core.errors import UsageError
from optimist.core.maintenance.convert.conversion_commit import ConvertRequest
from optimist.core.maintenance.convert.convert import convert
from optimist.core.options.handles import options_given
from optimist.core.runtime.budget import one_operation
from optimist.core.schema.types import StructType
from optimist.deltalake.arguments import COMMIT_FIRST, call_of
from optimist.deltalake.exceptions import errors_translated, not_supported
from optimist.deltalake.handles import open_log
from optimist.deltalake.schema import Schema, core_schema
from optimist.deltalake.transaction import CommitProperties, PostCommitHookProperties
from optimist.deltalake.writer.new_tables import new_table

__all__ = ["convert_to_deltalake"]

_STRATEGIES = ("hive", "directory")
_MODES = ("error", "ignore")


def convert_to_deltalake(
    uri: str | Path,
    mode: str = "error",
    partition_by: Schema | None = None,
    partition_strategy: str | None = None,
    name: str | None = None,
    description: str | None = None,
    configuration: Mapping[str, str | None] | None = None,
    storage_options: Mapping[str, str] | None = None,
    *args: Any,
    collect_stats: bool = True,
    commit_properties: CommitProperties | None = None,
    post_commithook_properties: PostCommitHookProperties | None = None,
) -> None:
    """Make a Delta table of the Parquet files at a path.

    Args:
        uri: The path or URL.
        mode: What to do if there is a table: `error` or `ignore`.
        partition_by: The columns that the directories name.
        partition_strategy: `hive`, for directories such as `p=1`; `directory` is not supported.
        name: What the table calls itself.
        description: What the table is, for people.
        configuration: The table properties.
        storage_options: As for `DeltaTable`.
        *args: The properties of the commit, by position, as older callers give them.
        collect_stats: Whether statistics are taken from the files' footers.
        commit_properties: How the commit is made.
        post_commithook_properties: What happens after it.

    Raises:
        DeltaError: There are no files, or there is a table, or the files don't go together.
    """
    if partition_by is not None and partition_strategy is None:
        raise ValueError("partition_by needs a partition_strategy.")
    strategies = _STRATEGIES if isinstance(partition_strategy, str) else ()
    if partition_strategy is not None and partition_strategy not in strategies:
        raise ValueError(f"partition_strategy is one of {', '.join(_STRATEGIES)}.")
    if partition_strategy == "directory":
        raise not_supported("partition_strategy='directory'", "Name directories as in p=1.")
    if not isinstance(mode, str) or mode not in _MODES:
        raise ValueError(f"The mode {mode!r} is unknown. Use one of {', '.join(_MODES)}.")
    call = call_of(
        "convert_to_deltalake",
        args,
        COMMIT_FIRST,
        commit_properties=commit_properties,
        post_commithook_properties=post_commithook_properties,
    )
    call.ensure_no_app_txn("convert")
    with errors_translated():
        storage_options = options_given(storage_options)  # no crash report shows a value
        new = new_table(name, description, configuration)
        request = ConvertRequest(
            StructType() if partition_by is None else core_schema(partition_by),
            collects_statistics=collect_stats,
            properties=new.properties,
            comment=new.comment,
            name=new.name,
        )
        log = call.handle(open_log(uri, storage_options))
        if not _converted(log, request) and mode == "error":
            raise UsageError(
                f"There is a Delta table at {log.table_path} already. Nothing was written. Use "
                "mode='ignore' to keep it.",
                kind="DELTA_TABLE_ALREADY_EXISTS",
                table=log.table_path,
            )


@one_operation
def _converted(log: DeltaLog, request: ConvertRequest) -> bool:
    """Convert as `DeltaLog.convert` does, and return whether there was no table before."""
    return convert(log.start_transaction(), request) is not None
