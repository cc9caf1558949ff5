"""One open Parquet file of a checkpoint."""

from __future__ import annotations

from functools import cached_property
from typing import BinaryIO

import pyarrow as pa
import pyarrow.parquet as pq

from optimist.core.values.column_chunks import ColumnChunks

__all__ = ["CheckpointFile"]

_ARROW = "parquet-cpp-arrow"


class CheckpointFile(pq.ParquetFile):  # type: ignore[misc]  # pyarrow has no types
    """A Parquet file of a checkpoint or sidecar.

    Args:
        source: The file's bytes.
        chunks: What its footer says, if that was read before. Then it is not read again.
        is_streamed: Whether its rows pass through memory, and are never there together.

    Attributes:
        chunks: What its footer says of the column chunks. `metadata` must not be asked for that.
        is_streamed: As given. Then one thread unpacks the columns: of several, each keeps memory
            that the others can't use.
    """

    def __init__(
        self, source: BinaryIO, chunks: ColumnChunks | None = None, *, is_streamed: bool = False
    ) -> None:
        self.is_streamed = is_streamed
        self.chunks = ColumnChunks(pq.read_metadata(source)) if chunks is None else chunks
        footer = self.chunks.metadata
        super().__init__(
            source,
            metadata=footer,
            # Spark may write timestamps as INT96. In nanoseconds they would end in the year 2262.
            coerce_int96_timestamp_unit="us",
            # Of Arrow's pages only: it might refuse a sound file of another writer for its sums.
            page_checksum_verification=(footer.created_by or "").startswith(_ARROW),
        )

    @cached_property
    def schema_arrow(self) -> pa.Schema:
        """The columns, which pyarrow would convert again each time."""
        return super().schema_arrow
