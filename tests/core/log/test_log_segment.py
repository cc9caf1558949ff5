"""From listings to segments (spec 5.3 to 5.5; vectors 13.7, 13.10, 13.11)."""

import itertools

import pytest

from foreign_tables import multi_part_checkpoint_name
from optimist.core.errors import TableError
from optimist.core.log.names import (
    checksum_name,
    classic_checkpoint_name,
    commit_name,
    compacted_name,
    log_path_of,
    v2_checkpoint_name,
)
from optimist.core.log.segment import (
    commit_version,
    list_commits_after,
    list_segment,
    older_segment,
)
from optimist.core.plugins.logstore import FileStatus
from optimist.core.testing import ManualClock
from optimist.logstores import LocalLogStore, MemoryLogStore
from refusals import kind_of

_COUNTER = itertools.count()


class Log:
    """A log of files without meaning; each is a second younger than the one before."""

    def __init__(self, *names, empty=()):
        self.path = log_path_of(f"memory://segments/t{next(_COUNTER)}")
        self.clock = ManualClock(now_ms=1_000_000)
        self.store = MemoryLogStore(clock=self.clock)
        self.listed = []
        for name in names:
            self.put(name, b"" if name in empty else b"x")

    def put(self, name, data=b"x"):
        self.clock.advance(1)
        self.store.put_if_absent(f"{self.path}/{name}", data)

    def segment(self, **arguments):
        return list_segment(self.store, self.path, **arguments)

    def versions(self, **arguments):
        segment = self.segment(**arguments)
        return segment.checkpoint_version, [commit_version(item) for item in segment.commits]


def commits(*versions):
    return [commit_name(version) for version in versions]


def test_a_missing_directory_is_no_table():
    assert Log().segment() is None


def test_a_directory_without_files_of_a_log_is_no_table():
    assert Log(".tmp").segment() is None


def test_files_but_no_commit_are_an_error():
    assert kind_of(Log("_last_checkpoint").segment) == "DELTA_LOG_FILE_NOT_FOUND"
    assert kind_of(Log(classic_checkpoint_name(10)).segment) == "DELTA_LOG_FILE_NOT_FOUND"


def test_a_file_in_place_of_the_log_is_a_clear_error_on_disk(tmp_path):
    (tmp_path / "_delta_log").write_text("not a directory")
    with pytest.raises(TableError, match="is a file") as caught:
        list_segment(LocalLogStore(), str(tmp_path / "_delta_log"))
    assert caught.value.kind == "OPTIMIST_LOG_PATH_IS_A_FILE"


def test_a_file_in_place_of_the_log_is_seen_on_an_object_store():
    log = Log()
    log.store.put_if_absent(log.path, b"x")
    assert kind_of(log.segment) == "OPTIMIST_LOG_PATH_IS_A_FILE"


def test_without_checkpoint_all_commits_are_kept():
    log = Log(*commits(0, 1, 2))
    assert log.versions() == (-1, [0, 1, 2])
    assert log.segment().version == 2
    assert log.segment().last_commit_timestamp_ms == 1_003_000


def test_commits_up_to_the_checkpoint_are_left_out():
    log = Log(*commits(*range(13)), classic_checkpoint_name(10))
    assert log.versions() == (10, [11, 12])
    assert log.versions(hint=10) == (10, [11, 12])


def test_at_the_checkpoint_no_commit_is_replayed():
    log = Log(*commits(9, 10), classic_checkpoint_name(10))
    segment = log.segment()
    assert (segment.version, segment.commits) == (10, ())
    assert segment.last_commit_timestamp_ms == 1_002_000


def test_a_checkpoint_needs_no_commit_of_its_own_version():
    segment = Log(*commits(9), classic_checkpoint_name(10)).segment()
    assert (segment.version, segment.commits) == (10, ())


def test_a_version_in_the_past_starts_from_its_own_checkpoint():
    log = Log(*commits(*range(25)), *(classic_checkpoint_name(version) for version in (10, 20)))
    assert log.versions(version=14) == (10, [11, 12, 13, 14])
    assert log.versions(version=14, hint=20) == (10, [11, 12, 13, 14])
    assert log.versions(version=9, hint=20) == (-1, list(range(10)))


