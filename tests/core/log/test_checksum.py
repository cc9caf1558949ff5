"""`N.crc` (spec 5.9)."""

import itertools
import json
from dataclasses import replace

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from optimist.core.log.checksum import (
    VersionChecksum,
    checksum_of_files,
    derive_checksum,
    read_checksum,
    write_checksum,
)
from optimist.core.log.deleted_record_counts import DeletedRecordCounts
from optimist.core.log.file_sizes import FileSizeHistogram
from optimist.core.log.file_sums import FileChanges, only_adds_new_files
from optimist.core.log.file_table import file_actions_batch
from optimist.core.log.names import checksum_name, log_path_of
from optimist.core.log.replay import LogState, with_files
from optimist.core.options.engine import EngineOptions
from optimist.core.plugins.logstore import PutOutcome
from optimist.core.protocol.actions import (
    AddFile,
    CommitInfo,
    DeletionVectorDescriptor,
    DomainMetadata,
    Metadata,
    Protocol,
    RemoveFile,
    SetTransaction,
)
from optimist.logstores import MemoryLogStore

_COUNTER = itertools.count()
OPTIONS = EngineOptions()
DV = DeletionVectorDescriptor("i", "wi5b", 40, 6)
START = (
    CommitInfo(operation="CREATE TABLE", txn_id="t0", in_commit_timestamp=5),
    Protocol(1, 2),
    Metadata(
        "id",
        '{"type":"struct","fields":[]}',
        configuration={"delta.enableInCommitTimestamps": "true"},
    ),
)


def add(path, size=10, vector=None):
    return AddFile(path, {}, size, 1, True, deletion_vector=vector)


def files_of(actions):
    return file_actions_batch(item for item in actions if isinstance(item, AddFile | RemoveFile))


def with_actions(state, actions):
    """The state after one commit."""
    return replace(with_files(state, files_of(actions)), table=state.table.after(actions))


def after(checksum, state, actions):
    """The checksum that follows from this one and a commit on that state."""
    only_new = only_adds_new_files(actions)
    changes = FileChanges.of(files_of(actions), state.files, only_new=only_new)
    table = state.table.after(actions)
    return derive_checksum(checksum, changes, state=table, options=OPTIONS)


def chain(*commits):
    """The state after the commits, and the checksum derived step by step."""
    state, checksum = LogState.empty(), None
    for actions in commits:
        checksum = after(checksum, state, actions)
        state = with_actions(state, actions)
    return state, checksum


def summed(state):
    return checksum_of_files(state.files.table(), state=state.table, options=OPTIONS)


def test_what_is_derived_equals_what_is_summed_up():
    state, derived = chain(
        (*START, add("a"), add("b", 5, DV), SetTransaction("app", 1), DomainMetadata("d", "{}")),
        (CommitInfo(operation="DELETE", txn_id="t1"), add("a").remove(9)),
        (CommitInfo(operation="DELETE", txn_id="t2"), add("b", 5, DV).remove(9), add("c", 7, DV)),
    )
    assert derived == summed(state)
    assert (derived.num_files, derived.table_size_bytes, derived.txn_id) == (1, 7, "t2")
    assert (derived.num_deleted_records, derived.num_deletion_vectors) == (6, 1)
    assert [txn.app_id for txn in derived.set_transactions] == ["app"]
    assert [domain.domain for domain in derived.domain_metadata] == ["d"]


def test_an_empty_table_sums_up_to_nothing():
    state, derived = chain(START)
    assert derived == summed(state)
    assert (derived.num_files, derived.table_size_bytes, derived.in_commit_timestamp) == (0, 0, 5)


@pytest.mark.parametrize(
    "commit",
    [
        [RemoveFile("a", 9, size=10)],
        [RemoveFile("a", 9, extended_file_metadata=True)],
        [RemoveFile("gone", 9, extended_file_metadata=True, size=5)],
        [add("a")],
        [add("a", 99), add("b")],
        [add("b"), add("b")],
        [add("b"), add("b").remove(9)],
        [add("a", 10, DV), add("a").remove(9)],
        [add("a").remove(9), add("gone").remove(9), add("a")],
        [add("./a").remove(9), add("%61", 7)],
    ],
    ids=str,
)
@pytest.mark.parametrize("operation", ["WRITE", "DELETE", "Manual Update", "COMPUTE STATS", None])
def test_adds_of_live_files_and_removes_of_dead_ones_are_counted_as_what_they_are(
    commit, operation
):
    state, derived = chain((*START, add("a")), [CommitInfo(operation=operation), *commit])
    assert derived == summed(state)


class Unread:
    """Files that are not in memory."""

    def rows_in_memory(self, keys):
        del keys


NEW = "part-00000-8a0ff1ae-3d4b-4c5e-9f00-0123456789ab.c000.zstd.parquet"
BLIND = CommitInfo(operation="WRITE", is_blind_append=True)


