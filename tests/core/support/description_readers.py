"""Readers of a `Story`: each starts, stops and goes on, and holds what comes against the story."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from changing_descriptions import REFUSALS, Rows, Story, ensure_given
from optimist.core import DeltaLog
from optimist.core.errors import OptimistError
from optimist.core.paths import join
from optimist.core.snapshot.local_scan import to_arrow
from optimist.core.streams.offset import BASE_INDEX, StreamOffset
from optimist.core.streams.options import StreamOptions
from optimist.core.streams.planner import StreamPlanner

EVOLVED = "DELTA_STREAMING_METADATA_EVOLUTION"
ALLOWED = {
    "allowSourceColumnRename": "always",
    "allowSourceColumnDrop": "always",
    "allowSourceColumnTypeChange": "always",
}
_FEED = ("_change_type", "_commit_version", "_commit_timestamp")


def told(rows: list[Mapping[str, object]]) -> Rows:
    """Rows as a reader has them, without what tells of the commit."""
    return [
        (
            str(row.get("_change_type", "insert")),
            {name: value for name, value in row.items() if name not in _FEED},
        )
        for row in rows
    ]


def ensure_feed_is_right(story: Story, first: int, last: int) -> bool:
    """Read the changes of some versions; whether they came, and were not refused."""
    log = DeltaLog(story.log.table_path, story.log.store)
    try:
        rows = log.changes(starting_version=first, ending_version=last).to_pylist()
    except OptimistError as error:
        assert error.kind in REFUSALS
        assert not story.is_steady(first - 1, last)
        return False
    for version in range(first, last + 1):
        of_version = told([row for row in rows if row["_commit_version"] == version])
        of_one = range(version, version + 1)
        ensure_given(story, of_version, story.changes(version), of_one, named_at=last)
    return True


@dataclass
class Reader:
    """Who reads on; each look is a process of its own, which knows a position and no more.

    Attributes:
        story: The table.
        changes: Whether it reads changes; else commits that remove rows are passed over.
        start: The first commit; None for the whole table.
    """

    story: Story
    changes: bool = False
    start: int | None = None
    at: StreamOffset | None = None
    num_refused: int = 0

    def look(self) -> None:
        """Read what has come; after a refusal that is right, begin anew with the whole table."""
        for _ in range(3 * len(self.story.versions) + 3):
            try:
                self.read_on()
            except OptimistError as error:
                if error.kind == EVOLVED:
                    continue
                self.ensure_refused_rightly(error)
                self.at = self.start = None
                self.begin_anew()
                continue
            return
        raise AssertionError("the reader does not get on")

    def ensure_refused_rightly(self, error: OptimistError) -> None:
        """A refusal needs another description between where the reader is and the newest one."""
        assert error.kind in REFUSALS, error
        reached = self.start if self.at is None else self.at.version
        assert reached is not None, error  # the whole table is never refused
        assert not self.story.is_steady(min(reached, self.story.newest) - 1, self.story.newest)
        self.num_refused += 1

    def expected(self, versions: range) -> Rows:
        """What comes of some commits."""
        each = self.story.changes if self.changes else self.story.added
        return [row for version in versions for row in each(version)]

    def ensure_right(self, given: Rows, begin: int, end: int, *, is_whole: bool) -> None:
        """Hold what came of some versions against the story."""
        versions = range(begin, end)
        if not versions and not is_whole:
            assert given == []
            return
        expected = self.story.whole(begin) if is_whole else self.expected(versions)
        ensure_given(self.story, given, expected, versions, named_at=self.story.newest)

    def begin_anew(self) -> None:
        """Forget what belongs to the run before."""

    def read_on(self) -> None:
        """Read to the newest version."""
        raise NotImplementedError


@dataclass
class Follower(Reader):
    """`DeltaLog.follow`, perhaps with a log of schemas."""

    is_tracked: bool = False
    num_logs: int = 0

    def begin_anew(self) -> None:
        self.num_logs += 1

    def read_on(self) -> None:
        log = DeltaLog(self.story.log.table_path, self.story.log.store)
        options: dict[str, object] = {} if self.changes else {"skipChangeCommits": True}
        if self.is_tracked:
            place = join(log.table_path, f"ck-{self.changes}-{self.num_logs}")
            options |= {"schemaTrackingLocation": place, **ALLOWED}
        position = None if self.at is None else self.at.to_json()
        items = log.follow(position, starting_version=self.start, changes=self.changes, **options)
        for item in items:
            is_whole = self.at is None and self.start is None
            rows = told(item.to_arrow().to_pylist())
            self.ensure_right(rows, item.version, item.version + 1, is_whole=is_whole)
            self.at = StreamOffset.from_json(item.position)


@dataclass
class Query(Reader):
    """A stream as Spark drives it; each of its batches is run twice, the second time anew.

    Attributes:
        max_files: How many files a batch takes.
        waiting: What came since the last offset between two versions.
        begun: The version of that offset.
    """

    max_files: int = 1000
    waiting: Rows = field(default_factory=list)
    begun: int = 0

    def begin_anew(self) -> None:
        self.waiting = []

    def read_on(self) -> None:
        planner = self._planner()
        while True:
            end = planner.latest_offset(self.at, planner.capacity())
            if end is None or end == self.at:
                return
            rows = self._rows(planner, end)
            again = self._rows(self._planner(), StreamOffset.from_json(end.to_json()))
            assert sorted(map(repr, again)) == sorted(map(repr, rows))
            self._take(rows, end)

    def _take(self, rows: Rows, end: StreamOffset) -> None:
        if self.at is None:
            self.begun = self.start if self.start is not None else _whole_at(end)
        is_whole = self.start is None and (self.at is None or self.at.is_initial)
        self.waiting += rows
        self.at = end
        if end.index == BASE_INDEX and not end.is_initial:
            self.ensure_right(self.waiting, self.begun, end.version, is_whole=is_whole)
            self.waiting, self.begun = [], end.version

    def _rows(self, planner: StreamPlanner, end: StreamOffset) -> Rows:
        views = planner.views_between(self.at, end)
        return told([row for view in views for row in to_arrow(view).to_pylist()])

    def _planner(self) -> StreamPlanner:
        options = {"maxFilesPerTrigger": str(self.max_files)}
        options |= {"readChangeFeed": "true"} if self.changes else {"skipChangeCommits": "true"}
        if self.start is not None:
            options["startingVersion"] = str(self.start)
        log = DeltaLog(self.story.log.table_path, self.story.log.store)
        return StreamPlanner.of(log.table, StreamOptions.parse(options, int), log.snapshot)


def _whole_at(end: StreamOffset) -> int:
    return end.version if end.is_initial else end.version - 1
