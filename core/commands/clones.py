"""The check whether a rewrite may copy rows of files outside the table into it.

Reading such a file shows its rows only to a caller who may read it anyway. Rewriting it copies them
to where the readers of *this* table are. An attacker who can write into the table's folder could
then make a victim copy a file that only the victim can read. So a rewrite does this only if the
option `optimist.paths.outsideTable` is `any`, or for a shallow clone (spec 10.13):

1. The table's properties name its source, or its history has a CLONE commit that does. (Clones by
   other engines have no such properties, and the cleanup of the log removes the commit.) The source
   is the path of another table in the same store, outside this table's directory, with a version.
2. The source's own log names the file, at that version. The file lies in the source's directory; or
   it lies outside it, and the source is itself a clone by these rules. If its log no longer has the
   version, the newest version decides, together with its tombstones.

An attacker could forge properties and history, but not the log of the other table. All that they
can copy are rows of another Delta table in the store, which the victim can read.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

import pyarrow as pa
import pyarrow.compute as pc

from optimist.core.data.storage.data_paths import ANY, OUTSIDE_TABLE_KEY
from optimist.core.data.table_ref import TableRef
from optimist.core.errors import OptimistError, TableError
from optimist.core.errors.foreign_text import quoted, shown
from optimist.core.paths import without_dots
from optimist.core.snapshot import Snapshot
from optimist.core.snapshot.newest_version import load_newest
from optimist.core.snapshot.one_version import load_version
from optimist.core.snapshot.time_travel import CommitRecord, commit_history

__all__ = ["CLONE_PROPERTIES", "clone_properties", "ensure_own_rows"]

_SOURCE, _SOURCE_VERSION = "optimist.clone.source", "optimist.clone.sourceVersion"
CLONE_PROPERTIES = (_SOURCE, _SOURCE_VERSION)
"""The properties of a shallow clone that name its source."""

_PATH_SOURCE = re.compile(r'"?delta\.`(?P<path>.+)`"?', re.IGNORECASE)
_VERSION = re.compile(r'"?([0-9]{1,18})"?')
_CLONE = "CLONE"
_MOST_CLONES = 20
"""The longest chain of clones of clones that is followed."""


def clone_properties(source: str, version: int) -> dict[str, str]:
    """Return the properties by which a shallow clone records its source.

    Args:
        source: The path of the source.
        version: Its version.
    """
    return {_SOURCE: source, _SOURCE_VERSION: str(version)}


def ensure_own_rows(table: TableRef, snapshot: Snapshot, files: pa.Table, operation: str) -> None:
    """Refuse to rewrite files outside the table, unless it is a clone or the option allows it.

    Args:
        table: The table.
        snapshot: The version that the rewrite starts from.
        files: The files that it rewrites; rows of `snapshot.files`.
        operation: The name for the message, for example `UPDATE`.

    Raises:
        TableError: A file is outside the table, and no rule allows it (kind
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
    """Return the paths that are files of the clone's source, and the reason for the others."""
    found = pa.array([], pa.string())
    reason = "no CLONE is in the table's history, and no property names what it was cloned from"
    for source in _recorded_sources(table, snapshot):
        left = wanted.filter(pc.invert(pc.is_in(wanted, value_set=found)))
        if not len(left):
            break
        if source is None:
            reason = "the CLONE in its history names no path of a Delta table"
            continue
        more, reason = _files_of_source(table, source, left, most_clones)
        found = pa.concat_arrays([found, more])
    return found, reason


def _files_of_source(
    table: TableRef, source: tuple[str, int], wanted: pa.Array, most_clones: int
) -> tuple[pa.Array, str]:
    nothing = pa.array([], pa.string())
    path, version = source
    try:
        theirs = TableRef.of(path, table.store, table.options, table.clock)
        if not _is_elsewhere(theirs, table):
            return (
                nothing,
                f"it was cloned from {quoted(path)}, which is not another table of its store",
            )
        cloned, named = _named_by_source(theirs, version)
        references = pa.concat_arrays([nothing, *named.chunks])
        found = references.filter(
            pc.is_in(cloned.data_paths.full_paths(references), value_set=wanted)
        )
        is_outside = cloned.data_paths.are_outside(found)
        own = cloned.data_paths.full_paths(found.filter(pc.invert(is_outside)))
        reason = f"version {cloned.version} of {quoted(path)} lacks it"
        if not (pc.any(is_outside, min_count=0).as_py() and most_clones):
            return own, reason
        # The source is itself a clone.
        farther = cloned.data_paths.full_paths(found.filter(is_outside))
        inherited, reason = _cloned_files(theirs, cloned, farther, most_clones - 1)
        return pa.concat_arrays([own, inherited]), reason
    except OptimistError as error:
        return nothing, f"the table that it was cloned from can't be read ({error.kind})"


def _named_by_source(table: TableRef, version: int) -> tuple[Snapshot, pa.ChunkedArray]:
    """Load a version of a clone's source, and the paths of the files that it names."""
    try:
        cloned = load_version(table, version)
        return cloned, cloned.files["path"]
    except TableError:
        newest = load_newest(
            table.store, table.table_path, options=table.options, clock=table.clock
        )
        if newest is None:
            raise
    chunks = [*newest.files["path"].chunks, *newest.tombstones["path"].chunks]
    return newest, pa.chunked_array(chunks, pa.string())


def _recorded_sources(table: TableRef, snapshot: Snapshot) -> Iterator[tuple[str, int] | None]:
    """Yield the recorded sources of the table, or None for a CLONE that names none."""
    noted = _noted_source(snapshot.metadata.configuration)
    if noted is not None:
        yield noted
    history = commit_history(table.store, table.log_path, latest_version=snapshot.version)
    commit = next(filter(_is_clone, history), None)
    if commit is not None:
        yield _source_of(commit)


def _noted_source(configuration: Mapping[str, str]) -> tuple[str, int] | None:
    version = _VERSION.fullmatch(configuration.get(_SOURCE_VERSION, ""))
    path = without_dots(configuration.get(_SOURCE, ""))
    return (path, int(version[1])) if path and version else None


def _is_clone(record: CommitRecord) -> bool:
    return record.info is not None and record.info.operation == _CLONE


def _source_of(commit: CommitRecord) -> tuple[str, int] | None:
    """Return path and version of a clone's source, or None if the commit lacks them."""
    parameters = (commit.info.operation_parameters if commit.info else None) or {}
    named = _PATH_SOURCE.fullmatch(str(parameters.get("source", "")))
    version = _VERSION.fullmatch(str(parameters.get("sourceVersion", "")))
    path = without_dots(named["path"]) if named else None
    return (path, int(version[1])) if path and version else None


def _is_elsewhere(theirs: TableRef, ours: TableRef) -> bool:
    """Tell whether the source is in our store and outside our table.

    Any writer of our table could forge a source inside it. For local tables the real paths are
    compared.
    """
    origin = ours.store.data_origin(ours.table_path)
    their_key, our_key = (origin.key_of(table.table_path) for table in (theirs, ours))
    if their_key is None or our_key is None:
        return False
    return not f"{their_key}/".startswith(f"{our_key}/")
