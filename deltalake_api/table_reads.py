"""The reads of `DeltaTable`, of the version that is loaded."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from optimist.core import ChangeScan, CommitRecord, DeltaLog, RowScan, Snapshot
from optimist.core.errors import TableError
from optimist.core.errors.argument_types import (
    ensure_kind,
    ensure_optional_function,
    ensure_text,
    flag,
)
from optimist.core.errors.kinds import TIMESTAMP_TOO_EARLY
from optimist.core.log.timestamps import epoch_ms
from optimist.core.paths import scheme_of, strip_file_scheme
from optimist.core.protocol.actions import action_to_dict
from optimist.deltalake.arguments import deprecated
from optimist.deltalake.change_bounds import change_bounds
from optimist.deltalake.dialect import optional_same_meaning
from optimist.deltalake.exceptions import errors_translated, refuse_given
from optimist.deltalake.file_list import add_actions, file_uris, partitions
from optimist.deltalake.filters import Filters, predicate_of
from optimist.deltalake.handles import with_options
from optimist.deltalake.metadata import Metadata, ProtocolVersions
from optimist.deltalake.schema import Schema
from optimist.deltalake.vectors import deletion_vectors

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["TableReads"]

_COMMIT_TIME, _COMMIT_VERSION = "_commit_timestamp", "_commit_version"
_TOO_LATE = "DELTA_TIMESTAMP_GREATER_THAN_COMMIT"


class TableReads:
    """The methods of `DeltaTable` that write nothing."""

    _log: DeltaLog
    _snapshot: Snapshot

    # The version

    def version(self) -> int:
        """Return the number of the loaded version."""
        return self._snapshot.version

    @property
    def table_uri(self) -> str:
        """The URL of the table, with a slash at its end."""
        path = self._log.table_path
        is_local = scheme_of(path) in ("", "file")
        return (Path(strip_file_scheme(path)).as_uri() if is_local else path).rstrip("/") + "/"

    def schema(self) -> Schema:
        """Return the columns of the loaded version."""
        with errors_translated():
            return Schema.from_json(self._snapshot.metadata.schema_string)

    def metadata(self) -> Metadata:
        """Return the metadata of the loaded version."""
        return Metadata(self._snapshot)

    def protocol(self) -> ProtocolVersions:
        """Return the protocol of the loaded version."""
        found = self._snapshot.protocol
        writer, reader = found.writer_features, found.reader_features
        return ProtocolVersions(
            found.min_reader_version,
            found.min_writer_version,
            None if writer is None else sorted(writer),
            None if reader is None else sorted(reader),
        )

    def load_as_version(self, version: int | str | dt.datetime) -> None:
        """Load another version: by its number, or by a time.

        A time means the newest version that is not younger; before all versions it means the
        oldest. It is in UTC unless it says otherwise.

        Raises:
            DeltaError: The log does not hold the version.
            ValueError: The text is no time.
            TypeError: The argument is none of these.
        """
        if isinstance(version, bool) or not isinstance(version, int | str | dt.datetime):
            raise TypeError("version is a number, text such as 2026-11-20T10:00:00Z or a datetime.")
        with errors_translated():
            if isinstance(version, int):
                self._snapshot = self._log.snapshot(version)
                return
            self._snapshot = _version_at(self._log, epoch_ms(version))

    def update_incremental(self) -> None:
        """Load the newest version."""
        with errors_translated():
            self._snapshot = self._log.snapshot()

    def transaction_version(self, app_id: str) -> int | None:
        """Return the last version that an application recorded of itself, or None."""
        with errors_translated():
            ensure_text(app_id, "app_id")
        found = self._snapshot.set_transactions.get(app_id)
        return None if found is None else found.version

    def history(self, limit: int | None = None) -> list[dict[str, Any]]:
        """Return what the commits say of themselves, newest first, with their `version`.

        Args:
            limit: The largest number of commits.
        """
        with errors_translated():
            return [_described(record) for record in self._log.history(limit)]

    # Files

    def file_uris(
        self,
        partition_filters: Filters | None = None,
        *,
        file_pruning_predicate: Filters | None = None,
    ) -> list[str]:
        """Return the full paths of the files that may hold matching rows.

        Args:
            partition_filters: Deprecated; the other argument.
            file_pruning_predicate: SQL, or tuples such as `("year", "=", "2026")`, joined by AND,
                or lists of such tuples, joined by OR.
        """
        wanted = _chosen(partition_filters, file_pruning_predicate, "partition_filters")
        with errors_translated():
            return file_uris(self._snapshot, wanted)

    def partitions(
        self,
        partition_filters: Filters | None = None,
        *,
        file_pruning_predicate: Filters | None = None,
    ) -> list[dict[str, Any]]:
        """Return the partitions that have such files, each as its values by column.

        Args:
            partition_filters: Deprecated; the other argument.
            file_pruning_predicate: As for `file_uris`.
        """
        wanted = _chosen(partition_filters, file_pruning_predicate, "partition_filters")
        with errors_translated():
            return partitions(self._snapshot, wanted)

    def get_add_actions(self, flatten: bool = False) -> pa.Table:
        """Return a row for each file, with its statistics and its partition.

        Args:
            flatten: Whether structs become columns such as `min.x`.
        """
        with errors_translated():
            return add_actions(self._snapshot, flatten=flag(flatten, "flatten"))

    def deletion_vectors(self) -> pa.RecordBatchReader:
        """Return the files that have a deletion vector, each with which of its rows are there.

        The columns are `filepath`, a URI, and `selection_vector`, which is false for a deleted row.
        No other read needs this: all of them leave deleted rows out.
        """
        with errors_translated():
            return deletion_vectors(self._log, self._snapshot)

    def count(self) -> int:
        """Count the rows. Files are read only if the log can't tell."""
        with errors_translated():
            return self._snapshot.count_rows()

    # Rows

    def scan(
        self, columns: list[str] | None = None, predicate: str | None = None
    ) -> pa.RecordBatchReader:
        """Return the matching rows as a stream, in bounded memory.

        Args:
            columns: The columns; None for all.
            predicate: SQL over the columns.
        """
        with errors_translated():
            where = optional_same_meaning(predicate, lambda: self._snapshot.schema)
            return _reader(self._snapshot.scan_rows(where, columns))

    def to_pyarrow_dataset(
        self,
        partitions: Filters | None = None,
        filesystem: Any = None,
        parquet_read_options: Any = None,
        schema: pa.Schema | None = None,
        as_large_types: bool = False,
        file_pruning_predicate: Filters | None = None,
    ) -> Any:
        """Return a dataset of pyarrow, which reads only the columns and files that it needs.

        Tables with column mapping or deletion vectors are read, too. The dataset stands for rows:
        it has no fragments.

        Args:
            partitions: Deprecated; `file_pruning_predicate`.
            filesystem: Not supported.
            parquet_read_options: Not supported.
            schema: Columns of the table in the types of Arrow that they get; None for all.
            as_large_types: Whether texts, binaries and lists have 64-bit offsets, unless `schema`
                says it.
            file_pruning_predicate: As for `file_uris`; rows that do not match are left out, too.
        """
        refuse_given("filesystem", filesystem, "Give storage_options to DeltaTable.")
        refuse_given("parquet_read_options", parquet_read_options, "Leave it out.")
        wanted = _chosen(partitions, file_pruning_predicate, "partitions")
        with errors_translated():
            if schema is not None:
                ensure_kind(schema, "schema", pa.Schema, "a schema of pyarrow")
            elif flag(as_large_types, "as_large_types"):
                schema = self.schema().to_arrow(as_large_types=True)
            predicate = predicate_of(wanted, self._snapshot.schema)
            columns = None if schema is None else schema.names
            return self._snapshot.scan_rows(predicate, columns, in_order=True).to_dataset(schema)

    def to_pyarrow_table(
        self,
        partitions: Filters | None = None,
        columns: list[str] | None = None,
        filesystem: Any = None,
        filters: Any = None,
    ) -> pa.Table:
        """Return the matching rows as a table in memory.

        Args:
            partitions: Deprecated; `filters`.
            columns: The columns; None for all.
            filesystem: Not supported.
            filters: Tuples as pyarrow takes them, or an expression of pyarrow.
        """
        from pyarrow.parquet import filters_to_expression

        wanted = None
        if filters is not None:
            try:
                wanted = filters_to_expression(filters)
            except (TypeError, ValueError, LookupError, pa.ArrowException) as error:
                raise ValueError(
                    f"The argument filters can't be read: {error}. Nothing was read. Give tuples "
                    "of column, operator and value, or an expression of pyarrow."
                ) from None
        if partitions is not None:
            deprecated("The argument partitions is deprecated. Use filters.")
        dataset = self.to_pyarrow_dataset(filesystem=filesystem, file_pruning_predicate=partitions)
        with errors_translated():
            return dataset.to_table(columns=columns, filter=wanted)

    def to_pandas(
        self,
        partitions: Filters | None = None,
        columns: list[str] | None = None,
        filesystem: Any = None,
        filters: Any = None,
        types_mapper: Callable[[pa.DataType], Any] | None = None,
    ) -> pd.DataFrame:
        """Return the matching rows as a frame of pandas.

        Args:
            partitions: As for `to_pyarrow_table`.
            columns: As for `to_pyarrow_table`.
            filesystem: Not supported.
            filters: As for `to_pyarrow_table`.
            types_mapper: As for pyarrow's `to_pandas`.
        """
        with errors_translated():
            ensure_optional_function(types_mapper, "types_mapper")
        found = self.to_pyarrow_table(partitions, columns, filesystem, filters)
        return found.to_pandas(types_mapper=types_mapper)

    def load_cdf(
        self,
        starting_version: int = 0,
        ending_version: int | None = None,
        starting_timestamp: str | None = None,
        ending_timestamp: str | None = None,
        columns: list[str] | None = None,
        predicate: str | None = None,
        allow_out_of_range: bool = False,
    ) -> pa.RecordBatchReader:
        """Return the rows that a range of versions inserted, updated or deleted, as a stream.

        Args:
            starting_version: The first version.
            ending_version: The last version; None for the newest.
            starting_timestamp: A time before which no commit counts.
            ending_timestamp: A time after which no commit counts.
            columns: The columns; None for all.
            predicate: SQL over the columns.
            allow_out_of_range: Whether a start past the newest version gives no rows.
        """
        with errors_translated():
            is_lenient = flag(allow_out_of_range, "allow_out_of_range")
            options = {"cdf_allow_out_of_range": True} if is_lenient else {}
            log = with_options(self._log, **options)
            bounds = change_bounds(
                log, (starting_version, ending_version), (starting_timestamp, ending_timestamp)
            )
            where = optional_same_meaning(predicate, lambda: log.snapshot().schema)
            return _changes(log.scan_changes(where, columns, in_order=True, **bounds))


