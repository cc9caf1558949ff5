"""The comparison of a version with its checksum (spec 5.9).

A commit that was cut off at the end of a line still parses. Only this comparison notices the loss.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from optimist.core.errors import SchemaError, TableError
from optimist.core.errors.foreign_text import shown
from optimist.core.log.checksum import VersionChecksum
from optimist.core.log.names import checksum_name
from optimist.core.log.replay import TableState
from optimist.core.paths import join
from optimist.core.protocol.actions import Metadata, Protocol
from optimist.core.protocol.table_metadata import TableMetadata

__all__ = ["differences", "disagreement", "metadata_pairs"]


def differences(
    noted: VersionChecksum, state: TableState, *, num_files: int, size_bytes: int
) -> str:
    """Describe how a version's checksum contradicts its files and state, or return "".

    The checksum must belong to the current commit, because a commit that was overwritten leaves its
    own checksum behind. Values that writers may spell differently (the text of a schema, absent
    fields of the metadata) are compared by their meaning, or not at all.

    Args:
        noted: The version's checksum.
        state: The state of the version, without its files.
        num_files: The number of its live files.
        size_bytes: The sum of their sizes.
    """
    pairs: Mapping[str, tuple[object, object]] = {
        "numFiles": (num_files, noted.num_files),
        "tableSizeBytes": (size_bytes, noted.table_size_bytes),
        **metadata_pairs(state.metadata, noted.metadata),
        **_protocol_pairs(state.protocol, noted.protocol),
        **dict(_transaction_pairs(state, noted)),
    }
    return "; ".join(
        f"{shown(name)} is {shown(found)}, not {shown(said)}"
        for name, (found, said) in pairs.items()
        if found != said
    )


def disagreement(differences: str, log_path: str, version: int) -> TableError:
    """Return the error for these differences, of kind `DELTA_TXN_LOG_FAILED_INTEGRITY`."""
    path = join(log_path, checksum_name(version))
    return TableError(
        f"Version {version} of the table does not agree with its version checksum, {path}: "
        f"{differences}. A commit or the .crc file was damaged or changed. Restore it from a "
        "backup, or delete the .crc file if that is the wrong one. Until then readers follow the "
        "commits, and checkpoints and writers that look at the table's files fail.",
        kind="DELTA_TXN_LOG_FAILED_INTEGRITY",
        version=version,
        path=path,
    )


def metadata_pairs(found: Metadata | None, noted: Metadata) -> dict[str, tuple[object, object]]:
    """Return what two accounts of one metadata say of each field that means something."""
    if found is None:
        return {"metaData": (None, noted.id)}
    pairs: dict[str, tuple[object, object]] = {
        "metaData.id": (found.id, noted.id),
        "partitionColumns": (found.partition_columns, noted.partition_columns),
        "configuration": (dict(found.configuration), dict(noted.configuration)),
    }
    if not _is_same_schema(found, noted):
        pairs["schemaString"] = (found.schema_string, noted.schema_string)
    return pairs


def _is_same_schema(found: Metadata, noted: Metadata) -> bool:
    if found.schema_string == noted.schema_string:
        return True
    try:
        return TableMetadata.of(found).declared_schema == TableMetadata.of(noted).declared_schema
    except SchemaError:
        return False


def _protocol_pairs(found: Protocol | None, noted: Protocol) -> dict[str, tuple[object, object]]:
    if found is None:
        return {"protocol": (None, noted.min_reader_version)}
    return {
        "minReaderVersion": (found.min_reader_version, noted.min_reader_version),
        "minWriterVersion": (found.min_writer_version, noted.min_writer_version),
    }


def _transaction_pairs(
    state: TableState, checksum: VersionChecksum
) -> Iterator[tuple[str, tuple[object, object]]]:
    """Yield the transactions that the checksum lists. It may lack some that have expired.

    If transactions expire, a checkpoint may also lack some that the checksum lists.
    """
    expire = state.metadata is not None and (
        TableMetadata.of(state.metadata).properties.set_transaction_retention_ms is not None
    )
    for noted in checksum.set_transactions or ():
        found = state.set_transactions.get(noted.app_id)
        if found is not None or not expire:
            yield f"txn {noted.app_id!r}", (found and found.version, noted.version)
