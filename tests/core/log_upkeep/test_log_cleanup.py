"""Log cleanup (spec 5.10)."""

import io
import itertools

import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from foreign_tables import multi_part_checkpoint_name
from optimist.core.errors import StorageError
from optimist.core.log.checkpoint_reader import CheckpointReader
from optimist.core.log.names import (
    LAST_CHECKPOINT,
    checksum_name,
    classic_checkpoint_name,
    commit_name,
    commit_path,
    compacted_name,
    log_path_of,
)
from optimist.core.log.segment import list_segment
from optimist.core.log_upkeep.checkpoint import write_checkpoint
from optimist.core.log_upkeep.cleanup import LogCleaner, expired_log_files
from optimist.core.log_upkeep.compaction import write_compaction
from optimist.core.options.engine import EngineOptions
from optimist.core.plugins.logstore import FileStatus
from optimist.core.protocol.actions import AddFile, CommitInfo, Metadata, Protocol, actions_to_bytes
from optimist.core.snapshot import Snapshot
from optimist.core.testing import ManualClock
from optimist.logstores import MemoryLogStore

_COUNTER = itertools.count()
DAY_MS = 86_400_000
OPTIONS = EngineOptions()
V2_PROTOCOL = Protocol(3, 7, ("v2Checkpoint",), ("v2Checkpoint",))
V2 = {"delta.checkpointPolicy": "v2", "delta.logRetentionDuration": "interval 5 days"}


def listing(*entries):
    """(name, time) or (name, time, size) as a store would list them."""
    statuses = [
        FileStatus(f"/log/{entry[0]}", entry[2] if len(entry) > 2 else 1, entry[1])
        for entry in entries
    ]
    return iter(sorted(statuses, key=lambda status: status.name))


def expired(*entries, cutoff=100, max_version=1000):
    found = expired_log_files(listing(*entries), cutoff_ms=cutoff, max_version=max_version)
    return [path.removeprefix("/log/") for path in found.paths]


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


def test_no_file_is_looked_at_behind_the_first_that_is_too_young():
    def files():
        yield from listing(*commits(0, 5, 98))  # the next version tells that one is over
        raise AssertionError("looked further")

    assert expired_log_files(files(), cutoff_ms=100, max_version=9).rest_since_ms == 101


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


def test_compacted_commits_go_if_no_reader_begins_where_they_begin():
    entries = [
        *commits(0, 12, 0),
        (compacted_name(0, 3), 900),
        (compacted_name(4, 7), 900),
        (compacted_name(5, 11), 900),
        (compacted_name(6, 11), 900),
        (classic_checkpoint_name(5), 5),
    ]
    gone = [compacted_name(0, 3), compacted_name(4, 7), compacted_name(5, 11)]
    assert expired(*entries) == [*(commit_name(version) for version in range(5)), *gone]


def test_other_files_are_left_alone():
    entries = [
        *commits(0, 9, 0),
        ("_last_checkpoint", 1),
        ("00000000000000000001.json.bak", 1),
        (classic_checkpoint_name(5), 5),
    ]
    assert expired(*entries) == [commit_name(version) for version in range(5)]


class Table:
    """A table with a commit a day, the last one today, and checkpoints of some versions."""

    def __init__(self, configuration=None, *, checkpoints=(20, 50), protocol=None):
        self.table_path = f"memory://cleanup/t{next(_COUNTER)}"
        self.path = log_path_of(self.table_path)
        self.clock = ManualClock(now_ms=20_000 * DAY_MS + 1)
        self.store = MemoryLogStore(clock=self.clock)
        self.cleaner = LogCleaner()
        metadata = Metadata(
            "id", '{"type":"struct","fields":[]}', configuration=configuration or {}
        )
        is_v2 = (configuration or {}).get("delta.checkpointPolicy") == "v2"
        protocol = protocol or (V2_PROTOCOL if is_v2 else Protocol(1, 2))
        for version in range(61):
            actions = [CommitInfo(), AddFile(f"f{version}", {}, 1, 1, True)]
            if version == 0:
                actions += [protocol, metadata]
            data = actions_to_bytes(actions)
            self.store.put_if_absent(commit_path(self.path, version), data)
            if version in checkpoints:
                self.checkpoint()
            self.clock.advance(86_400)

    def snapshot(self):
        segment = list_segment(self.store, self.path)
        return Snapshot.load(
            self.store, self.table_path, segment, options=OPTIONS, clock=self.clock
        )

    def checkpoint(self):
        write_checkpoint(self.store, self.snapshot(), options=OPTIONS, clock=self.clock)

    def clean_up(self):
        deleted = self.cleaner.clean_up(
            self.store, self.snapshot(), options=OPTIONS, clock=self.clock
        )
        return [path.rpartition("/")[2] for path in deleted]

    def names(self, folder=""):
        return [status.name for status in self.store.list_from(f"{self.path}/{folder}")]

    def checkpoints(self):
        return [name for name in self.names() if ".checkpoint." in name]


