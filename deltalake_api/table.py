"""`DeltaTable` as deltalake has it, over `DeltaLog`."""

from __future__ import annotations

import datetime as dt
import logging
import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from optimist.core import Column, DeltaLog
from optimist.core.errors import OptimistError
from optimist.core.errors.argument_types import (
    ensure_mapping,
    ensure_optional_text,
    flag,
    whole_number,
)
from optimist.core.errors.short_repr import path_in_repr
from optimist.core.options.handles import options_given
from optimist.core.requests.table_definition import columns_of
from optimist.core.schema.types import GENERATION_EXPRESSION, StructType
from optimist.deltalake import metrics
from optimist.deltalake.alterer import TableAlterer
from optimist.deltalake.arguments import (
    COMMIT_FIRST,
    HOOKS_FIRST,
    by_position,
    call_of,
    deprecated,
    ensure_no_new_rule,
    rows_given,
)
from optimist.deltalake.dialect import optional_same_meaning, same_meaning, stored_meaning
from optimist.deltalake.exceptions import TableNotFoundError, errors_translated
from optimist.deltalake.handles import open_log
from optimist.deltalake.lenient_values import null_where_unfit
from optimist.deltalake.merger import MergeColumns, TableMerger
from optimist.deltalake.metadata import Metadata, ProtocolVersions
from optimist.deltalake.optimizer import TableOptimizer
from optimist.deltalake.quoting import in_spark_sql
from optimist.deltalake.schema import Schema, core_schema
from optimist.deltalake.table_upkeep import TableUpkeep
from optimist.deltalake.transaction import CommitProperties, PostCommitHookProperties
from optimist.deltalake.writer.new_tables import new_table
from optimist.deltalake.writer.properties import WriterProperties

__all__ = [
    "DeltaTable",
    "Metadata",
    "ProtocolVersions",
    "TableAlterer",
    "TableMerger",
    "TableOptimizer",
]

_LOG = logging.getLogger(__name__)
_MODES = {
    "error": "create",
    "append": "create",
    "overwrite": "create_or_replace",
    "ignore": "create_if_not_exists",
}
_Commit = CommitProperties | None
_Hooks = PostCommitHookProperties | None


