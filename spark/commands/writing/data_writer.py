"""The writer of data files for one transaction, on the plane of the table (docs/planes.md).

Each write has its own directory below the table, so it can't touch the table's files, and the files
of an aborted write are easy to find. The directory's name starts with neither `_` nor `.`: vacuum
must see it.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace

from pyspark.sql import DataFrame, SparkSession

from optimist.core.commands.new_files import new_files, records_changes
from optimist.core.commands.uncommitted_files import UncommittedFiles
from optimist.core.commands.written_files import WrittenFiles
from optimist.core.data.change_files import change_spec
from optimist.core.data.parquet.parquet_format import DEFAULT_CODEC
from optimist.core.data.parquet.parquet_writer import FileSpec
from optimist.core.paths import join
from optimist.core.protocol.table_metadata import TableMetadata
from optimist.core.schema.types import PrimitiveType, StructField, StructType
from optimist.core.transaction.optimistic import OptimisticTransaction
from optimist.spark.commands.checks import violations_raised
from optimist.spark.commands.writing.write_options import session_value
from optimist.spark.planes.planes import RowPlane
from optimist.spark.rows.balanced_rows import balanced_rows
from optimist.spark.session.job_scope import stopped_with
from optimist.spark.sql.table_sql import TableSql

__all__ = ["DataWriter"]


@dataclass(frozen=True, slots=True)
class DataWriter:
    """A writer of data files for one transaction, by the metadata as the transaction changed it.

    Attributes:
        plane: The plane that moves the rows.
        txn: The transaction.
        compression: Parquet's codec; None leaves it to the table, and then to the session.
        max_records_per_file: Split files that would hold more rows; 0 never splits, None leaves it
            to the session.
        data_change: The `dataChange` of the `add` actions.
        optimizes: Bring rows together by partition first, so that files are few ("optimized
            writes"); None leaves it to the session, and then to the table.
    """

    plane: RowPlane
    txn: OptimisticTransaction
    compression: str | None = None
    max_records_per_file: int | None = None
    data_change: bool = True
    optimizes: bool | None = None

    @property
    def records_changes(self) -> bool:
        """True if the table has the change data feed on.

        Raises:
            SchemaError: The feed is on, and a column has a name of the feed.
        """
        return records_changes(self.txn)

    def write(
        self,
        rows: DataFrame,
        pending: UncommittedFiles,
        *,
        has_changes: bool = False,
        identities: Collection[str] = (),
    ) -> WrittenFiles:
        """Write the rows into a new directory, which `pending` takes care of.

        Args:
            rows: Exactly the stored columns of the table, in its types, and then other columns that
                the files carry; see `carried_columns`.
            pending: The files of the transaction so far.
            has_changes: `_change_type` is the last column: rows for which it is not null go to
                change files, in a separate directory; see `change_files`.
            identities: The identity columns for which some of the rows got new numbers.

        Raises:
            SchemaError: A row violates a constraint, or no column is left for the files.
            ConfigError: An option asks for files that can't be written.
        """
        spec = self._file_spec(rows)
        pending.register(join(spec.table_path, spec.directory))
        if has_changes:
            pending.register(join(spec.table_path, change_spec(spec).directory))
        if self.brings_together(identities):
            bin_bytes = self.txn.table.options.optimize_write_bin_size
            rows = balanced_rows(rows, spec.partition_columns, bin_bytes)
        with violations_raised(), stopped_with(rows.sparkSession):
            written = self.plane.write(rows, spec, has_changes=has_changes)
        self.txn.advance_identity_columns(identities, written.adds)
        return written

    def brings_together(self, identities: Collection[str] = ()) -> bool:
        """Check whether `write` brings the rows of a partition together (see `optimizes`).

        It does not if rows get identity numbers: a task that runs again would give other numbers,
        while some of the first could be in files already.
        """
        if identities:
            return False
        options = self.txn.table.options
        found = self.optimizes if self.optimizes is not None else options.optimize_write_enabled
        if found is not None:
            return found
        return TableMetadata.of(self.txn.metadata).properties.optimize_write == "true"

    @property
    def schema(self) -> StructType:
        """The table's schema, as changed in the transaction."""
        return self.txn.table_metadata.schema

    def table_sql(self, spark: SparkSession) -> TableSql:
        """Return the SQL in the table's log, as changed in the transaction."""
        return TableSql(spark, self.txn.table.table_path, self.schema)

    def _file_spec(self, rows: DataFrame) -> FileSpec:
        spark, properties = rows.sparkSession, TableMetadata.of(self.txn.metadata).properties
        carried = (
            properties.materialized_row_id_column,
            properties.materialized_row_commit_version_column,
        )
        codec = session_value(spark, "compression") or DEFAULT_CODEC
        limit = self.max_records_per_file
        if limit is None:
            limit = session_value(spark, "maxRecordsPerFile")
        spec = new_files(self.txn, codec=codec)
        return replace(
            spec,
            directory=f"data-{self.txn.table.clock.new_uuid()}",
            compression=self.compression or spec.compression,
            max_rows_per_file=limit or None,
            data_change=self.data_change,
            carried=tuple(
                StructField(name, PrimitiveType("long")) for name in rows.columns if name in carried
            ),
        )