@pytest.mark.parametrize(
    ("commit", "is_certain"),
    [
        ([BLIND], True),
        ([BLIND, SetTransaction("a", 1)], True),
        ([CommitInfo()], True),
        ([BLIND, add(NEW)], True),
        ([BLIND, add(f"p=1/{NEW}"), add(NEW)], True),
        ([BLIND, add("a")], False),
        ([BLIND, add(f"{NEW}/a")], False),
        ([BLIND, replace(add(NEW), data_change=False)], False),
        ([BLIND, add(NEW), add("a").remove(9)], False),
        ([CommitInfo(is_blind_append=False), add(NEW)], False),
        ([add(NEW)], False),
    ],
)
def test_of_files_that_were_not_read_only_new_ones_are_certain(commit, is_certain):
    only_new = only_adds_new_files(commit)
    changes = FileChanges.of(files_of(commit), Unread(), only_new=only_new)
    assert (changes is not None) is is_certain
    if changes is not None:
        added = sum(isinstance(item, AddFile) for item in commit)
        assert (changes.came.num_rows, changes.went.num_rows) == (added, 0)


def test_what_is_not_certain_ends_the_chain():
    state, derived = chain((*START, add("a")))
    assert derive_checksum(derived, None, state=state.table, options=OPTIONS) is None


def test_transactions_that_expire_are_left_out():
    expiring = {"delta.setTransactionRetentionDuration": "interval 7 days"}
    metadata = replace(START[2], configuration=expiring)
    _, derived = chain((*START[:2], metadata, SetTransaction("app", 1, 5)))
    assert derived.set_transactions is None
    assert "setTransactions" not in json.loads(derived.to_json())


def test_the_time_of_a_commit_is_noted_only_where_commits_have_times():
    _, derived = chain((*START[:2], replace(START[2], configuration={})))
    assert derived.in_commit_timestamp is None


def test_long_lists_are_left_out():
    options = EngineOptions.from_options(
        {
            "spark.databricks.delta.setTransactionsInCrc.maxAllowed": "1",
            "spark.databricks.delta.domainMetadatasInCrc.maxAllowed": "1",
        }
    )
    actions = (
        *START,
        SetTransaction("a", 1),
        SetTransaction("b", 1),
        DomainMetadata("a", ""),
        DomainMetadata("b", ""),
    )
    state = with_actions(LogState.empty(), actions)
    derived = checksum_of_files(state.files.table(), state=state.table, options=options)
    assert derived.set_transactions is None
    assert derived.domain_metadata is None
    assert "setTransactions" not in json.loads(derived.to_json())


def test_what_is_written_is_read_back_and_never_overwritten():
    store, path = MemoryLogStore(), log_path_of(f"memory://crc/t{next(_COUNTER)}")
    _, checksum = chain((*START, add("a"), SetTransaction("app", 1)))
    assert write_checksum(store, path, 0, checksum) is PutOutcome.CREATED
    assert write_checksum(store, path, 0, checksum) is PutOutcome.EXISTS
    assert read_checksum(store, path, 0) == checksum
    text = store.read_bytes(f"{path}/{checksum_name(0)}").decode()
    assert text.endswith("}\n")
    parsed = json.loads(text)
    assert (parsed["numMetadata"], parsed["numProtocol"]) == (1, 1)
    assert parsed["protocol"] == {"minReaderVersion": 1, "minWriterVersion": 2}
    assert parsed["setTransactions"] == [{"appId": "app", "version": 1}]


@pytest.mark.parametrize(
    "data", [b"", b"[]", b"{}", b'{"tableSizeBytes":"1","numFiles":2}', b"\xff"]
)
def test_a_checksum_that_cannot_be_read_is_as_good_as_none(data):
    store, path = MemoryLogStore(), log_path_of(f"memory://crc/t{next(_COUNTER)}")
    store.put_overwrite(f"{path}/{checksum_name(0)}", data)
    assert read_checksum(store, path, 0) is None
    assert read_checksum(store, path, 1) is None


def test_what_other_writers_add_is_kept():
    text = (
        '{"tableSizeBytes":3,"numFiles":1,"metadata":{"id":"x","schemaString":"{}"},'
        '"protocol":{"minReaderVersion":1,"minWriterVersion":2},"allFiles":[]}'
    )
    checksum = VersionChecksum.from_json(text)
    assert checksum.extra == {"allFiles": []}
    assert json.loads(checksum.to_json())["allFiles"] == []


# How large the files are


def histogram(*sizes):
    return FileSizeHistogram.of(pa.chunked_array([pa.array(sizes, pa.int64())]))


def filled(checksum):
    """The bins that are not empty: where they begin, how many files, how many bytes."""
    sizes = checksum.file_sizes
    columns = zip(sizes.boundaries, sizes.file_counts, sizes.total_bytes, strict=True)
    return [entry for entry in columns if entry[1]]


