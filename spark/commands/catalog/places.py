"""Places of tables: where a table is, or is to be made, and what its name is in a catalog."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from optimist.core.errors import UsageError
from optimist.core.errors.foreign_text import shown
from optimist.spark.commands.catalog.names import is_delta, without_location

__all__ = ["Place", "is_below", "is_one_place"]

_VIEW = "VIEW"
_PATH = re.compile(
    r"(?:(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*):)?(?://(?P<host>[^/]*))?(?P<path>.*)", re.DOTALL
)
_SLASHES = re.compile("/+")


@dataclass(frozen=True, slots=True)
class Place:
    """The location where a table is to be created or replaced.

    Attributes:
        path: The path.
        name: The table's name in messages.
        identifier: The name in the session catalog, a Java `TableIdentifier`; None for a table with
            only a path, and on Spark Connect.
        is_new_name: True if the name is not in the catalog yet.
        is_managed: True if the catalog removes the files with the name.
    """

    path: str
    name: str
    identifier: Any = None
    is_new_name: bool = False
    is_managed: bool = False

    @classmethod
    def of_entry(
        cls,
        name: str,
        kind: str,
        provider: str | None,
        path: str | None,
        location: str | None,
    ) -> Place:
        """Return the place of a name that a catalog has.

        Args:
            name: The name, as SQL writes it.
            kind: `MANAGED`, `EXTERNAL` or `VIEW`.
            provider: The format.
            path: Where the table is.
            location: Where the statement wants it; None if it does not say.

        Raises:
            UsageError: The name belongs to a view, or to a table that is not a Delta table (kind
                `DELTA_NOT_A_DELTA_TABLE`); or the statement gives two locations (kind
                `DELTA_TABLE_LOCATION_MISMATCH`).
            TableError: The catalog tells no location (kind `OPTIMIST_TABLE_WITHOUT_LOCATION`).
        """
        if kind == _VIEW or not is_delta(provider):
            raise UsageError(
                f"{name} is {'a view' if kind == _VIEW else 'not a Delta table'}. Nothing was "
                "written. Drop it first, to make a Delta table of that name.",
                kind="DELTA_NOT_A_DELTA_TABLE",
                name=name,
            )
        if path is None:
            raise without_location(name)
        if location is not None and not is_one_place(path, location):
            raise UsageError(
                f"The table {name} is at {shown(path)}, and can't be made at {shown(location)}. "
                "Nothing was written. Leave the location out, or drop the table first.",
                kind="DELTA_TABLE_LOCATION_MISMATCH",
                path=path,
                location=location,
            )
        return cls(path, name, is_managed=kind == "MANAGED")


def is_one_place(one: str, other: str) -> bool:
    """Compare two paths, where Spark may have added the scheme to one of them."""
    first, second = _PATH.fullmatch(one), _PATH.fullmatch(other)
    if first is None or second is None or _plain(first["path"]) != _plain(second["path"]):
        return False
    pairs = ((first[part], second[part]) for part in ("scheme", "host"))
    return all(not (here and there) or here == there for here, there in pairs)


def is_below(path: str, directory: str) -> bool:
    """Return whether a path is in a directory, or deeper, where Spark may have added the scheme."""
    first, second = _PATH.fullmatch(path), _PATH.fullmatch(directory)
    if first is None or second is None:
        return False
    within = f"{_plain(second['path'])}/"
    is_in = _plain(first["path"]).startswith(within)
    return is_in and is_one_place(path[: first.start("path")], directory[: second.start("path")])


def _plain(path: str) -> str:
    return _SLASHES.sub("/", path).rstrip("/")
