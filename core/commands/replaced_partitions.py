"""The partitions that a dynamic overwrite replaces (spec 1.3, 10.6)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from operator import or_

import pyarrow as pa

from optimist.core.data.partition_values import partition_columns_of
from optimist.core.predicates import Predicate
from optimist.core.protocol.actions import AddFile
from optimist.core.schema.types import StructType
from optimist.core.skipping.partition_predicate import partition_predicate
from optimist.core.snapshot.row_filter import row_mask
from optimist.core.transaction.optimistic import OptimisticTransaction

__all__ = ["in_partitions", "partitions_predicate", "replaced_files"]


def replaced_files(
    txn: OptimisticTransaction,
    adds: Sequence[AddFile],
    partition_fields: StructType,
    *,
    zone: str,
    readable: Callable[[Predicate], Predicate] = lambda predicate: predicate,
) -> pa.Table:
    """Return the files in the partitions that a write has written, which count as read.

    Args:
        txn: The transaction.
        adds: The files of the write.
        partition_fields: The partition columns, at least one.
        zone: The session's time zone, for the log's timestamps without a zone.
        readable: Makes the predicate one that the engine may read the log by in this zone.
    """
    predicate = partitions_predicate(adds, partition_fields)
    candidates = txn.filter_files(readable(predicate))
    files = in_partitions(candidates, predicate, partition_fields, zone)
    txn.need_only(files)
    return files


def partitions_predicate(adds: Sequence[AddFile], partition_fields: StructType) -> Predicate:
    """Return a predicate that is true for rows in the partitions of some files.

    Values are compared by meaning, so two spellings of one instant are one partition.

    Args:
        adds: The files of one write.
        partition_fields: The partition columns, at least one.
    """
    distinct = dict.fromkeys(
        tuple(add.partition_values[field.physical_name] for field in partition_fields)
        for add in adds
    )
    partitions = [partition_predicate(partition_fields, texts) for texts in distinct]
    return reduce(or_, partitions) if partitions else Predicate.FALSE


def in_partitions(
    files: pa.Table, predicate: Predicate, partition_fields: StructType, zone: str
) -> pa.Table:
    """Return exactly the files that are in the partitions.

    `filter_files` may return more for the predicate: texts with their own order, such as those of
    `char(n)`, exclude no file there.

    Args:
        files: Rows of `Snapshot.files`.
        predicate: The result of `partitions_predicate`.
        partition_fields: The partition columns.
        zone: The session's time zone, for the log's timestamps without a zone.
    """
    values = partition_columns_of(files, partition_fields, zone=zone)
    return files.filter(row_mask(predicate, values, zone=zone))
