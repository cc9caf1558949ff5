"""Logs as other engines leave them behind: checkpoints of every kind, and damaged ones."""

import json
import logging
from collections import Counter
from urllib.parse import quote

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from naive_log import (
    KINDS,
    PROTOCOL,
    add,
    as_lines,
    as_parquet,
    busy_table,
    created,
    ensure_equal,
    metadata,
    remove,
    vector,
)
from optimist.core.errors import OptimistError, TableError
from optimist.core.log.names import (
    LAST_CHECKPOINT,
    classic_checkpoint_name,
    commit_name,
    v2_checkpoint_name,
)

_paths = st.sampled_from(["a", "b", "p=1/c", "x y", "x%20y", "file:/d/e", "/d/e"])
_vectors = st.sampled_from([None, None, vector(1), vector(2)])
_actions = st.one_of(
    st.builds(add, _paths, st.integers(0, 9), _vectors),
    st.builds(remove, _paths, _vectors),
    st.builds(
        lambda app, version: {"txn": {"appId": app, "version": version}},
        st.sampled_from("ab"),
        st.integers(0, 5),
    ),
    st.builds(
        lambda name, removed: {
            "domainMetadata": {"domain": name, "configuration": name * 2, "removed": removed}
        },
        st.sampled_from("de"),
        st.booleans(),
    ),
    st.builds(lambda name: {"metaData": metadata(name)}, st.sampled_from(["m1", "m2"])),
)
_commits = st.lists(st.lists(_actions, min_size=1, max_size=4), min_size=1, max_size=9)


@settings(deadline=None, max_examples=60)
@given(_commits, st.data())
def test_a_random_log_with_random_checkpoints_reads_like_the_naive_model(commits, data):
    table = created()
    reader = table.open()
    for actions in commits:
        table.commit(*actions)
        kinds = st.sampled_from([None, None, *KINDS])
        kind = data.draw(kinds, label="checkpoint")
        if kind:
            table.checkpoint(kind, hint=data.draw(st.booleans(), label="hint"))
        elif table.version > 2 and data.draw(st.booleans(), label="compact"):
            first = data.draw(st.integers(0, table.version - 1), label="first")
            table.compact(first, table.version)
        if data.draw(st.booleans(), label="look"):
            ensure_equal(reader.snapshot(), table.model)
    ensure_equal(reader.snapshot(), table.model)
    ensure_equal(table.open().snapshot(), table.model)


@pytest.mark.parametrize("kind", KINDS)
def test_a_checkpoint_of_any_kind_stands_in_for_the_commits_before_it(kind):
    table, _ = busy_table(kind)
    for version in range(2):
        table.store.delete(f"{table.log}/{commit_name(version)}")
    table.store.delete(f"{table.log}/{classic_checkpoint_name(1)}")
    ensure_equal(table.open().snapshot(), table.model)


@pytest.mark.parametrize("kind", KINDS)
def test_opening_asks_for_one_list_page_the_hint_the_checkpoint_and_the_commits_since(kind):
    table = created()
    for number in range(40):
        table.commit(add(f"f{number}"))
    names = table.checkpoint(kind)
    table.commit(add("x"))
    table.commit(add("y"))
    for number in range(30):
        table.put(f"{number:020d}.json.{number}.tmp", b"?")
    table.store.requests.clear()
    table.store.listed = 0
    snapshot = table.open().snapshot()
    top = [name for name in names if not name.startswith("_sidecars/")]
    opened = Counter({f"read {name}": 1 for name in top})
    opened |= {f"list {40:020d}": 0, f"read {LAST_CHECKPOINT}": 1, f"list {40:020d}.": 1}
    opened |= {f"read {commit_name(version)}": 1 for version in (41, 42)}
    assert table.store.requests == +opened
    assert table.store.listed <= len(top) + 3 + 1
    table.store.requests.clear()
    assert snapshot.num_files == 42
    # Parquet is opened again for the columns of the files; nothing is listed again.
    files = [name.rpartition("/")[2] for name in names if not name.endswith(".json")]
    assert set(table.store.requests) <= {f"read {name}" for name in files}


def test_looking_again_lists_once_and_reads_only_what_came():
    table, _ = busy_table("v2 json")
    log = table.open()
    assert log.snapshot().num_files == 7
    table.store.requests.clear()
    assert log.snapshot().version == 3
    assert table.store.requests == {f"list {3:020d}.": 1}
    table.commit(add("one more"))
    table.store.requests.clear()
    assert log.snapshot().num_files == 8
    assert table.store.requests == {f"list {3:020d}.": 1, f"read {commit_name(4)}": 1}


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "v2 no sidecar"])
def test_a_missing_part_or_sidecar_is_passed_over_for_an_older_checkpoint_once(kind, caplog):
    table, names = busy_table(kind)
    table.store.delete(f"{table.log}/{names[-1]}")
    with caplog.at_level(logging.WARNING, logger="optimist.core.log"):
        log = table.open()
        ensure_equal(log.snapshot(), table.model)
        ensure_equal(log.snapshot(), table.model)
    assert len(caplog.records) == (1 if kind.startswith("v2") and len(names) > 1 else 0)


def test_a_missing_sidecar_that_nothing_stands_in_for_is_named():
    table, names = busy_table("v2 json")
    table.store.delete(f"{table.log}/{names[-1]}")
    table.store.delete(f"{table.log}/{commit_name(0)}")
    table.store.delete(f"{table.log}/{classic_checkpoint_name(1)}")
    snapshot = table.open().snapshot()
    with pytest.raises(TableError, match=r"side car .*which does not exist") as caught:
        _ = snapshot.files
    assert caught.value.kind == "DELTA_MISSING_PART_FILES"
    assert caught.value.fields == {"path": f"{table.log}/{names[-1]}", "version": 2}


