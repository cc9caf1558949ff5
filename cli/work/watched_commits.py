"""The commits of a table as they come, each with what it did and what the table is then."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from optimist.cli.work.commit_words import describe_record
from optimist.cli.work.overtaken_commits import overtaken_commits
from optimist.cli.work.watched_streams import WatchedStream
from optimist.core.errors import LogFileNotFoundError, StorageError, UsageError
from optimist.core.log.timestamps import format_timestamp
from optimist.core.snapshot import Snapshot
from optimist.core.snapshot.time_travel import CommitRecord, commit_history
from optimist.core.statements.history import history_rows
from optimist.core.table.delta_log import DeltaLog

__all__ = ["Look", "watch_commits"]

_MOST_AT_ONCE = 500
"""How many commits are read before they are shown."""
_LONGEST_S = 7 * 24 * 60 * 60
_OF_THE_COMMIT = (
    *("version", "timestamp", "operation", "engineInfo", "readVersion"),
    *("addedFiles", "addedBytes", "addedRows", "removedFiles", "removedBytes"),
)


@dataclass(frozen=True, slots=True)
class Look:
    """What one look at the table shows.

    Attributes:
        commits: The facts of each commit since the look before, the oldest first.
        table: The version, the files and the bytes of the table now.
        applications: The streams and jobs that write with an id: `appId`, `version`, `lastUpdated`.
        streams: How far the given streams lag behind the table (see `WatchedStream`).
        error: Why the store could not be reached, if it could not.
    """

    commits: Sequence[Mapping[str, object]]
    table: Mapping[str, int]
    applications: Sequence[Mapping[str, object]]
    streams: Sequence[Mapping[str, object]] = ()
    error: str | None = None


def watch_commits(
    log: DeltaLog, first: int | None, interval_s: float, streams: Sequence[WatchedStream] = ()
) -> Iterator[Look]:
    """Look at a table again and again, for ever.

    A store that can be reached again later ends nothing. If the table is made anew, its commits are
    shown from the newest on.

    Args:
        log: The handle of the table.
        first: The first version to show; None for the newest one. If there is no such version yet,
            the next commit is the first.
        interval_s: The seconds between two looks.
        streams: The streams that read the table, and whose lag is wanted.

    Raises:
        UsageError: The interval is none.
        TableNotFoundError: There is no table, or no longer.
        TableError: The log is damaged; or, at the first look, a stream's checkpoint.
        StorageError: The first look failed, or a later one in a way that trying again can't help.
    """
    if not 0 < interval_s <= _LONGEST_S:
        raise UsageError(
            f"The interval must be a number of seconds above 0, at most {_LONGEST_S:,}. Nothing "
            "was read.",
            kind="OPTIMIST_INVALID_ARGUMENT",
            argument="--interval",
        )
    newest = log.snapshot().version
    seen = (newest if first is None else min(first, newest + 1)) - 1
    look = None
    while True:
        try:
            snapshot = log.snapshot()
            if snapshot.version < seen:
                seen = snapshot.version - 1
            upto = min(snapshot.version, seen + _MOST_AT_ONCE)
            lags = [row for stream in streams for row in stream.look(snapshot)]
            look = replace(_look(log, snapshot, seen, upto), streams=lags)
            seen = upto
        except StorageError as error:
            if look is None or not error.retryable:
                raise
            look = replace(look, commits=(), error=str(error))
        yield look
        if look.error or seen == look.table["tableVersion"]:
            log.clock.sleep(interval_s)


def _look(log: DeltaLog, snapshot: Snapshot, seen: int, upto: int) -> Look:
    table = {
        "tableVersion": snapshot.version,
        "tableFiles": snapshot.num_files,
        "tableBytes": snapshot.size_in_bytes,
    }
    return Look(_commits_between(log, seen, upto), table, _applications(snapshot))


def _commits_between(log: DeltaLog, seen: int, upto: int) -> list[dict[str, object]]:
    if upto == seen:
        return []
    records = commit_history(log.store, log.log_path, limit=upto - seen, latest_version=upto)
    found = overtaken_commits(history_rows(records)).commits
    names = ("version", "overtakenBy")
    overtaken = dict(zip(*(found.column(name).to_pylist() for name in names), strict=True))
    told = (_facts_of(log, record) for record in reversed(records))
    return [
        {**facts, "overtakenBy": overtaken.get(facts["version"], 0)}
        for facts in told
        if facts is not None
    ]


def _facts_of(log: DeltaLog, record: CommitRecord) -> dict[str, object] | None:
    try:
        facts = describe_record(log, record).facts
    except LogFileNotFoundError:
        return None  # a cleanup removed it
    return {name: facts[name] for name in _OF_THE_COMMIT}


def _applications(snapshot: Snapshot) -> list[dict[str, object]]:
    return [
        {
            "appId": name,
            "version": each.version,
            "lastUpdated": None
            if each.last_updated is None
            else format_timestamp(each.last_updated),
        }
        for name, each in sorted(snapshot.set_transactions.items())
    ]
