"""Which files hold rows that match a condition (spec 10.15)."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import DataFrame

from optimist.core.log.file_table import add_files
from optimist.core.protocol.actions import AddFile

__all__ = ["TouchedFiles", "aliased"]


@dataclass(frozen=True, slots=True)
class TouchedFiles:
    """The candidates that hold matching rows.

    Attributes:
        table: Those files, as rows of `Snapshot.files`.
        num_matching: How many rows match, in all of them; None where every row does.
    """

    table: pa.Table
    num_matching: int | None

    @property
    def adds(self) -> tuple[AddFile, ...]:
        """The files as values."""
        return add_files(self.table)


def aliased(frame: DataFrame, alias: str | None) -> DataFrame:
    """The frame under the alias the user gave the table, so that conditions may name it."""
    return frame if alias is None else frame.alias(alias)
