"""`_last_checkpoint`: the hint where the newest checkpoint is (spec 5.2).

It may lag, lead, or be missing; nothing depends on it but time.
"""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote

from optimist.core.clock import Clock
from optimist.core.errors import LogFileNotFoundError, StorageError
from optimist.core.log.names import LAST_CHECKPOINT
from optimist.core.logstore import LogStore
from optimist.core.options import EngineOptions
from optimist.core.paths import join

__all__ = [
    "LastCheckpoint",
    "canonical_text",
    "checksum_of",
    "read_last_checkpoint",
    "write_last_checkpoint",
]

_logger = logging.getLogger(__name__)
_READ_RETRIES = 3
_PAUSE_S = 1.0
_CHECKSUM = "checksum"
_REQUIRED = ("version", "size")
_COUNTS = (*_REQUIRED, "parts", "sizeInBytes", "numOfAddFiles")
_LARGEST = (1 << 63) - 1
_LEADING = ("version", "size", "parts")


@dataclass(frozen=True, slots=True)
class LastCheckpoint:
    """The content of `_last_checkpoint`.

    Attributes:
        version: The version of the checkpoint.
        size: How many actions it holds.
        parts: How many files a multi-part checkpoint has; None for the others.
        size_in_bytes: The size of its files together, if written down.
        num_of_add_files: How many live files it holds, if written down.
        extra: The other keys, as they stand there (`checkpointSchema`, `v2Checkpoint`, `tags`).
    """

    version: int
    size: int
    parts: int | None = None
    size_in_bytes: int | None = None
    num_of_add_files: int | None = None
    extra: Mapping[str, object] = field(default_factory=dict)

    def to_json(self, options: EngineOptions) -> str:
        """The text of the file, with its checksum unless the options switch that off."""
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
            ValueError: It is no such JSON, or its checksum does not fit: the file is corrupt.
        """
        try:
            parsed = json.loads(text)
            if not isinstance(parsed, dict):
                raise ValueError("it is no JSON object")  # noqa: TRY004 - content, not a call
            recorded = parsed.pop(_CHECKSUM, None)
            if recorded is not None and recorded != checksum_of(text):
                raise ValueError("its checksum does not fit its content")
        except RecursionError:
            raise ValueError("it is nested too deeply") from None
        for key in _COUNTS:
            value = parsed.get(key, None if key in _REQUIRED else 0)
            if type(value) is not int or not 0 <= value <= _LARGEST:
                raise ValueError(f"{key!r} is no whole number from 0 on")
        return cls(
            version=parsed.pop("version"),
            size=parsed.pop("size"),
            parts=parsed.pop("parts", None),
            size_in_bytes=parsed.pop("sizeInBytes", None),
            num_of_add_files=parsed.pop("numOfAddFiles", None),
            extra=parsed,
        )


def read_last_checkpoint(store: LogStore, log_path: str, *, clock: Clock) -> LastCheckpoint | None:
    """The hint, or None where there is none or it stays unreadable; never raises for a bad hint.

    On stores without atomic overwrite it may be seen half-written, hence three retries a second
    apart.
    """
    path = join(log_path, LAST_CHECKPOINT)
    for attempt in range(_READ_RETRIES + 1):
        if attempt:
            clock.sleep(_PAUSE_S)
        try:
            return LastCheckpoint.from_json(store.read_bytes(path).decode("utf-8"))
        except LogFileNotFoundError:
            return None
        except ValueError as error:
            reason: Exception = error
        except StorageError as error:
            reason = error
            if not error.retryable:
                break
    _logger.warning("%s can't be used and is passed over: %s", path, reason)
    return None


def write_last_checkpoint(
    store: LogStore, log_path: str, last: LastCheckpoint, *, options: EngineOptions
) -> None:
    """Overwrite the hint; only after the checkpoint itself is complete."""
    store.put_overwrite(join(log_path, LAST_CHECKPOINT), last.to_json(options).encode())


def checksum_of(text: str) -> str:
    """The MD5, in lower-case hex, of a JSON object's canonical form."""
    digest = hashlib.md5(canonical_text(text).encode(), usedforsecurity=False)
    return digest.hexdigest()


def canonical_text(text: str) -> str:
    """The canonical form of a JSON object: sorted `path=value` pairs, less the checksum.

    Raises:
        ValueError: The text is no JSON object.
    """
    parsed = json.loads(text, parse_int=_Verbatim, parse_float=_Verbatim, parse_constant=_Verbatim)
    if not isinstance(parsed, dict):
        raise ValueError("it is no JSON object")  # noqa: TRY004 - content, not a call
    parsed.pop(_CHECKSUM, None)
    pairs = sorted(_pairs("", parsed), key=lambda pair: pair[0].encode())
    return ",".join(f"{path}={value}" for path, value in pairs)


class _Verbatim(str):
    """A number as it is spelled in the JSON text: `1.0` and `1` differ in the canonical form."""

    __slots__ = ()


def _pairs(path: str, value: Any) -> Iterator[tuple[str, str]]:
    if isinstance(value, dict):
        for key, item in value.items():
            yield from _pairs(_joined(path, _quoted(key)), item)
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _pairs(_joined(path, str(index)), item)
    else:
        yield path, _leaf(value)


def _joined(path: str, segment: str) -> str:
    return f"{path}+{segment}" if path else segment


def _leaf(value: object) -> str:
    if isinstance(value, _Verbatim):
        return str(value)
    if isinstance(value, str):
        return _quoted(value)
    return json.dumps(value)


def _quoted(text: str) -> str:
    return f'"{quote(text, safe="-._~")}"'
