"""Compacted commits as other engines write them: read in place of commits, or not believed."""

import logging

import pytest

from naive_log import PROTOCOL, add, created, ensure_equal, metadata, remove, vector
from optimist.core.log.names import LAST_CHECKPOINT, commit_name, compacted_name


def test_compacted_commits_are_read_in_place_of_commits():
    table = created()
    for number in range(8):
        table.commit(add(f"f{number}"), {"txn": {"appId": "a", "version": number}})
    table.commit(remove("f3"), {"domainMetadata": {"domain": "d", "configuration": "dd"}})
    table.compact(2, 4)
    table.compact(2, 6)
    table.compact(5, 8)
    table.compact(7, 8)
    table.compact(7, 8)
    table.store.requests.clear()
    ensure_equal(table.open().snapshot(), table.model)
    read = {what[5:] for what in table.store.requests if what.startswith("read")}
    expected = {commit_name(0), commit_name(1), compacted_name(2, 6), compacted_name(7, 8)}
    assert read == {*expected, commit_name(9), LAST_CHECKPOINT}
    off = {"spark.databricks.delta.deltaLog.minorCompaction.useForReads": "false"}
    table.store.requests.clear()
    ensure_equal(table.open(off).snapshot(), table.model)
    assert not any("compacted" in what for what in table.store.requests)


@pytest.mark.parametrize("length", [0, 1, 40, -2])
def test_compacted_commits_that_are_damaged_are_passed_over(length, caplog):
    table = created()
    for number in range(5):
        table.commit(add(f"f{number}"))
    table.compact(1, 4)
    table.cut(compacted_name(1, 4), length)
    with caplog.at_level(logging.WARNING, logger="optimist.core.log"):
        ensure_equal(table.open().snapshot(), table.model)
    assert len(caplog.records) == (1 if length else 0)


def newest_first(table, first, last):
    """The actions of the commits as some writers put them together: all of them, last one first."""
    lines = []
    for version in range(last, first - 1, -1):
        data = table.store.read_bytes(f"{table.log}/{commit_name(version)}")
        lines += [line for line in data.splitlines() if b"commitInfo" not in line][::-1]
    return b"\n".join(lines)


SAID_TWICE = {
    "a file that was removed": [(add("a"),), (remove("a"),)],
    "a file that came back": [(remove("f0"),), (add("f0", size=2),)],
    "two spellings of a file": [(add("a b"),), (remove("a%20b"),)],
    "a vector": [(add("a", vector=vector(1)),), (remove("a", vector(1)), add("a"))],
    "a transaction": [
        ({"txn": {"appId": "a", "version": 1}},),
        ({"txn": {"appId": "a", "version": 2}},),
    ],
    "a domain": [
        ({"domainMetadata": {"domain": "d", "configuration": "1", "removed": False}},),
        ({"domainMetadata": {"domain": "d", "configuration": "1", "removed": True}},),
    ],
    "the metadata": [({"metaData": metadata("m1")},), ({"metaData": metadata("m2")},)],
    "the protocol": [
        ({"protocol": PROTOCOL},),
        ({"protocol": PROTOCOL | {"writerFeatures": [*PROTOCOL["writerFeatures"], "appendOnly"]}},),
    ],
}


@pytest.mark.parametrize("what", SAID_TWICE)
def test_compacted_commits_that_say_a_thing_twice_are_not_believed(what, caplog):
    table = created()
    table.commit(add("f0"))
    for actions in SAID_TWICE[what]:
        table.commit(*actions)
    last = table.version
    table.commit(add("z"))
    name = table.put(compacted_name(2, last), newest_first(table, 2, last))
    with caplog.at_level(logging.WARNING, logger="optimist.core.log"):
        ensure_equal(table.open().snapshot(), table.model)
    (record,) = caplog.records
    assert name in record.getMessage()
    assert "more than one action for" in record.getMessage()


def test_compacted_commits_that_say_each_thing_once_are_believed_in_any_order():
    table = created()
    table.commit(add("f0"))
    table.commit(add("a", vector=vector(1)), add("b"), {"txn": {"appId": "a", "version": 1}})
    table.commit(remove("f0"), remove("c"), {"txn": {"appId": "b", "version": 1}})
    table.put(compacted_name(2, 3), newest_first(table, 2, 3))
    table.commit(add("z"))
    table.store.requests.clear()
    ensure_equal(table.open().snapshot(), table.model)
    assert not any(commit_name(2) in what for what in table.store.requests)
