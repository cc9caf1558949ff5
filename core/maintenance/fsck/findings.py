"""What a check of a table finds: kinds of damage, each with what to do."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

import pyarrow as pa

from optimist.core.errors.html_repr import field_html
from optimist.core.plugins.logstore import FileStatus

__all__ = [
    "DATA_KINDS",
    "FINDINGS",
    "REPAIRS",
    "STEPS",
    "STOPS_READERS",
    "UNDONE_STEPS",
    "CheckedTable",
    "Finding",
    "UndoneRepair",
    "findings_table",
]

_BACKUP = "Restore the file from a backup."
_NEWEST = (
    "Restore it from a backup. If it is the newest commit and no writer runs, you can delete it; "
    "its rows are then lost."
)
_REPAIR = "Let it be repaired: optimist fsck URL --repair."
_RESTORE = "Restore the file from a backup, or go back to a version without it: optimist restore."
REPAIRS: Mapping[str, str] = MappingProxyType(
    {
        "gap": "Restore the missing commits from a backup.",
        "empty-commit": _NEWEST,
        "torn-commit": _NEWEST,
        "foreign-commit": "Move the file out of the log.",
        "duplicate-commit": "Look which of the two is right, and move the other out of the log.",
        "overwritten-commit": "Restore the first commit of that version from a backup.",
        "bad-checkpoint": f"{_REPAIR} If it stays, versions need it: restore it from a backup.",
        "untrue-checkpoint": "Look which of the two is right. If it is the commits: copy the "
        "checkpoint away, delete _last_checkpoint and then the checkpoint, and write a new one: "
        "optimist checkpoint URL.",
        "missing-part": _REPAIR,
        "missing-sidecar": f"Restore the sidecar from a backup. Or: {_REPAIR}",
        "stale-hint": _REPAIR,
        "bad-compacted": _REPAIR,
        "bad-checksum": _REPAIR,
        "checksum-mismatch": "Restore the commit or the checkpoint from a backup, or delete the "
        ".crc file if it is the wrong one.",
        "unreadable": "See the error.",
        "foreign-path": "Find out who wrote that, and go back to a version without it: optimist "
        "restore. The proof names the option that allows the path, if there is one.",
        "missing-file": f"{_RESTORE} If its rows are lost: optimist fsck URL --repair "
        "--drop-missing-files.",
        "truncated-file": _RESTORE,
        "swapped-file": _RESTORE,
        "damaged-file": _RESTORE,
        "bad-change-file": "Restore the file from a backup. Without it the change data feed of "
        "that version can't be read; the table itself is whole.",
        "missing-vector": _RESTORE,
        "truncated-vector": _RESTORE,
        "damaged-vector": _RESTORE,
        "untrue-statistics": "Compute them anew: optimist fsck URL --deep --repair.",
        "orphan": "Delete it: optimist vacuum URL --delete.",
        "stale-intent": "Let VACUUM remove it: optimist vacuum URL --delete.",
        "stale-entry": "Restore the commit from a backup. If the entry is of a table that was at "
        "this path before, delete the old table's entries.",
    }
)
"""Every kind of finding, with what to do about it."""

STOPS_READERS = frozenset(
    {
        *("gap", "empty-commit", "torn-commit", "foreign-commit", "unreadable"),
        *("bad-checkpoint", "missing-part", "missing-sidecar"),
    }
)
"""The kinds that can be the reason why the newest version can't be read."""

DATA_KINDS = (
    *(
        "foreign-path",
        "missing-file",
        "truncated-file",
        "swapped-file",
        "damaged-file",
        "untrue-statistics",
    ),
    *("missing-vector", "truncated-vector", "damaged-vector"),
)
"""The kinds that concern a live data file or its vectors."""

FINDINGS = pa.schema(
    [
        ("kind", pa.string()),
        ("path", pa.string()),
        ("version", pa.int64()),
        ("bytes", pa.int64()),
        ("proof", pa.string()),
        ("repair", pa.string()),
    ]
)
"""One row per finding. `path` is a full path, not encoded."""


STEPS = pa.schema(
    [
        ("time", pa.string()),
        ("step", pa.string()),
        ("path", pa.string()),
        ("savedAs", pa.string()),
    ]
)
"""One row per step of a repair. `savedAs` is the copy of a file that left the log."""

UNDONE_STEPS = pa.schema(
    [
        ("time", pa.string()),
        ("step", pa.string()),
        ("path", pa.string()),
        ("leftBecause", pa.string()),
    ]
)
"""One row per step of an undo. `leftBecause` is null for a step that was done."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One finding.

    Attributes:
        kind: A key of `REPAIRS`.
        path: The file.
        proof: What shows the damage.
        version: The version that it concerns, if it is one.
        size_bytes: The size of the file, if that matters.
        files: The files that a repair takes out of the log: no version needs them.
        base: The file without which a version does need them. A cleanup removes it before the other
            files that stand for that version.
    """

    kind: str
    path: str
    proof: str
    version: int | None = None
    size_bytes: int | None = None
    files: tuple[FileStatus, ...] = ()
    base: str | None = None


@dataclass(frozen=True, slots=True)
class CheckedTable:
    """The result of a check.

    Attributes:
        version: The newest version; None if it can't be read.
        num_commits: The commits that were read.
        num_files: The live data files that were looked at; None if the version can't be read.
        is_deep: Whether data files were read, too.
        findings: What was found, columns of `FINDINGS`; no row for a healthy table. After a repair,
            what is left.
        steps: What a repair has done, columns of `STEPS`.
        record: The name of the record of a repair, by which it can be undone; None without one.
        num_read: The data files that were read, all of them or a sample; 0 unless `is_deep`.
        seed: The seed by which the sample was chosen; None if all files were read, or none.
    """

    version: int | None
    num_commits: int
    num_files: int | None
    is_deep: bool
    findings: pa.Table = field(repr=False)
    steps: pa.Table = field(default_factory=STEPS.empty_table, repr=False)
    record: str | None = None
    num_read: int = 0
    seed: int | None = None

    _repr_html_ = field_html


@dataclass(frozen=True, slots=True)
class UndoneRepair:
    """The result of the undo of a repair.

    Attributes:
        record: The name of the repair's record.
        num_left: How many steps were left, since others have changed since what the repair left.
        steps: What was done and what was left, columns of `UNDONE_STEPS`; no row if all was undone
            before.
    """

    record: str
    num_left: int
    steps: pa.Table = field(repr=False)

    _repr_html_ = field_html


def findings_table(found: Iterable[Finding]) -> pa.Table:
    """Return findings as rows of `FINDINGS`."""
    rows = [
        {
            "kind": each.kind,
            "path": each.path,
            "version": each.version,
            "bytes": each.size_bytes,
            "proof": each.proof,
            "repair": REPAIRS[each.kind],
        }
        for each in found
    ]
    return pa.Table.from_pylist(rows, schema=FINDINGS)
