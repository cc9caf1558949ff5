"""Sets of row positions inside the JVM, which Python fills and Spark queries row by row.

| set | memory | for |
|---|---|---|
| dense | a bit per row of the files, deleted or not | many deleted rows; up to 2^31 rows in all |
| sparse | some 64 bytes per deleted row | a few deleted rows in each of very many files |
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyroaring import BitMap64

from optimist.core.values.field_types import LARGEST_LONG
from optimist.spark.session.jvm import Jvm

__all__ = ["DenseRows", "RowSet", "SparseRows", "is_sparse"]

_WORD_BITS = 64
_MIN_FILES = 100
_MAX_INT = 2**31 - 1


class RowSet(Protocol):
    """The deleted rows of many files in one space of positions, which only grows.

    A query may serialise the set while rows for another query are added.

    Attributes:
        position_type: Spark's type of a position.
        capacity: The largest number of positions.
    """

    position_type: str
    capacity: int

    def contains(self, position: Any) -> Any:
        """Return a Catalyst expression that is true if `position` is in the set.

        The position has the type `position_type`.
        """
        ...

    def width(self, span: int) -> int:
        """Return the number of positions that a file needs.

        Its last deleted row has the index `span - 1`.
        """
        ...

    def add(self, vectors: Sequence[BitMap64], start: int, widths: Sequence[int]) -> None:
        """Add the deleted rows of files whose positions follow one another from `start` on."""
        ...


class DenseRows:
    """A set with a bit per row (see `RowSet`).

    It is Spark's own `BitSet`, which generated code calls directly. That class can't take many bits
    at once, so its whole array of words is replaced by a filled one.
    """

    position_type = "int"
    capacity = _MAX_INT

    def __init__(self, jvm: Jvm) -> None:
        self._jvm = jvm
        self._pack_bits = jvm.root.org.apache.spark.util.collection.BitSet(0)
        self._words = self._pack_bits.getClass().getDeclaredField("words")
        self._words.setAccessible(True)
        self._num_words = 0

    def contains(self, position: Any) -> Any:
        """See `RowSet.contains`."""
        expressions = self._jvm.catalyst.expressions
        kind = self._jvm.root.org.apache.spark.sql.types.ObjectType(self._pack_bits.getClass())
        return expressions.objects.Invoke(
            expressions.Literal(self._pack_bits, kind),
            "get",
            self._jvm.module("org.apache.spark.sql.types.BooleanType$"),
            self._jvm.seq([position]),
            self._jvm.nil,
            True,
            False,
            True,
        )

    def width(self, span: int) -> int:
        """Return `span`, rounded up to whole words."""
        return -(-span // _WORD_BITS) * _WORD_BITS

    def add(self, vectors: Sequence[BitMap64], start: int, widths: Sequence[int]) -> None:
        """See `RowSet.add`."""
        added = b"".join(map(_pack_bits, vectors, widths))
        old, self._num_words = self._num_words, (start + sum(widths)) // _WORD_BITS
        words = self._jvm.gateway.new_array(self._jvm.root.long, self._num_words)
        self._jvm.root.System.arraycopy(self._words.get(self._pack_bits), 0, words, 0, old)
        _fill_longs(self._jvm, words, added, start // _WORD_BITS)
        self._words.set(self._pack_bits, words)


class SparseRows:
    """A set with a number per deleted row (see `RowSet`).

    A Scala set is a serialisable function from a number to a boolean, and a `ScalaUDF` calls it. It
    wraps a Java set that one thread may fill while another serialises it.
    """

    position_type = "long"
    capacity = LARGEST_LONG

    def __init__(self, jvm: Jvm) -> None:
        self._jvm = jvm
        rows = jvm.root.java.util.concurrent.ConcurrentHashMap.newKeySet()
        self._row_indexes = jvm.root.scala.jdk.javaapi.CollectionConverters.asScala(rows)
        # Not the set itself: Spark often compares and hashes functions while it plans, and a set is
        # compared by its elements. The function that `andThen` makes equals only itself.
        self._function = self._row_indexes.andThen(jvm.module("scala.$less$colon$less$").refl())

    def contains(self, position: Any) -> Any:
        """See `RowSet.contains`."""
        return self._jvm.catalyst.expressions.ScalaUDF(
            self._function,
            self._jvm.module("org.apache.spark.sql.types.BooleanType$"),
            self._jvm.seq([position]),
            self._jvm.nil,
            self._jvm.none,
            self._jvm.none,
            True,
            True,
        )

    def width(self, span: int) -> int:
        """Return `span`, since a position without a deleted row costs nothing."""
        return span

    def add(self, vectors: Sequence[BitMap64], start: int, widths: Sequence[int]) -> None:
        """See `RowSet.add`."""
        bases = accumulate(widths, initial=start)
        parts = [_row_indexes(vector) + np.uint64(base) for vector, base in zip(vectors, bases)]  # noqa: B905 - one base more
        data = np.concatenate(parts).astype("<i8").tobytes()
        numbers = self._jvm.gateway.new_array(self._jvm.root.long, len(data) // 8)
        _fill_longs(self._jvm, numbers, data, 0)
        self._row_indexes.addAll(self._jvm.array_seq(numbers))


def is_sparse(vectors: pa.StructArray) -> pa.Array:
    """Choose the files for the sparse set by their vectors' descriptors, without reading files.

    A vector takes 2 bytes per deleted row, and 8 bytes per block of 65,536 rows with deleted rows.
    The dense set takes 8 KiB for such a block. A few files never get their own relation.
    """
    size, rows = pc.struct_field(vectors, "sizeInBytes"), pc.struct_field(vectors, "cardinality")
    if len(vectors) < _MIN_FILES:
        return pa.repeat(pa.scalar(False), len(vectors))
    blocks = pc.divide(pc.subtract(pc.subtract(size.cast(pa.int64()), 24), pc.multiply(rows, 2)), 8)
    return pc.fill_null(pc.less(pc.multiply(rows, 64), pc.multiply(blocks, 8192)), False)


def _row_indexes(vector: BitMap64) -> np.ndarray[Any, np.dtype[np.uint64]]:
    return np.asarray(vector.to_array(), dtype=np.uint64)


def _pack_bits(vector: BitMap64, width: int) -> bytes:
    bits = np.zeros(width, dtype=np.bool_)
    bits[_row_indexes(vector)] = True
    return np.packbits(bits, bitorder="little").tobytes()


def _fill_longs(jvm: Jvm, array: Any, data: bytes, first: int) -> None:
    """Put little-endian words into a `long[]`, starting at an index."""
    java = jvm.root.java.nio
    buffer = java.ByteBuffer.wrap(data).order(java.ByteOrder.LITTLE_ENDIAN)
    buffer.asLongBuffer().get(array, first, len(data) // 8)
