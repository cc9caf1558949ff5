"""Every row of the conflict table, alone: one pair of commits that it hits, one that it misses."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from pyroaring import BitMap64

from optimist.core.data.vectors.deletion_vectors import inline_vector
from optimist.core.errors import DeltaConcurrentModificationException, ProtocolError
from optimist.core.protocol.actions import (
    AddFile,
    CommitInfo,
    DomainMetadata,
    Metadata,
    Protocol,
    SetTransaction,
)
from optimist.core.protocol.properties import IsolationLevel
from optimist.core.protocol.table_metadata import TableMetadata
from optimist.core.schema.types import (
    COLUMN_ID,
    PHYSICAL_NAME,
    PrimitiveType,
    StructField,
    StructType,
    schema_to_json,
)
from optimist.core.transaction.conflicts.checks import partition_text
from optimist.core.transaction.conflicts.messages import get_pretty_partition_message
from optimist.core.transaction.conflicts.operations import Operation
from optimist.core.transaction.conflicts.ours_and_theirs import SharedFile, Theirs
from optimist.core.transaction.conflicts.table import CONFLICT_TABLE, pass_winner
from prepared_commits import prepared

pytestmark = pytest.mark.sample(1)

RULES = {rule.name: rule for rule in CONFLICT_TABLE}
ORDER = [
    "protocol", "metadata", "domain metadata", "application transactions", "row tracking backfill",
    "row ids", "type widening", "concurrent appends", "concurrent deletes of files read",
    "concurrent changes of rows read", "concurrent deletes of files deleted", "in-commit timestamp",
    "concurrent moves of rows",
]  # fmt: skip
WRITE = Operation.write("Append")
BACKFILL, UNBACKFILL = Operation("ROW TRACKING BACKFILL"), Operation("ROW TRACKING UNBACKFILL")
FEATURES = Protocol(1, 7, None, ("domainMetadata", "rowTracking"))
TIMED = Protocol(1, 7, None, ("inCommitTimestamp",))
WIDENING = Protocol(1, 7, None, ("typeWidening-preview",))
ICT = {"delta.enableInCommitTimestamps": "true"}


def ours(table, actions=(), operation=WRITE, *, read=None, app_id=None):
    txn = table.log.start_transaction()
    if read is not None:
        txn.filter_files(read)
    if app_id is not None:
        txn.txn_version(app_id)
    return prepared(txn, list(actions), operation, None)


def theirs(*actions, operation=None, blind=False, timestamp=None, modified_ms=50):
    info = CommitInfo(
        operation=operation, is_blind_append=blind, in_commit_timestamp=timestamp, txn_id="theirs"
    )
    return Theirs(1, modified_ms, (info, *actions))


@pytest.fixture
def plain(make_table):
    table = make_table()
    return table.create(table.add("f", 1), table.add("g", 2))


def checked(table, rule, ours, theirs):
    return RULES[rule].check(ours, theirs)


def test_the_order_is_the_specifications():
    assert [rule.name for rule in CONFLICT_TABLE] == ORDER


def test_protocol(plain):
    upgrade = theirs(Protocol(1, 3))
    assert checked(plain, "protocol", ours(plain, [Protocol(1, 4)]), upgrade)
    assert checked(plain, "protocol", ours(plain), theirs(Protocol(1, 1))).subject.startswith(
        "it dropped"
    )
    assert checked(plain, "protocol", ours(plain), upgrade) is None
    moved = RULES["protocol"].rebase(ours(plain), upgrade)
    assert moved.protocol == Protocol(1, 3)


@pytest.mark.parametrize("actions", [[], [Protocol(1, 4)]])
def test_a_protocol_beyond_this_engine_is_no_matter_of_conflicts(plain, actions):
    # It drops features, too; but what the loser reads again is a table that it can't write.
    beyond = theirs(Protocol(1, 7, None, ("teleport",)))
    with pytest.raises(ProtocolError) as caught:
        checked(plain, "protocol", ours(plain, actions), beyond)
    assert caught.value.fields["unsupported"] == ("teleport",)


def test_metadata(plain):
    renamed = theirs(replace(plain.metadata, name="new"))
    assert "name" in checked(plain, "metadata", ours(plain), renamed).subject
    same = theirs(plain.metadata)
    assert checked(plain, "metadata", ours(plain), same) is None
    assert checked(plain, "metadata", ours(plain, [plain.metadata]), same)
    tags = {"delta.identity.schemaUpdate": "true"}
    identity = Theirs(1, 0, (CommitInfo(tags=tags), replace(plain.metadata, name="new")))
    assert checked(plain, "metadata", ours(plain), identity) is None
    assert RULES["metadata"].rebase(ours(plain), identity).metadata.name is None


def test_metadata_of_a_table_that_this_engine_does_not_write_is_not_adopted(make_table):
    table = make_table(protocol=Protocol(2, 7, None, ("columnMapping",))).create()
    kept = {"delta.universalFormat.enabledFormats": "hudi"}
    converted = theirs(replace(table.metadata, configuration=kept))
    with pytest.raises(ProtocolError, match="hudi"):
        RULES["metadata"].rebase(ours(table, [table.add("a")]), converted)


@pytest.mark.parametrize(("physical", "is_adopted"), [("{}", True), ("col-{}", False)])
def test_a_mapping_is_adopted_only_where_it_keeps_the_names_of_the_files(
    make_table, physical, is_adopted
):
    table = make_table(protocol=Protocol(2, 7, None, ("columnMapping",))).create()

    def mapped(item):
        keys = {COLUMN_ID: 1, PHYSICAL_NAME: physical.format(item.name)}
        return replace(item, metadata={**item.metadata, **keys})

    schema = TableMetadata.of(table.metadata).declared_schema.map_fields(mapped)
    configuration = {"delta.columnMapping.mode": "name", "delta.columnMapping.maxColumnId": "1"}
    winner = replace(
        table.metadata, schema_string=schema_to_json(schema), configuration=configuration
    )
    problem = checked(table, "metadata", ours(table, [table.add("a")]), theirs(winner))
    assert (problem is None) is is_adopted


def test_domain_metadata(make_table):
    table = make_table(protocol=FEATURES).create()
    mine = ours(table, [DomainMetadata("d", "{}")])
    assert checked(table, "domain metadata", mine, theirs(DomainMetadata("d", "{}", True)))
    assert checked(table, "domain metadata", mine, theirs(DomainMetadata("e", "{}"))) is None
    ids = theirs(DomainMetadata("delta.rowTracking", '{"rowIdHighWaterMark":3}'))
    assert checked(table, "domain metadata", ours(table, [table.add("a")]), ids) is None


def test_application_transactions(plain):
    advanced = theirs(SetTransaction("app", 2))
    rule = "application transactions"
    assert checked(plain, rule, ours(plain, app_id="app"), advanced).subject == "application app"
    assert checked(plain, rule, ours(plain, app_id="other"), advanced) is None
    assert checked(plain, rule, ours(plain, [SetTransaction("app", 1)]), advanced) is None


def test_row_tracking_backfill(make_table):
    table = make_table(protocol=FEATURES).create()
    backfilled = replace(table.add("a"), base_row_id=70, default_row_commit_version=1)
    winner = theirs(backfilled, operation=BACKFILL.name)
    rule = "row tracking backfill"
    assert checked(table, rule, ours(table, [], UNBACKFILL), winner)
    assert checked(table, rule, ours(table, [], BACKFILL), winner) is None
    rebase = RULES[rule].rebase
    assert rebase(ours(table, [table.add("a")], BACKFILL), winner).of_type(AddFile) == ()
    kept = rebase(ours(table, [table.add("b")], BACKFILL), winner)
    assert [item.path for item in kept.of_type(AddFile)] == ["b"]
    copied = rebase(ours(table, [table.add("a"), table.add("b")]), winner).of_type(AddFile)
    assert [item.base_row_id for item in copied] == [70, 10]


def test_the_ids_that_a_backfill_gave_stay_when_ours_are_given_anew(make_table):
    table = make_table(protocol=FEATURES).create()
    backfilled = replace(table.add("a"), base_row_id=70, default_row_commit_version=1)
    mark = DomainMetadata("delta.rowTracking", '{"rowIdHighWaterMark":79}')
    winner = theirs(mark, backfilled, operation=BACKFILL.name)
    moved = pass_winner(ours(table, [table.add("a"), table.add("b")]), winner)
    ids = [(item.base_row_id, item.default_row_commit_version) for item in moved.of_type(AddFile)]
    assert ids == [(70, 1), (80, 2)]
    assert json.loads(moved.of_type(DomainMetadata)[0].configuration) == {"rowIdHighWaterMark": 89}


def test_row_ids(make_table):
    table = make_table(protocol=FEATURES).create()
    mark = DomainMetadata("delta.rowTracking", '{"rowIdHighWaterMark":41}')
    settled = replace(table.add("old"), base_row_id=None)
    moved = RULES["row ids"].rebase(ours(table, [table.add("a"), settled]), theirs(mark))
    assert [item.base_row_id for item in moved.of_type(AddFile)] == [42, 52]
    assert [item.default_row_commit_version for item in moved.of_type(AddFile)] == [2, 2]
    assert json.loads(moved.of_type(DomainMetadata)[0].configuration) == {"rowIdHighWaterMark": 61}
    assert moved.row_id_high_water_mark == 41
    untracked = ours(make_table().create(), [table.add("a")])
    assert RULES["row ids"].rebase(untracked, theirs()) is untracked


@pytest.mark.parametrize(("recorded", "expected"), [(1, 2), (7, 7)])
def test_type_widening(plain, recorded, expected):
    change = {"fromType": "integer", "toType": "long", "tableVersion": recorded}
    field = StructField("x", PrimitiveType("long"), metadata={"delta.typeChanges": [change]})
    widened = replace(plain.metadata, schema_string=schema_to_json(StructType((field,))))
    mine = replace(ours(plain), actions=(widened,), protocol=WIDENING)
    moved = RULES["type widening"].rebase(mine, theirs())
    schema = json.loads(moved.of_type(Metadata)[0].schema_string)
    found = schema["fields"][0]["metadata"]["delta.typeChanges"][0]["tableVersion"]
    assert found == expected


def test_concurrent_appends(plain):
    rule = "concurrent appends"
    reader = ours(plain, [plain.remove("f")], read="p = 1")
    hit = checked(plain, rule, reader, theirs(plain.add("new", 1)))
    assert (hit.partition, hit.paths) == ("[p=1]", ("new",))
    assert checked(plain, rule, reader, theirs(plain.add("new", 2))) is None
    assert checked(plain, rule, reader, theirs(plain.add("new", None))) is None
    assert checked(plain, rule, reader, theirs(plain.remove("g", 2))) is None
    blind = ours(plain, [plain.add("mine", 1)])
    assert checked(plain, rule, blind, theirs(plain.add("new", 1))) is None
    filled = theirs(plain.add("new", 1), operation=BACKFILL.name)
    assert checked(plain, rule, reader, filled) is None


def test_concurrent_deletes_of_files_read(plain):
    rule = "concurrent deletes of files read"
    reader = ours(plain, [plain.add("mine", 1)], read="p = 1")
    assert checked(plain, rule, reader, theirs(plain.remove("f"))).paths == ("f",)
    rearranged = plain.remove("f", data_change=False)
    assert checked(plain, rule, reader, theirs(rearranged))
    assert checked(plain, rule, reader, theirs(plain.remove("g", 2))) is None


def test_paths_are_compared_decoded(make_table):
    table = make_table()
    table.create(table.add("p=a%20b/f", 1))
    reader = ours(table, [table.add("mine", 1)], read="p = 1")
    assert checked(
        table, "concurrent deletes of files read", reader, theirs(table.remove("p=a b/f"))
    )


def vector_of(*rows):
    return inline_vector(BitMap64(rows)) if rows else None


def with_vector(file, *rows):
    return replace(file, deletion_vector=vector_of(*rows))


def test_concurrent_changes_of_rows_read(plain):
    rule = "concurrent changes of rows read"
    file = plain.add("f", 1)
    marked = replace(file.remove(5), deletion_vector=None), with_vector(file, 1, 2)
    reader = ours(plain, [plain.remove("f"), plain.add("mine", 1)], read="p = 1")
    winner = theirs(file.remove(6), with_vector(file, 7))
    apart = SharedFile(with_vector(file, 7), BitMap64(), 1, BitMap64([1, 2, 7]))
    both = replace(apart, lost=BitMap64([7]))
    assert checked(plain, rule, reader, replace(winner, shared={"f": apart})) is None
    assert checked(plain, rule, reader, winner) is None
    hit = checked(plain, rule, reader, replace(winner, shared={"f": both}))
    assert (hit.paths, hit.subject) == (("f",), "1 rows of 1 files")
    # The file that was looked at is this rule's; the rules about whole files leave it alone.
    looked_at = replace(winner, shared={"f": apart}, harmless=frozenset({"f"}))
    for other in ("appends", "deletes of files read", "deletes of files deleted"):
        assert checked(plain, f"concurrent {other}", reader, winner)
        assert checked(plain, f"concurrent {other}", reader, looked_at) is None
    moved = pass_winner(replace(reader, actions=marked), looked_at)
    assert moved.actions[0].deletion_vector == vector_of(7)
    assert moved.actions[1].deletion_vector == vector_of(1, 2, 7)


def test_concurrent_deletes_of_files_deleted(plain):
    rule = "concurrent deletes of files deleted"
    deleter = ours(plain, [plain.remove("f")])
    assert checked(plain, rule, deleter, theirs(plain.remove("f")))
    assert checked(plain, rule, deleter, theirs(plain.remove("g", 2))) is None


def test_in_commit_timestamp(make_table):
    table = make_table(protocol=TIMED, configuration=ICT)
    table.store.ensure_directory(table.log.log_path)
    start = CommitInfo(in_commit_timestamp=1)
    table.poke(0, [start, table.protocol, table.metadata])
    rebase = RULES["in-commit timestamp"].rebase
    mine = ours(table, [table.add("a")])
    own = mine.commit_info.in_commit_timestamp
    later = rebase(mine, theirs(timestamp=own + 5))
    assert later.commit_info.in_commit_timestamp == own + 6
    assert rebase(mine, theirs(timestamp=own - 5)).commit_info.in_commit_timestamp == own
    by_file = rebase(mine, theirs(modified_ms=own + 9))
    assert by_file.commit_info.in_commit_timestamp == own + 10
    untimed = ours(make_table().create(), [table.add("a")])
    assert rebase(untimed, theirs(timestamp=10**15)) is untimed


@pytest.mark.parametrize("level", list(IsolationLevel))
@pytest.mark.parametrize("rule", [r for r in CONFLICT_TABLE if r.check], ids=lambda r: r.name)
def test_levels_at_which_a_rule_counts(plain, rule, level):
    reader = replace(
        ours(plain, [plain.remove("f"), Protocol(1, 4)], read="p = 1"), isolation_level=level
    )
    only_appends_depend_on_it = rule.name == "concurrent appends"
    is_weak = level is IsolationLevel.SNAPSHOT_ISOLATION
    assert (level in rule.levels) is not (only_appends_depend_on_it and is_weak)
    with pytest.raises(DeltaConcurrentModificationException) as raised:
        pass_winner(reader, theirs(Protocol(1, 3), plain.remove("f")))
    assert raised.value.kind == "DELTA_PROTOCOL_CHANGED"


def test_the_first_violated_row_is_reported(plain):
    reader = ours(plain, [plain.remove("f")], read="p = 1", app_id="app")
    winner = theirs(SetTransaction("app", 1), plain.add("new", 1), plain.remove("f"))
    with pytest.raises(DeltaConcurrentModificationException) as raised:
        pass_winner(reader, winner)
    assert raised.value.kind == "DELTA_CONCURRENT_TRANSACTION"
    with pytest.raises(DeltaConcurrentModificationException) as raised:
        pass_winner(reader, theirs(plain.add("new", 1), plain.remove("f")))
    assert raised.value.kind == "DELTA_CONCURRENT_APPEND"


@pytest.mark.parametrize(
    ("columns", "values", "expected"),
    [
        ((), {}, "the root of the table"),
        (("p",), {}, "the root of the table"),
        (("p",), None, "the root of the table"),
        (("p", "q"), {"p": "1", "q": None}, "partition [p=1, q=None]"),
    ],
)
def test_pretty_partition_message(columns, values, expected):
    assert get_pretty_partition_message(partition_text(columns, values)) == expected
