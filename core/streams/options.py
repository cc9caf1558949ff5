"""`StreamOptions`: the start of a stream, the size of a batch, and the commits to skip."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from optimist.core.commands.not_built_yet import not_built_yet
from optimist.core.errors import UsageError
from optimist.core.errors.argument_types import whole_number
from optimist.core.errors.foreign_text import quoted, shown
from optimist.core.options.values import at_least, parse_bool, parse_bytes

__all__ = [
    "ALWAYS",
    "LATEST",
    "STREAM_OPTIONS",
    "StreamOptions",
    "ensure_stream_options",
    "no_time_travel",
    "start_options",
]

LATEST: Final = "latest"
ALWAYS: Final = "always"
_DEFAULT_MAX_FILES = 1000


def _parse_version(text: str) -> int | str:
    return LATEST if text.lower() == LATEST else at_least(0)(text)


def _parse_regex(text: str) -> str:
    try:
        pc.match_substring_regex(pa.array([""]), text)
    except pa.ArrowInvalid:
        raise ValueError("must be a regular expression without look-around") from None
    return text


def _parse_allowance(text: str) -> str:
    folded = text.lower()
    if folded != ALWAYS:
        at_least(0)(folded)
    return folded


def _parse_directory(text: str) -> str:
    if not text:
        raise ValueError("must be a directory")
    return text


_PARSERS: Mapping[str, Callable[[str], Any]] = {
    "startingVersion": _parse_version,
    "startingTimestamp": str,
    "maxFilesPerTrigger": at_least(1),
    "maxBytesPerTrigger": parse_bytes,
    "ignoreDeletes": parse_bool,
    "ignoreFileDeletion": parse_bool,
    "ignoreChanges": parse_bool,
    "skipChangeCommits": parse_bool,
    "excludeRegex": _parse_regex,
    "failOnDataLoss": parse_bool,
    "withEventTimeOrder": parse_bool,
    "readChangeFeed": parse_bool,
    "readChangeData": parse_bool,
    "schemaTrackingLocation": _parse_directory,
    "schemaLocation": _parse_directory,
    "streamingSourceTrackingId": str,
    "allowSourceColumnRename": _parse_allowance,
    "allowSourceColumnDrop": _parse_allowance,
    "allowSourceColumnTypeChange": _parse_allowance,
}
_TIME_TRAVEL = ("versionAsOf", "timestampAsOf")
_CHANGES = ("readChangeFeed", "readChangeData")  # the second is Delta's older name for it
_LOCATIONS = ("schemaTrackingLocation", "schemaLocation")  # the first has precedence
STREAM_OPTIONS = tuple(_PARSERS)
"""The names of the options, in Delta's spelling."""


@dataclass(frozen=True, slots=True)
class StreamOptions:
    """The options of one stream.

    Attributes:
        starting_version: The first commit to read, or `LATEST` for future commits; None for the
            whole table first.
        starting_ms: The alternative to it: the first commit made at or after this time, in epoch
            milliseconds.
        max_files: The most files that a batch takes; None for no limit.
        max_bytes: The bytes after which a batch takes no more files; None for no limit.
        ignore_deletes: Whether to skip commits that only remove rows.
        ignore_changes: Whether to return the rows of rewritten files again.
        skip_change_commits: Whether to skip commits that remove rows, with all that they add.
        exclude_regex: A pattern; files whose path contains a match are skipped.
        fail_on_data_loss: Whether to stop at commits that are no longer in the log, instead of
            continuing after them.
        snapshot_at_once: Whether to return the first snapshot in one batch, so that no watermark
            moves within it.
        read_changes: Whether to return the rows that commits inserted, updated and deleted, each
            with its kind.
        schema_location: The directory of the log of schemas; None for a stream without one.
        tracking_id: A text that distinguishes this source's log from others of the query.
        allowed_rename: `ALWAYS`, or the version of the only renaming of columns after which the
            stream may continue.
        allowed_drop: The same for dropped columns.
        allowed_type_change: The same for types that were made wider.
    """

    starting_version: int | str | None = None
    starting_ms: int | None = None
    max_files: int | None = _DEFAULT_MAX_FILES
    max_bytes: int | None = None
    ignore_deletes: bool = False
    ignore_changes: bool = False
    skip_change_commits: bool = False
    exclude_regex: str | None = None
    fail_on_data_loss: bool = True
    snapshot_at_once: bool = False
    read_changes: bool = False
    schema_location: str | None = None
    tracking_id: str | None = None
    allowed_rename: str | None = None
    allowed_drop: str | None = None
    allowed_type_change: str | None = None

    @property
    def starts_at_a_moment(self) -> bool:
        """Whether the start depends on the time when the stream begins."""
        return self.starting_version == LATEST or self.starting_ms is not None

    @property
    def allows_changes(self) -> bool:
        """Whether commits may remove rows and add others."""
        return self.ignore_changes or self.skip_change_commits

    @property
    def allows_deletes(self) -> bool:
        """Whether commits may only remove rows."""
        return self.allows_changes or self.ignore_deletes

    @classmethod
    def parse(cls, given: Mapping[str, str], to_ms: Callable[[str], int]) -> StreamOptions:
        """Parse the options of a reader.

        Names that are not in `STREAM_OPTIONS` are ignored.

        Args:
            given: Names in any case, with values as text.
            to_ms: Converts the text of a time to epoch milliseconds.

        Raises:
            UsageError: A value can't be parsed (kind `DELTA_ILLEGAL_OPTION`), both starts are given
                (kind `DELTA_STARTING_VERSION_AND_TIMESTAMP_BOTH_SET`), or an older version of the
                table is asked for (kind `DELTA_UNSUPPORTED_TIME_TRAVEL_VIEWS`).
        """
        folded = {key.lower(): text.strip() for key, text in given.items()}
        for name in _TIME_TRAVEL:
            if name.lower() in folded:
                raise no_time_travel(f"The option {name}")
        found = {
            name: _parse_option(name, parse, folded[name.lower()])
            for name, parse in _PARSERS.items()
            if name.lower() in folded
        }
        version, time = found.get("startingVersion"), found.get("startingTimestamp")
        if version is not None and time is not None:
            raise UsageError(
                "Please either provide 'startingVersion' or 'startingTimestamp', not both. Nothing "
                "was read.",
                kind="DELTA_STARTING_VERSION_AND_TIMESTAMP_BOTH_SET",
            )
        location = next((found[name] for name in _LOCATIONS if name in found), None)
        if location is not None and not found.get("failOnDataLoss", True):
            raise _must_fail_on_data_loss()
        max_bytes = found.get("maxBytesPerTrigger")
        default = _DEFAULT_MAX_FILES if max_bytes is None else None
        rewrites = found.get("ignoreFileDeletion", False)  # Delta's older name
        return cls(
            starting_version=version,
            starting_ms=None if time is None else to_ms(time),
            max_files=found.get("maxFilesPerTrigger", default),
            max_bytes=max_bytes,
            ignore_deletes=found.get("ignoreDeletes", False),
            ignore_changes=found.get("ignoreChanges", False) or rewrites,
            skip_change_commits=found.get("skipChangeCommits", False),
            exclude_regex=found.get("excludeRegex"),
            fail_on_data_loss=found.get("failOnDataLoss", True),
            snapshot_at_once=found.get("withEventTimeOrder", False),
            read_changes=any(found.get(name, False) for name in _CHANGES),
            schema_location=location,
            tracking_id=found.get("streamingSourceTrackingId"),
            allowed_rename=found.get("allowSourceColumnRename"),
            allowed_drop=found.get("allowSourceColumnDrop"),
            allowed_type_change=found.get("allowSourceColumnTypeChange"),
        )

    def ensure_untracked(self, whose: str) -> None:
        """Refuse a log of schemas for a stream that can't have one.

        Args:
            whose: The kind of stream, for the error.

        Raises:
            UsageError: The stream has the option for one (kind `OPTIMIST_NOT_BUILT_YET`).
        """
        if self.schema_location is not None:
            raise not_built_yet(
                f"The option schemaTrackingLocation of {whose}", "Leave the option out."
            )