def test_a_month_of_log_is_kept_and_the_table_reads_as_before():
    table = Table()
    before = sorted(table.snapshot().files["path"].to_pylist())
    assert table.clean_up() == [commit_name(version) for version in range(20)]
    after = table.snapshot()
    assert sorted(after.files["path"].to_pylist()) == before
    assert table.clean_up() == []


def test_no_hint_and_no_file_of_a_later_version_let_the_newest_commits_go():
    table = Table()
    snapshot = table.snapshot()
    table.clock.advance(100 * 86_400)
    table.store.put_overwrite(f"{table.path}/{LAST_CHECKPOINT}", b'{"version":999,"size":1}')
    table.store.put_if_absent(f"{table.path}/{classic_checkpoint_name(998)}", b"nonsense")
    table.cleaner.clean_up(table.store, snapshot, options=OPTIONS, clock=table.clock)
    table.store.delete(f"{table.path}/{classic_checkpoint_name(998)}")
    assert table.snapshot().files.equals(snapshot.files)


def test_a_table_that_is_made_anew_behind_the_listing_keeps_its_commits(monkeypatch):
    table = Table()
    snapshot, tombstones = table.snapshot(), CheckpointReader.tombstones
    anew = actions_to_bytes([CommitInfo(), Protocol(1, 2), Metadata("new", "{}")])

    def replaced(reader):
        yield from tombstones(reader)  # the end of the checkpoint that is to be the log's first
        for status in list(table.store.list_from(f"{table.path}/")):
            table.store.delete(status.path)
        table.store.put_if_absent(commit_path(table.path, 0), anew)

    monkeypatch.setattr(CheckpointReader, "tombstones", replaced)
    with pytest.raises(StorageError) as caught:
        table.cleaner.clean_up(table.store, snapshot, options=OPTIONS, clock=table.clock)
    assert caught.value.kind == "OPTIMIST_PREDECESSOR_MISSING"
    assert table.names() == [commit_name(0)]


def test_staged_commits_of_odd_names_are_left_alone():
    table = Table()
    odd = [f"{'9' * 5_000}.x.json", "\u0661.x.json", "1.x.json.txt", "x.json", ".x.json"]
    for name in odd:
        table.store.put_if_absent(f"{table.path}/_staged_commits/{name}", b"")
    table.store.put_if_absent(f"{table.path}/_staged_commits/{3:020d}.x.json", b"")
    assert commit_name(3) in table.clean_up()
    assert sorted(table.names("_staged_commits/")) == sorted(odd)


def test_the_log_is_not_listed_again_before_more_can_have_expired(monkeypatch):
    table = Table()
    assert len(table.clean_up()) == 20
    lists = []
    list_from = table.store.list_from
    snapshot = table.snapshot()

    def counted(path):
        lists.append(path)
        return list_from(path)

    def clean_up():
        table.cleaner.clean_up(table.store, snapshot, options=OPTIONS, clock=table.clock)
        return len(lists)

    monkeypatch.setattr(table.store, "list_from", counted)
    assert clean_up() == 0
    table.clock.advance(86_400 - 1)
    assert clean_up() == 0
    table.clock.advance(1)
    assert clean_up() == 1
    table.clock.advance(40 * 86_400)
    clean_up()
    assert table.snapshot().version == 60
    assert table.names()[0].startswith(f"{50:020d}.")


def test_a_shorter_retention_deletes_more():
    table = Table({"delta.logRetentionDuration": "interval 5 days"})
    assert len(table.clean_up()) == 51
    assert table.snapshot().version == 60


def test_it_can_be_switched_off():
    table = Table({"delta.enableExpiredLogCleanup": "false"})
    assert table.clean_up() == []


def test_without_a_hint_nothing_goes():
    table = Table()
    table.store.delete(f"{table.path}/{LAST_CHECKPOINT}")
    assert table.clean_up() == []


def test_the_cutoff_is_the_start_of_a_day():
    # Version 19, the last before the checkpoint, is 42 days old to the millisecond, but the day on
    # which it expires began a millisecond before it.
    assert Table({"delta.logRetentionDuration": "interval 42 days"}).clean_up() == []
    assert len(Table({"delta.logRetentionDuration": "interval 41 days"}).clean_up()) == 20


