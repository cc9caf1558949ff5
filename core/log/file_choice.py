"""Which files of a version a caller wants, decided by as few of their columns as possible.

A checkpoint's row groups are left out by their footers where those prove that nothing in them is
wanted. Of the others the columns of one stage after the other are read, and all other columns only
where a row is left (late materialisation).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TypeAlias, TypeVar

import pyarrow as pa
import pyarrow.compute as pc

from optimist.core.log.file_table import FILES_SCHEMA
from optimist.core.log.group_bounds import GroupBounds

__all__ = ["ALL_FILES", "FileChoice", "Keep", "Stage", "Use"]

Result = TypeVar("Result")
Use: TypeAlias = Callable[[Iterator[pa.RecordBatch]], Result]
"""Takes the chosen files as they are read, in the choice's columns, and returns an answer.

It is called again, from the first file on, if a checkpoint turns out to be damaged.
"""

Keep: TypeAlias = Callable[[pa.Table], pa.BooleanArray]
"""Returns for each file whether it may be wanted."""


@dataclass(frozen=True, slots=True)
class Stage:
    """One step of a choice.

    Attributes:
        columns: The columns that it needs, besides those of earlier stages.
        keep: Takes the files as a table with these columns.
    """

    columns: tuple[str, ...]
    keep: Keep


@dataclass(frozen=True, slots=True)
class FileChoice:
    """A choice of files.

    Attributes:
        stages: The steps, the cheapest first. A file is chosen if every step keeps it.
        may_hold: Returns for each row group whether it may hold a chosen file; None for always.
        schema: The columns that are read of the chosen files, of those of `FILES_SCHEMA`. `path`
            and `deletionVector` are always among them: they tell files from each other.
    """

    stages: tuple[Stage, ...] = ()
    may_hold: Callable[[GroupBounds], pa.BooleanArray] | None = None
    schema: pa.Schema = FILES_SCHEMA

    def of(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return the chosen ones of some files, uncopied if these are all."""
        for stage in self.stages:
            kept = stage.keep(pa.Table.from_batches([batch]))
            if not pc.all(kept, min_count=0).as_py():
                batch = batch.filter(kept)
        return batch.select(self.schema.names)


ALL_FILES = FileChoice()
