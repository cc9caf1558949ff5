"""The lines of a commit or a JSON checkpoint, sorted into file actions and others (spec 5.6).

File actions may be many, so they stay parsed bodies until they become Arrow. All other lines become
actions. Unknown fields, unknown actions and blank lines are ignored.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from optimist.core.errors import TableError
from optimist.core.errors.foreign_text import quoted, shown
from optimist.core.protocol.actions import (
    Action,
    AddFile,
    RemoveFile,
    action_from_dict,
    ensure_types,
    malformed_commit,
)
from optimist.core.values.foreign_json import parse_log_json

__all__ = ["CommitLines", "FileBody", "parse_commit_lines"]

FileBody: TypeAlias = AddFile | RemoveFile | Mapping[str, Any]
"""An add or remove: as a value, or as the parsed body with the additional key `isAdd`."""

_INFO = b'{"commitInfo":'


@dataclass(frozen=True, slots=True)
class CommitLines:
    """The content of a commit.

    Attributes:
        actions: All actions except adds and removes, in the order of the lines.
        file_actions: The adds and removes, in the order of the lines.
    """

    actions: tuple[Action, ...]
    file_actions: tuple[FileBody, ...]


def parse_commit_lines(data: bytes, path: str, *, with_info: bool = True) -> CommitLines:
    """Sort the lines of a file.

    Args:
        data: The content of the file.
        path: Its path, for errors.
        with_info: Whether the caller wants the commitInfo. It is often the longest line, and a
            table's state needs only that of the newest commit. A line with an end is not torn, so
            it may be skipped unread.

    Raises:
        TableError: The file is empty or a line is damaged (kind `OPTIMIST_MALFORMED_COMMIT`, field
            `path`).
    """
    actions: list[Action] = []
    file_actions: list[FileBody] = []
    *whole, last = data.split(b"\n")
    wanted = whole if with_info else [line for line in whole if not line.startswith(_INFO)]
    for line in (*wanted, last):
        if not line or line.isspace():
            continue
        try:
            _sort_line(parse_log_json(line), actions, file_actions)
        except (ValueError, TypeError) as error:
            reason = f"the line {quoted(_decode_line(line))} does not parse ({shown(error)})"
            raise malformed_commit(path, reason) from None
        except TableError as error:
            raise malformed_commit(path, str(error.args[0])) from None
    if not actions and not file_actions and len(wanted) == len(whole):
        raise malformed_commit(path, "it is empty")
    return CommitLines(tuple(actions), tuple(file_actions))


def _sort_line(parsed: Any, actions: list[Action], file_actions: list[FileBody]) -> None:
    if not isinstance(parsed, dict):
        raise TypeError("it is not a JSON object")
    if len(parsed) == 1:
        ((key, body),) = parsed.items()
        if key in ("add", "remove") and body is not None:
            _ensure_complete(key, body)
            body["isAdd"] = key == "add"
            file_actions.append(body)
            return
    # Some writers put every kind of action in every line, all null except one.
    action = action_from_dict(parsed)
    if isinstance(action, AddFile | RemoveFile):
        file_actions.append(action)
    else:
        actions.append(action)


def _ensure_complete(key: str, body: Any) -> None:
    if not isinstance(body, dict) or body.get("path") is None:
        raise TypeError(f"{key!r} lacks 'path'")
    if key == "add" and body.get("size") is None:
        raise TypeError("'add' lacks 'size'")
    ensure_types(key, body)


def _decode_line(line: bytes) -> str:
    return line.decode("utf-8", "replace")
