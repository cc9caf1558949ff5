"""Reads by a Python data source that the driver plans itself.

Without this, Spark asks a Python worker for the plan, and the worker opens the table again. All
that Spark takes from the worker is a pickled function and some bytes per task, and the driver has
both already.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import pyarrow as pa
from pyspark.serializers import CloudPickleSerializer

from optimist.spark.arrow.wanted_rows import WantedRows
from optimist.spark.session.callback_errors import callback
from optimist.spark.session.java_identity import JavaIdentity
from optimist.spark.session.jvm import Jvm
from optimist.spark.session.task_errors import portable_errors

__all__ = ["PlannedRows", "planned_scan"]

_READ = "org.apache.spark.sql.connector.read"
_BATCH = "org.apache.spark.sql.execution.datasources.v2.python.PythonBatch"
_PLAN, _IS_PLANNED = "infoInPython", "bitmap$0"
"""Scala's fields for a value that is made on first use, and for whether it is made."""
_ARRAYS = b"\xac\xed\x00\x05ur\x00\x03[[B" + bytes.fromhex("4bfd19156767db37") + b"\x02\x00\x00xp"
_FIRST = b"ur\x00\x02[B" + bytes.fromhex("acf317f8060854e0") + b"\x02\x00\x00xp"
_NEXT = b"uq\x00\x7e\x00\x02"


@dataclass(frozen=True, slots=True)
class PlannedRows:
    """The rows that a scan reads.

    Attributes:
        rows: Reads a group.
        groups: What each task reads.
        size_bytes: The size of the files; Spark broadcasts a small table in a join.
    """

    rows: WantedRows
    groups: Sequence[bytes]
    size_bytes: int


def planned_scan(jvm: Jvm, name: str, read: PlannedRows, schema: Any, options: Any) -> Any:
    """Return Spark's own scan of a Python data source, with its plan already made.

    Args:
        jvm: The session's handles.
        name: The name of the registered source, which decides the Python that tasks run.
        read: What it reads.
        schema: The columns of its rows, a Java `StructType`.
        options: The options of the source, for `explain()`.
    """
    python = jvm.sources.v2.python
    source = python.PythonDataSourceV2()
    source.setShortName(name)
    pickler: Any = CloudPickleSerializer
    function = pickler().dumps((_ReadGroups(read.rows), read.rows.schema))
    plan = python.PythonDataSourceReadInfo(function, _byte_arrays(jvm, read.groups))
    scan = python.PythonScanBuilder(source, name, schema, options).build()
    return _Scan(jvm, scan, plan, read.size_bytes)


class _Scan(JavaIdentity):
    """Spark's scan of a Python source, but with our plan, which the JVM calls."""

    class Java:
        """The interface for which py4j makes a proxy."""

        implements = [f"{_READ}.SupportsReportStatistics"]  # noqa: RUF012

    def __init__(self, jvm: Jvm, scan: Any, plan: Any, size_bytes: int) -> None:
        super().__init__()
        self._jvm = jvm
        self._scan = scan
        self._plan = plan
        self._size_bytes = size_bytes

    def __getattr__(self, name: str) -> Any:
        # Proxies do not inherit Java's default methods, which differ from version to version.
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self._scan, name)

    def estimateStatistics(self) -> Any:
        """Return the size of the scan, which Spark asks for before it chooses joins."""
        return _Size(self._jvm, self._size_bytes)

    def estimateSizeInBytes(self) -> Any:
        """Return the size of the scan, as Spark 4.3 asks for it."""
        return self.estimateStatistics().sizeInBytes()

    def reflectsFullyPushedDownFilters(self) -> bool:
        """Return True, since no filter is pushed down in full (Spark asks since 4.3)."""
        return True

    def toBatch(self) -> Any:
        """Return the scan's batch with the finished plan in it."""
        with callback():
            return self._batch

    @cached_property
    def _batch(self) -> Any:
        batch = self._scan.toBatch()
        kind = self._jvm.java_class(_BATCH)
        for name, value in ((_PLAN, self._plan), (_IS_PLANNED, True)):
            field = kind.getDeclaredField(name)
            field.setAccessible(True)
            field.set(batch, value)
        return batch


class _Size(JavaIdentity):
    """The statistics of a scan before it runs, which the JVM asks for."""

    class Java:
        """The interface for which py4j makes a proxy."""

        implements = [f"{_READ}.Statistics"]  # noqa: RUF012 - py4j wants a list

    def __init__(self, jvm: Jvm, size_bytes: int) -> None:
        super().__init__()
        self._java = jvm.root.java.util
        self._size_bytes = size_bytes

    def sizeInBytes(self) -> Any:
        """Return the bytes of the files that are left."""
        return self._java.OptionalLong.of(self._size_bytes)

    def numRows(self) -> Any:
        """Return nothing, since only some files have statistics."""
        return self._java.OptionalLong.empty()

    def columnStats(self) -> Any:
        """Return no statistics of columns."""
        return self._java.HashMap()


@dataclass(frozen=True, slots=True)
class _ReadGroups:
    """The function of each task, whose input is a row with the bytes of its group."""

    rows: WantedRows

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        with portable_errors():
            for batch in batches:
                for group in batch.column(0).to_pylist():
                    yield from self.rows.read(group)


def _byte_arrays(jvm: Jvm, items: Sequence[bytes]) -> Any:
    """Make a `Seq[Array[Byte]]` in one round trip, by Java's serialisation."""
    parts = [_ARRAYS, struct.pack(">i", len(items))]
    for number, item in enumerate(items):
        parts += [_NEXT if number else _FIRST, struct.pack(">i", len(item)), item]
    java = jvm.root.java.io
    stream = java.ObjectInputStream(java.ByteArrayInputStream(b"".join(parts)))
    return jvm.array_seq(stream.readObject())