class DeltaTable(TableUpkeep):
    """One version of a Delta table, and the commands on the table.

    Reads are of the version that was loaded. A command always begins with the newest version, and
    then the table is at that of its commit.

    Args:
        table_uri: The path or URL of the table.
        version: The version to load; None for the newest.
        storage_options: Keys of deltalake for its stores, or options of ours (docs/deltalake.md).
        without_files: Has no effect, as in deltalake.
        log_buffer_size: Has no effect, as in deltalake.
        skip_stats: Has no effect, as in deltalake.

    Raises:
        TableNotFoundError: There is no table.
        DeltaError: The version is not in the log, or an option is wrong.
    """

    def __init__(
        self,
        table_uri: str | Path | os.PathLike[str],
        version: int | None = None,
        storage_options: Mapping[str, str] | None = None,
        without_files: bool = False,
        log_buffer_size: int | None = None,
        skip_stats: bool = False,
    ) -> None:
        for name, given in (
            ("without_files", without_files),
            ("log_buffer_size", log_buffer_size is not None),
            ("skip_stats", skip_stats),
        ):
            if given:
                deprecated(f"The argument {name} is deprecated and has no effect.")
        with errors_translated():
            storage_options = options_given(storage_options)  # no crash report shows a value
            self._log = open_log(table_uri, storage_options)
            self._snapshot = self._log.snapshot(version)

    def _repr_html_(self) -> str | None:
        """Return what is known of the version without a read, for notebooks."""
        return self._snapshot._repr_html_()

    @classmethod
    def _of(cls, log: DeltaLog) -> DeltaTable:
        """Return the newest version of a table whose handle is there."""
        table = cls.__new__(cls)
        table._log = log
        table._snapshot = log.snapshot()
        return table

    def __repr__(self) -> str:
        if not hasattr(self, "_snapshot"):  # a report of a crash shows a table that did not load
            return "DeltaTable()"
        return f"DeltaTable({path_in_repr(self.table_uri)}, version={self.version()})"

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the table as its path, its options, passwords included, and its version."""
        return _reopened, (self._log, self.version(), self._snapshot.metadata.id)

    @staticmethod
    def is_deltatable(
        table_uri: str | Path | os.PathLike[str], storage_options: Mapping[str, str] | None = None
    ) -> bool:
        """Return whether there is a Delta table at a path."""
        with errors_translated():
            storage_options = options_given(storage_options)
            return open_log(table_uri, storage_options).table_exists()

    @classmethod
    def create(
        cls,
        table_uri: str | Path,
        schema: Schema | Any,
        mode: str = "error",
        partition_by: list[str] | str | None = None,
        name: str | None = None,
        description: str | None = None,
        configuration: Mapping[str, str | None] | None = None,
        storage_options: Mapping[str, str] | None = None,
        *args: Any,
        commit_properties: _Commit = None,
        post_commithook_properties: _Hooks = None,
        raise_if_key_not_exists: bool | None = None,
    ) -> DeltaTable:
        """Make a table without rows, and return it.

        Args:
            table_uri: The path or URL.
            schema: The columns: a `Schema`, or one of Arrow.
            mode: What to do if there is a table: `error`, `append` (an error, too), `overwrite`, or
                `ignore`.
            partition_by: The partition columns.
            name: What the table calls itself.
            description: What the table is, for people.
            configuration: The table properties.
            storage_options: As for `DeltaTable`.
            *args: The three arguments that follow, by position, as older callers give them.
            commit_properties: How the commit is made.
            post_commithook_properties: What happens after it.
            raise_if_key_not_exists: Whether a property that Delta does not have is refused.

        Raises:
            DeltaError: There is a table, or a part of the definition is not sound.
        """
        order = (*COMMIT_FIRST, "raise_if_key_not_exists")
        by_name = {
            "commit_properties": commit_properties,
            "post_commithook_properties": post_commithook_properties,
            "raise_if_key_not_exists": raise_if_key_not_exists,
        }
        given = by_position("create", args, order, by_name)
        is_lenient = given.pop("raise_if_key_not_exists") is False
        if not isinstance(mode, str) or mode not in _MODES:
            raise ValueError(f"The mode {mode!r} is unknown. Use one of {', '.join(_MODES)}.")
        with errors_translated():
            storage_options = options_given(storage_options)
            base = open_log(table_uri, storage_options)
            call = call_of("create", (), **given)
            options = {"allow_arbitrary_properties": True} if is_lenient else {}
            columns = schema if isinstance(schema, Schema) else Schema.from_arrow(schema)
            new = new_table(name, description, configuration)
            call.handle(base, **options).create(
                _columns(columns),
                partition_by=[partition_by] if isinstance(partition_by, str) else partition_by,
                properties=new.properties,
                comment=new.comment,
                name=new.name,
                mode=_MODES[mode],
            )
            return cls._of(base)

    # Commands

    def delete(
        self,
        predicate: str | None = None,
        writer_properties: WriterProperties | None = None,
        *args: Any,
        commit_properties: _Commit = None,
        post_commithook_properties: _Hooks = None,
    ) -> dict[str, Any]:
        """Delete the rows for which SQL is true, or all rows, and return metrics."""
        call = call_of(
            "delete",
            args,
            HOOKS_FIRST,
            writer=writer_properties,
            commit_properties=commit_properties,
            post_commithook_properties=post_commithook_properties,
        )
        with errors_translated():
            where = optional_same_meaning(predicate, self._newest_columns)
            done = call.handle(self._log).delete(where, txn=call.app_txn)
        self._catch_up()
        return metrics.deleted(self._log, done)

    def update(
        self,
        updates: dict[str, str] | None = None,
        new_values: dict[str, Any] | None = None,
        predicate: str | None = None,
        writer_properties: WriterProperties | None = None,
        error_on_type_mismatch: bool = True,
        *args: Any,
        commit_properties: _Commit = None,
        post_commithook_properties: _Hooks = None,
    ) -> dict[str, Any]:
        """Set columns to new values in the rows for which SQL is true, and return metrics.

        Args:
            updates: SQL by column.
            new_values: Python values by column, instead.
            predicate: Which rows; None for all.
            writer_properties: See `WriterProperties`.
            error_on_type_mismatch: As for `merge`.
            *args: The arguments that follow, by position, as older callers give them.
            commit_properties: How the commit is made.
            post_commithook_properties: What happens after it.
        """
        call = call_of(
            "update",
            args,
            HOOKS_FIRST,
            writer=writer_properties,
            commit_properties=commit_properties,
            post_commithook_properties=post_commithook_properties,
        )
        with errors_translated():
            is_lenient = not flag(error_on_type_mismatch, "error_on_type_mismatch")
            values = self._values_to_set(updates, new_values, is_lenient=is_lenient)
            if is_lenient:
                values = null_where_unfit(values, self._log.snapshot().schema)
            where = optional_same_meaning(predicate, self._newest_columns)
            done = call.handle(self._log).update(set=values, predicate=where, txn=call.app_txn)
        self._catch_up()
        return metrics.updated(self._log, done)

    def merge(
        self,
        source: Any,
        predicate: str,
        source_alias: str | None = None,
        target_alias: str | None = None,
        merge_schema: bool = False,
        error_on_type_mismatch: bool = True,
        writer_properties: WriterProperties | None = None,
        streamed_exec: bool = True,
        max_spill_size: int | None = None,
        max_temp_directory_size: int | None = None,
        *args: Any,
        commit_properties: _Commit = None,
        post_commithook_properties: _Hooks = None,
    ) -> TableMerger:
        """Begin a MERGE. Add clauses to it, and call `execute`.

        Args:
            source: Rows of Arrow.
            predicate: SQL that says when two rows match.
            source_alias: What SQL calls the source; `source` without one.
            target_alias: What SQL calls the table; `target` without one.
            merge_schema: Whether columns that only the source has are added to the table.
            error_on_type_mismatch: Whether a value that does not fit its column is an error; else
                a number, boolean or date becomes null.
            writer_properties: See `WriterProperties`.
            streamed_exec: Has no effect.
            max_spill_size: Has no effect.
            max_temp_directory_size: Has no effect.
            *args: The arguments that follow, by position, as older callers give them.
            commit_properties: How the commit is made.
            post_commithook_properties: What happens after it.
        """
        call = call_of(
            "merge",
            args,
            HOOKS_FIRST,
            writer=writer_properties,
            commit_properties=commit_properties,
            post_commithook_properties=post_commithook_properties,
        )
        del streamed_exec, max_spill_size, max_temp_directory_size
        with errors_translated():
            ensure_optional_text(source_alias, "source_alias")
            ensure_optional_text(target_alias, "target_alias")
            rows = rows_given(source, "source")
            aliases = (source_alias or "source", target_alias or "target")
            columns = MergeColumns(
                rows.schema,
                self._log.snapshot().schema,
                aliases,
                evolves=flag(merge_schema, "merge_schema"),
                is_lenient=not flag(error_on_type_mismatch, "error_on_type_mismatch"),
            )
            if columns.evolves:
                ensure_no_new_rule(rows.schema, lambda: columns.table.names)
            condition = same_meaning(predicate, columns.of_both)
            merge = call.handle(self._log).merge(
                rows, condition, source_alias=aliases[0], target_alias=aliases[1]
            )
            return TableMerger(merge, self, columns, call)

    @property
    def optimize(self) -> TableOptimizer:
        """The commands that make fewer and larger files."""
        return TableOptimizer(self)

    @property
    def alter(self) -> TableAlterer:
        """The changes of columns, constraints, properties and features."""
        return TableAlterer(self)

    def restore(
        self,
        target: int | dt.datetime | str,
        *,
        ignore_missing_files: bool = False,
        protocol_downgrade_allowed: bool = False,
        commit_properties: _Commit = None,
        post_commithook_properties: _Hooks = None,
    ) -> dict[str, Any]:
        """Make the table what it was at a version or a time, and return metrics.

        Args:
            target: A version, text of a time, or a datetime.
            ignore_missing_files: Whether files that are gone are left out.
            protocol_downgrade_allowed: Has no effect: the protocol never loses a feature.
            commit_properties: How the commit is made.
            post_commithook_properties: What happens after it.
        """
        del protocol_downgrade_allowed
        call = call_of(
            "restore",
            (),
            commit_properties=commit_properties,
            post_commithook_properties=post_commithook_properties,
        )
        call.ensure_no_app_txn("restore")
        with errors_translated():
            may_lack = flag(ignore_missing_files, "ignore_missing_files")
            log = call.handle(self._log, **({"ignore_missing_files": True} if may_lack else {}))
            if isinstance(target, str | dt.date):
                done = log.restore(timestamp=target)
            else:
                done = log.restore(whole_number(target, "target"))
        self._catch_up()
        return metrics.restored(done)

    def _newest_columns(self) -> StructType:
        return self._log.snapshot().schema

    def _values_to_set(
        self,
        updates: Mapping[str, str] | None,
        new_values: Mapping[str, Any] | None,
        *,
        is_lenient: bool,
    ) -> dict[str, object]:
        """Return SQL and values by the names of columns."""
        if (updates is None) == (new_values is None):
            raise ValueError("Give either updates or new_values.")
        if new_values is not None:
            ensure_mapping(new_values, "new_values", "a dict of columns and values")
            as_value = _text_as_sql if is_lenient else _literal
            return {in_spark_sql(name): as_value(value) for name, value in new_values.items()}
        ensure_mapping(updates, "updates", "a dict of columns and SQL")
        found: dict[str, object] = {}
        for name, sql in (updates or {}).items():
            if not isinstance(sql, str):
                raise TypeError(f"updates has SQL texts, not {sql!r}. Is it for new_values?")
            found[in_spark_sql(name)] = same_meaning(sql, self._newest_columns, "updates")
        return found

    def _catch_up(self) -> None:
        """Load the newest version after a command. Its commit stands, so nothing is raised."""
        try:
            self._snapshot = self._log.snapshot()
        except OptimistError as error:
            _LOG.warning("The version after the commit can't be loaded yet: %s", error)


def _reopened(log: DeltaLog, version: int, table_id: str) -> DeltaTable:
    table = DeltaTable._of(log)
    table.load_as_version(version)
    if table.metadata().id != table_id:
        raise TableNotFoundError(
            f"The table at {log.table_path} was made anew since it was pickled. Nothing was done. "
            "Open it again.",
            kind="DELTA_TABLE_NOT_FOUND",
            path=log.table_path,
        )
    return table


def _columns(schema: Schema) -> list[Column]:
    """Return the columns of a new table, of which some may be generated by others."""
    items = core_schema(schema)
    found = []
    for item, column in zip(items, columns_of(items), strict=True):
        sql = item.metadata.get(GENERATION_EXPRESSION)
        generated = stored_meaning(sql, lambda: items, "schema") if isinstance(sql, str) else None
        found.append(replace(column, generated_as=generated))
    return found


def _text_as_sql(value: Any) -> object:
    """Return a text as SQL, which can be cast, and other values as `_literal` does."""
    if not isinstance(value, str):
        return _literal(value)
    return in_spark_sql("'" + value.replace("'", "''") + "'")


def _literal(value: Any) -> object:
    if isinstance(value, str):
        return pa.scalar(value)  # a plain text would be SQL
    if isinstance(value, bool | int | float | dt.datetime | dt.date):
        return value
    if isinstance(value, list | tuple):
        with suppress(pa.ArrowInvalid, pa.ArrowTypeError):
            return pa.scalar(list(value))
    raise TypeError(f"new_values can't have {value!r}. Give text, a number, a date or a list.")
