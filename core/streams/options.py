"""`StreamOptions`: where a stream begins, how much a batch takes, and what it passes over."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from optimist.core.commands.not_built_yet import not_built_yet
from optimist.core.errors import UsageError
from optimist.core.errors.foreign_text import shown
from optimist.core.options.values import at_least, parse_bool, parse_bytes

__all__ = [
    "ALWAYS",
    "LATEST",
    "STREAM_OPTIONS",
    "StreamOptions",
    "ensure_stream_options",
    "no_time_travel",
]

LATEST: Final = "latest"
ALWAYS: Final = "always"
_DEFAULT_MAX_FILES = 1000


def _version(text: str) -> int | str:
    return LATEST if text.lower() == LATEST else at_least(0)(text)


def _expression(text: str) -> str:
    try:
        pc.match_substring_regex(pa.array([""]), text)
    except pa.ArrowInvalid:
        raise ValueError("must be a regular expression without look-around") from None
    return text


def _allowance(text: str) -> str:
    folded = text.lower()
    if folded != ALWAYS:
        at_least(0)(folded)
    return folded


def _place(text: str) -> str:
    if not text:
        raise ValueError("must be a directory")
    return text


_PARSERS: Mapping[str, Callable[[str], Any]] = {
    "startingVersion": _version,
    "startingTimestamp": str,
    "maxFilesPerTrigger": at_least(1),
    "maxBytesPerTrigger": parse_bytes,
    "ignoreDeletes": parse_bool,
    "ignoreFileDeletion": parse_bool,
    "ignoreChanges": parse_bool,
    "skipChangeCommits": parse_bool,
    "excludeRegex": _expression,
    "failOnDataLoss": parse_bool,
    "withEventTimeOrder": parse_bool,
    "readChangeFeed": parse_bool,
    "readChangeData": parse_bool,
    "schemaTrackingLocation": _place,
    "schemaLocation": _place,
    "streamingSourceTrackingId": str,
    "allowSourceColumnRename": _allowance,
    "allowSourceColumnDrop": _allowance,
    "allowSourceColumnTypeChange": _allowance,
}
_TIME_TRAVEL = ("versionAsOf", "timestampAsOf")
_CHANGES = ("readChangeFeed", "readChangeData")  # the second is Delta's older name for it
_LOCATIONS = ("schemaTrackingLocation", "schemaLocation")  # the first counts
STREAM_OPTIONS = tuple(_PARSERS)
"""The names of the options, in Delta's spelling."""


@dataclass(frozen=True, slots=True)
class StreamOptions:
    """The options of one stream.

    Attributes:
        starting_version: The first commit to read, or `LATEST` for those to come; None for the
            whole table first.
        starting_ms: Instead of it: the first commit made then or later, in epoch milliseconds.
        max_files: How many files a batch takes at most; None for no limit.
        max_bytes: After how many bytes a batch takes no further file; None for no limit.
        ignore_deletes: Pass over commits that only remove rows.
        ignore_changes: Give the rows of rewritten files again.
        skip_change_commits: Pass over commits that remove rows, with all that they add.
        exclude_regex: Pass over files whose path it matches somewhere.
        fail_on_data_loss: Stop at commits that are no longer in the log, instead of going on after
            them.
        snapshot_at_once: Give the first snapshot in one batch, so that no watermark moves within.
        read_changes: Give the rows that commits inserted, updated and deleted, each with its kind.
        schema_location: Where the log of schemas lies; None for a stream without one.
        tracking_id: What tells this source's log from those of others of the query.
        allowed_rename: `ALWAYS`, or the version of the only change that the stream may go on after,
            where columns were renamed.
        allowed_drop: The same where columns were dropped.
        allowed_type_change: The same where types were made wider.
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
        """Whether only the moment tells where the stream begins."""
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
        """The options as a reader gives them; others than `STREAM_OPTIONS` are ignored.

        Args:
            given: Names in any case, values as text.
            to_ms: Turns the text of a time into epoch milliseconds.

        Raises:
            UsageError: A value does not parse (kind `DELTA_ILLEGAL_OPTION`), both starts are given
                (kind `DELTA_STARTING_VERSION_AND_TIMESTAMP_BOTH_SET`), or an older version of the
                table (kind `DELTA_UNSUPPORTED_TIME_TRAVEL_VIEWS`).
        """
        folded = {key.lower(): text.strip() for key, text in given.items()}
        for name in _TIME_TRAVEL:
            if name.lower() in folded:
                raise no_time_travel(f"The option {name}")
        found = {
            name: _parsed(name, parse, folded[name.lower()])
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
            raise _no_tolerance()
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
        """Refuse a log of schemas where a stream can't have one.

        Args:
            whose: What kind of stream it is, for the error.

        Raises:
            UsageError: The stream is asked to have one (kind `OPTIMIST_NOT_BUILT_YET`).
        """
        if self.schema_location is not None:
            raise not_built_yet(
                f"The option schemaTrackingLocation of {whose}", "Leave the option out."
            )


def ensure_stream_options(given: Mapping[str, object]) -> None:
    """Make sure that a call, which is told of no other options, gives only those of streams.

    Raises:
        UsageError: There is another one (kind `DELTA_ILLEGAL_OPTION`).
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
    """Return the error for a stream that is to read an older version of its table.

    Args:
        what: What asks for that, as the beginning of a sentence.
    """
    return UsageError(
        f"Cannot time travel views, subqueries, streams or change data feed queries. {what} asks "
        "for one version of the table, and a stream reads all that come. Nothing was read. Leave "
        "it out; to begin at a version or a time, give startingVersion or startingTimestamp.",
        kind="DELTA_UNSUPPORTED_TIME_TRAVEL_VIEWS",
    )


def _no_tolerance() -> UsageError:
    return UsageError(
        "A stream with a schemaTrackingLocation can't go on after commits that are no longer in "
        "the log, since these may have changed the schema. Nothing was read. Leave failOnDataLoss "
        "out.",
        kind="DELTA_ILLEGAL_OPTION",
        key="failOnDataLoss",
    )


def _parsed(name: str, parse: Callable[[str], Any], text: str) -> Any:
    try:
        return parse(text)
    except ValueError as error:
        raise UsageError(
            f"Invalid value {shown(text)} for option {name}: it {error}. Nothing was read.",
            kind="DELTA_ILLEGAL_OPTION",
            key=name,
        ) from None
