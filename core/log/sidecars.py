"""Sidecars: the files of `_delta_log/_sidecars` that hold a V2 checkpoint's file actions.

A checkpoint's top-level file, JSON or Parquet, names the sidecars that it needs (spec 5.8.7).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote

from optimist.core.paths import join
from optimist.core.values.field_types import fitting

__all__ = ["SIDECAR_DIRECTORY", "Manifest", "Sidecar", "sidecar_directory"]

SIDECAR_DIRECTORY = "_sidecars"
_is_count, _is_long = fitting("Count"), fitting("Long")


@dataclass(frozen=True, slots=True)
class Sidecar:
    """One sidecar, as its checkpoint names it.

    Attributes:
        name: Its name in the directory of sidecars, or another reference that another writer chose.
        size_bytes: Its size.
        modified_ms: The time when it was written.
        tags: What its writer says about it, as texts.
    """

    name: str
    size_bytes: int
    modified_ms: int
    tags: Mapping[str, str] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """Return the body of the action that names it in the checkpoint's top-level file."""
        body = {
            "path": self.name,
            "sizeInBytes": self.size_bytes,
            "modificationTime": self.modified_ms,
        }
        return {**body, "tags": dict(self.tags)} if self.tags else body

    @classmethod
    def of(cls, body: object) -> Sidecar:
        """Parse the body of the action. Only the name is required.

        Raises:
            ValueError: The body is not such an action, or its name can't be a file's.
        """
        if not isinstance(body, Mapping) or not isinstance(body.get("path"), str):
            raise ValueError("a sidecar has no name")  # noqa: TRY004 - content, not a call
        size, modified = body.get("sizeInBytes") or 0, body.get("modificationTime") or 0
        if not (_is_count(size) and _is_long(modified)):
            raise ValueError("the size or the time of a sidecar is not a whole number of 64 bits")
        tags = body.get("tags")
        known = tags.items() if isinstance(tags, Mapping) else ()
        texts = {str(key): str(value) for key, value in known}
        sidecar = cls(body["path"], size, modified, texts)
        name = sidecar.file_name
        if name in ("", ".", "..") or "::" in name:  # fsspec reads `::` as a chain of drivers
            raise ValueError("a sidecar has no name")
        return sidecar

    @property
    def file_name(self) -> str:
        """The last component of its name, percent-decoded.

        A sidecar is in the table's own directory, even if the name is a path from before a move.
        """
        return unquote(self.name).rpartition("/")[2]


@dataclass(frozen=True, slots=True)
class Manifest:
    """The description of a V2 checkpoint's files in its top level.

    Attributes:
        sidecars: The sidecars that hold all of them.
        tags: Sums over the sidecars, which may be missing.
    """

    sidecars: tuple[Sidecar, ...]
    tags: Mapping[str, str]


def sidecar_directory(log_path: str) -> str:
    """Return the directory of a table's sidecars."""
    return join(log_path, SIDECAR_DIRECTORY)
