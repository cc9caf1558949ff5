"""`{name}` in a statement of a Spark Connect client: what stands for it, as PySpark says.

A value becomes its SQL. A frame becomes the name of a table, by which it is found again when a
query of the statement goes to the server.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from optimist.core.sql import TableName

__all__ = ["FormattedSql"]


@dataclass(frozen=True, slots=True)
class FormattedSql:
    """A statement in which nothing is left to be formatted.

    Attributes:
        text: The statement; frames stand in it under names of their own.
        frames: The frames by these names.
    """

    text: str
    frames: Mapping[str, DataFrame]

    @classmethod
    def of(cls, spark: SparkSession, text: str, values: Mapping[str, Any]) -> FormattedSql:
        """Format a text with the values for its `{name}`, as PySpark does."""
        if not values:
            return cls(text, {})
        # The client's classes need packages that classic sessions do not.
        from pyspark.sql.connect.sql_formatter import SQLStringFormatter

        formatter = SQLStringFormatter(spark)  # type: ignore[arg-type]  # a client's session
        made = formatter.format(text, **values)
        views: Any = formatter._temp_views
        return cls(made, {name: frame for frame, name in views})

    def frame(self, table: TableName) -> DataFrame | None:
        """Return the frame that a name in the statement stands for."""
        return self.frames.get(table.parts[0]) if len(table.parts) == 1 else None

    def template(self, piece: str) -> str:
        """Return a piece of the statement as text to be formatted with `frames`."""
        escaped = piece.replace("{", "{{").replace("}", "}}")
        if not self.frames:
            return escaped
        return re.sub("|".join(map(re.escape, self.frames)), r"{\g<0>}", escaped)

    def query(self, spark: SparkSession, piece: str, args: Any = None) -> DataFrame:
        """Return the rows of a query within the statement."""
        if not self.frames:
            return spark.sql(piece, args)
        return spark.sql(self.template(piece), args, **self.frames)
