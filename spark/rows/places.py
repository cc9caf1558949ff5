"""The columns that hold a row's location: its file, and its position there."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from pyspark.sql.types import LongType, StringType, StructField

from optimist.spark.rows.row_shape import free_name

__all__ = ["Places"]


@dataclass(frozen=True, slots=True)
class Places:
    """The names of columns that a plane adds to the rows of some files.

    Attributes:
        path: The column with the path of a row's file, spelled as the plane spells it.
        position: The column with the row's position in the file, from 0; None for no such column.
    """

    path: str
    position: str | None

    @classmethod
    def beside(cls, taken: Iterable[str], *, with_position: bool) -> Places:
        """Choose names that no column has yet."""
        names = list(taken)
        position = free_name("__optimist_position", names) if with_position else None
        return cls(free_name("__optimist_path", names), position)

    @property
    def fields(self) -> list[StructField]:
        """The columns, as Spark has them."""
        fields = [StructField(self.path, StringType())]
        return fields + ([StructField(self.position, LongType())] if self.position else [])
