"""Sidecars: the files of `_delta_log/_sidecars` that hold a V2 checkpoint's file actions.

Which of them a checkpoint needs stands in its top-level file, as JSON or as Parquet (spec 5.8.7).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

from optimist.core.paths import join

__all__ = ["SIDECAR_DIRECTORY", "Sidecar", "sidecar_directory"]

SIDECAR_DIRECTORY = "_sidecars"


@dataclass(frozen=True, slots=True)
class Sidecar:
    """One sidecar, as its checkpoint names it.

    Attributes:
        name: Its name in the directory of sidecars, or whatever reference another writer chose.
        size_bytes: Its size.
        modified_ms: When it was written.
    """

    name: str
    size_bytes: int
    modified_ms: int

    def to_dict(self) -> dict[str, Any]:
        """The action of the checkpoint's top-level file."""
        return {
            "path": self.name,
            "sizeInBytes": self.size_bytes,
            "modificationTime": self.modified_ms,
        }

    @classmethod
    def of(cls, body: Mapping[str, Any]) -> Sidecar:
        """From the body of the action; only the name must be there, as nothing else is needed.

        Raises:
            ValueError, TypeError, KeyError: It is no such action.
        """
        size, modified = body.get("sizeInBytes"), body.get("modificationTime")
        return cls(str(body["path"]), int(size or 0), int(modified or 0))

    @property
    def file_name(self) -> str:
        """The last component of what it is called by, decoded.

        Sidecars stand in the table's own directory, wherever that was moved.
        """
        return unquote(self.name).rpartition("/")[2]


def sidecar_directory(log_path: str) -> str:
    """Where a table's sidecars are."""
    return join(log_path, SIDECAR_DIRECTORY)