def _version_at(log: DeltaLog, time_ms: int) -> Snapshot:
    """Return the version at a time, or the nearest if the log holds none of that time."""
    try:
        return log.snapshot(timestamp=time_ms)
    except TableError as error:
        if error.kind == TIMESTAMP_TOO_EARLY:
            oldest = error.fields.get("earliest_version")
            return log.snapshot(oldest if isinstance(oldest, int) else None)
        if error.kind == _TOO_LATE:
            return log.snapshot()
        raise


def _with_their_types(changes: pa.RecordBatch) -> pa.RecordBatch:
    """Return a change feed with deltalake's types: an unsigned version, a time without a zone."""
    for index, name in enumerate(changes.schema.names):
        values = changes.column(index)
        if name == _COMMIT_TIME:
            times = values.cast(pa.timestamp("us")).cast(pa.timestamp("ms"), safe=False)
            changes = changes.set_column(index, name, times)
        if name == _COMMIT_VERSION:
            changes = changes.set_column(index, name, values.cast(pa.uint64()))
    return changes


def _described(record: CommitRecord) -> dict[str, Any]:
    """Return a commit as its commitInfo with its version."""
    if record.info is None:
        return {"timestamp": record.timestamp_ms, "version": record.version}
    found = action_to_dict(record.info)[record.info.KEY]
    return {**_as_dict(found), "version": record.version}


def _as_dict(value: object) -> dict[str, Any]:
    return dict(value) if isinstance(value, Mapping) else {}


def _changes(scan: ChangeScan) -> pa.RecordBatchReader:
    def batches() -> Iterator[pa.RecordBatch]:
        with errors_translated():
            yield from map(_with_their_types, scan.to_batches())

    empty = pa.RecordBatch.from_pylist([], schema=scan.schema)
    return pa.RecordBatchReader.from_batches(_with_their_types(empty).schema, batches())


def _reader(scan: RowScan) -> pa.RecordBatchReader:
    def batches() -> Iterator[pa.RecordBatch]:
        with errors_translated():
            yield from scan.to_batches()

    return pa.RecordBatchReader.from_batches(scan.schema, batches())


def _chosen(old: Filters | None, new: Filters | None, name: str) -> Filters | None:
    if old is None:
        return new
    if new is not None:
        raise ValueError(f"Give file_pruning_predicate alone, without {name}.")
    deprecated(f"The argument {name} is deprecated. Use file_pruning_predicate.")
    return old
