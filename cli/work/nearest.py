"""Tells which names are nearest to that of a table that does not exist."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from difflib import get_close_matches

from optimist.core.data.storage.stored_files import names_in
from optimist.core.errors import OptimistError, TableNotFoundError
from optimist.core.errors.foreign_text import listed
from optimist.core.paths import join, name_of, parent_of
from optimist.core.plugins.logstore_registry import find_store
from optimist.core.plugins.table_path import resolve_table_path

__all__ = ["with_nearest"]

_MOST = 3


def with_nearest(error: TableNotFoundError, options: Mapping[str, str]) -> TableNotFoundError:
    """Return the same error, which names the directories whose names are most like the table's."""
    near = _nearest_names(str(error.fields.get("path", "")), options)
    if not near:
        return error
    text = f"{str(error.args[0]).rstrip('.')}. Nearby there is: {listed(near)}."
    return TableNotFoundError(text, kind=error.kind, **error.fields)


def _nearest_names(url: str, options: Mapping[str, str]) -> tuple[str, ...]:
    """Return the paths beside a missing table whose names are most like its own."""
    with suppress(OptimistError, OSError, NotImplementedError):
        store = find_store(url, options)
        path = resolve_table_path(url, store).rstrip("/")
        parent = parent_of(path)
        names = names_in(parent, store.data_access(parent))
        near = get_close_matches(name_of(path), names, n=_MOST)
        return tuple(join(parent, name) for name in near)
    return ()
