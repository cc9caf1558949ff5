"""`check_table`: one listing of the log and of the table, and one pass over the log.

Nothing is changed. The log is read file by file, also where its newest version can't be loaded, so
that each damage is named and not only the first one. If the newest version can be loaded, its files
are compared with the listing.

Others may write meanwhile, and OPTIMIZE, VACUUM and log cleanup may remove what was listed. So
before a damage is told, the newest version is loaded again: it decides which commits are whole and
which files still belong to the table.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pyarrow as pa
import pyarrow.compute as pc

from optimist.core.data.table_ref import TableRef
from optimist.core.errors import ProtocolError, TableError, TableNotFoundError
from optimist.core.log.checksum import read_checksum
from optimist.core.log.commits import read_commit_info
from optimist.core.log.integrity import differences
from optimist.core.log.limits import LogLimits
from optimist.core.log.names import checksum_name
from optimist.core.log.replay import TableState
from optimist.core.maintenance.fsck.change_files import ChangeFiles
from optimist.core.maintenance.fsck.deep_data import DeepData
from optimist.core.maintenance.fsck.findings import (
    DATA_KINDS,
    FINDINGS,
    STOPS_READERS,
    CheckedTable,
    Finding,
    findings_table,
)
from optimist.core.maintenance.fsck.leftovers import lost_claims, stale_intents
from optimist.core.maintenance.fsck.listed_log import ListedLog
from optimist.core.maintenance.fsck.log_content import LogContent, ignore_named
from optimist.core.maintenance.fsck.sample import Sample
from optimist.core.maintenance.fsck.stored_data import StoredData, full_paths_of
from optimist.core.paths import join
from optimist.core.runtime.progress import ProgressReport
from optimist.core.snapshot import Snapshot

__all__ = ["check_table", "examine"]

_TOMBSTONES_AT_A_TIME = 1 << 20


def check_table(
    table: TableRef,
    load: Callable[[], Snapshot],
    *,
    deep: bool,
    sample: Sample | None = None,
    report: ProgressReport | None = None,
) -> CheckedTable:
    """Check a table, and return what is wrong with it. See `examine`."""
    return examine(table, load, deep=deep, sample=sample, report=report)[0]


def examine(
    table: TableRef,
    load: Callable[[], Snapshot],
    *,
    deep: bool,
    sample: Sample | None = None,
    report: ProgressReport | None = None,
) -> tuple[CheckedTable, list[Finding]]:
    """Check a table, and return what is wrong with it, and apart what is wrong with its log.

    Args:
        table: The table.
        load: Returns the newest version.
        deep: Whether data files and vectors are read, too, and their statistics compared.
        sample: The data files that are read if `deep`; None for all.
        report: Is told of each commit, and if `deep` of each data file.

    Raises:
        TableNotFoundError: There is no table at the path.
        ProtocolError: The table needs a feature that this engine can't read.
        StorageError: The store failed.
    """
    report = report or ProgressReport(table.clock, None, "FSCK")
    snapshot, error = _newest(load)
    log, now_ms = ListedLog.of(table.store, table.log_path), table.clock.now_ms()
    stored = None if snapshot is None else StoredData(table, snapshot)
    note = ignore_named if stored is None else stored.unnamed.note
    limits, changes = LogLimits.of(table.options), ChangeFiles(_young_since(snapshot, now_ms))
    content = LogContent(table.store, log, limits, now_ms, note, report, changes)
    found = [*log.findings(table.store, now_ms), *content.findings()]
    versions = (*log.commits, *(each.version for each in log.checkpoints))
    found += lost_claims(table, max(versions, default=-1))
    if snapshot is None or stored is None:
        if not any(each.kind in STOPS_READERS for each in found):
            found.append(Finding("unreadable", table.log_path, str(error)))
        return CheckedTable(None, len(log.commits), None, deep, findings_table(found)), found
    found = _without_unfinished(found, snapshot.version, load)
    found += _checksum_findings(table, snapshot, {each.version for each in found})
    tables = [findings_table(found), *stored.findings(), *stored.change_findings(changes.table())]
    tables.append(findings_table(stale_intents(table)))
    data = None
    if deep:
        known = pa.concat_tables(tables).column("path").to_pylist()
        data = DeepData.of(table, snapshot, report, sample)
        tables.append(findings_table(data.findings(set(known))))
    rows = _without_removed(pa.concat_tables(tables).cast(FINDINGS), table, snapshot, load)
    counts = (snapshot.version, len(log.commits), snapshot.num_files)
    num_read = 0 if data is None else data.files.num_rows
    seed = None if data is None or sample is None else sample.seed
    return CheckedTable(*counts, deep, rows, num_read=num_read, seed=seed), found


def _young_since(snapshot: Snapshot | None, now_ms: int) -> int:
    if snapshot is None:
        return now_ms
    return now_ms - snapshot.properties.deleted_file_retention_ms // 2


def _without_unfinished(
    found: list[Finding], version: int, load: Callable[[], Snapshot]
) -> list[Finding]:
    """Leave out commits that were being written when they were read, and are whole now."""
    if not any(_is_later_commit(each, version) for each in found):
        return found
    latest, _ = _newest(load)
    whole = range(version + 1, version + 1 if latest is None else latest.version + 1)
    return [
        each for each in found if not (_is_later_commit(each, version) and each.version in whole)
    ]


def _is_later_commit(finding: Finding, version: int) -> bool:
    is_broken = finding.kind in ("empty-commit", "torn-commit")
    return is_broken and finding.version is not None and finding.version > version


def _without_removed(
    found: pa.Table, table: TableRef, snapshot: Snapshot, load: Callable[[], Snapshot]
) -> pa.Table:
    """Leave out files that left the table since the version, and orphans that came into it.

    A file may even have come and gone since, so the tombstones of the newest version count, too.
    """
    paths, kinds = found.column("path"), found.column("kind")
    is_of_data = pc.is_in(kinds, value_set=pa.array(DATA_KINDS))
    is_orphan = pc.equal(kinds, "orphan")
    if not pc.any(pc.or_(is_of_data, is_orphan), min_count=0).as_py():
        return found
    latest, _ = _newest(load)
    if latest is None or latest.version == snapshot.version:
        return found
    is_live = pc.is_in(paths, value_set=full_paths_of(latest.files, table))
    is_wrong = pc.or_(pc.and_(is_of_data, pc.invert(is_live)), pc.and_(is_orphan, is_live))
    if pc.any(is_orphan, min_count=0).as_py():
        for batch in latest.iter_tombstones(_TOMBSTONES_AT_A_TIME):
            removed = full_paths_of(pa.Table.from_batches([batch]), table)
            is_removed = pc.is_in(paths, value_set=removed)
            is_wrong = pc.or_(is_wrong, pc.and_(is_orphan, is_removed))
    return found.filter(pc.invert(is_wrong))


def _newest(load: Callable[[], Snapshot]) -> tuple[Snapshot | None, TableError | None]:
    try:
        snapshot = load()
        snapshot.files  # noqa: B018 - reads the checkpoint
    except (TableNotFoundError, ProtocolError):
        raise
    except TableError as error:
        return None, error
    return snapshot, None


def _checksum_findings(
    table: TableRef, snapshot: Snapshot, told: set[int | None]
) -> Iterator[Finding]:
    """Compare the newest version with its checksum, unless its commit is known to be wrong."""
    segment = snapshot.segment
    if segment is None or segment.last_commit is None or snapshot.version in told:
        return
    info = read_commit_info(table.store, segment.last_commit.path)
    noted = read_checksum(
        table.store, table.log_path, snapshot.version, txn_id=info.txn_id if info else None
    )
    if noted is None:
        return
    state = TableState(
        protocol=snapshot.protocol,
        metadata=snapshot.metadata,
        set_transactions=snapshot.set_transactions,
    )
    wrong = differences(
        noted, state, num_files=snapshot.num_files, size_bytes=snapshot.size_in_bytes
    )
    if wrong:
        path = join(table.log_path, checksum_name(snapshot.version))
        yield Finding("checksum-mismatch", path, wrong, snapshot.version)