def test_a_part_too_few_with_nothing_older_is_an_error():
    table, names = busy_table("multi-part")
    table.store.delete(f"{table.log}/{names[0]}")
    table.store.delete(f"{table.log}/{commit_name(0)}")
    table.store.delete(f"{table.log}/{classic_checkpoint_name(1)}")
    with pytest.raises(TableError) as caught:
        table.open().snapshot()
    assert caught.value.kind == "DELTA_MISSING_PART_FILES"


def test_a_sidecar_is_found_by_its_name_wherever_its_checkpoint_says_it_was():
    table = created()
    table.commit(add("a"))
    sidecar = table.put("_sidecars/one file.parquet", as_parquet([add("a")]))
    path = "s3://old-bucket/t/_delta_log/" + quote(sidecar)
    table.put(
        v2_checkpoint_name(1, "u", "json"),
        as_lines(
            [
                {"checkpointMetadata": {"version": 1}},
                {"sidecar": {"path": path, "sizeInBytes": 1, "modificationTime": 1}},
                {"protocol": PROTOCOL},
                {"metaData": metadata()},
            ]
        ),
    )
    table.store.delete(f"{table.log}/{commit_name(0)}")
    assert table.open().snapshot().files["path"].to_pylist() == ["a"]


@pytest.mark.parametrize(
    "lines",
    [
        [{"checkpointMetadata": {"version": 2}}, {"protocol": PROTOCOL}, {"metaData": metadata()}],
        [{"checkpointMetadata": {"version": 1}}, {"protocol": PROTOCOL}],
        [{"checkpointMetadata": {"version": 1}}, {"metaData": metadata()}],
        [{"checkpointMetadata": 1}, {"protocol": PROTOCOL}, {"metaData": metadata()}],
        [{"protocol": PROTOCOL}, {"metaData": metadata()}, {"sidecar": {"path": ""}}],
        [{"protocol": PROTOCOL}, {"metaData": metadata()}, {"sidecar": {}}],
        [{"protocol": PROTOCOL}, {"metaData": metadata()}, {"add": {"path": "a", "size": "1"}}],
    ],
)
def test_a_top_level_file_that_contradicts_itself_is_passed_over(lines):
    table = created()
    table.commit(add("right"))
    table.put(v2_checkpoint_name(1, "u", "json"), as_lines(lines))
    ensure_equal(table.open().snapshot(), table.model)
    table.store.delete(f"{table.log}/{commit_name(0)}")
    with pytest.raises(TableError) as caught:
        _ = table.open().snapshot().files
    assert caught.value.kind == "OPTIMIST_MALFORMED_CHECKPOINT"


def test_another_checkpoint_of_the_same_version_serves_as_well(caplog):
    table, names = busy_table("v2 parquet")
    table.version -= 1
    table.model.live.pop(("after", None))
    table.checkpoint("classic")
    table.model.apply([add("after")])
    table.cut(names[0], 100)
    for version in (0, 1):
        table.store.delete(f"{table.log}/{commit_name(version)}")
    table.store.delete(f"{table.log}/{classic_checkpoint_name(1)}")
    ensure_equal(table.open().snapshot(), table.model)


@pytest.mark.sample(3)
@pytest.mark.parametrize("kind", KINDS)
@settings(deadline=None, max_examples=25)
@given(data=st.data())
def test_a_checkpoint_cut_anywhere_never_gives_a_wrong_answer(kind, data):
    table, names = busy_table(kind)
    name = data.draw(st.sampled_from(names))
    whole = table.store.read_bytes(f"{table.log}/{name}")
    # A cut at the very end of a line of JSON may leave a whole checkpoint of less.
    lengths = [n for n in range(len(whole)) if whole[n - 1 : n] != b"\n"]
    table.cut(name, data.draw(st.sampled_from(lengths)))
    ensure_equal(table.open().snapshot(), table.model)
    for version in (0, 1):
        table.store.delete(f"{table.log}/{commit_name(version)}")
    table.store.delete(f"{table.log}/{classic_checkpoint_name(1)}")
    with pytest.raises(OptimistError) as caught:
        ensure_equal(table.open().snapshot(), table.model)
    assert caught.value.kind in ("OPTIMIST_MALFORMED_CHECKPOINT", "DELTA_MISSING_PART_FILES")


@settings(deadline=None, max_examples=60)
@given(data=st.data())
def test_a_hint_that_is_cut_or_changed_never_gives_a_wrong_answer(data):
    table, _ = busy_table("classic")
    good = json.dumps({"version": 2, "size": 9, "sizeInBytes": 77}).encode()
    edited = bytearray(good)
    for _ in range(data.draw(st.integers(0, 3))):
        edited[data.draw(st.integers(0, len(good) - 1))] = data.draw(st.integers(0, 255))
    table.put(LAST_CHECKPOINT, bytes(edited[: data.draw(st.integers(0, len(good)))]))
    ensure_equal(table.open().snapshot(), table.model)


@pytest.mark.parametrize("version", [0, 1, 3, 5, 10**6, 10**15, 10**30, -1])
def test_a_hint_that_lies_costs_little(version):
    table, _ = busy_table("classic")
    table.put(LAST_CHECKPOINT, json.dumps({"version": version, "size": 1}).encode())
    table.store.requests.clear()
    ensure_equal(table.open().snapshot(), table.model)
    assert sum(n for what, n in table.store.requests.items() if what.startswith("list")) <= 3