def test_the_backward_search_goes_past_one_window():
    log = Log(*commits(*range(2100)), classic_checkpoint_name(50))
    assert log.versions(version=2099) == (50, list(range(51, 2100)))


def test_a_version_that_does_not_exist_is_named_with_the_latest():
    with pytest.raises(TableError) as caught:
        Log(*commits(0, 1)).segment(version=5)
    assert caught.value.kind == "DELTA_VERSION_NOT_FOUND"
    assert caught.value.fields["latest"] == 1


@pytest.mark.parametrize(
    ("names", "kind", "fields"),
    [
        (
            [classic_checkpoint_name(10), *commits(10, 12, 13)],
            "DELTA_TRUNCATED_TRANSACTION_LOG",
            {"missing_version": 11, "first_version": 12},
        ),
        (
            [classic_checkpoint_name(10), *commits(10, 11, 13)],
            "DELTA_VERSIONS_NOT_CONTIGUOUS",
            {"version_before": 11, "version_after": 13, "version": 13},
        ),
        (
            commits(2, 3),
            "DELTA_TRUNCATED_TRANSACTION_LOG",
            {"missing_version": 0, "first_version": 2},
        ),
        (
            commits(0, 1, 4),
            "DELTA_VERSIONS_NOT_CONTIGUOUS",
            {"version_before": 1, "version_after": 4},
        ),
    ],
)
def test_a_gap_is_an_error_that_names_the_versions(names, kind, fields):
    with pytest.raises(TableError) as caught:
        Log(*names).segment()
    assert caught.value.kind == kind
    assert {name: caught.value.fields[name] for name in fields} == fields


def test_a_gap_before_the_checkpoint_does_no_harm():
    assert Log(*commits(0, 5, 10, 11), classic_checkpoint_name(10)).versions() == (10, [11])


def test_a_checkpoint_of_no_length_does_not_count():
    name = classic_checkpoint_name(2)
    assert Log(*commits(0, 1, 2), name, empty={name}).versions() == (-1, [0, 1, 2])


def test_a_multi_part_checkpoint_that_lacks_a_part_does_not_count():
    parts = [multi_part_checkpoint_name(2, part, 3) for part in (1, 2)]
    assert Log(*commits(0, 1, 2, 3), *parts).versions() == (-1, [0, 1, 2, 3])


@pytest.mark.parametrize(
    "names",
    [
        [multi_part_checkpoint_name(20, part, 2) for part in (1, 2)],
        [v2_checkpoint_name(20, "6b4e", "json")],
        [v2_checkpoint_name(20, "6b4e", "parquet")],
    ],
)
def test_checkpoints_of_every_kind_are_taken(names):
    log = Log(*commits(*range(10, 23)), classic_checkpoint_name(10), *names)
    assert log.versions() == (20, [21, 22])
    assert log.versions(hint=20) == (20, [21, 22])
    assert [status.name for status in log.segment().checkpoint.files] == names


def test_of_one_version_the_kinds_are_preferred_in_order():
    single, v2 = classic_checkpoint_name(5), v2_checkpoint_name(5, "6b4e", "json")
    two, three = ([multi_part_checkpoint_name(5, n, p) for n in range(1, p + 1)] for p in (2, 3))
    later = v2_checkpoint_name(5, "7000", "parquet")
    log = Log(*commits(*range(6)), single, *two, *three, v2, later)
    found, segment = [], log.segment()
    while segment.checkpoint:
        found.append([status.name for status in segment.checkpoint.files])
        segment = older_segment(log.store, segment)
    assert found == [[later], [v2], three, two, [single]]
    assert [commit_version(status) for status in segment.commits] == list(range(6))


def test_parts_of_no_checkpoint_and_of_impossibly_many_do_not_count():
    strange = ["5.checkpoint.0.0.parquet", f"5.checkpoint.1.{'9' * 30}.parquet"]
    assert Log(*commits(*range(6)), *strange).versions() == (-1, list(range(6)))


