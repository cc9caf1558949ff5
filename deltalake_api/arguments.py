"""Arguments that deltalake still takes in two ways, by position and by name."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import pyarrow as pa

from optimist.core.errors import UsageError
from optimist.core.errors.argument_types import wrong_type
from optimist.core.errors.foreign_text import listed
from optimist.core.schema.types import GENERATION_EXPRESSION
from optimist.deltalake.exceptions import not_supported
from optimist.deltalake.handles import Call

__all__ = [
    "COMMIT_FIRST",
    "HOOKS_FIRST",
    "by_position",
    "call_of",
    "deprecated",
    "ensure_no_new_rule",
    "rows_given",
]

_RULE = GENERATION_EXPRESSION.encode()

COMMIT_FIRST = ("commit_properties", "post_commithook_properties")
HOOKS_FIRST = ("post_commithook_properties", "commit_properties")


def deprecated(text: str) -> None:
    """Warn the caller's caller of an argument that deltalake will drop."""
    warnings.warn(text, DeprecationWarning, stacklevel=4)


def by_position(
    method: str, given: Sequence[Any], order: Sequence[str], by_name: dict[str, Any]
) -> dict[str, Any]:
    """Return arguments by name, of which some may be given by position.

    Args:
        method: The method's name.
        given: The values that came by position.
        order: The names that they have, in order.
        by_name: The values that came by name; None where none came.

    Raises:
        TypeError: There are too many, or one came in both ways.
    """
    if not given:
        return by_name
    if len(given) > len(order):
        raise TypeError(f"{method}() takes at most {len(order)} of {', '.join(order)}")
    deprecated(f"Give the arguments {', '.join(order)} of {method}() by name.")
    taken = dict(zip(order, given, strict=False))
    for name in taken:
        if by_name.get(name) is not None:
            raise TypeError(f"{method}() got multiple values for '{name}'")
    return {**by_name, **taken}


def call_of(
    method: str,
    given: Sequence[Any],
    order: Sequence[str] = COMMIT_FIRST,
    *,
    writer: Any = None,
    **by_name: Any,
) -> Call:
    """Return what a command was given besides its own arguments (see `by_position`)."""
    found = by_position(method, given, order, by_name)
    return Call(found["commit_properties"], found["post_commithook_properties"], writer)


def rows_given(data: Any, argument: str) -> pa.RecordBatchReader | pa.Table:
    """Return rows of Arrow: a table, a stream, one batch, or a sequence of batches.

    A sequence is read once and in order, so that it may make its batches as they are needed.

    Raises:
        ArgumentTypeError: They are none of these (kind `OPTIMIST_INVALID_ARGUMENT_TYPE`).
    """
    if isinstance(data, pa.Table | pa.RecordBatchReader):
        return data
    if hasattr(data, "__arrow_c_stream__"):
        return pa.RecordBatchReader.from_stream(data)
    if hasattr(data, "__arrow_c_array__"):
        return pa.Table.from_batches([pa.record_batch(data)])
    if isinstance(data, Sequence) and not isinstance(data, str | bytes):
        return _stream_of(data, argument)
    if hasattr(data, "scanner"):  # a dataset of pyarrow
        return data.scanner().to_reader()
    raise wrong_type(argument, data, "rows of Arrow, such as a pyarrow.Table")


def ensure_no_new_rule(schema: pa.Schema, known: Callable[[], Iterable[str]]) -> None:
    """Refuse a generated column of rows that would be a new column: its rule would be lost.

    Args:
        schema: The rows' columns.
        known: Returns the names of the table's columns that stay.

    Raises:
        NotSupportedError: There is such a column.
    """
    generated = [item.name for item in schema if _RULE in (item.metadata or {})]
    there = {name.lower() for name in known()} if generated else set()
    lost = [name for name in generated if name.lower() not in there]
    if lost:
        raise not_supported(
            f"A write that makes generated columns ({listed(lost)})",
            "Make the table with DeltaTable.create, or take the metadata from the fields.",
        )


def _stream_of(batches: Sequence[Any], argument: str) -> pa.RecordBatchReader:
    """Return the rows of batches, all of which must have the columns of the first."""
    rest = iter(batches)
    first = _batch(next(rest, None), argument)

    def checked() -> Iterator[pa.RecordBatch]:
        yield first
        for each in rest:
            batch = _batch(each, argument)
            if not batch.schema.equals(first.schema):
                raise UsageError(
                    f"The batches of {argument} have different columns. Nothing was written. Give "
                    "all of them the columns of the first.",
                    kind="OPTIMIST_INVALID_ARGUMENT",
                    argument=argument,
                )
            yield batch

    return pa.RecordBatchReader.from_batches(first.schema, checked())


def _batch(given: Any, argument: str) -> pa.RecordBatch:
    if not hasattr(given, "__arrow_c_array__"):
        raise wrong_type(argument, given, "a sequence of batches of Arrow, one at least")
    return pa.record_batch(given)
