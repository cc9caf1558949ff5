"""Sets of row positions inside the JVM, filled from Python, that Spark takes for functions.

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

from optimist.spark.jvm import Jvm

__all__ = ["DenseRows", "RowSet", "SparseRows", "is_sparse"]

_WORD_BITS = 64
_MIN_FILES = 100
_MAX_INT = 2**31 - 1


class RowSet(Protocol):
    """Deleted rows of many files in one space of positions.

    Attributes:
        scala: The Scala set; it only grows.
        position_type: Spark's type of a position.
        capacity: How many positions there can be.
    """

    scala: Any
    position_type: str
    capacity: int

    def width(self, span: int) -> int:
        """How many positions a file takes whose last deleted row has the index `span - 1`."""
        ...

    def add(self, vectors: Sequence[BitMap64], start: int, widths: Sequence[int]) -> None:
        """Put in the rows of files that follow each other from position `start` on."""
        ...


class DenseRows:
    """A bit per row; see `RowSet`."""

    position_type = "int"
    capacity = _MAX_INT

    def __init__(self, jvm: Jvm) -> None:
        self._jvm = jvm
        self.scala = jvm.root.scala.collection.mutable.BitSet()

    def width(self, span: int) -> int:
        """Whole words."""
        return -(-span // _WORD_BITS) * _WORD_BITS

    def add(self, vectors: Sequence[BitMap64], start: int, widths: Sequence[int]) -> None:
        """See `RowSet.add`."""
        words = b"".join(map(_bits, vectors, widths))
        first = start // _WORD_BITS
        array = _java_longs(self._jvm, words, first)
        added = self._jvm.module("scala.collection.mutable.BitSet$").fromBitMaskNoCopy(array)
        getattr(self.scala, "$bar$eq")(added)


class SparseRows:
    """A number per deleted row; see `RowSet`."""

    position_type = "long"
    capacity = 2**63 - 1

    def __init__(self, jvm: Jvm) -> None:
        self._jvm = jvm
        self.scala = jvm.root.scala.collection.mutable.HashSet()

    def width(self, span: int) -> int:
        """No more than needed."""
        return span

    def add(self, vectors: Sequence[BitMap64], start: int, widths: Sequence[int]) -> None:
        """See `RowSet.add`."""
        bases = accumulate(widths, initial=start)
        parts = [_rows(vector) + np.uint64(base) for vector, base in zip(vectors, bases)]  # noqa: B905 - one base more
        data = np.concatenate(parts).astype("<i8").tobytes()
        self.scala.addAll(self._jvm.array_seq(_java_longs(self._jvm, data, 0)))


def is_sparse(vectors: pa.StructArray) -> pa.Array:
    """Which files the sparse set is for, by the descriptions of their vectors; no file is read.

    A vector takes 2 bytes per row and 8 per 65,536 rows with any deleted among them, which the
    dense set has 8 KiB for. A few files are never worth a relation of their own.
    """
    size, rows = pc.struct_field(vectors, "sizeInBytes"), pc.struct_field(vectors, "cardinality")
    if len(vectors) < _MIN_FILES:
        return pa.repeat(pa.scalar(False), len(vectors))
    blocks = pc.divide(pc.subtract(pc.subtract(size.cast(pa.int64()), 24), pc.multiply(rows, 2)), 8)
    return pc.fill_null(pc.less(pc.multiply(rows, 64), pc.multiply(blocks, 8192)), False)


def _rows(vector: BitMap64) -> np.ndarray[Any, np.dtype[np.uint64]]:
    return np.asarray(vector.to_array(), dtype=np.uint64)


def _bits(vector: BitMap64, width: int) -> bytes:
    bits = np.zeros(width, dtype=np.bool_)
    bits[_rows(vector)] = True
    return np.packbits(bits, bitorder="little").tobytes()


def _java_longs(jvm: Jvm, data: bytes, first: int) -> Any:
    """A `long[]` of the little-endian words behind `first` zeros."""
    java = jvm.root.java.nio
    count = len(data) // 8
    array = jvm.gateway.new_array(jvm.root.long, first + count)
    buffer = java.ByteBuffer.wrap(data).order(java.ByteOrder.LITTLE_ENDIAN)
    buffer.asLongBuffer().get(array, first, count)
    return array