def test_a_hint_that_leads_is_found_out():
    log = Log(*commits(*range(13)), classic_checkpoint_name(5))
    assert log.versions(hint=12) == (5, list(range(6, 13)))
    assert log.versions(hint=40) == (5, list(range(6, 13)))


def test_a_hint_that_lags_only_costs_time():
    log = Log(*commits(*range(13)), *(classic_checkpoint_name(version) for version in (5, 10)))
    assert log.versions(hint=5) == (10, [11, 12])


def test_a_hint_without_any_checkpoint_starts_at_the_first_commit():
    assert Log(*commits(0, 1, 2)).versions(hint=2) == (-1, [0, 1, 2])


def test_a_hint_whose_checkpoint_and_past_are_gone_is_an_error():
    assert kind_of(Log(*commits(12, 13)).segment, hint=12) == "DELTA_MISSING_PART_FILES"


def test_a_table_made_anew_is_read_from_its_beginning():
    assert Log(*commits(0, 1)).versions(hint=30) == (-1, [0, 1])


def test_compacted_commits_and_strange_names_are_passed_over():
    log = Log(*commits(0, 1, 2), compacted_name(0, 1), "00000000000000000001.json.bak", "zzz")
    assert log.versions() == (-1, [0, 1, 2])


def test_short_version_numbers_are_understood():
    assert Log("0.json", "1.json", "2.json", "1.checkpoint.parquet").versions() == (1, [2])


def test_the_checksum_of_exactly_the_version_is_noted():
    log = Log(*commits(0, 1), checksum_name(0))
    assert log.segment().checksum_file is None
    log.put(checksum_name(1))
    assert log.segment().checksum_file.name == checksum_name(1)


def test_an_older_segment_has_the_same_version():
    log = Log(*commits(*range(13)), *(classic_checkpoint_name(version) for version in (5, 10)))
    older = older_segment(log.store, log.segment())
    assert (older.version, older.checkpoint_version) == (12, 5)
    oldest = older_segment(log.store, older)
    assert (oldest.version, oldest.checkpoint_version) == (12, -1)
    assert older_segment(log.store, oldest) is None


def test_there_is_no_older_segment_where_the_commits_are_gone():
    log = Log(*commits(10, 11), classic_checkpoint_name(10))
    assert older_segment(log.store, log.segment()) is None


def test_commits_after_a_version_are_dense():
    log = Log(*commits(*range(8)))
    assert [commit_version(item) for item in list_commits_after(log.store, log.path, 3)] == [
        4,
        5,
        6,
        7,
    ]
    assert list_commits_after(log.store, log.path, 7) == ()


@pytest.mark.parametrize("present", [(0, 2), (0, 1, 3)])
def test_a_hole_in_the_commits_after_a_version_is_an_error(present):
    log = Log(*commits(*present))
    with pytest.raises(TableError) as caught:
        list_commits_after(log.store, log.path, 0)
    assert caught.value.kind == "DELTA_VERSIONS_NOT_CONTIGUOUS"


def test_no_commit_comes_after_the_start_of_no_table():
    assert list_commits_after(Log().store, Log().path, -1) == ()


def test_a_segment_grows_by_its_next_commits():
    log = Log(*commits(0, 1))
    before = log.segment()
    log.put(commit_name(2))
    log.put(commit_name(3))
    after = log.segment()
    tail = after.commits_after(1)
    assert [commit_version(item) for item in tail] == [2, 3]
    assert before.extended(tail) == after


@pytest.mark.parametrize("name", ["_last_checkpoint", f"{7:020}.checkpoint.parquet"])
def test_the_version_of_a_commit_is_asked_of_commits_alone(name):
    assert commit_version(FileStatus(f"/t/_delta_log/{7:020}.json", 1, 1)) == 7
    with pytest.raises(ValueError, match="not the name of a commit"):
        commit_version(FileStatus(f"/t/_delta_log/{name}", 1, 1))
