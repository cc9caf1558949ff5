"""The commands of `DeltaLog` that make, replace or convert a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

from optimist.core.errors import UsageError
from optimist.core.errors.argument_types import (
    ensure_optional_function,
    ensure_optional_text,
    ensure_text,
    wrong_type,
)
from optimist.core.errors.foreign_text import shown
from optimist.core.requests.arguments import names, several
from optimist.core.runtime.budget import one_operation
from optimist.core.table import by_need
from optimist.core.table.table_handle import TableHandle

if TYPE_CHECKING:
    from optimist.core.requests.table_definition import Columns
    from optimist.core.runtime.progress import Progress
    from optimist.core.transaction.result import CommitResult, MaybeNone

__all__ = ["TableCommands"]

_PARQUET, _ICEBERG = "parquet", "iceberg"


class TableCommands(TableHandle):
    """The methods of `DeltaLog` that create or convert a table."""

    @one_operation
    def create(  # noqa: PLR0913 - one keyword per part of CREATE TABLE
        self,
        columns: Columns,
        *,
        partition_by: Sequence[str] | None = None,
        cluster_by: Sequence[str | Sequence[str]] | None = None,
        properties: Mapping[str, str | bool | int] | None = None,
        comment: str | None = None,
        name: str | None = None,
        mode: str = "create",
        user_metadata: str | None = None,
    ) -> CommitResult | MaybeNone:
        """Make a table without rows, or replace the one that is there, in one commit.

        A table that is replaced keeps its history: older versions can still be read.

        Args:
            columns: The columns: a schema of Arrow, a dict of names and types, a list of such
                pairs, or `Column`s, which can be generated, have defaults and comments, or be given
                numbers.
            partition_by: The partition columns.
            cluster_by: The columns to cluster by, instead: names, ``s.`f.g` `` for a field of a
                struct, or paths.
            properties: The table properties.
            comment: What the table is, for people.
            name: What the table calls itself in `detail`. Catalogs have names of their own.
            mode: `create`, `create_if_not_exists`, `replace` or `create_or_replace`.
            user_metadata: Text for the history.

        Returns:
            The commit, or None if there is a table and the mode is `create_if_not_exists`.

        Raises:
            UsageError: There is a table already, or there are other files at the place.
            TableNotFoundError: There is no table to replace.
            SchemaError, ConfigError, ProtocolError: The columns or properties are not sound.
            DeltaConcurrentModificationException: Another commit came first; nothing was written.
        """
        ensure_optional_text(comment, "comment")
        ensure_optional_text(name, "name")
        ensure_optional_text(user_metadata, "user_metadata")
        definition = by_need.TableDefinition(
            by_need.columns_given(columns),
            names(partition_by, "partition_by"),
            _clustering_columns(cluster_by),
            by_need.properties_given(properties),
            comment,
            by_need.CreateMode.of(mode),
            name,
            is_local=True,
        )
        return by_need.create_table(self.start_transaction, definition, user_metadata=user_metadata)

    @one_operation
    def convert(
        self,
        partition_columns: Columns = (),
        *,
        collect_statistics: bool = True,
        source_format: str = _PARQUET,
        metadata_file: str | None = None,
        progress: Progress | None = None,
    ) -> CommitResult | MaybeNone:
        """Make a Delta table of the Parquet files at the path, where they are, in one commit.

        Only the files' footers are read. Nobody may write to the directory meanwhile.

        Args:
            partition_columns: The columns that the directories name, as in `p=1`, in their order,
                with their types: as `columns` of `create`.
            collect_statistics: Whether statistics are taken from the footers, for queries that skip
                files.
            source_format: `parquet` for a directory of files, `iceberg` for a table of Iceberg,
                which says itself how it is partitioned.
            metadata_file: The name of the metadata file of Iceberg that the table's catalog names;
                None for the newest one.
            progress: Called after each footer; see `FileProgress`. Footers of files without all of
                the table's columns are read twice.

        Returns:
            The commit; None if there is a table already, which stays as it is.

        Raises:
            TableNotFoundError: There are no files.
            SchemaError: The files' columns don't go together, or the directories name other
                partition columns or values of another type.
            TableError: A file is no Parquet, or is damaged (kind `OPTIMIST_UNREADABLE_DATA_FILE`).
            UsageError: The directory holds another table, or a symbolic link, or was written to
                meanwhile; or the table of Iceberg has what can't be carried over.
            ConfigError: pyiceberg is not installed.
            ConcurrentWriteException: Another commit came first.
        """
        ensure_text(source_format, "source_format")
        ensure_optional_function(progress, "progress")
        if source_format not in (_PARQUET, _ICEBERG):
            raise UsageError(
                f"CONVERT TO DELTA knows no {shown(source_format)}, only {_PARQUET} and "
                f"{_ICEBERG}. Nothing was written.",
                kind="DELTA_CONVERT_NON_PARQUET_TABLE",
                format=source_format,
            )
        request = by_need.ConvertRequest(
            by_need.schema_given(partition_columns, "partition_columns"),
            collect_statistics,
            source_format=source_format,
            metadata_file=metadata_file,
        )
        report = by_need.ProgressReport(self.table.clock, progress, "CONVERT")
        read = partial(by_need.read_footers, report=report)
        return by_need.convert(self.start_transaction(), request, read)


def _clustering_columns(
    given: Sequence[str | Sequence[str]] | None,
) -> tuple[str | Sequence[str], ...]:
    columns = several(() if given is None else given, "cluster_by")
    for column in columns:
        is_path = isinstance(column, list | tuple) and all(isinstance(item, str) for item in column)
        if not isinstance(column, str) and not is_path:
            raise wrong_type("cluster_by", column, "a list of names or paths")
    return columns
