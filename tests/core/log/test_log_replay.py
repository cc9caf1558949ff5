"""Reconciliation (spec 5.6) against a dictionary, and damaged commits."""

import itertools
import json
from dataclasses import replace
from unittest import mock

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from optimist.core.errors import TableError
from optimist.core.log import file_set
from optimist.core.log.commits import read_commit, read_commit_info
from optimist.core.log.file_set import FileSet
from optimist.core.log.file_table import (
    FILES_SCHEMA,
    TOMBSTONES_SCHEMA,
    add_files,
    canonical_path,
    canonical_paths,
    conform,
    file_actions_batch,
    file_keys,
    files_table,
)
from optimist.core.log.names import commit_path, log_path_of
from optimist.core.log.replay import LogState, replay, with_files
from optimist.core.log.segment import list_segment
from optimist.core.protocol.actions import (
    AddCDCFile,
    AddFile,
    CommitInfo,
    DeletionVectorDescriptor,
    DomainMetadata,
    Metadata,
    Protocol,
    RemoveFile,
    SetTransaction,
    UnknownAction,
    actions_to_bytes,
)
from optimist.logstores import MemoryLogStore

_COUNTER = itertools.count()
DV = DeletionVectorDescriptor("u", "ab^-aqEH.-t@S}K{vb[*k^", 40, 2, offset=4)
INLINE = DeletionVectorDescriptor("i", "wi5b=000010000siXQKl0rr91000f55c8Xg0@@D72lkbi5=-{L", 40, 6)


def add(path, *, size=1, vector=None, **values):
    return AddFile(path, {"p": "1"}, size, 1, True, deletion_vector=vector, **values)


def remove(path, *, vector=None, at=5):
    return RemoveFile(path, at, deletion_vector=vector)


def key(action):
    vector = action.deletion_vector
    return canonical_path(action.path), vector and vector.unique_id


def reconciled(commits):
    """The naive model: live files and tombstones by key."""
    live, gone = {}, {}
    for action in itertools.chain.from_iterable(commits):
        into, out_of = (live, gone) if isinstance(action, AddFile) else (gone, live)
        out_of.pop(key(action), None)
        into[key(action)] = action
    return live, gone


def log_of(*commits):
    store, path = MemoryLogStore(), log_path_of(f"memory://replay/t{next(_COUNTER)}")
    for version, actions in enumerate(commits):
        data = actions if isinstance(actions, bytes) else actions_to_bytes(tuple(actions))
        store.put_if_absent(commit_path(path, version), data)
    return store, path


def replayed(*commits):
    store, path = log_of(*commits)
    return replay(store, list_segment(store, path), max_retries=2)


def live_keys(files):
    return {
        (canonical_path(item.path), item.deletion_vector and item.deletion_vector.unique_id): item
        for item in add_files(files.table())
    }


_paths = st.sampled_from(
    ["a.parquet", "p=1/b.parquet", "x y", "x%20y", "%78%20y", "file:/d/c", "file:///d/c", "/d/c"]
)
_vectors = st.sampled_from([None, None, DV, INLINE])
_sizes = st.integers(0, 9)
_file_actions = st.one_of(
    st.builds(lambda path, dv, size: add(path, vector=dv, size=size), _paths, _vectors, _sizes),
    st.builds(lambda path, dv, at: remove(path, vector=dv, at=at), _paths, _vectors, _sizes),
)
_commits = st.lists(st.lists(_file_actions, min_size=1, max_size=4), max_size=12)


def with_actions(state, actions):
    """The state after one commit."""
    files = [item for item in actions if isinstance(item, AddFile | RemoveFile)]
    return replace(with_files(state, file_actions_batch(files)), table=state.table.after(actions))