@pytest.mark.parametrize("protected_before", [5, 20, 40, 60])
@pytest.mark.parametrize("policy", [{}, V2])
def test_protected_versions_go_only_up_to_a_checkpoint_that_was_there(policy, protected_before):
    protection = {"delta.requireCheckpointProtectionBeforeVersion": str(protected_before)}
    table = Table({**policy, **protection})
    before = set(table.checkpoints())
    gone = table.clean_up()
    oldest = min(int(name.partition(".")[0]) for name in table.names() if name[0].isdigit())
    if policy and protected_before == 60:
        # Before anything goes, a checkpoint under a classic name would have to be written.
        assert (list(gone), oldest, set(table.checkpoints())) == ([], 0, before)
        return
    assert gone
    assert oldest >= protected_before or not policy
    assert {name for name in before if int(name.partition(".")[0]) == oldest}
    assert not {name for name in table.checkpoints() if int(name.partition(".")[0]) < 60} - before


# V2 checkpoints


def sidecars_of(table, name):
    version = int(name.partition(".")[0])
    reader = CheckpointReader(table.store, version, [FileStatus(f"{table.path}/{name}", 1, 0)])
    return {item.name for item in reader.sidecars()}


def test_before_files_go_a_checkpoint_with_a_classic_name_stands_for_old_readers():
    table = Table(V2, checkpoints=(20, 50))
    before = sorted(table.snapshot().files["path"].to_pylist())
    gone = table.clean_up()
    assert gone[:20] == [commit_name(version) for version in range(20)]
    assert classic_checkpoint_name(60) in table.checkpoints()
    protocol = read_first(table, classic_checkpoint_name(60), "protocol")
    assert protocol["readerFeatures"] == ["v2Checkpoint"]
    assert sorted(table.snapshot().files["path"].to_pylist()) == before
    for version in range(51, 61):
        table.store.put_overwrite(commit_path(table.path, version), b"{}")  # not needed any more
    assert sorted(table.snapshot().files["path"].to_pylist()) == before


def read_first(table, name, column):
    rows = pq.read_table(io.BytesIO(table.store.read_bytes(f"{table.path}/{name}")))
    return rows.column(column).drop_null().to_pylist(maps_as_pydicts="strict")[0]


def test_no_classic_name_is_written_where_nothing_goes():
    table = Table({**V2, "delta.logRetentionDuration": "interval 300 days"})
    assert table.clean_up() == []
    assert all(len(name.split(".")) == 4 for name in table.checkpoints())


@pytest.mark.parametrize("parts", [0, 2])
def test_where_a_checkpoint_has_an_old_name_already_cleanup_writes_none(parts):
    table = Table(checkpoints=(20, 50), protocol=V2_PROTOCOL)
    table.checkpoint()
    if parts:
        data = table.store.read_bytes(f"{table.path}/{classic_checkpoint_name(60)}")
        for part in range(1, parts + 1):
            name = f"{60:020d}.checkpoint.{part:010d}.{parts:010d}.parquet"
            table.store.put_overwrite(f"{table.path}/{name}", data)
        table.store.delete(f"{table.path}/{classic_checkpoint_name(60)}")
    before = set(table.names())
    assert table.clean_up()
    assert set(table.names()) <= before
    with pytest.raises(FileNotFoundError):
        table.names("_sidecars/")


def test_sidecars_go_with_the_last_checkpoint_that_names_them():
    table = Table(V2, checkpoints=(20, 50))
    first, second = table.checkpoints()
    old, kept = sidecars_of(table, first), sidecars_of(table, second)
    gone = set(table.clean_up())
    assert old <= gone
    assert kept <= set(table.names("_sidecars/"))
    assert not kept & gone


def test_sidecars_that_a_crash_left_behind_go_when_they_have_expired():
    table = Table(V2, checkpoints=(20, 50))
    for name in ("orphan.parquet", "young.parquet"):
        table.clock.set_now_ms((20_000 + (30 if name.startswith("o") else 61)) * DAY_MS)
        table.store.put_overwrite(f"{table.path}/_sidecars/{name}", b"x")
    gone = table.clean_up()
    assert "orphan.parquet" in gone
    assert "young.parquet" in table.names("_sidecars/")


