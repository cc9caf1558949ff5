"""What a transaction reads of others: applications, domains, and conflicts by statistics."""

from __future__ import annotations

import pytest

from commit_reading import DELETE, WRITE, commit
from optimist.core.errors import (
    ConcurrentAppendException,
    ConcurrentTransactionException,
    UsageError,
)
from optimist.core.protocol.actions import (
    DomainMetadata,
    Protocol,
    SetTransaction,
)

pytestmark = pytest.mark.sample(1)

# Application transactions


def test_txn_version_is_minus_one_then_what_was_written(make_table):
    table = make_table().create()
    assert table.log.start_transaction().txn_version("app") == -1
    commit(table, [SetTransaction("app", 3), table.add("a")])
    assert table.log.start_transaction().txn_version("app") == 3


def test_writing_an_application_without_reading_it_is_no_conflict(make_table):
    table = make_table().create()
    txn = table.log.start_transaction()
    commit(table, [SetTransaction("app", 1), table.add("a")])
    assert txn.commit([SetTransaction("app", 2), table.add("b")], WRITE).version == 2


def test_domain_set_by_both_conflicts_and_others_do_not(make_table):
    protocol = Protocol(1, 7, None, ("domainMetadata",))
    table = make_table(protocol=protocol).create()
    first, second = table.log.start_transaction(), table.log.start_transaction()
    commit(table, [DomainMetadata("d", "{}")])
    assert second.commit([DomainMetadata("e", "{}")], WRITE).version == 2
    with pytest.raises(ConcurrentTransactionException) as raised:
        first.commit([DomainMetadata("d", "{}")], WRITE)
    assert raised.value.conflict.subject == "metadata domain d"


@pytest.mark.parametrize(
    ("domains", "kind"),
    [
        (("d", "d"), "DELTA_DUPLICATE_DOMAIN_METADATA_INTERNAL_ERROR"),
        (("d", "delta.rowTracking"), "OPTIMIST_RESERVED_METADATA_DOMAIN"),
    ],
)
def test_a_metadata_domain_is_set_once_and_the_engines_own_by_nobody_else(
    make_table, domains, kind
):
    table = make_table(protocol=Protocol(1, 7, None, ("domainMetadata",))).create()
    with pytest.raises(UsageError) as raised:
        commit(table, [DomainMetadata(domain, "{}") for domain in domains])
    assert raised.value.kind == kind
    assert table.log.snapshot().version == 0


# The statistics tier


def racing_delete(table, read, winner_file):
    txn = table.log.start_transaction()
    files = txn.filter_files(read)
    assert files.num_rows == 1
    commit(table, [winner_file])
    return txn.commit([table.remove("f")], DELETE)


@pytest.mark.parametrize("partitioned", [True, False])
def test_a_disjoint_range_is_no_conflict_by_file_and_one_by_partition(make_table, partitioned):
    far = {"low": 100, "high": 109}
    table = make_table(partitioned=partitioned)
    table.create(table.add("f"))
    assert racing_delete(table, "x < 50", table.add("new", **far)).version == 2
    options = {"spark.optimist.conflict.granularity": "partition"}
    coarse = make_table(partitioned=partitioned, options=options)
    coarse.create(coarse.add("f"))
    with pytest.raises(ConcurrentAppendException):
        racing_delete(coarse, "x < 50", coarse.add("new", **far))


@pytest.mark.parametrize(
    "winner", [{"low": 40, "high": 60}, {"low": 100, "high": 109, "stats": False}]
)
def test_overlap_or_missing_statistics_conflict(make_table, winner):
    table = make_table(partitioned=False)
    table.create(table.add("f"))
    with pytest.raises(ConcurrentAppendException, match="the root of the table") as raised:
        racing_delete(table, "x < 50", table.add("new", **winner))
    conflict = raised.value.conflict
    assert (conflict.paths, conflict.num_paths, conflict.partition) == (("new",), 1, None)
    assert "x" in conflict.predicate
    assert conflict.winning_operation == "WRITE"
    assert conflict.winning_engine.startswith("Optimist/")


def test_the_partition_of_the_conflict_is_named(make_table):
    table = make_table()
    table.create(table.add("f"))
    with pytest.raises(ConcurrentAppendException, match=r"partition \[p=1\]"):
        racing_delete(table, "p = 1", table.add("new"))


def test_reads_of_the_whole_table_and_random_predicates_stay_coarse(make_table):
    far = {"low": 100, "high": 109}
    table = make_table(partitioned=False)
    table.create(table.add("f"))
    txn = table.log.start_transaction()
    txn.filter_files("x < 50 AND rand() < 0.5")
    commit(table, [table.add("new", **far)])
    with pytest.raises(ConcurrentAppendException):
        txn.commit([table.remove("f")], DELETE)
    txn = table.log.start_transaction()
    txn.read_whole_table()
    commit(table, [table.add("newer", **far)])
    with pytest.raises(ConcurrentAppendException):
        txn.commit([table.add("z")], WRITE)
