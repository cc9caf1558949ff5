"""One batch of a stream, as the sink commits it (spec 11.4)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pyspark.sql import DataFrame

from optimist.core.errors import SchemaError
from optimist.core.errors.foreign_text import shown
from optimist.core.schema.void_columns import holds_void
from optimist.core.transaction.conflicts.operations import Operation
from optimist.spark.spark_schema import from_spark_schema

__all__ = ["StreamedBatch", "ensure_typed"]


@dataclass(frozen=True, slots=True)
class StreamedBatch:
    """The batch and the query that rows belong to.

    Attributes:
        query_id: The query's id, which stays the same when it is started again.
        batch_id: The batch's number, which stays the same when the batch is run again.
        output_mode: `Append`, or `Complete` if each batch replaces all rows.
        reads_target: True if the query reads the table that it writes.
    """

    query_id: str
    batch_id: int
    output_mode: str
    reads_target: bool = False

    @property
    def app_txn(self) -> tuple[str, int]:
        """The query's id and batch number, which the table records to skip repeated batches."""
        return self.query_id, self.batch_id

    def operation(self, metrics: Mapping[str, object], user_metadata: str | None) -> Operation:
        """Return `STREAMING UPDATE` as the history shows it.

        Args:
            metrics: The metrics of a write.
            user_metadata: Text for the history.
        """
        parameters = {
            "outputMode": self.output_mode,
            "queryId": self.query_id,
            "epochId": str(self.batch_id),
        }
        counted = {
            "numRemovedFiles": metrics.get("numRemovedFiles", 0),
            "numOutputRows": metrics["numOutputRows"],
            "numOutputBytes": metrics["numOutputBytes"],
            "numAddedFiles": metrics["numFiles"],
        }
        operation = Operation("STREAMING UPDATE", parameters, user_metadata=user_metadata)
        return operation.with_metrics(counted)


def ensure_typed(df: DataFrame) -> None:
    """Refuse columns whose type is only known as null, at any depth.

    Raises:
        SchemaError: A column has this type (kind `DELTA_NULL_SCHEMA_IN_STREAMING_WRITE`).
    """
    for field in from_spark_schema(df.schema):
        if holds_void(field.data_type):
            raise SchemaError(
                f"Delta doesn't accept NullTypes in the schema for streaming writes: the column "
                f"{shown(field.name)} has one. Nothing was written. Cast it to the type that the "
                "table has, or is to have.",
                kind="DELTA_NULL_SCHEMA_IN_STREAMING_WRITE",
                column=field.name,
            )