def test_sidecars_younger_than_a_day_stay_however_short_the_log_is_kept():
    table = Table({**V2, "delta.logRetentionDuration": "interval 1 hour"}, checkpoints=(20, 50))
    midnight_ms = table.clock.now_ms() // DAY_MS * DAY_MS
    ages = {"in-progress.parquet": DAY_MS, "old.parquet": DAY_MS + 1}
    for name, age_ms in ages.items():
        table.clock.set_now_ms(midnight_ms - age_ms)
        table.store.put_overwrite(f"{table.path}/_sidecars/{name}", b"x")
    table.clock.set_now_ms(midnight_ms + DAY_MS // 2)
    assert "old.parquet" in table.clean_up()
    assert "in-progress.parquet" in table.names("_sidecars/")


def test_all_sidecars_stay_while_a_checkpoint_cannot_be_read(caplog):
    table = Table(V2, checkpoints=(20, 50))
    before = table.names("_sidecars/")
    torn = f"{table.path}/{55:020d}.checkpoint.torn.json"
    table.store.put_overwrite(torn, b'{"sidecar":')
    table.clean_up()
    assert set(before) <= set(table.names("_sidecars/"))
    assert "are kept" in caplog.text


@pytest.mark.parametrize(
    ("policy", "damage"), [("classic", "torn"), ("v2", "gone"), ("v2", "bit"), ("classic", "bit")]
)
def test_a_checkpoint_that_cannot_be_read_replaces_no_commits(policy, damage, caplog):
    table = Table({**V2, "delta.checkpointPolicy": policy}, checkpoints=(20, 50))
    path = f"{table.path}/{checkpoint_of(table, 50)}"
    if policy == "v2":
        (sidecar,) = sidecars_of(table, checkpoint_of(table, 50))
        path = f"{table.path}/_sidecars/{sidecar}"
    data = table.store.read_bytes(path)
    table.store.delete(path)
    if damage == "torn":
        table.store.put_overwrite(path, data[:-100])
    elif damage == "bit":
        footer = pq.ParquetFile(io.BytesIO(data)).metadata
        groups = [footer.row_group(number) for number in range(footer.num_row_groups)]
        columns = [each.column(index) for each in groups for index in range(each.num_columns)]
        found = [each for each in columns if each.path_in_schema == "add.path"]
        paths = max(found, key=lambda each: each.total_compressed_size)
        at = paths.data_page_offset + paths.total_compressed_size - 1
        table.store.put_overwrite(path, data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :])
    kept = [commit_name(version) for version in range(20, 61)]
    assert commit_name(19) in table.clean_up()
    assert "is not cleaned up to version 50" in caplog.text
    assert [name for name in table.names() if name in kept] == kept
    assert table.snapshot().num_files == 61


def checkpoint_of(table, version):
    (name,) = (name for name in table.checkpoints() if name.startswith(f"{version:020d}."))
    return name


def test_nothing_goes_while_the_classic_name_cannot_be_written():
    table = Table(V2, checkpoints=(20, 50))
    before = table.names()
    snapshot = table.snapshot()
    store = Unwritable()
    with pytest.raises(StorageError):
        LogCleaner().clean_up(store, snapshot, options=OPTIONS, clock=table.clock)
    assert table.names() == before


class Unwritable(MemoryLogStore):
    def put_if_absent(self, path, data):
        raise StorageError("full", kind="OPTIMIST_STORAGE", path=path, retryable=False)


def test_staged_commits_of_deleted_versions_go_too():
    table = Table({"delta.logRetentionDuration": "interval 5 days"})
    for version in (3, 49, 50):
        table.store.put_overwrite(f"{table.path}/_staged_commits/{version:020d}.u.json", b"x")
    gone = table.clean_up()
    assert gone[-2:] == [f"{version:020d}.u.json" for version in (3, 49)]
    assert table.names("_staged_commits/") == [f"{50:020d}.u.json"]


@settings(max_examples=12, deadline=None)
@given(
    st.sets(st.integers(1, 60), min_size=1, max_size=5),
    st.sampled_from(["v2", "classic"]),
    st.integers(1, 70),
    st.sets(st.integers(0, 9), max_size=3),
)
def test_what_is_kept_can_always_be_read(checkpoints, policy, retention_days, compactions):
    """Every version that a kept checkpoint or commit leads to reads as it did before."""
    configuration = {
        "delta.checkpointPolicy": policy,
        "delta.logRetentionDuration": f"interval {retention_days} days",
    }
    table = Table(configuration, checkpoints=checkpoints)
    for tens in compactions:
        write_compaction(table.store, table.path, 6 * tens, 6 * tens + 5)
    gone = table.clean_up()
    assert table.snapshot().num_files == 61
    names = table.names()
    first_kept = min(int(name[:20]) for name in names if len(name) == len(commit_name(0)))
    assert set(gone).isdisjoint(names)
    for version in sorted({first_kept, 60, *(v for v in checkpoints if v >= first_kept)}):
        segment = list_segment(table.store, table.path, version=version)
        snapshot = Snapshot.load(
            table.store, table.table_path, segment, options=OPTIONS, clock=table.clock
        )
        assert snapshot.num_files == version + 1
