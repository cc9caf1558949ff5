"""Whether a rewrite may copy rows of files outside the table into it.

Reading such a file shows its rows only to a caller who may read it anyway. Rewriting it copies them
to where the readers of *this* table are: an attacker who can write into the table's folder could
have a victim fetch a file that only the victim can read. So it is done only where the option
`optimist.paths.outsideTable` is `any`, or for a shallow clone (spec 10.13):

1. The table's history has a CLONE commit, whose `source` is the path of another table in the same
   store, outside this one's directory.
2. That table's own log names the file, at `sourceVersion`, in that table's own directory; or
   outside it, and that table is a clone by these rules, too.

An attacker could forge the history, but not the log of the other table. All that a forged history
can fetch are rows of another Delta table in the store, one that the victim can read.
"""

from __future__ import annotations

import re

import pyarrow as pa
import pyarrow.compute as pc

from optimist.core.data.data_paths import ANY, OUTSIDE_TABLE_KEY
from optimist.core.data.table_ref import TableRef
from optimist.core.errors import OptimistError, TableError
from optimist.core.errors.foreign_text import quoted, shown
from optimist.core.paths import without_dots
from optimist.core.snapshot import Snapshot
from optimist.core.snapshot.one_version import load_version
from optimist.core.snapshot.time_travel import CommitRecord, commit_history

__all__ = ["ensure_own_rows"]

_PATH_SOURCE = re.compile(r'"?delta\.`(?P<path>.+)`"?', re.IGNORECASE)
_VERSION = re.compile(r'"?([0-9]{1,18})"?')
_CLONE = "CLONE"
_MOST_CLONES = 20
"""How long a chain of clones of clones is followed."""


def ensure_own_rows(table: TableRef, snapshot: Snapshot, files: pa.Table, operation: str) -> None:
    """Refuse to rewrite files outside the table, unless they are a clone's or the option allows it.

    Args:
        table: The table.
        snapshot: The version that the rewrite starts from.
        files: The files that it rewrites; rows of `snapshot.files`.
        operation: The name for the message, for example `UPDATE`.

    Raises:
        TableError: One of them is outside the table, and is not excused (kind
            `OPTIMIST_REWRITE_OF_OUTSIDE_FILE`).
    """
    paths = snapshot.data_paths
    if paths.outside == ANY or not files.num_rows:
        return
    references = pa.concat_arrays(files["path"].chunks)
    outside = references.filter(paths.are_outside(references))
    if not len(outside):
        return
    wanted = paths.full_paths(outside)
    cloned, reason = _cloned_files(table, snapshot, wanted)
    is_unknown = pc.invert(pc.is_in(wanted, value_set=cloned))
    if pc.any(is_unknown).as_py():
        text = outside.filter(is_unknown)[0].as_py()
        raise TableError(
            f"The operation {operation} on {shown(table.table_path)} would copy rows into the "
            f"table from {quoted(text)}, a file outside it: {reason}. Nothing was written. If you "
            f"trust the table's writers, set {OUTSIDE_TABLE_KEY}={ANY}.",
            kind="OPTIMIST_REWRITE_OF_OUTSIDE_FILE",
            path=shown(text),
            table_path=table.table_path,
            option=OUTSIDE_TABLE_KEY,
        )


def _cloned_files(
    table: TableRef, snapshot: Snapshot, wanted: pa.Array, most_clones: int = _MOST_CLONES
) -> tuple[pa.Array, str]:
    """The wanted full paths that are files of the clone's source, and why the others are not."""
    nothing = pa.array([], pa.string())
    history = commit_history(table.store, table.log_path, latest_version=snapshot.version)
    commit = next(filter(_is_clone, history), None)
    if commit is None:
        return nothing, "no CLONE is in the table's history"
    source = _source_of(commit)
    if source is None:
        return nothing, "the CLONE in its history names no path of a Delta table"
    path, version = source
    try:
        theirs = TableRef.of(path, table.store, table.options, table.clock)
        if not _is_elsewhere(theirs, table):
            return nothing, f"it was cloned from {quoted(path)}, no other table of its store"
        cloned = load_version(theirs, version)
        references = pa.concat_arrays([nothing, *cloned.files["path"].chunks])
        found = references.filter(
            pc.is_in(cloned.data_paths.full_paths(references), value_set=wanted)
        )
        is_outside = cloned.data_paths.are_outside(found)
        own = cloned.data_paths.full_paths(found.filter(pc.invert(is_outside)))
        reason = f"version {version} of {quoted(path)} lacks it"
        if not (pc.any(is_outside, min_count=0).as_py() and most_clones):
            return own, reason
        # The source is a clone itself.
        farther = cloned.data_paths.full_paths(found.filter(is_outside))
        inherited, reason = _cloned_files(theirs, cloned, farther, most_clones - 1)
        return pa.concat_arrays([own, inherited]), reason
    except OptimistError as error:
        return nothing, f"the table that it was cloned from can't be read ({error.kind})"


def _is_clone(record: CommitRecord) -> bool:
    return record.info is not None and record.info.operation == _CLONE


def _source_of(commit: CommitRecord) -> tuple[str, int] | None:
    """Path and version of the table that a clone was made of; None if the commit lacks them."""
    parameters = (commit.info.operation_parameters if commit.info else None) or {}
    named = _PATH_SOURCE.fullmatch(str(parameters.get("source", "")))
    version = _VERSION.fullmatch(str(parameters.get("sourceVersion", "")))
    path = without_dots(named["path"]) if named else None
    return (path, int(version[1])) if path and version else None


def _is_elsewhere(theirs: TableRef, ours: TableRef) -> bool:
    """Whether the source is in our store, and not within our table, where any writer can forge one.

    For local tables the paths are compared after their symbolic links were followed.
    """
    origin = ours.store.data_origin(ours.table_path)
    their_key, our_key = (origin.key_of(table.table_path) for table in (theirs, ours))
    if their_key is None or our_key is None:
        return False
    return not f"{their_key}/".startswith(f"{our_key}/")
