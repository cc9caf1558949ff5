"""`_last_checkpoint`: a hint that names the newest checkpoint (spec 5.2).

It may be too old, too new, or missing. That costs time, and nothing else.
"""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote

from optimist.core.errors import ConfigError, LogFileNotFoundError, StorageError
from optimist.core.errors.foreign_text import shown
from optimist.core.log.names import LAST_CHECKPOINT
from optimist.core.options.engine import EngineOptions
from optimist.core.paths import join
from optimist.core.plugins.logstore import LogStore
from optimist.core.runtime.budget import is_budget_spent
from optimist.core.runtime.clock import Clock
from optimist.core.secrets import without_secrets
from optimist.core.values.field_types import LARGEST_LONG
from optimist.core.values.foreign_json import parse_json

__all__ = [
    "LastCheckpoint",
    "canonical_text",
    "checksum_of",
    "read_last_checkpoint",
    "write_last_checkpoint",
]

_WHOLE_STORE = frozenset(
    {
        "OPTIMIST_BUCKET_NOT_FOUND",
        "OPTIMIST_CREDENTIALS_EXPIRED",
        "OPTIMIST_CREDENTIALS_UNAVAILABLE",
        "OPTIMIST_INVALID_CREDENTIALS",
        "OPTIMIST_INVALID_ENDPOINT",
        "OPTIMIST_STORE_BUDGET_SPENT",
        "OPTIMIST_TLS_FAILED",
        "OPTIMIST_WRONG_REGION",
    }
)
"""The kinds of errors that say nothing about one file: each request to the store fails so."""
_LOG = logging.getLogger(__name__)
_READ_RETRIES = 3
_PAUSE_S = 1.0
_MAX_BYTES = 128 * 1024
"""A hint is never longer: Delta leaves out a schema of more than 20,000 characters."""
_CHECKSUM = "checksum"
_REQUIRED = ("version", "size")
_COUNTS = (*_REQUIRED, "parts", "sizeInBytes", "numOfAddFiles")
_LEADING = ("version", "size", "parts")


@dataclass(frozen=True, slots=True)
class LastCheckpoint:
    """The content of `_last_checkpoint`.

    Attributes:
        version: The version of the checkpoint.
        size: The number of actions in it.
        parts: The number of files of a multi-part checkpoint. None for the others.
        size_in_bytes: The total size of its files, if recorded.
        num_of_add_files: The number of live files in it, if recorded.
        extra: The other keys, unchanged (`checkpointSchema`, `v2Checkpoint`, `tags`).
    """

    version: int
    size: int
    parts: int | None = None
    size_in_bytes: int | None = None
    num_of_add_files: int | None = None
    extra: Mapping[str, object] = field(default_factory=dict, repr=False)

    def to_json(self, options: EngineOptions) -> str:
        """Return the text of the file, with its checksum unless the options switch that off."""
        entries: dict[str, object] = {
            "version": self.version,
            "size": self.size,
            "parts": self.parts,
            "sizeInBytes": self.size_in_bytes,
            "numOfAddFiles": self.num_of_add_files,
            **self.extra,
        }
        written = {
            key: value
            for key, value in entries.items()
            if value is not None
            and (key in _LEADING or not options.last_checkpoint_suppress_optional_fields)
        }
        text = json.dumps(written, separators=(",", ":"), ensure_ascii=False)
        is_bare = options.last_checkpoint_suppress_optional_fields
        if is_bare or not options.last_checkpoint_checksum_enabled:
            return text
        written[_CHECKSUM] = checksum_of(text)
        return json.dumps(written, separators=(",", ":"), ensure_ascii=False)

    @classmethod
    def from_json(cls, text: str) -> LastCheckpoint:
        """Parse and verify the text of the file.

        Raises:
            ValueError: The text is not the JSON of a hint, or its checksum does not fit, so the
                file is corrupt.
        """
        parsed = parse_json(text)
        if not isinstance(parsed, dict):
            raise ValueError("it is not a JSON object")  # noqa: TRY004 - content, not a call
        recorded = parsed.pop(_CHECKSUM, None)
        if recorded is not None and recorded != checksum_of(text):
            raise ValueError("its checksum does not match its content")
        for key in _COUNTS:
            value = parsed.get(key, None if key in _REQUIRED else 0)
            if type(value) is not int or not 0 <= value <= LARGEST_LONG:
                raise ValueError(f"{key!r} is not a whole number from 0 on")
        return cls(
            version=parsed.pop("version"),
            size=parsed.pop("size"),
            parts=parsed.pop("parts", None),
            size_in_bytes=parsed.pop("sizeInBytes", None),
            num_of_add_files=parsed.pop("numOfAddFiles", None),
            extra=parsed,
        )


