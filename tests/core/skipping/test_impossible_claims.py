"""Bytes and rows that a log claims and no store has: refused or read, never a wrapped number."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyroaring import BitMap64

from bounded import run_bounded
from hostile_log import HostileTable, add
from optimist.core import DeltaLog
from optimist.core.data.file_parts import MAX_GROUPS, MAX_PIECES, balanced_groups, file_parts
from optimist.core.data.storage.data_paths import DataPaths
from optimist.core.data.vectors.deletion_vectors import inline_vector
from optimist.core.data.vectors.vector_writer import write_deletion_vectors
from optimist.core.errors import TableError
from optimist.core.log.checksum import VersionChecksum, read_checksum
from optimist.core.log.file_table import files_table
from optimist.core.predicates import Predicate
from optimist.core.protocol.actions import AddFile, action_to_dict
from optimist.core.schema.types import StructType
from optimist.core.skipping.pruner import FilePruner
from optimist.core.values.exact_sums import exact_sum
from optimist.logstores import LocalLogStore

_HUGE = 1 << 62
_MOST = (1 << 63) - 1


@pytest.fixture
def table(tmp_path: Path) -> HostileTable:
    return HostileTable(tmp_path / "t")


def _open(table: HostileTable) -> DeltaLog:
    return DeltaLog(table.path, LocalLogStore())


def _vector(*rows: int) -> dict[str, object]:
    vector = inline_vector(BitMap64(rows))
    add = AddFile("f", {}, 1, 0, True, deletion_vector=vector)
    return action_to_dict(add)["add"]["deletionVector"]  # type: ignore[index,no-any-return]


def _stored_vector(
    table: HostileTable, monkeypatch: pytest.MonkeyPatch, *rows: int
) -> dict[str, object]:
    monkeypatch.setattr("optimist.core.data.vectors.vector_writer._INLINE_BYTES", 0)
    log = _open(table)
    (vector,) = write_deletion_vectors([BitMap64(rows)], log.table, lambda _: None)
    add = AddFile("f", {}, 1, 0, True, deletion_vector=vector)
    return action_to_dict(add)["add"]["deletionVector"]  # type: ignore[index,no-any-return]


@given(st.lists(st.none() | st.integers(-(1 << 63), _MOST), max_size=30), st.integers(0, 29))
def test_sums_are_exact_however_large(numbers: list[int | None], cut: int) -> None:
    chunks = [numbers[:cut], numbers[cut:]]
    column = pa.chunked_array([pa.array(chunk, pa.int64()) for chunk in chunks])
    assert exact_sum(column) == sum(number for number in numbers if number is not None)


def test_sizes_beyond_64_bits_are_refused_by_whoever_looks_at_files(table: HostileTable) -> None:
    table.commit(*(add(f"f{number}", _HUGE) for number in range(3)))
    log = _open(table)
    for look in (lambda: log.snapshot().files, lambda: log.detail(), log.checkpoint, log.to_arrow):
        with pytest.raises(TableError) as caught:
            look()
        assert caught.value.kind == "OPTIMIST_IMPOSSIBLE_COUNT"
    assert not list(table.log.glob("*.checkpoint*"))


def test_who_only_appends_is_not_stopped_and_writes_no_wrapped_sum(table: HostileTable) -> None:
    table.commit(*(add(f"f{number}", _MOST) for number in range(3)))
    log = _open(table)
    version = log.append(pa.table({"x": [1]})).version
    assert version == 2
    written = read_checksum(LocalLogStore(), str(table.log), version)
    assert written is None or written.table_size_bytes <= _MOST


@pytest.mark.parametrize(
    "lie",
    [
        {"tableSizeBytes": -1},
        {"tableSizeBytes": 1 << 63},
        {"tableSizeBytes": 1e400},
        {"numFiles": -1},
        {"numFiles": True},
        {"numFiles": 1.5},
    ],
)
def test_a_checksum_that_counts_nothing_is_none(table: HostileTable, lie: dict[str, int]) -> None:
    snapshot = _open(table).snapshot()
    state = {"metadata": action_to_dict(snapshot.metadata)["metaData"]}
    state |= {"protocol": action_to_dict(snapshot.protocol)["protocol"]}
    sound = {"tableSizeBytes": 0, "numFiles": 0, **state}
    assert VersionChecksum.from_json(json.dumps(sound)).num_files == 0
    with pytest.raises(ValueError, match="no"):
        VersionChecksum.from_json(json.dumps(sound | lie))
    odd = sound | {"numDeletedRecordsOpt": -5, "numDeletionVectorsOpt": "x", "txnId": 7}
    odd |= {"inCommitTimestampOpt": 1 << 70}
    parsed = VersionChecksum.from_json(json.dumps(odd))
    assert parsed.num_deleted_records is parsed.num_deletion_vectors is None
    assert parsed.txn_id is parsed.in_commit_timestamp is None


@pytest.mark.parametrize(
    "claims",
    [[-5], [_HUGE, _HUGE, _HUGE], [_MOST, 1], [1 << 63], ["7"], [3.5]],
    ids=["negative", "wrapping", "just too many", "beyond 64 bits", "text", "fraction"],
)
def test_where_row_counts_lie_rows_are_counted(table: HostileTable, claims: list[int]) -> None:
    for number, claim in enumerate(claims):
        size = table.data_file(f"f{number}", [1, 2])
        table.commit(add(f"f{number}", size, rows=claim))
    log = _open(table)
    assert log.count() == 2 * len(claims)
    assert log.count("x >= 0") == 2 * len(claims)
    assert log.to_arrow(limit=1).num_rows == 1
    assert log.to_arrow(limit=_MOST).num_rows == 2 * len(claims)


@pytest.mark.parametrize("claim", [3, None], ids=["counted", "uncounted"])
@pytest.mark.parametrize("rows", [[0, 1, 2, 3], [0, 3], [0, 7], [0, (1 << 40)]])
@pytest.mark.parametrize("is_inline", [True, False], ids=["inline", "in a file"])
def test_a_vector_that_names_rows_past_the_end_of_its_file_is_refused(
    table: HostileTable,
    monkeypatch: pytest.MonkeyPatch,
    rows: list[int],
    claim: int | None,
    *,
    is_inline: bool,
) -> None:
    size = table.data_file("f", [1, 2, 3])
    vector = _vector(*rows) if is_inline else _stored_vector(table, monkeypatch, *rows)
    table.commit(add("f", size, rows=claim, deletionVector=vector))
    log = _open(table)
    reads: list[Callable[[], object]] = [
        log.to_arrow,
        lambda: log.to_arrow("x = 2"),
        lambda: log.to_arrow(limit=1),
        lambda: log.delete("x = 2"),
        lambda: log.update(set={"x": "9"}, predicate="x = 2"),
    ]
    if is_inline or claim is None:
        reads.append(log.count)
    for read in reads:
        with pytest.raises(TableError) as caught:
            read()
        assert caught.value.kind == "OPTIMIST_MALFORMED_DELETION_VECTOR"
    assert log.snapshot().version == 1


def test_a_vector_that_replaces_another_and_names_no_row_of_its_file_is_no_change(
    tmp_path: Path,
) -> None:
    table = HostileTable(tmp_path / "t", **{"delta.enableChangeDataFeed": "true"})
    size = table.data_file("f", [1, 2, 3])
    before, after = (add("f", size, 3, deletionVector=_vector(row)) for row in (0, 5))
    table.commit(before)
    table.commit({"remove": {**before["add"], "deletionTimestamp": 1}}, after)
    with pytest.raises(TableError) as caught:
        _open(table).changes(starting_version=2)
    assert caught.value.kind == "OPTIMIST_MALFORMED_DELETION_VECTOR"


def test_the_last_row_of_a_file_may_be_deleted(table: HostileTable) -> None:
    size = table.data_file("f", [1, 2, 3])
    table.commit(add("f", size, rows=3, deletionVector=_vector(0, 2)))
    log = _open(table)
    assert log.to_arrow()["x"].to_pylist() == [2]
    assert log.count() == 1


def test_a_limit_is_met_by_files_whose_counts_do_not_wrap() -> None:
    counts = [_HUGE, _HUGE, _HUGE, 5]
    adds = [
        AddFile(f"f{number}", {}, 1, 0, True, stats=json.dumps({"numRecords": count}))
        for number, count in enumerate(counts)
    ]
    files = files_table(adds)
    for limit in (1, 10, _HUGE, _MOST, 1 << 70):
        assert FilePruner(files, StructType(()), ()).enough(Predicate.TRUE, limit).num_rows >= 1
    counted = FilePruner(files, StructType(()), ()).count(Predicate.TRUE)
    assert counted.total is None
    assert counted.undecided.num_rows == 4


@pytest.mark.parametrize("size", [-1, -(1 << 63)])
def test_a_negative_size_is_no_commit_of_a_table(table: HostileTable, size: int) -> None:
    table.commit(add("f", size))
    with pytest.raises(TableError) as caught:
        assert _open(table).snapshot().files
    assert caught.value.kind == "OPTIMIST_MALFORMED_COMMIT"


@pytest.mark.again
def test_planning_takes_as_long_as_there_are_pieces_and_no_more_memory() -> None:
    printed = run_bounded(
        """
        from optimist.core.protocol.actions import AddFile
        from optimist.core.data.storage.data_paths import DataPaths
        from optimist.core.data.file_parts import balanced_groups, file_parts
        from optimist.core.log.file_table import files_table

        for sizes in ([10**9] * 10_000, [10**16], [1 << 61], [1 << 55] * 40, [10**14] * 1_000):
            adds = [AddFile(f"f{i}", {}, size, 0, True) for i, size in enumerate(sizes)]
            parts = file_parts(DataPaths.of("/t"), files_table(adds))
            groups = balanced_groups(parts, max_bytes=128 << 20, num_groups=16, open_cost=4 << 20)
            print(sum(1 for _ in groups))
        """,
        timeout_s=60,
    )
    assert [int(line) for line in printed.split()] == [77_005, 1_000, 1_000, 40_000, MAX_GROUPS]


@given(
    st.lists(st.integers(0, 1 << 50), min_size=1, max_size=20),
    st.integers(1, 1 << 30),
    st.integers(1, 1 << 40),
)
def test_pieces_cover_each_file_once(sizes: list[int], share: int, groups: int) -> None:
    adds = [AddFile(f"f{number}", {}, size, 0, True) for number, size in enumerate(sizes)]
    parts = file_parts(DataPaths.of("/t"), files_table(adds))
    found: dict[str, list[tuple[int, int | None, int]]] = {}
    cut = list(balanced_groups(parts, max_bytes=share, num_groups=groups, open_cost=1 << 20))
    assert len(cut) <= MAX_GROUPS + len(sizes)
    for group in cut:
        for row in group.select(["path", "start", "end", "size"]).to_pylist():
            found.setdefault(row["path"], []).append((row["start"], row["end"], row["size"]))
    for number, size in enumerate(sizes):
        pieces = sorted(found[f"/t/f{number}"])
        assert len(pieces) <= MAX_PIECES
        assert sum(length for *_, length in pieces) == size
        starts = [start for start, *_ in pieces]
        assert [end for _, end, _ in pieces] == [*starts[1:], None]
        assert starts[0] == 0
