"""`DeltaTableTransaction`: several operations in one commit (`DeltaTable.transaction`)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import TracebackType

from pyspark.sql import DataFrame, SparkSession

from optimist.core.errors import UsageError
from optimist.core.table.table_transaction import TableTransaction, not_open, refused
from optimist.core.transaction.result import CommitResult
from optimist.spark.commands.alter import SparkTableChanges
from optimist.spark.commands.row_changes import RowChanges
from optimist.spark.commands.writing.write import write_in
from optimist.spark.commands.writing.write_options import WriteRequest
from optimist.spark.conditions.own_frames import OwnFrames
from optimist.spark.planes.planes import plane_of
from optimist.spark.session.arguments import ensure_frame
from optimist.spark.session.callback_errors import original_errors

__all__ = ["DeltaTableTransaction"]


class DeltaTableTransaction(RowChanges):
    """A transaction of several operations on one table, as a context manager.

    See `TableTransaction`. SQL and `spark.read` do not know it: they see the committed table, and
    their changes are other transactions. The session's conf at the beginning of the block applies.
    """

    def __init__(
        self,
        spark: SparkSession,
        own_name: tuple[str, ...],
        frames: OwnFrames,
        begin: Callable[[], TableTransaction],
    ) -> None:
        self._spark = spark
        self._own_name = own_name
        self._frames = frames
        self._begin = begin
        self._txn: TableTransaction | None = None

    def __enter__(self) -> DeltaTableTransaction:
        with original_errors():
            self._txn = self._begin().__enter__()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        with original_errors():
            self._handle.__exit__(kind, error, trace)

    @property
    def result(self) -> CommitResult | None:
        """The commit after the block, or None if nothing was to be committed."""
        return None if self._txn is None else self._txn.result

    @property
    def alter(self) -> SparkTableChanges:
        """Changes of schema, properties, constraints and so on, each one operation."""
        return SparkTableChanges(self._spark, self._handle)

    def toDF(self) -> DataFrame:
        """Return the table after the operations so far, as a DataFrame that does not change.

        The whole table counts as read: any commit meanwhile that adds or removes rows is a
        conflict.
        """
        with original_errors():
            handle = self._handle
            snapshot, files = handle.snapshot(), handle.files()
            frame = plane_of(self._spark, handle.table).scan_files(snapshot, files)
            return self._frames.remember(self._under_own_name(frame))

    def write(
        self,
        df: DataFrame,
        *,
        mode: str = "append",
        partitionBy: str | Sequence[str] | None = None,
        **options: object,
    ) -> CommitResult | None:
        """Write the rows of a DataFrame into the table, as `optimist.spark.write` does.

        The table's options for the file system apply.
        """
        ensure_frame(df)
        with original_errors():
            request = WriteRequest.of(mode, partitionBy, options)
            if request.filesystem_options:
                raise UsageError(
                    f"The option {next(iter(request.filesystem_options))} can't be given to one "
                    "operation of a transaction. It did nothing. Give it to DeltaTable.forPath.",
                    kind="OPTIMIST_INVALID_ARGUMENT",
                    argument="options",
                )
            return write_in(self._handle, df, request)

    optimize = refused("OPTIMIZE")
    vacuum = refused("VACUUM")
    restoreToVersion = refused("RESTORE")  # noqa: N815
    restoreToTimestamp = refused("RESTORE")  # noqa: N815
    clone = refused("CLONE")
    cloneAtVersion = refused("CLONE")  # noqa: N815
    cloneAtTimestamp = refused("CLONE")  # noqa: N815
    dropFeatureSupport = refused("DROP FEATURE")  # noqa: N815
    transaction = refused("TRANSACTION")

    @property
    def _handle(self) -> TableTransaction:
        if self._txn is None:
            raise not_open("has not begun")
        return self._txn