@settings(deadline=None, max_examples=150 * settings.default.max_examples // 100)
@given(_commits, st.data())
def test_reconciliation_is_that_of_a_dictionary_whenever_somebody_looks(commits, data):
    state = LogState.empty()
    merged_after = data.draw(st.sampled_from([2, 3, 64]), label="commits that are merged")
    with mock.patch.object(file_set, "_MAX_RECENT", merged_after):
        for done, actions in enumerate(commits, 1):
            state = with_actions(state, actions)
            if data.draw(st.booleans(), label="look"):
                assert len(state.files.batches()) <= done
    live, gone = reconciled(commits)
    found = live_keys(state.files)
    assert {k: v.size for k, v in found.items()} == {k: v.size for k, v in live.items()}
    tombstones = state.tombstones.table().to_pylist()
    assert len(tombstones) == len(gone)
    assert sorted(row["deletionTimestamp"] for row in tombstones) == sorted(
        item.deletion_timestamp for item in gone.values()
    )


@settings(deadline=None, max_examples=50)
@given(_commits.filter(bool))
def test_commits_that_are_read_give_the_state_of_commits_that_are_known(commits):
    known = LogState.empty()
    for actions in commits:
        known = with_actions(known, actions)
    read = replayed(*commits)
    assert live_keys(read.files) == live_keys(known.files)
    by_path = [("path", "ascending"), ("deletionTimestamp", "ascending")]
    assert read.tombstones.table().sort_by(by_path) == known.tombstones.table().sort_by(by_path)


def test_every_field_of_an_add_survives_but_data_change():
    full = add(
        "a",
        vector=DeletionVectorDescriptor("p", "s3://b/dv.bin", 34, 3, offset=1, max_row_index=8),
        stats='{"numRecords":3}',
        tags={"t": "1", "n": None},
        base_row_id=7,
        default_row_commit_version=2,
        clustering_provider="liquid",
    )
    (found,) = add_files(replayed([full]).files.table())
    assert found.data_change is False
    assert files_table([full]).to_pylist()[0]["dataChange"] is True
    assert add_files(files_table([full])) == (full,)
    assert (found.stats, found.tags, found.deletion_vector) == (
        full.stats,
        full.tags,
        full.deletion_vector,
    )
    assert (found.base_row_id, found.default_row_commit_version) == (7, 2)


def test_an_add_of_an_old_writer_gets_the_defaults():
    line = b'{"add":{"path":"a","size":3}}\n'
    (found,) = add_files(replayed(line).files.table())
    assert found.partition_values == {}
    assert found.modification_time == 0


def test_a_null_partition_value_stays_null():
    line = b'{"add":{"path":"a","size":3,"modificationTime":1,"partitionValues":{"p":null}}}'
    (found,) = add_files(replayed(line).files.table())
    assert found.partition_values == {"p": None}


def test_the_last_of_everything_else_wins():
    state = replayed(
        [
            Protocol(1, 2),
            Metadata("one", "{}"),
            SetTransaction("app", 1),
            SetTransaction("other", 7),
            DomainMetadata("d", "1"),
            DomainMetadata("e", "1"),
        ],
        [
            CommitInfo(operation="X"),
            Protocol(1, 3),
            Metadata("two", "{}"),
            SetTransaction("app", 2),
            DomainMetadata("d", "", removed=True),
            AddCDCFile("c", {}, 1),
            UnknownAction("later", {"x": 1}),
        ],
    ).table
    assert state.protocol == Protocol(1, 3)
    assert state.metadata.id == "two"
    assert {name: txn.version for name, txn in state.set_transactions.items()} == {
        "app": 2,
        "other": 7,
    }
    assert set(state.domain_metadata) == {"e"}
    assert state.commit_info.operation == "X"


def test_blank_lines_and_unknown_fields_are_passed_over():
    lines = b'\n{"add":{"path":"a","size":1,"future":{"x":[1]}}}\n  \n{"later":1}\n'
    assert replayed(lines).files.table().num_rows == 1


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\n \n",
        b'{"add":{"path":"a","si',
        b'{"commitInfo":{}}\n{"add":{"path":"a","size":1}',
        b"[1]",
        b'{"add":7}',
        b'{"add":{"size":1}}',
        b'{"add":{"path":"a"}}',
        b'{"add":{"path":"a","size":"big"}}',
        b'{"add":{"path":"a","size":1,"tags":"x"}}',
        b'{"add":{"path":"a","size":1,"partitionValues":{"p":3}}}',
        b'{"remove":{"path":"a","deletionTimestamp":"x"}}',
        b'{"add":{"path":"a","size":99999999999999999999}}',
        b'\xff{"add":{"path":"a","size":1}}',
        b'{"protocol":{"minReaderVersion":1}}',
        b'{"add":{"path":"a","size":1},"remove":{"path":"b"}}',
    ],
)
def test_a_damaged_commit_is_one_clear_error_that_names_the_file(data):
    with pytest.raises(TableError, match=commit_path("", 0)[-25:]) as caught:
        replayed(data)
    assert caught.value.kind == "OPTIMIST_MALFORMED_COMMIT"


def test_reading_a_commit_gives_its_actions_and_its_commit_info():
    store, path = log_of([add("a"), CommitInfo(operation="WRITE")], [add("b")], b"")
    assert read_commit(store, commit_path(path, 0))[1] == CommitInfo(operation="WRITE")
    assert read_commit_info(store, commit_path(path, 0)).operation == "WRITE"
    assert read_commit_info(store, commit_path(path, 1)) is None
    for reader in (read_commit, read_commit_info):
        with pytest.raises(TableError) as caught:
            reader(store, commit_path(path, 2))
        assert caught.value.kind == "OPTIMIST_MALFORMED_COMMIT"


def test_many_commits_come_out_in_order():
    state = replayed(*([add("same", size=number)] for number in range(200)))
    assert state.files.table().column("size").to_pylist() == [199]


def test_a_long_chain_of_appends_waits_in_few_batches():
    state = LogState.empty()
    for number in range(1000):
        state = with_actions(state, [add(f"f{number}")])
    assert not state.files.is_resolved
    _, waiting = state.files._parts
    assert len(waiting) <= 64 + 4
    assert state.files.table().num_rows == 1000
    assert state.files.is_resolved


