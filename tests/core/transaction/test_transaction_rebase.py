"""What a commit gives out anew behind each winner: row ids, timestamps, properties."""

from __future__ import annotations

import itertools
import json
from dataclasses import replace

import pytest

from commit_reading import ICT, WRITE, commit, info_of, written
from optimist.core.errors import (
    ProtocolChangedException,
    ProtocolError,
    SchemaError,
)
from optimist.core.protocol.actions import (
    CommitInfo,
    DomainMetadata,
    Metadata,
    Protocol,
    SetTransaction,
)
from optimist.core.transaction.conflicts.operations import Operation
from prepared_commits import loop_of, prepared

# Rebase


ROW_TRACKING = Protocol(1, 7, None, ("rowTracking", "domainMetadata"))


def row_ids(table, version):
    return [
        (a.path, a.base_row_id, a.default_row_commit_version)
        for a in written(table, version)
        if type(a).KEY == "add"
    ]


def high_water_mark(table, version):
    domains = [a for a in written(table, version) if isinstance(a, DomainMetadata)]
    assert [item.domain for item in domains] == ["delta.rowTracking"]
    return json.loads(domains[0].configuration)["rowIdHighWaterMark"]


def test_row_ids_are_given_out_in_order_and_rebased_past_a_winner(make_table):
    table = make_table(protocol=ROW_TRACKING).create()
    ours = table.log.start_transaction()
    commit(table, [table.add("a"), table.add("b")])
    assert row_ids(table, 1) == [("a", 0, 1), ("b", 10, 1)]
    assert high_water_mark(table, 1) == 19
    ours.commit([table.add("c")], WRITE)
    assert row_ids(table, 2) == [("c", 20, 2)]
    assert high_water_mark(table, 2) == 29


PROTOCOLS = (
    Protocol(1, 7, None, ()),
    Protocol(1, 7, None, ("domainMetadata",)),
    ROW_TRACKING,
)


@pytest.mark.parametrize("winners", list(itertools.product(PROTOCOLS, repeat=3)))
def test_what_lands_behind_any_changes_of_the_protocol_keeps_to_the_last(make_table, winners):
    table = make_table(protocol=PROTOCOLS[0]).create()
    txn = table.log.start_transaction()
    before = PROTOCOLS[0]
    has_dropped = False
    for version, protocol in enumerate(winners, 1):
        table.poke(version, (CommitInfo(txn_id=f"winner-{version}"), protocol))
        has_dropped |= not set(before.writer_features) <= set(protocol.writer_features)
        before = protocol
    try:
        txn.commit([table.add("a")], WRITE)
    except ProtocolChangedException as error:
        assert has_dropped
        assert error.conflict.subject.startswith("it dropped")
        return
    is_tracked = "rowTracking" in before.writer_features
    assert not has_dropped
    assert row_ids(table, 4) == [("a", 0, 4) if is_tracked else ("a", None, None)]
    domains = [each for each in written(table, 4) if isinstance(each, DomainMetadata)]
    assert bool(domains) == is_tracked


def test_row_ids_need_a_row_count(make_table):
    table = make_table(protocol=ROW_TRACKING).create()
    with pytest.raises(SchemaError) as raised:
        commit(table, [table.add("a", stats=False)])
    assert raised.value.kind == "DELTA_ROW_ID_ASSIGNMENT_WITHOUT_STATS"


def enable_row_tracking(table):
    enabled = replace(table.metadata, configuration={"delta.enableRowTracking": "true"})
    return commit(table, [enabled], Operation("SET TBLPROPERTIES"))


def test_row_tracking_is_not_enabled_where_files_have_no_row_ids(make_table):
    table = make_table(protocol=ROW_TRACKING)
    table.create(table.add("a"))
    with pytest.raises(ProtocolError) as raised:
        enable_row_tracking(table)
    assert raised.value.kind == "OPTIMIST_ROW_TRACKING_NEEDS_BACKFILL"
    assert table.log.snapshot().version == 0


def test_row_tracking_is_not_enabled_while_others_may_add_files_without_row_ids(make_table):
    table = make_table().create()
    with pytest.raises(ProtocolError) as raised:
        enable_row_tracking(table)
    assert raised.value.kind == "OPTIMIST_ROW_TRACKING_NEEDS_BACKFILL"


def test_row_tracking_is_enabled_where_all_files_have_row_ids(make_table):
    table = make_table(protocol=ROW_TRACKING).create()
    commit(table, [table.add("a")])
    enable_row_tracking(table)
    assert table.log.snapshot().properties.enable_row_tracking
    commit(table, [table.add("b")])
    assert row_ids(table, 3) == [("b", 10, 3)]


