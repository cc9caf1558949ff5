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
    """Which batch of which query rows are.

    Attributes:
        query_id: The query's id, which stays the same when it is started again.
        batch_id: The batch's number, which stays the same when the batch is run again.
        output_mode: `Append`, or `Complete` where each batch replaces all rows.
        reads_target: Whether the query reads the table that it writes.
    """

    query_id: str
    batch_id: int
    output_mode: str
    reads_target: bool = False

    @property
    def app_txn(self) -> tuple[str, int]:
        """What the table records of the query, so that no batch is committed twice."""
        return self.query_id, self.batch_id

    def operation(self, metrics: Mapping[str, object], user_metadata: str | None) -> Operation:
        """`STREAMING UPDATE` as the history tells it.

        Args:
            metrics: Those of a write.
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
    """Refuse columns of which only nulls are known, at any depth.

    Raises:
        SchemaError: There is one (kind `DELTA_NULL_SCHEMA_IN_STREAMING_WRITE`).
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