def read_last_checkpoint(store: LogStore, log_path: str, *, clock: Clock) -> LastCheckpoint | None:
    """Return the hint, or None if it is absent or stays unreadable. A bad hint never raises.

    On stores without atomic overwrite a reader may see it half-written. Hence three retries, a
    second apart.
    """
    path = join(log_path, LAST_CHECKPOINT)
    for attempt in range(_READ_RETRIES + 1):
        if attempt:
            clock.sleep(_PAUSE_S)
        try:
            data = store.read_bytes(path)
            if len(data) > _MAX_BYTES:
                reason: Exception = ValueError(f"it has {len(data)} bytes")
                break  # another read would only cost more
            return LastCheckpoint.from_json(data.decode("utf-8"))
        except LogFileNotFoundError:
            return None
        except ConfigError:
            return None  # as for `_WHOLE_STORE`
        except ValueError as error:
            reason = error
        except StorageError as error:
            if error.kind in _WHOLE_STORE:
                return None  # the listing that follows fails in the same way, and says so
            reason = error
            if not error.retryable or is_budget_spent():
                break
    _LOG.warning(
        "The file %s can't be used and is ignored: %s", without_secrets(path), shown(reason)
    )
    return None


def write_last_checkpoint(
    store: LogStore, log_path: str, last: LastCheckpoint, *, options: EngineOptions
) -> None:
    """Overwrite the hint. Call it only after the checkpoint itself is complete."""
    store.put_overwrite(join(log_path, LAST_CHECKPOINT), last.to_json(options).encode())


def checksum_of(text: str) -> str:
    """Return the MD5, in lower-case hex, of a JSON object's canonical form."""
    digest = hashlib.md5(canonical_text(text).encode(), usedforsecurity=False)
    return digest.hexdigest()


def canonical_text(text: str) -> str:
    """Return the canonical form of a JSON object: sorted `path=value` pairs, without the checksum.

    Raises:
        ValueError: The text is not a JSON object.
    """
    parsed = json.loads(text, parse_int=_Verbatim, parse_float=_Verbatim, parse_constant=_Verbatim)
    if not isinstance(parsed, dict):
        raise ValueError("it is not a JSON object")  # noqa: TRY004 - content, not a call
    parsed.pop(_CHECKSUM, None)
    pairs = sorted(_leaf_pairs("", parsed), key=lambda pair: pair[0].encode())
    return ",".join(f"{path}={value}" for path, value in pairs)


class _Verbatim(str):
    """A number as the JSON text spells it: `1.0` and `1` differ in the canonical form."""

    __slots__ = ()


def _leaf_pairs(path: str, value: Any) -> Iterator[tuple[str, str]]:
    if isinstance(value, dict):
        for key, item in value.items():
            yield from _leaf_pairs(_join_path(path, _quote_text(key)), item)
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _leaf_pairs(_join_path(path, str(index)), item)
    else:
        yield path, _leaf_text(value)


def _join_path(path: str, segment: str) -> str:
    return f"{path}+{segment}" if path else segment


def _leaf_text(value: object) -> str:
    if isinstance(value, _Verbatim):
        return str(value)
    if isinstance(value, str):
        return _quote_text(value)
    return json.dumps(value)


def _quote_text(text: str) -> str:
    return f'"{quote(text, safe="-._~")}"'
