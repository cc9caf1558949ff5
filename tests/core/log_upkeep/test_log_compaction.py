"""Compacted commits, as written (spec 5.1, 5.6)."""

import json
import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from optimist.core.errors import TableError
from optimist.core.log.commit_lines import parse_commit_lines
from optimist.core.log.names import commit_path, compacted_name
from optimist.core.log_upkeep.compaction import (
    compacted_lines,
    is_compaction_due,
    write_compaction,
)
from optimist.core.plugins.logstore import PutOutcome
from optimist.core.protocol.actions import (
    AddFile,
    CommitInfo,
    DomainMetadata,
    Metadata,
    Protocol,
    SetTransaction,
    actions_to_bytes,
)
from optimist.core.transaction.conflicts.operations import Operation

START = (Protocol(1, 2), Metadata("id", '{"type":"struct","fields":[]}'))


def add(name, size=10):
    return AddFile(name, {}, size, 1, True)


def compacted_bytes(*contents):
    parsed = [parse_commit_lines(content, "commit") for content in contents]
    return "".join(f"{line}\n" for line in compacted_lines(parsed)).encode()


def compacted(*commits):
    return list(map(json.loads, compacted_bytes(*map(actions_to_bytes, commits)).splitlines()))


def kinds(actions):
    return [next(iter(action)) for action in actions]


def test_of_each_thing_the_last_word_stands():
    found = compacted(
        (CommitInfo(operation="WRITE"), *START, add("a"), add("b"), SetTransaction("x", 1)),
        (CommitInfo(), add("a").remove(5), SetTransaction("x", 2), DomainMetadata("d", "{}")),
        (CommitInfo(), add("b", 20), DomainMetadata("d", "", removed=True)),
    )
    bodies = {
        kind: body for action in found for kind, body in action.items() if kind != "domainMetadata"
    }
    assert bodies["add"]["path"] == "b"
    assert bodies["add"]["size"] == 20
    assert bodies["remove"]["path"] == "a"
    assert bodies["txn"]["version"] == 2
    assert [action["domainMetadata"]["removed"] for action in found if "domainMetadata" in action]
    assert sorted(kinds(found)) == sorted(
        ["protocol", "metaData", "txn", "remove", "add", "domainMetadata"]
    )
    assert {body["dataChange"] for kind, body in bodies.items() if kind in ("add", "remove")} == {
        False
    }


def test_two_spellings_of_a_path_are_one_file():
    found = compacted((add("a%20b"),), (add("a b").remove(5),))
    assert kinds(found) == ["remove"]


def test_what_belongs_to_single_commits_is_left_out():
    assert compacted((CommitInfo(operation="WRITE"),)) == []
    unknown = b'{"cdc":{"path":"c","size":1}}\n\n{"newAction":{"x":1}}\n'
    assert compacted_bytes(unknown) == b""


def test_writers_that_put_every_kind_in_every_line_are_understood():
    padded = b'{"add":{"path":"a","partitionValues":{},"size":1,"modificationTime":1,'
    padded += b'"dataChange":true},"remove":null,"txn":null}\n'
    (line,) = map(json.loads, compacted_bytes(padded).splitlines())
    assert line["add"]["path"] == "a"


def test_fields_of_files_that_are_not_known_stay():
    line = b'{"remove":{"path":"a","dataChange":true,"ofTomorrow":[1]}}\n'
    assert json.loads(compacted_bytes(line))["remove"]["ofTomorrow"] == [1]


@pytest.mark.parametrize(
    ("version", "interval", "is_due"),
    [(9, 10, True), (19, 10, True), (10, 10, False), (0, 10, False), (9, 0, False), (3, 1, False)],
)
def test_it_is_due_when_an_interval_is_full(version, interval, is_due):
    assert is_compaction_due(version, interval) is is_due


def test_commits_write_it_by_themselves_where_the_option_says_so(make_table):
    table = make_table(options={"optimist.log.compactionInterval": "3"}).create(
        make_table().add("a")
    )
    for number in range(1, 7):
        commit(table, number)
    names = [status.name for status in table.store.list_from(f"{table.log.log_path}/")]
    assert [name for name in names if "compacted" in name] == [
        compacted_name(0, 2),
        compacted_name(3, 5),
    ]


def commit(table, number):
    txn = table.log.start_transaction()
    txn.commit([table.add(f"f{number}")], Operation("WRITE"))


def test_one_that_is_there_is_left_alone_and_a_torn_commit_makes_none(make_table):
    table = make_table().create(make_table().add("a"))
    commit(table, 1)
    store, path = table.store, table.log.log_path
    assert write_compaction(store, path, 0, 1) is PutOutcome.CREATED
    assert write_compaction(store, path, 0, 1) is PutOutcome.EXISTS
    vector = b'{"remove":{"path":"a","dataChange":true,"deletionVector":{}}}'
    for damaged in (b'{"add":', vector):
        store.put_overwrite(commit_path(path, 2), damaged)
        with pytest.raises(TableError) as caught:
            write_compaction(store, path, 1, 2)
        assert caught.value.kind == "OPTIMIST_MALFORMED_COMMIT"


NAMES = st.sampled_from(string.ascii_lowercase[:4])
STEPS = st.lists(
    st.lists(st.tuples(st.booleans(), NAMES), min_size=1, max_size=4), min_size=1, max_size=6
)


@given(STEPS, STEPS)
def test_commits_after_a_base_leave_the_same_files_compacted_or_not(before, run):
    def commits(steps):
        return [
            actions_to_bytes(
                [add(name) if is_add else add(name).remove(5) for is_add, name in step]
            )
            for step in steps
        ]

    def live(contents):
        files = set()
        for content in contents:
            for line in content.splitlines():
                ((kind, body),) = json.loads(line).items()
                (files.add if kind == "add" else files.discard)(body["path"])
        return files

    plain = commits(run)
    assert live([*commits(before), compacted_bytes(*plain)]) == live([*commits(before), *plain])