def test_the_sizes_of_files_are_counted_bin_by_bin():
    _, derived = chain(
        (*START, add("a", 0), add("b", 8191), add("c", 8192), add("d", 1 << 50)),
        (CommitInfo(operation="DELETE"), add("b", 8191).remove(9)),
    )
    assert filled(derived) == [(0, 1, 0), (8192, 1, 8192), (256 << 30, 1, 1 << 50)]
    written = json.loads(derived.to_json())["fileSizeHistogram"]
    assert set(written) == {"sortedBinBoundaries", "fileCounts", "totalBytes"}
    assert VersionChecksum.from_json(derived.to_json()).file_sizes == derived.file_sizes


def test_the_bins_are_those_that_other_engines_use():
    boundaries = FileSizeHistogram.empty().boundaries
    assert boundaries[:3] == (0, 8 << 10, 16 << 10)
    assert boundaries[-1] == 256 << 30
    assert list(boundaries) == sorted(set(boundaries))
    assert len(boundaries) == 95
    assert {40 << 20, 124 << 20, 144 << 20, 576 << 20, 1408 << 20, 2 << 30, 4 << 30} <= set(
        boundaries
    )


@given(
    st.lists(st.integers(0, 1 << 41), max_size=20), st.lists(st.integers(0, 1 << 41), max_size=5)
)
def test_a_histogram_kept_up_to_date_is_the_one_counted_anew(before, added):
    assert histogram(*before).plus(added, []) == histogram(*before, *added)
    assert histogram(*before, *added).plus([], added) == histogram(*before)


def test_a_histogram_from_which_more_is_taken_than_it_has_is_given_up():
    assert histogram(5).plus([], [9000]) is None
    assert histogram(5).plus([], [5, 5]) is None


@pytest.mark.parametrize(
    "body",
    [
        None,
        [],
        {"a": [1]},
        {"sortedBinBoundaries": [], "fileCounts": [], "totalBytes": []},
        {"sortedBinBoundaries": [1], "fileCounts": [1], "totalBytes": [1]},
        {"sortedBinBoundaries": [0, 5], "fileCounts": [1], "totalBytes": [1, 2]},
        {"sortedBinBoundaries": [0, 5, 5], "fileCounts": [1, 1, 1], "totalBytes": [1, 2, 3]},
        {"sortedBinBoundaries": [0], "fileCounts": ["1"], "totalBytes": [1]},
        {"sortedBinBoundaries": [0], "fileCounts": [True], "totalBytes": [1]},
    ],
)
def test_what_is_no_histogram_counts_as_none(body):
    assert FileSizeHistogram.from_json(body) is None


def test_a_checksum_without_a_histogram_passes_that_on_and_an_older_name_is_understood():
    text = chain((*START, add("a")))[1].to_json()
    parsed = json.loads(text)
    body = parsed.pop("fileSizeHistogram")
    older = VersionChecksum.from_json(json.dumps({**parsed, "histogramOpt": body}))
    assert filled(older) == [(0, 1, 10)]
    without = VersionChecksum.from_json(json.dumps(parsed))
    state = with_actions(LogState.empty(), (*START, add("a")))
    actions = (CommitInfo(operation="WRITE"), add("b"))
    found = after(without, state, actions)
    assert (found.num_files, found.file_sizes) == (2, None)


# How many records are deleted


def vector(cardinality):
    return DeletionVectorDescriptor("i", f"x{cardinality}", 40, cardinality)


def test_deleted_records_are_counted_bin_by_bin():
    numbers = [1, 9, 10, 99, 100, 10**7 - 1, 10**7, 2**31 - 2, 2**31 - 1, 2**40]
    files = [add(f"f{number}", 10, vector(number)) for number in numbers]
    state, derived = chain((*START, add("a"), add("b"), *files))
    assert derived.deleted_record_counts.file_counts == (2, 2, 2, 1, 0, 0, 0, 1, 2, 2)
    assert derived == summed(state)
    body = json.loads(derived.to_json())["deletedRecordCountsHistogramOpt"]
    assert body == {"deletedRecordCounts": [2, 2, 2, 1, 0, 0, 0, 1, 2, 2]}
    assert VersionChecksum.from_json(derived.to_json()) == derived


@pytest.mark.parametrize(
    "body", [None, [], {}, {"deletedRecordCounts": [1] * 9}, {"deletedRecordCounts": [-1] * 10}]
)
def test_what_is_no_histogram_of_deleted_records_counts_as_none(body):
    assert DeletedRecordCounts.from_json(body) is None


def test_more_files_with_deleted_records_cannot_go_than_there_are():
    assert DeletedRecordCounts((0, 1, *[0] * 8)).plus([], [5, 6]) is None