def test_while_row_tracking_is_suspended_files_have_no_row_ids(make_table):
    suspended = {"delta.rowTrackingSuspended": "true"}
    table = make_table(protocol=ROW_TRACKING, configuration=suspended).create()
    ours = table.log.start_transaction()
    commit(table, [table.add("a")])
    given = replace(table.add("b"), base_row_id=7, default_row_commit_version=1)
    ours.commit([given], WRITE)
    assert row_ids(table, 1) == [("a", None, None)]
    assert row_ids(table, 2) == [("b", None, None)]


def test_a_commit_without_files_hands_out_no_row_ids_when_it_is_rebased(make_table):
    table = make_table(protocol=ROW_TRACKING).create()
    ours = table.log.start_transaction()
    commit(table, [])
    ours.commit([SetTransaction("app", 1)], WRITE)
    assert not [a for a in written(table, 2) if isinstance(a, DomainMetadata)]


def test_a_commit_that_gives_out_no_row_ids_records_no_high_water_mark(make_table):
    table = make_table(protocol=ROW_TRACKING).create()
    commit(table, [table.add("a")])
    again = replace(table.add("a"), base_row_id=0, default_row_commit_version=1, data_change=False)
    nothing = replace(table.add("empty"), stats='{"numRecords":0}')
    ours = table.log.start_transaction()
    commit(table, [again], Operation("COMPUTE STATS"))
    ours.commit([again, nothing], Operation("COMPUTE STATS"))
    assert row_ids(table, 2) == [("a", 0, 1)]
    assert row_ids(table, 3) == [("a", 0, 1), ("empty", 10, 3)]
    for version in (2, 3):
        assert not [a for a in written(table, version) if isinstance(a, DomainMetadata)]
    commit(table, [table.add("b")])
    assert row_ids(table, 4) == [("b", 10, 4)]


ICT_PROTOCOL = Protocol(1, 7, None, ("inCommitTimestamp",))


@pytest.mark.parametrize(("winner", "expected"), [(100, 101), (99, 100)])
def test_in_commit_timestamp_moves_after_the_winners(make_table, winner, expected):
    table = make_table(protocol=ICT_PROTOCOL, configuration=ICT)
    table.store.ensure_directory(table.log.log_path)
    start = CommitInfo(in_commit_timestamp=1, operation="CREATE TABLE")
    table.poke(0, [start, table.protocol, table.metadata])
    txn = table.log.start_transaction()
    ours = prepared(txn, [table.add("ours")], WRITE, None)
    ours = replace(ours, commit_info=replace(ours.commit_info, in_commit_timestamp=100))
    info = CommitInfo(in_commit_timestamp=winner, txn_id="other", is_blind_append=True)
    table.poke(1, [info, table.add("theirs")])
    rebased = loop_of(txn).check_for_conflicts(ours).ours
    assert rebased.commit_info.in_commit_timestamp == expected


def test_enabling_timestamps_records_since_when(make_table):
    table = make_table(protocol=ICT_PROTOCOL).create()
    enabled = replace(table.metadata, configuration=ICT)
    txn = table.log.start_transaction()
    commit(table, [table.add("a")])
    txn.commit([enabled], Operation("SET TBLPROPERTIES"))
    metadata = next(a for a in written(table, 2) if isinstance(a, Metadata))
    timestamp = info_of(table, 2).in_commit_timestamp
    assert metadata.configuration == {
        **ICT,
        "delta.inCommitTimestampEnablementVersion": "2",
        "delta.inCommitTimestampEnablementTimestamp": str(timestamp),
    }


@pytest.mark.parametrize(
    ("change", "is_adopted"),
    [
        (ICT, True),
        ({"delta.enableInCommitTimestamps": "false"}, False),
        ({"delta.appendOnly": "true"}, False),
    ],
)
def test_which_property_changes_of_a_winner_are_adopted(make_table, change, is_adopted):
    table = make_table(protocol=ICT_PROTOCOL).create()
    txn = table.log.start_transaction()
    table.poke(1, [replace(table.metadata, configuration=change)])
    if is_adopted:
        assert txn.commit([table.add("a")], WRITE).version == 2
        assert info_of(table, 2).in_commit_timestamp is not None
        return
    with pytest.raises(Exception, match="it set the table property") as raised:
        txn.commit([table.add("a")], WRITE)
    assert raised.value.kind == "DELTA_METADATA_CHANGED"
