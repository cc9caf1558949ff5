"""The rows of a log whose paths and vectors can be resolved, and a finding for each other row.

Whoever can write a commit chooses its paths. One path that may not be opened must not hide the
damage of all other files.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pyarrow as pa
import pyarrow.compute as pc

from optimist.core.data.storage.data_paths import DataPaths
from optimist.core.errors import TableError
from optimist.core.maintenance.fsck.findings import Finding
from optimist.core.maintenance.vector_files import vector_paths
from optimist.core.secrets import without_secrets

__all__ = ["openable_files", "with_known_vectors"]

_Check = Callable[[pa.Table], object]


def openable_files(files: pa.Table, paths: DataPaths) -> tuple[pa.Table, list[Finding]]:
    """Return the live files that may be opened, and what is wrong with each other one."""

    def resolve_paths(rows: pa.Table) -> None:
        for chunk in rows.column("path").chunks:
            paths.full_paths(chunk)

    found = []
    files, errors = _without_errors(files, resolve_paths)
    for reference, error in errors:
        path = without_secrets(paths.spelled_path(reference))
        found.append(Finding("foreign-path", path, str(error.args[0])))
    files, errors = _without_errors(files, lambda rows: vector_paths(rows, paths))
    for reference, error in errors:
        found.append(Finding("damaged-vector", paths.full_path(reference), str(error.args[0])))
    return files, found


def with_known_vectors(rows: pa.Table, paths: DataPaths) -> pa.Table:
    """Return the rows whose vectors name files that may be opened, or name none."""
    return _without_errors(rows, lambda some: vector_paths(some, paths))[0]


def _without_errors(rows: pa.Table, check: _Check) -> tuple[pa.Table, list[tuple[str, TableError]]]:
    """Return the rows that pass a check, and the path and the error of each other one."""
    wrong = dict(_errors(rows, check, 0))
    if not wrong:
        return rows, []
    named = rows.column("path").take(pa.array(wrong, pa.int64())).to_pylist()
    is_wrong = pc.is_in(pa.array(range(rows.num_rows)), value_set=pa.array(wrong, pa.int64()))
    return rows.filter(pc.invert(is_wrong)), list(zip(named, wrong.values(), strict=True))


def _errors(rows: pa.Table, check: _Check, first: int) -> Iterator[tuple[int, TableError]]:
    """Yield the number and the error of each row that fails a check, found by halving."""
    try:
        check(rows)
    except TableError as error:
        if rows.num_rows == 1:
            yield first, error
            return
    else:
        return
    half = rows.num_rows // 2
    yield from _errors(rows.slice(0, half), check, first)
    yield from _errors(rows.slice(half), check, first + half)
