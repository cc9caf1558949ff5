"""`StreamOffset`: the position of a stream in a table, in Delta's own JSON (spec 11.1).

Engines read each other's checkpoints, so the keys, their order and the spacing are Delta's.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass

from optimist.core.errors import TableError
from optimist.core.errors.foreign_text import quoted, shown
from optimist.core.values.field_types import LARGEST_LONG

__all__ = ["AFTER_CHANGE", "BASE_INDEX", "CHANGE", "StreamOffset"]

BASE_INDEX = -100
"""The index before everything in a version. In the JSON it is -1."""

_BASE_IN_JSON = -1
CHANGE, AFTER_CHANGE = -20, -19
"""The indexes at a change of metadata, before its version's files, and just after it.

A batch ends at the first. The next batch has no rows, and shows that all rows before the change
were processed.
"""

_METADATA_INDEXES = (CHANGE, AFTER_CHANGE)  # the only ones of version 3 of the format
_END_INDEX = LARGEST_LONG - 100
_VERSION = 1
_VERSION_WITH_METADATA = 3


@dataclass(frozen=True, slots=True)
class StreamOffset:
    """A position in a table: everything up to it has been read.

    Attributes:
        table_id: The table's id.
        version: The version of the table.
        index: The index of the last file that was read, among the files of the initial snapshot or
            of the commit; `BASE_INDEX` if none was read.
        is_initial: Whether the version is read as a snapshot, and not as a commit.
    """

    table_id: str
    version: int
    index: int
    is_initial: bool

    @classmethod
    def before(cls, table_id: str, version: int, *, is_initial: bool = False) -> StreamOffset:
        """Make the position before everything in a version."""
        return cls(table_id, version, BASE_INDEX, is_initial)

    def at(self, version: int, index: int = BASE_INDEX) -> StreamOffset:
        """Make a later position of the stream.

        Versions after the first one are read as commits.
        """
        is_initial = self.is_initial and version == self.version
        return StreamOffset(self.table_id, version, index, is_initial)

    @property
    def sort_key(self) -> tuple[int, int]:
        """The sort key of offsets of one stream."""
        return self.version, self.index

    def to_json(self) -> str:
        """Return the text that Spark stores in the checkpoint."""
        is_metadata = self.index in _METADATA_INDEXES
        fields = {
            "sourceVersion": _VERSION_WITH_METADATA if is_metadata else _VERSION,
            "reservoirId": self.table_id,
            "reservoirVersion": self.version,
            "index": _BASE_IN_JSON if self.index == BASE_INDEX else self.index,
            "isStartingVersion": self.is_initial,
        }
        return json.dumps(fields, separators=(",", ":"), ensure_ascii=False)

    @classmethod
    def from_json(cls, text: str) -> StreamOffset:
        """Read the offset in a checkpoint of any engine.

        Raises:
            TableError: The text is not an offset (kind `DELTA_INVALID_SOURCE_OFFSET_FORMAT`), or
                has a later version of the format (kind `DELTA_INVALID_SOURCE_VERSION`).
        """
        try:
            found = json.loads(text)
        except (ValueError, RecursionError):
            raise _not_an_offset(text) from None
        if not isinstance(found, dict):
            raise _not_an_offset(text)
        version = _read_integer(found, "sourceVersion", text)
        if version not in (_VERSION, _VERSION_WITH_METADATA):
            raise TableError(
                f"sourceVersion({version}) is invalid: the offset {quoted(text)} is of another "
                "engine's making. Nothing was read. Continue the stream with that engine, or start "
                "it with a new checkpoint.",
                kind="DELTA_INVALID_SOURCE_VERSION",
                version=version,
            )
        table_id, is_initial = found.get("reservoirId"), found.get("isStartingVersion")
        if not isinstance(table_id, str) or not isinstance(is_initial, bool):
            raise _not_an_offset(text)
        reached, index = (
            _read_integer(found, "reservoirVersion", text),
            _read_integer(found, "index", text),
        )
        if version == _VERSION and index == _BASE_IN_JSON:
            index = BASE_INDEX
        is_known = index == BASE_INDEX or index in _METADATA_INDEXES or 0 <= index < _END_INDEX
        if reached < 0 or not is_known:
            raise _not_an_offset(text)
        return cls(table_id, reached, index, is_initial)

    def ensure_not_before(self, earlier: StreamOffset) -> None:
        """Refuse an offset that is before an earlier offset of the stream.

        Raises:
            TableError: It is before (kind `OPTIMIST_STREAM_WENT_BACK`).
        """
        if self.sort_key >= earlier.sort_key and (earlier.is_initial or not self.is_initial):
            return
        raise TableError(
            f"The stream's offsets go back: {self.to_json()} comes after {earlier.to_json()}. "
            "Nothing was read. The checkpoint is damaged, or was made by two queries; restore it "
            "from a copy, or start with a new one.",
            kind="OPTIMIST_STREAM_WENT_BACK",
            offset=self.to_json(),
            before=earlier.to_json(),
        )


def _read_integer(found: Mapping[str, object], key: str, text: str) -> int:
    value = found.get(key)
    if not isinstance(value, int) or isinstance(value, bool):
        raise _not_an_offset(text)
    return value


def _not_an_offset(text: str) -> TableError:
    return TableError(
        f"The stored source offset format is invalid: {shown(text)}. Nothing was read. The "
        "checkpoint is of another source, or is damaged; give the stream its own checkpoint.",
        kind="DELTA_INVALID_SOURCE_OFFSET_FORMAT",
        offset=text,
    )
