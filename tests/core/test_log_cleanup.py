"""Log cleanup (spec 5.10)."""

import itertools

import pytest

from optimist.core.actions import AddFile, CommitInfo, Metadata, Protocol, actions_to_bytes
from optimist.core.log.checkpoint import write_checkpoint
from optimist.core.log.cleanup import clean_up_expired_logs, expired_log_files
from optimist.core.log.names import (
    LAST_CHECKPOINT,
    checksum_name,
    classic_checkpoint_name,
    commit_name,
    commit_path,
    compacted_name,
    log_path_of,
    multi_part_checkpoint_name,
)
from optimist.core.log.segment import list_segment
from optimist.core.logstore import FileStatus
from optimist.core.options import EngineOptions
from optimist.core.snapshot import Snapshot
from optimist.core.testing import ManualClock
from optimist.logstores import MemoryLogStore

_COUNTER = itertools.count()
DAY_MS = 86_400_000


def listing(*entries):
    """(name, time) or (name, time, size) as a store would list them."""
    statuses = [
        FileStatus(f"/log/{entry[0]}", entry[2] if len(entry) > 2 else 1, entry[1])
        for entry in entries
    ]
    return iter(sorted(statuses, key=lambda status: status.name))


def expired(*entries, cutoff=100, max_version=1000):
    paths = expired_log_files(listing(*entries), cutoff_ms=cutoff, max_version=max_version)
    return [path.removeprefix("/log/") for path in paths]


def commits(start, stop, time_ms):
    return [(commit_name(version), time_ms + version) for version in range(start, stop)]


def test_all_before_the_newest_expired_checkpoint_goes():
    entries = [
        *commits(0, 25, 0),
        (checksum_name(3), 3),
        (classic_checkpoint_name(10), 10),
        (classic_checkpoint_name(20), 20),
    ]
    gone = expired(*entries)
    assert gone == sorted(name for name, *_ in entries if int(name.split(".")[0]) < 20)


def test_nothing_goes_where_no_checkpoint_follows():
    assert expired(*commits(0, 25, 0)) == []


def test_what_is_younger_than_the_cutoff_stays_with_all_of_its_stretch():
    entries = [*commits(0, 10, 0), *commits(10, 12, 95), (classic_checkpoint_name(5), 5)]
    entries.append((classic_checkpoint_name(11), 106))
    assert expired(*entries, cutoff=100) == [commit_name(version) for version in range(5)]


def test_the_cutoff_itself_has_expired():
    entries = [(commit_name(0), 100), (classic_checkpoint_name(1), 500), (commit_name(1), 500)]
    assert expired(*entries, cutoff=100) == [commit_name(0)]
    assert expired(*entries, cutoff=99) == []


def test_a_file_that_claims_to_be_older_than_its_predecessor_is_not():
    entries = [(commit_name(0), 101), (commit_name(1), 5), (classic_checkpoint_name(2), 6)]
    assert expired(*entries, cutoff=100) == []
    assert expired(*entries, cutoff=102) == [commit_name(0), commit_name(1)]


def test_versions_above_the_threshold_stay():
    entries = [*commits(0, 9, 0), (classic_checkpoint_name(4), 4), (classic_checkpoint_name(8), 8)]
    assert expired(*entries, max_version=6)[-1] == commit_name(3)


@pytest.mark.parametrize(
    "checkpoint",
    [
        [(classic_checkpoint_name(5), 5, 0)],
        [(multi_part_checkpoint_name(5, 1, 2), 5)],
    ],
)
def test_a_checkpoint_that_is_empty_or_incomplete_does_not_count(checkpoint):
    assert expired(*commits(0, 9, 0), *checkpoint) == []


def test_a_complete_multi_part_checkpoint_counts():
    parts = [(multi_part_checkpoint_name(5, part, 2), 5) for part in (1, 2)]
    assert expired(*commits(0, 9, 0), *parts) == [commit_name(version) for version in range(5)]


def test_compacted_commits_and_other_files_are_left_alone():
    entries = [
        *commits(0, 9, 0),
        (compacted_name(0, 3), 1),
        ("_last_checkpoint", 1),
        ("00000000000000000001.json.bak", 1),
        (classic_checkpoint_name(5), 5),
    ]
    assert expired(*entries) == [commit_name(version) for version in range(5)]


class Table:
    """A table with a commit a day, the last one today, and a checkpoint of version 50."""

    def __init__(self, configuration=None):
        self.table_path = f"memory://cleanup/t{next(_COUNTER)}"
        self.path = log_path_of(self.table_path)
        self.clock = ManualClock(now_ms=20_000 * DAY_MS + 1)
        self.store = MemoryLogStore(clock=self.clock)
        metadata = Metadata(
            "id", '{"type":"struct","fields":[]}', configuration=configuration or {}
        )
        for version in range(61):
            actions = [CommitInfo(), AddFile(f"f{version}", {}, 1, 1, True)]
            if version == 0:
                actions += [Protocol(1, 2), metadata]
            data = actions_to_bytes(actions)
            self.store.put_if_absent(commit_path(self.path, version), data)
            if version in (20, 50):
                self.checkpoint()
            self.clock.advance(86_400)

    def snapshot(self):
        segment = list_segment(self.store, self.path)
        return Snapshot.load(
            self.store, self.table_path, segment, options=EngineOptions(), clock=self.clock
        )

    def checkpoint(self):
        write_checkpoint(self.store, self.snapshot(), options=EngineOptions(), clock=self.clock)

    def clean_up(self):
        return clean_up_expired_logs(self.store, self.snapshot(), clock=self.clock)


def test_a_month_of_log_is_kept_and_the_table_reads_as_before():
    table = Table()
    before = sorted(table.snapshot().files["path"].to_pylist())
    assert [path.rpartition("/")[2] for path in table.clean_up()] == [
        commit_name(version) for version in range(20)
    ]
    after = table.snapshot()
    assert sorted(after.files["path"].to_pylist()) == before
    assert table.clean_up() == ()


def test_a_shorter_retention_deletes_more():
    table = Table({"delta.logRetentionDuration": "interval 5 days"})
    assert len(table.clean_up()) == 51
    assert table.snapshot().version == 60


def test_it_can_be_switched_off():
    table = Table({"delta.enableExpiredLogCleanup": "false"})
    assert table.clean_up() == ()


def test_without_a_hint_nothing_goes():
    table = Table()
    table.store.delete(f"{table.path}/{LAST_CHECKPOINT}")
    assert table.clean_up() == ()


def test_the_cutoff_is_the_start_of_a_day():
    # Version 19, the last before the checkpoint, is 42 days old to the millisecond, but the day on
    # which it expires began a millisecond before it.
    assert Table({"delta.logRetentionDuration": "interval 42 days"}).clean_up() == ()
    assert len(Table({"delta.logRetentionDuration": "interval 41 days"}).clean_up()) == 20
