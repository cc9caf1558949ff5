"""`N.crc`, the version checksum: the sums of a version's state (spec 5.9).

It is derived from the checksum of the version before and the commits since, if these show for
certain which files came and went. Readers work without it.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

import pyarrow as pa

from optimist.core.errors import StorageError, TableError
from optimist.core.errors.foreign_text import quoted, shown
from optimist.core.log.deleted_record_counts import DeletedRecordCounts
from optimist.core.log.file_sizes import FileSizeHistogram
from optimist.core.log.file_sums import NO_FILES, FileChanges, FileSums
from optimist.core.log.names import checksum_name
from optimist.core.log.replay import TableState
from optimist.core.options.engine import EngineOptions
from optimist.core.paths import join
from optimist.core.plugins.logstore import LogStore, PutOutcome
from optimist.core.protocol.actions import (
    DomainMetadata,
    Metadata,
    Protocol,
    SetTransaction,
    action_from_dict,
    action_to_dict,
)
from optimist.core.protocol.table_metadata import TableMetadata
from optimist.core.secrets import without_secrets
from optimist.core.values.field_types import fitting
from optimist.core.values.foreign_json import parse_log_json

__all__ = [
    "VersionChecksum",
    "checksum_of_files",
    "derive_checksum",
    "is_of_old_writer",
    "read_checksum",
    "write_checksum",
]

_LOG = logging.getLogger(__name__)
_Item = TypeVar("_Item", Metadata, Protocol, SetTransaction, DomainMetadata)


@dataclass(frozen=True, slots=True)
class VersionChecksum:
    """The sums of one version.

    `set_transactions` and `domain_metadata` are None if they are unknown, too many to write, or not
    certain. The sums of deletion vectors and the histograms are None if an earlier writer left them
    out.
    """

    table_size_bytes: int
    num_files: int
    metadata: Metadata
    protocol: Protocol
    txn_id: str | None = None
    num_deleted_records: int | None = None
    num_deletion_vectors: int | None = None
    in_commit_timestamp: int | None = None
    set_transactions: tuple[SetTransaction, ...] | None = None
    domain_metadata: tuple[DomainMetadata, ...] | None = None
    file_sizes: FileSizeHistogram | None = None
    deleted_record_counts: DeletedRecordCounts | None = None
    extra: Mapping[str, object] = field(default_factory=dict)

    def to_json(self) -> str:
        """Return the one line of the file, without its newline."""
        deleted = self.deleted_record_counts
        entries: dict[str, object] = {
            "txnId": self.txn_id,
            "tableSizeBytes": self.table_size_bytes,
            "numFiles": self.num_files,
            "numDeletedRecordsOpt": self.num_deleted_records,
            "numDeletionVectorsOpt": self.num_deletion_vectors,
            "numMetadata": 1,
            "numProtocol": 1,
            "inCommitTimestampOpt": self.in_commit_timestamp,
            "setTransactions": _action_bodies(self.set_transactions),
            "domainMetadata": _action_bodies(self.domain_metadata),
            "fileSizeHistogram": self.file_sizes.to_json() if self.file_sizes else None,
            "deletedRecordCountsHistogramOpt": deleted.to_json() if deleted else None,
            "metadata": action_to_dict(self.metadata)[Metadata.KEY],
            "protocol": action_to_dict(self.protocol)[Protocol.KEY],
            **self.extra,
        }
        present = {key: value for key, value in entries.items() if value is not None}
        return json.dumps(present, separators=(",", ":"), ensure_ascii=False)

    @classmethod
    def from_json(cls, text: str) -> VersionChecksum:
        """Parse the file.

        Raises:
            ValueError: The text is not a version checksum.
        """
        try:
            return _decode_checksum(parse_log_json(text))
        except (TableError, KeyError, TypeError, AttributeError) as error:
            raise ValueError(f"it is not a version checksum ({shown(error)})") from None


def derive_checksum(
    previous: VersionChecksum | None,
    changes: FileChanges | None,
    *,
    state: TableState,
    options: EngineOptions,
) -> VersionChecksum | None:
    """Return the checksum after some commits, or None if they do not show enough (spec 5.9).

    Args:
        previous: The checksum of the version before them. None before version 0.
        changes: The files that came and went since. None if that is not certain.
        state: The table's state after them.
        options: The limits of the lists in the checksum.
    """
    if changes is None:
        return None
    before = NO_FILES if previous is None else _sums_of(previous)
    return _with_state(before.after(changes), state, options)


def checksum_of_files(
    files: pa.Table, *, state: TableState, options: EngineOptions
) -> VersionChecksum | None:
    """Sum the checksum up anew from the live files, or return None without protocol or metadata."""
    return _with_state(FileSums.of(files), state, options)


def read_checksum(
    store: LogStore, log_path: str, version: int, *, txn_id: str | None = None
) -> VersionChecksum | None:
    """Return the checksum of a version, or None if it is absent or unreadable: it is optional.

    Args:
        store: The store of the log.
        log_path: The log directory.
        version: The version.
        txn_id: The txnId of the commit that the log has now, if known. A checksum that an
            overwritten commit left behind is ignored.
    """
    path = join(log_path, checksum_name(version))
    try:
        found = VersionChecksum.from_json(store.read_bytes(path).decode("utf-8"))
    except (ValueError, StorageError):
        return None
    if txn_id is None or found.txn_id in (None, txn_id):
        return found
    _LOG.warning(
        "The checksum %s belongs to another commit (txnId %s) than the one in the log (txnId %s), "
        "which replaced it. The checksum is ignored.",
        without_secrets(path),
        shown(found.txn_id),
        shown(txn_id),
    )
    return None


def is_of_old_writer(data: bytes) -> bool:
    """Return whether a checksum is whole, but has no state: old engines wrote only the sums."""
    try:
        parsed = parse_log_json(data.decode("utf-8"))
    except (ValueError, TableError):
        return False
    if not isinstance(parsed, dict) or parsed.keys() & {Metadata.KEY, Protocol.KEY}:
        return False
    return all(fitting("Count")(parsed.get(key)) for key in ("tableSizeBytes", "numFiles"))


def write_checksum(
    store: LogStore, log_path: str, version: int, checksum: VersionChecksum
) -> PutOutcome:
    """Create `N.crc`, unless one exists, whoever wrote it."""
    data = f"{checksum.to_json()}\n".encode()
    return store.put_if_absent(join(log_path, checksum_name(version)), data)


def _sums_of(checksum: VersionChecksum) -> FileSums:
    return FileSums(
        checksum.table_size_bytes,
        checksum.num_files,
        checksum.num_deleted_records,
        checksum.num_deletion_vectors,
        checksum.file_sizes,
        checksum.deleted_record_counts,
    )


def _with_state(
    sums: FileSums, state: TableState, options: EngineOptions
) -> VersionChecksum | None:
    if state.metadata is None or state.protocol is None or not sums.are_possible:
        return None
    info, properties = state.commit_info, TableMetadata.of(state.metadata).properties
    # The clock decides which transactions have expired, and a checkpoint drops them.
    expire = properties.set_transaction_retention_ms is not None
    transactions = tuple(state.set_transactions.values())
    has_time = properties.enable_in_commit_timestamps
    return VersionChecksum(
        table_size_bytes=sums.size_bytes,
        num_files=sums.num_files,
        metadata=state.metadata,
        protocol=state.protocol,
        txn_id=info.txn_id if info else None,
        num_deleted_records=sums.num_deleted_records,
        num_deletion_vectors=sums.num_deletion_vectors,
        file_sizes=sums.file_sizes,
        deleted_record_counts=sums.deleted_record_counts,
        in_commit_timestamp=info.in_commit_timestamp if info and has_time else None,
        set_transactions=(
            None if expire else _unless_too_many(options.set_transactions_in_crc_max, transactions)
        ),
        domain_metadata=_unless_too_many(
            options.domain_metadatas_in_crc_max, tuple(state.domain_metadata.values())
        ),
    )


def _unless_too_many(limit: int, items: tuple[_Item, ...]) -> tuple[_Item, ...] | None:
    return items if len(items) <= limit else None


def _action_bodies(
    actions: tuple[SetTransaction, ...] | tuple[DomainMetadata, ...] | None,
) -> list[object] | None:
    if actions is None:
        return None
    return [action_to_dict(item)[item.KEY] for item in actions]


def _decode_checksum(parsed: dict[str, Any]) -> VersionChecksum:
    rest = dict(parsed)
    for constant in ("numMetadata", "numProtocol"):
        rest.pop(constant, None)
    return VersionChecksum(
        table_size_bytes=_decode_count(rest.pop("tableSizeBytes")),
        num_files=_decode_count(rest.pop("numFiles")),
        metadata=_decode(Metadata, rest.pop("metadata")),
        protocol=_decode(Protocol, rest.pop("protocol")),
        txn_id=_value_if_fitting("str", rest.pop("txnId", None)),
        num_deleted_records=_value_if_fitting("Count", rest.pop("numDeletedRecordsOpt", None)),
        num_deletion_vectors=_value_if_fitting("Count", rest.pop("numDeletionVectorsOpt", None)),
        in_commit_timestamp=_value_if_fitting("Long", rest.pop("inCommitTimestampOpt", None)),
        set_transactions=_decode_list(SetTransaction, rest.pop("setTransactions", None)),
        domain_metadata=_decode_list(DomainMetadata, rest.pop("domainMetadata", None)),
        file_sizes=_pop_histogram(rest),
        deleted_record_counts=DeletedRecordCounts.from_json(
            rest.pop("deletedRecordCountsHistogramOpt", None)
        ),
        extra=rest,
    )


def _pop_histogram(rest: dict[str, Any]) -> FileSizeHistogram | None:
    """Remove the histogram from the rest and return it. Older writers use the second key."""
    bodies = [rest.pop(key, None) for key in ("fileSizeHistogram", "histogramOpt")]
    return next(filter(None, map(FileSizeHistogram.from_json, bodies)), None)


def _decode_count(value: object) -> int:
    if not isinstance(value, int) or not fitting("Count")(value):
        raise TypeError(f"{quoted(value)} is not a count")
    return value


def _value_if_fitting(kind: str, value: Any) -> Any:
    """Return an optional entry, or None if its value has another type."""
    return value if fitting(kind)(value) else None


def _decode(cls: type[_Item], body: object) -> _Item:
    action = action_from_dict({cls.KEY: body})
    if not isinstance(action, cls):
        raise TypeError(f"it holds no {cls.KEY}")
    return action


def _decode_list(cls: type[_Item], bodies: object) -> tuple[_Item, ...] | None:
    if not isinstance(bodies, list):
        return None
    return tuple(_decode(cls, body) for body in bodies)
