"""Names of the columns that a MERGE adds to those of the table and of the source."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from optimist.spark.rows.places import Places

__all__ = ["Names"]


@dataclass(frozen=True, slots=True)
class Names:
    """Names of columns that neither side has.

    Attributes:
        prefix: What all of them begin with.
    """

    prefix: str

    @classmethod
    def beside(cls, columns: Sequence[str]) -> Names:
        """Choose names that none of the columns has, in any case of letters."""
        prefix = "__optimist_merge_"
        while any(name.lower().startswith(prefix) for name in columns):
            prefix += "_"
        return cls(prefix)

    @property
    def source(self) -> str:
        """The number of the row of the source; null where there is none."""
        return f"{self.prefix}source"

    @property
    def met(self) -> str:
        """The number of a row of the source that matches one of the table."""
        return f"{self.prefix}met"

    @property
    def clause(self) -> str:
        """The number of the row's clause."""
        return f"{self.prefix}clause"

    @property
    def path(self) -> str:
        """The path of the file of the table's row."""
        return f"{self.prefix}path"

    @property
    def position(self) -> str:
        """The position of the row in that file."""
        return f"{self.prefix}position"

    @property
    def places(self) -> Places:
        """The path and the position."""
        return Places(self.path, self.position)

    def value(self, at: int) -> str:
        """Return the name for the value to write to a column of the schema."""
        return f"{self.prefix}value{at}"

    def missing(self, at: int) -> str:
        """Return the name for whether the row needs a number of an identity column."""
        return f"{self.prefix}missing{at}"

    def before(self, at: int) -> str:
        """Return the name for the value that a column had before."""
        return f"{self.prefix}before{at}"

    def hidden(self, at: int) -> str:
        """Return the name for the table's value of a column, by its index among those read."""
        return f"{self.prefix}hidden{at}"