def test_the_base_is_read_once_for_all_versions_built_on_it():
    loads = []

    def load(change):
        loads.append(1)
        return (change(_live(["a", "b"])),)

    base = FileSet(FILES_SCHEMA, of_adds=True, load=load)
    later = base.with_actions(file_actions_batch([remove("a")]))
    latest = later.with_actions(file_actions_batch([add("c")]))
    assert not loads
    assert sorted(latest.table()["path"].to_pylist()) == ["b", "c"]
    assert sorted(base.table()["path"].to_pylist()) == ["a", "b"]
    assert later.table()["path"].to_pylist() == ["b"]
    assert len(loads) == 1


def test_a_base_that_only_one_version_looks_at_is_never_whole_in_memory():
    kept = []

    def load(change):
        batches = tuple(change(_live([f"{part}{n}" for n in range(3)])) for part in "ab")
        kept.extend(batch.num_rows for batch in batches)
        return batches

    later = FileSet(FILES_SCHEMA, of_adds=True, load=load)
    for actions in ([remove("a0"), add("c")], [remove("b1"), remove("c"), add("a0", size=5)]):
        later = later.with_actions(file_actions_batch(actions))
    assert sorted(later.table()["path"].to_pylist()) == ["a0", "a1", "a2", "b0", "b2"]
    assert kept == [2, 2]


def test_an_append_copies_nothing_of_a_large_base():
    large = _live([f"f{number}" for number in range(140_000)])
    base = FileSet(FILES_SCHEMA, of_adds=True, load=lambda change: (change(large),))
    kept = base.with_actions(file_actions_batch([add("new")])).batches()
    assert kept[0] is large
    assert [batch.num_rows for batch in kept] == [140_000, 1]


def test_appends_that_are_each_read_stay_in_few_batches():
    large = _live([f"f{number}" for number in range(20_000)])
    files = FileSet(FILES_SCHEMA, of_adds=True, load=lambda change: (change(large),))
    for number in range(100):
        files = files.with_actions(file_actions_batch([add(f"new{number}")]))
        sizes = [batch.num_rows for batch in files.batches()]
        assert all(size > 2 * following for size, following in itertools.pairwise(sizes))
    assert files.batches()[0] is large
    assert files.table().num_rows == 20_100


def _live(paths):
    batch = file_actions_batch([add(path) for path in paths])
    return batch.select(FILES_SCHEMA.names)


@pytest.mark.parametrize(
    ("one", "other"),
    [("x%20y", "x y"), ("file:///d/c", "/d/c"), ("p=a%253Ab/f", "p=a%3Ab/f".replace("%", "%25"))],
)
def test_spellings_of_one_path_have_one_key(one, other):
    assert canonical_path(one) == canonical_path(other)
    assert len(set(file_keys(_live([one, other])).to_pylist())) == 1


@given(st.lists(st.text(alphabet="a/%2025é:f ", max_size=12), max_size=6))
def test_a_column_of_paths_is_made_canonical_like_each_path(paths):
    expected = [canonical_path(path) for path in paths]
    assert canonical_paths(pa.array(paths, pa.string())).to_pylist() == expected
    assert canonical_paths(pa.chunked_array([paths], pa.string())).to_pylist() == expected


@pytest.mark.parametrize(
    "paths",
    [
        ["file:/a/b", "file:/c", None],
        ["file:/a/file:/b", "file:/", "file:/a%20b"],
        ["file:/a", "file:///b"],
        ["file:/a", "b/file:/c"],
        ["a", "file:/b", ""],
    ],
)
def test_paths_of_local_files_lose_their_scheme_at_the_start_only(paths):
    expected = [None if path is None else canonical_path(path) for path in paths]
    assert canonical_paths(pa.array(paths, pa.string())).to_pylist() == expected


def test_a_path_that_is_a_prefix_of_a_key_with_a_vector_is_another_file():
    keys = file_keys(file_actions_batch([add("a"), add("a", vector=DV), add("a", vector=INLINE)]))
    assert len(set(keys.to_pylist())) == 3


def test_a_struct_is_made_to_fit_the_schema():
    given_type = pa.struct(
        [
            ("path", pa.large_string()),
            ("size", pa.int32()),
            ("deletionVector", pa.struct([("storageType", pa.string())])),
            ("other", pa.int8()),
        ]
    )
    rows = [
        {"path": "a", "size": 3, "deletionVector": None},
        {"path": "b", "size": 4, "deletionVector": {"storageType": "u"}},
    ]
    batch = conform(pa.array(rows, given_type), FILES_SCHEMA)
    assert batch.schema == FILES_SCHEMA
    assert batch.column("deletionVector").is_valid().to_pylist() == [False, True]
    assert batch.column("size").to_pylist() == [3, 4]
    assert batch.column("stats").null_count == 2


def test_tombstones_keep_neither_statistics_nor_tags():
    assert "stats" not in TOMBSTONES_SCHEMA.names
    assert "tags" not in TOMBSTONES_SCHEMA.names
    gone = add("a", stats="{}", tags={"t": "1"}).remove(9)
    (row,) = replayed([add("a")], [gone]).tombstones.table().to_pylist()
    assert (row["path"], row["deletionTimestamp"], row["extendedFileMetadata"]) == ("a", 9, True)
    assert json.dumps(row["dataChange"]) == "false"