def start_options(version: int | str | None, time_ms: int | None) -> dict[str, str]:
    """Return the options for the start that a caller without Spark gives.

    Args:
        version: The argument `starting_version` of `DeltaLog.follow`.
        time_ms: The argument `starting_timestamp`, in epoch milliseconds.

    Raises:
        ArgumentTypeError: The version is no number (kind `OPTIMIST_INVALID_ARGUMENT_TYPE`).
        UsageError: Both are given (kind `DELTA_STARTING_VERSION_AND_TIMESTAMP_BOTH_SET`), or the
            version is a wrong text (kind `DELTA_ILLEGAL_OPTION`).
    """
    if version is not None and time_ms is not None:
        raise UsageError(
            "Give either starting_version or starting_timestamp, not both. Nothing was read.",
            kind="DELTA_STARTING_VERSION_AND_TIMESTAMP_BOTH_SET",
        )
    if time_ms is not None:
        return {"startingTimestamp": str(time_ms)}
    if version is None:
        return {}
    text = version
    if not isinstance(text, str):
        text = str(whole_number(version, "starting_version", least=0))
    try:
        _parse_version(text)
    except ValueError:
        raise UsageError(
            f"The argument starting_version can't be {quoted(version)}. Nothing was read. Give a "
            "whole number, at least 0, or 'latest' for the commits to come.",
            kind="DELTA_ILLEGAL_OPTION",
            argument="starting_version",
        ) from None
    return {"startingVersion": text}


def ensure_stream_options(given: Mapping[str, object]) -> None:
    """Refuse options that are not stream options, for a call that takes no others.

    Raises:
        UsageError: One is not a stream option (kind `DELTA_ILLEGAL_OPTION`).
    """
    known = {name.lower() for name in STREAM_OPTIONS}
    for name in given:
        if name.lower() not in known:
            raise UsageError(
                f"A stream has no option {shown(name)}. Nothing was read. It has: "
                f"{', '.join(_PARSERS)}.",
                kind="DELTA_ILLEGAL_OPTION",
                key=name,
            )


def no_time_travel(what: str) -> UsageError:
    """Return the error for a stream that should read an older version of its table.

    Args:
        what: The cause, as the beginning of a sentence.
    """
    return UsageError(
        f"Cannot time travel views, subqueries, streams or change data feed queries. {what} asks "
        "for one version of the table, and a stream reads all that come. Nothing was read. Leave "
        "it out; to begin at a version or a time, give startingVersion or startingTimestamp.",
        kind="DELTA_UNSUPPORTED_TIME_TRAVEL_VIEWS",
    )


def _must_fail_on_data_loss() -> UsageError:
    return UsageError(
        "A stream with a schemaTrackingLocation can't continue after commits that are no longer in "
        "the log, since these may have changed the schema. Nothing was read. Leave failOnDataLoss "
        "out.",
        kind="DELTA_ILLEGAL_OPTION",
        key="failOnDataLoss",
    )


def _parse_option(name: str, parse: Callable[[str], Any], text: str) -> Any:
    try:
        return parse(text)
    except ValueError as error:
        raise UsageError(
            f"Invalid value {shown(text)} for option {name}: it {error}. Nothing was read.",
            kind="DELTA_ILLEGAL_OPTION",
            key=name,
        ) from None
