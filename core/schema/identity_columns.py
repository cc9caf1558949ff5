"""Identity columns: columns whose numbers the engine gives out, none of them twice (spec 10.7).

The metadata of such a column holds the start of its sequence, the step from number to number, and
the high-water mark: the last number given out. A write gives out numbers beyond the mark, and its
commit moves the mark. Two writes that give out the same numbers conflict, because both move it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from optimist.core.errors import SchemaError, UsageError
from optimist.core.errors.foreign_text import quoted, shown
from optimist.core.schema.types import StructField, StructType
from optimist.core.values.field_types import LARGEST_LONG, SMALLEST_LONG

__all__ = [
    "HIGH_WATER_MARK",
    "IDENTITY_PREFIX",
    "IdentityColumn",
    "ensure_none_inserted",
    "ensure_none_updated",
    "identity_columns",
    "identity_metadata",
    "identity_overflow",
    "is_identity_column",
    "with_high_water_marks",
]

IDENTITY_PREFIX = "delta.identity."
_START, _STEP = IDENTITY_PREFIX + "start", IDENTITY_PREFIX + "step"
HIGH_WATER_MARK = IDENTITY_PREFIX + "highWaterMark"
_MAY_INSERT = IDENTITY_PREFIX + "allowExplicitInsert"


@dataclass(frozen=True, slots=True)
class IdentityColumn:
    """One identity column.

    Attributes:
        name: Its name.
        physical_name: Its name in files and statistics.
        start: The first number.
        step: The difference between a number and the next; not 0.
        mark: The last number that was given out. None before the first.
        may_be_inserted: Whether writes may bring their own numbers.
    """

    name: str
    physical_name: str
    start: int
    step: int
    mark: int | None
    may_be_inserted: bool

    @property
    def first(self) -> int:
        """The next number to give out: the first of the sequence beyond the mark.

        The mark may lie outside the sequence, because other engines take it from the rows.
        """
        if self.mark is None:
            return self.start
        return self.start + max(0, (self.mark - self.start) // self.step + 1) * self.step

    @property
    def num_left(self) -> int:
        """The number of values that fit into 64 bits from `first` on."""
        room = LARGEST_LONG - self.first if self.step > 0 else self.first - SMALLEST_LONG
        return max(0, room // abs(self.step) + 1)

    def advanced(self, written: int) -> int | None:
        """Return the mark after a write.

        Args:
            written: The number farthest from the start in the files with new numbers.

        Returns:
            The first number of the sequence that is at least as far from the start, and never
            before the old mark. None if no number was given out so far.
        """
        steps = -((self.start - written) // self.step)
        last = LARGEST_LONG if self.step > 0 else SMALLEST_LONG
        mark = self.start + min(steps, (last - self.start) // self.step) * self.step
        if self.mark is None:
            return mark if steps >= 0 else None
        return max(self.mark, mark) if self.step > 0 else min(self.mark, mark)


def is_identity_column(item: StructField) -> bool:
    """Return whether a column's metadata declares numbers that the engine gives out."""
    return any(key.startswith(IDENTITY_PREFIX) for key in item.metadata)


def identity_metadata(start: int, step: int, *, may_be_inserted: bool) -> dict[str, object]:
    """Return the metadata of a new identity column, without a mark (spec 10.7)."""
    return {_START: start, _STEP: step, _MAY_INSERT: may_be_inserted}


def identity_columns(schema: StructType) -> tuple[IdentityColumn, ...]:
    """Return the identity columns of a table.

    Raises:
        SchemaError: The metadata of one of them is damaged (kind
            `OPTIMIST_MALFORMED_IDENTITY_COLUMN`).
    """
    return tuple(map(_parse_column, filter(is_identity_column, schema)))


def ensure_none_inserted(schema: StructType, names: Iterable[str]) -> None:
    """Refuse a write that brings its own numbers for a column of generated numbers.

    Args:
        schema: The table's.
        names: The columns that the write brings.

    Raises:
        UsageError: It brings some (kind `DELTA_IDENTITY_COLUMNS_EXPLICIT_INSERT_NOT_SUPPORTED`).
    """
    for column in _named_columns(schema, names):
        if not column.may_be_inserted:
            raise UsageError(
                f"The column {shown(column.name)} is GENERATED ALWAYS AS IDENTITY: its values are "
                "given out, and can't be inserted. Nothing was written. Leave the column out.",
                kind="DELTA_IDENTITY_COLUMNS_EXPLICIT_INSERT_NOT_SUPPORTED",
                column=column.name,
            )


def ensure_none_updated(schema: StructType, names: Iterable[str]) -> None:
    """Refuse a command that changes numbers of an identity column.

    Raises:
        UsageError: It changes some (kind `DELTA_IDENTITY_COLUMNS_UPDATE_NOT_SUPPORTED`).
    """
    for column in _named_columns(schema, names):
        raise UsageError(
            f"The column {shown(column.name)} is an identity column, whose values do not change. "
            "Nothing was written. Leave the column out of the assignments.",
            kind="DELTA_IDENTITY_COLUMNS_UPDATE_NOT_SUPPORTED",
            column=column.name,
        )


def with_high_water_marks(schema: StructType, written: Mapping[str, int]) -> StructType:
    """Return the schema after a commit that gives out numbers.

    Args:
        schema: The table's.
        written: By column, the number farthest from the start (see `IdentityColumn.advanced`).
    """
    marks = {
        column.name: column.advanced(written[column.name])
        for column in identity_columns(schema)
        if column.name in written
    }
    fields = (
        item
        if marks.get(item.name) is None
        else replace(item, metadata={**item.metadata, HIGH_WATER_MARK: marks[item.name]})
        for item in schema
    )
    return StructType(tuple(fields))


def identity_overflow(column: str) -> SchemaError:
    """Return the error for a write that needs more numbers than are left."""
    return SchemaError(
        f"The identity column {shown(column)} has too few numbers left: the next ones do not fit "
        "into 64 bits. Nothing was committed. Write the rows to a new table, whose sequence starts "
        "elsewhere or has a smaller step.",
        kind="OPTIMIST_IDENTITY_COLUMN_EXHAUSTED",
        column=column,
    )


def _named_columns(schema: StructType, names: Iterable[str]) -> Iterator[IdentityColumn]:
    columns = identity_columns(schema)
    folded: Collection[str] = {name.lower() for name in names} if columns else ()
    return (column for column in columns if column.name.lower() in folded)


def _parse_column(item: StructField) -> IdentityColumn:
    start, step, mark = (_parse_long(item, key) for key in (_START, _STEP, HIGH_WATER_MARK))
    may_insert = item.metadata.get(_MAY_INSERT, False)
    if start is None or not step or not isinstance(may_insert, bool):
        raise _malformed_column(item, (_START, _STEP, _MAY_INSERT))
    return IdentityColumn(item.name, item.physical_name, start, step, mark, may_insert)


def _parse_long(item: StructField, key: str) -> int | None:
    value = item.metadata.get(key)
    if value is None:
        return None
    if type(value) is not int or not SMALLEST_LONG <= value <= LARGEST_LONG:
        raise _malformed_column(item, (key,))
    return value


def _malformed_column(item: StructField, keys: Sequence[str]) -> SchemaError:
    found = {key: item.metadata.get(key) for key in keys}
    return SchemaError(
        f"The identity column {shown(item.name)} has damaged metadata: {quoted(found)}. Nothing "
        "was written. Correct it with the engine that made the column.",
        kind="OPTIMIST_MALFORMED_IDENTITY_COLUMN",
        column=item.name,
    )
