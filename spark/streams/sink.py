"""The sink of a stream, which commits each batch exactly once, as one transaction (spec 11.4).

"Exactly once" needs three things. Spark gives a batch the same number and the same rows when it
runs the batch again. The commit of a batch records its number under the query's id. And a batch
whose number is recorded already is skipped. The look-up of the number counts as a read, so two
running copies of a query can't both commit the same batch.

| a crash | what the next start does |
|---|---|
| before our commit | runs the batch again; its first files belong to no version |
| between our commit and Spark's record of the batch | runs it again, and here it is skipped |
| after Spark's record | goes on with the next batch |
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from pyspark.sql import DataFrame

from optimist.core.errors import UsageError
from optimist.core.errors.foreign_text import shown
from optimist.spark.commands.reading.read import open_target
from optimist.spark.commands.writing.clustered_write import write_clustered
from optimist.spark.commands.writing.inserted_rows import InsertedRows
from optimist.spark.commands.writing.streamed_batch import StreamedBatch, ensure_typed
from optimist.spark.commands.writing.write import BegunWrite
from optimist.spark.commands.writing.write_options import WriteRequest
from optimist.spark.session.pyspark_versions import is_connect
from optimist.spark.streams.source import is_read_by

__all__ = ["StreamSink"]

_MODES: Mapping[str, str] = {"append": "append", "complete": "overwrite"}
_NOT_FOR_STREAMS = (
    "replaceWhere",
    "replaceOn",
    "replaceUsing",
    "targetAlias",
    "dataChange",
    "partitionOverwriteMode",
    "txnAppId",
    "txnVersion",
)


@dataclass(frozen=True, slots=True)
class StreamSink:
    """A table that a query writes to.

    Attributes:
        path: The table; the first batch creates it, unless `request.needs_table`.
        output_mode: `Append` or `Complete`.
        request: The options of the writes.
        cluster_by: The columns by which a new table is clustered.
    """

    path: str
    output_mode: str
    request: WriteRequest
    cluster_by: tuple[str, ...] = ()

    @classmethod
    def of(
        cls,
        path: str,
        output_mode: str,
        options: Mapping[str, object],
        *,
        partition_by: tuple[str, ...] = (),
        cluster_by: tuple[str, ...] = (),
        needs_table: bool = False,
    ) -> StreamSink:
        """Return the sink that a stream's writer asks for.

        Args:
            path: The table.
            output_mode: The mode, in upper or lower case.
            options: The options of `write`. Those that choose rows to replace, or another
                transaction, have no effect, as in Delta.
            partition_by: The partition columns of a new table.
            cluster_by: The columns by which a new table is clustered.
            needs_table: No batch may create the table, which a catalog names.

        Raises:
            UsageError: A table does not support the mode (kind `DELTA_UNSUPPORTED_OUTPUT_MODE`), or
                an option is wrong.
        """
        mode = _MODES.get(output_mode.lower())
        if mode is None:
            raise UsageError(
                f"Data source delta does not support {shown(output_mode)} output mode. Nothing was "
                "written. Use append or complete, or foreachBatch with a MERGE, which is what "
                "update mode needs.",
                kind="DELTA_UNSUPPORTED_OUTPUT_MODE",
                dataSource="delta",
                mode=output_mode,
            )
        ignored = {name.lower() for name in _NOT_FOR_STREAMS}
        used = {key: value for key, value in options.items() if key.lower() not in ignored}
        if mode == "append":
            used = {k: value for k, value in used.items() if k.lower() != "overwriteschema"}
        request = WriteRequest.of(mode, partition_by, used)
        is_dynamic = None if mode == "append" else False
        request = replace(request, is_dynamic=is_dynamic, needs_table=needs_table)
        return cls(path, output_mode.title(), request, cluster_by)

    def add_batch(
        self,
        rows: DataFrame,
        read: DataFrame,
        query_id: str,
        batch_id: int,
        *,
        reads_target: bool = False,
    ) -> None:
        """Commit the rows of a batch, unless the table has them already.

        Args:
            rows: The rows.
            read: The frame from which they are computed.
            query_id: The query's id.
            batch_id: The batch's number.
            reads_target: True if the query's source is known to be the table itself.

        Raises:
            ConcurrentTransactionException: Another run of the query has committed a batch meanwhile
                (kind `DELTA_CONCURRENT_TRANSACTION`). Nothing was written.
            SchemaError: The rows do not fit the table. Nothing was written.
            TableNotFoundError: See `ensure_may_create`.
        """
        ensure_typed(rows)
        log = open_target(rows.sparkSession, self.path, self.request.filesystem_options)
        reads_target = reads_target or is_read_by(query_id, log.table_path)
        batch = StreamedBatch(query_id, batch_id, self.output_mode, reads_target)
        request = replace(self.request, txn=batch.app_txn, batch=batch)
        begun = BegunWrite.on(log)
        fitting = self._cast_rows(rows, begun, request)
        write_clustered(fitting, self.path, self.cluster_by, request, read=read, begun=begun)
        if is_connect(rows.sparkSession):
            # The server ends this process with the query, and waits for nothing.
            log.wait_for_background_work()

    def _cast_rows(self, rows: DataFrame, begun: BegunWrite, request: WriteRequest) -> DataFrame:
        """Cast the rows to the types of the table, unless they replace its schema."""
        if request.replaces_schema or begun.txn.read_version < 0:
            return rows
        spark, snapshot = rows.sparkSession, begun.txn.snapshot
        return InsertedRows.of(spark, begun.log, self.path, request, snapshot).cast(rows)
