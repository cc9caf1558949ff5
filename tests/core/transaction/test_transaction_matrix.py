"""The outcome matrix of the specification, section 2.14, and its worked sequence 2.15."""

from __future__ import annotations

from dataclasses import replace

import pytest

from optimist.core.errors import (
    ConcurrentAppendException,
    ConcurrentDeleteDeleteException,
    ConcurrentDeleteReadException,
    ConcurrentTransactionException,
    ConcurrentWriteException,
    DeltaConcurrentModificationException,
    MetadataChangedException,
    ProtocolChangedException,
)
from optimist.core.protocol.actions import Protocol, SetTransaction
from optimist.core.transaction.conflicts.operations import Operation

pytestmark = pytest.mark.sample(1)

CODES = {
    ConcurrentAppendException: "CA",
    ConcurrentDeleteReadException: "DR",
    ConcurrentDeleteDeleteException: "DD",
    MetadataChangedException: "MC",
    ProtocolChangedException: "PC",
    ConcurrentTransactionException: "CT",
    ConcurrentWriteException: "CW",
}
COARSE = {"optimist.conflict.granularity": "partition"}
WRITE = Operation.write("Append")
OVERWRITE = Operation.write("Overwrite")
DELETE = Operation.delete(["x"])
OPTIMIZE = Operation("OPTIMIZE")

WINNERS = (
    "A-m", "A-d", "I-m", "R-hit", "R-hit-noadd", "R-miss-m", "R-d", "OPT-hit", "OPT-miss-m",
    "DDL", "PU", "V",
)  # fmt: skip

# Level Serializable: a row per profile of the transaction, a column per winner; - is impossible.
MATRIX = {
    "A":    "ok ok ok ok ok ok ok ok ok MC ok ok",
    "A+M":  "ok ok ok ok ok ok ok ok ok MC ok ok",
    "A+T":  "CT CT CT CT CT CT CT - - MC - ok",
    "I":    "CA ok CA CA DR CA ok CA CA MC ok ok",
    "MGi":  "CA ok CA CA DR CA ok CA CA MC ok ok",
    "O":    "CA - CA CA DR CA - CA CA MC ok ok",
    "D0":   "CA - CA CA DR CA - CA CA MC ok ok",
    "CM":   "CA - CA CA DR CA - CA CA MC ok ok",
    "O+M":  "CA - CA CA DR CA - CA CA MC ok ok",
    "RW":   "CA ok CA CA DR CA ok CA CA MC ok ok",
    "DPO":  "CA ok CA CA DR CA ok CA CA MC ok ok",
    "DP":   "CA ok CA CA DR CA ok CA CA MC ok ok",
    "DX":   "CA ok CA CA DR CA ok CA CA MC ok ok",
    "U":    "CA ok CA CA DR CA ok CA CA MC ok ok",
    "MG":   "CA ok CA CA DR CA ok CA CA MC ok ok",
    "OPT":  "ok ok ok DR DR ok ok DR ok MC ok ok",
    "ST":   "ok ok ok DR DR ok ok DR ok MC ok ok",
    "DDL":  "ok ok ok ok ok ok ok ok ok MC ok ok",
    "PU":   "ok ok ok ok ok ok ok ok ok MC PC ok",
    "V":    "ok ok ok ok ok ok ok ok ok MC ok ok",
    "CL":   "CW CW CW CW CW CW CW CW CW CW CW CW",
}  # fmt: skip
BLIND_TO_APPENDS_WHEN_WRITE_SERIALIZABLE = {
    "I", "MGi", "O", "D0", "CM", "RW", "DPO", "DP", "DX", "U", "MG",
}  # fmt: skip
APPENDS_ONLY = {"A-m", "I-m", "R-miss-m", "OPT-miss-m"}


class Winner:
    """The commits that win, as the matrix names them. Ours reads file f (p=1), and not h (p=2)."""

    def __init__(self, table, app_id=None):
        self.table = table
        self.extra = (SetTransaction(app_id, 1),) if app_id else ()

    def commit(self, name):
        getattr(self, name.replace("-", "_").lower())()

    def _go(self, actions, operation=WRITE, read=None, data_change=True):
        txn = self.table.log.start_transaction()
        if read is not None:
            txn.filter_files(read)
        actions = (*actions, *self.extra) if data_change else actions
        txn.commit(list(actions), operation)

    def a_m(self):
        self._go([self.table.add("new", 1)])

    def a_d(self):
        self._go([self.table.add("new", 3)])

    def i_m(self):
        self._go([self.table.add("new", 1)], read="p = 1")

    def r_hit(self):
        self._go([self.table.remove("f"), self.table.add("f2", 1)], DELETE, read="p = 1")

    def r_hit_noadd(self):
        self._go([self.table.remove("f")], DELETE, read="p = 1")

    def r_miss_m(self):
        self._go([self.table.remove("h", 2), self.table.add("h2", 1)], DELETE, read="p = 2")

    def r_d(self):
        self._go([self.table.remove("h", 2), self.table.add("h2", 2)], DELETE, read="p = 2")

    def opt_hit(self):
        self._compact("f", 1)

    def opt_miss_m(self):
        self._compact("h", 2)

    def _compact(self, name, p):
        old = self.table.remove(name, p, data_change=False)
        new = self.table.add(f"{name}2", 1, data_change=False)
        self._go([old, new], OPTIMIZE, read=f"p = {p}", data_change=False)

    def ddl(self):
        configuration = {**self.table.metadata.configuration, "delta.appendOnly": "false"}
        metadata = replace(self.table.metadata, configuration=configuration)
        self._go([metadata], Operation("SET TBLPROPERTIES"), data_change=False)

    def pu(self):
        self._go([Protocol(1, 3)], Operation("UPGRADE PROTOCOL"), data_change=False)

    def v(self):
        self._go([], Operation("VACUUM START"), data_change=False)


class Ours:
    """The transaction under test: begin, let the winner commit, then commit."""

    def __init__(self, table):
        self.table = table
        self.txn = table.log.start_transaction()

    def begin(self, name):
        self.finish = getattr(self, name.replace("+", "_").lower())()

    def _append(self):
        return lambda: self.txn.commit([self.table.add("ours", 1)], WRITE)

    def a(self):
        return self._append()

    def a_m(self):
        metadata = replace(self.table.metadata, description="evolved")
        return lambda: self.txn.commit([metadata, self.table.add("ours", 1)], WRITE)

    def a_t(self):
        self.txn.txn_version("app")
        actions = [SetTransaction("app", 7), self.table.add("ours", 1)]
        return lambda: self.txn.commit(actions, WRITE)

    def i(self):
        self.txn.filter_files("p = 1")
        return self._append()

    def mgi(self):
        self.txn.filter_files("p = 1 AND x < 5")
        return lambda: self.txn.commit([self.table.add("ours", 1)], Operation("MERGE"))

    def _rewrite_all(self, *metadata, operation=OVERWRITE, adds=True):
        self.txn.filter_files()
        removes = [self.table.remove("f", 1), self.table.remove("h", 2)]
        added = [self.table.add("ours", 1)] if adds else []
        return lambda: self.txn.commit([*metadata, *removes, *added], operation)

    def o(self):
        return self._rewrite_all()

    def cm(self):
        return self._rewrite_all(operation=Operation("STREAMING UPDATE"))

    def d0(self):
        return self._rewrite_all(operation=DELETE, adds=False)

    def o_m(self):
        return self._rewrite_all(replace(self.table.metadata, description="overwritten"))

    def _rewrite(self, predicate, operation, *, adds=True):
        self.txn.filter_files(predicate)
        added = [self.table.add("ours", 1)] if adds else []
        return lambda: self.txn.commit([self.table.remove("f"), *added], operation)

    def rw(self):
        return self._rewrite("p = 1", OVERWRITE)

    def dpo(self):
        return self._rewrite("p <=> 1", OVERWRITE)

    def dp(self):
        return self._rewrite("p = 1", DELETE, adds=False)

    def dx(self):
        return self._rewrite("p = 1 AND x < 5", DELETE)

    def u(self):
        return self._rewrite("p = 1 AND x < 5", Operation.update(["x"]))

    def mg(self):
        return self._rewrite("p = 1 AND x < 5", Operation("MERGE"))

    def opt(self):
        self.txn.filter_files("p = 1")
        old = self.table.remove("f", data_change=False)
        new = self.table.add("ours", 1, data_change=False)
        return lambda: self.txn.commit([old, new], OPTIMIZE)

    def st(self):
        self.txn.filter_files("p = 1")
        again = self.table.add("f", 1, data_change=False)
        return lambda: self.txn.commit([again], Operation("COMPUTE STATS"))

    def ddl(self):
        metadata = replace(self.table.metadata, description="ours")
        return lambda: self.txn.commit([metadata], Operation("SET TBLPROPERTIES"))

    def pu(self):
        return lambda: self.txn.commit([Protocol(1, 4)], Operation("UPGRADE PROTOCOL"))

    def v(self):
        return lambda: self.txn.commit([], Operation("VACUUM END"))

    def cl(self):
        actions = [self.table.add("ours", 1)]
        return lambda: self.txn.commit_large(actions, Operation("RESTORE"))


def outcome_of(finish):
    try:
        finish()
    except DeltaConcurrentModificationException as error:
        assert error.conflict.winning_version == 1
        return CODES[type(error)]
    return "ok"


def cases():
    for profile, row in MATRIX.items():
        for winner, expected in zip(WINNERS, row.split(), strict=True):
            if expected != "-":
                yield profile, winner, expected


def expected_at(level, profile, winner, expected):
    if level == "WriteSerializable" and winner == "A-m":
        return "ok" if profile in BLIND_TO_APPENDS_WHEN_WRITE_SERIALIZABLE else expected
    if level == "SnapshotIsolation" and expected == "CA":
        return "ok" if winner in APPENDS_ONLY else "DR"
    return expected


@pytest.mark.parametrize("level", ["Serializable", "WriteSerializable", "SnapshotIsolation"])
@pytest.mark.parametrize(("profile", "winner", "expected"), list(cases()))
def test_outcome_of_a_profile_against_a_winner(make_table, level, profile, winner, expected):
    expected = expected_at(level, profile, winner, expected)
    reads_h = profile in {"O", "D0", "CM", "O+M"}
    if level == "SnapshotIsolation" and reads_h and winner in {"R-miss-m", "OPT-miss-m"}:
        expected = "DR"  # whoever reads the whole table has read h, too
    table = make_table(configuration={"delta.isolationLevel": level}, options=COARSE)
    table.create(table.add("f", 1), table.add("h", 2))
    ours = Ours(table)
    ours.begin(profile)
    Winner(table, app_id="app" if profile == "A+T" else None).commit(winner)
    assert outcome_of(ours.finish) == expected


def test_worked_sequence_a_disjoint_append_passes(make_table):
    table = make_table(options=COARSE).create()
    delete, append = prepared_delete(table), table.add("h", 2)
    table.log.start_transaction().commit([append], WRITE)
    assert delete().version == 3


@pytest.mark.parametrize(
    ("level", "expected"), [("Serializable", "CA"), ("WriteSerializable", "ok")]
)
def test_worked_sequence_a_matching_append(make_table, level, expected):
    table = make_table(options=COARSE, configuration={"delta.isolationLevel": level}).create()
    delete = prepared_delete(table)
    table.log.start_transaction().commit([table.add("h", 1)], WRITE)
    try:
        assert delete().version == 3
        found = "ok"
    except ConcurrentAppendException:
        found = "CA"
    assert found == expected
    assert "h" in table.live()


@pytest.mark.parametrize("level", ["Serializable", "WriteSerializable"])
def test_worked_sequence_a_compaction_wins(make_table, level):
    table = make_table(options=COARSE, configuration={"delta.isolationLevel": level}).create()
    delete = prepared_delete(table)
    compact(table)
    with pytest.raises(ConcurrentAppendException):
        delete()


def test_worked_sequence_two_compactions_of_one_file(make_table):
    table = make_table(options=COARSE).create()
    table.log.start_transaction().commit([table.add("f", 1), table.add("g", 2)], WRITE)
    ours = Ours(table)
    ours.begin("OPT")
    compact(table)
    with pytest.raises(ConcurrentDeleteReadException):
        ours.finish()


def prepared_delete(table):
    """DELETE WHERE p = 1 AND x > 0, as of version 1, ready to commit."""
    table.log.start_transaction().commit([table.add("f", 1), table.add("g", 2)], WRITE)
    txn = table.log.start_transaction()
    assert txn.filter_files("p = 1 AND x > 0").column("path").to_pylist() == ["f"]
    return lambda: txn.commit([table.remove("f"), table.add("f-kept", 1)], DELETE)


def compact(table):
    txn = table.log.start_transaction()
    txn.filter_files("p = 1")
    old, new = table.remove("f", data_change=False), table.add("f2", 1, data_change=False)
    txn.commit([old, new], OPTIMIZE)


def test_a_file_removed_without_reading_it_and_removed_by_the_winner(make_table):
    table = make_table(options=COARSE).create()
    table.log.start_transaction().commit([table.add("f", 1)], WRITE)
    txn = table.log.start_transaction()
    table.log.start_transaction().commit([table.remove("f")], DELETE)
    with pytest.raises(ConcurrentDeleteDeleteException) as raised:
        txn.commit([table.remove("f")], DELETE)
    assert raised.value.conflict.paths == ("f",)


def test_a_winner_without_commit_info_counts_as_not_blind(make_table):
    table = make_table(options=COARSE, configuration={"delta.isolationLevel": "WriteSerializable"})
    table.create(table.add("f", 1))
    txn = table.log.start_transaction()
    txn.filter_files("p = 1")
    table.poke(1, [table.add("new", 1)])
    with pytest.raises(ConcurrentAppendException) as raised:
        txn.commit([table.remove("f")], DELETE)
    assert raised.value.conflict.winning_operation is None


def test_identical_metadata_on_both_sides_conflicts(make_table):
    table = make_table().create()
    txn = table.log.start_transaction()
    table.log.start_transaction().commit([table.metadata], Operation("SET TBLPROPERTIES"))
    with pytest.raises(MetadataChangedException):
        txn.commit([table.metadata], Operation("SET TBLPROPERTIES"))


def test_two_creators_of_one_table(make_table):
    table = make_table()
    table.store.ensure_directory(table.log.log_path)
    first, second = table.log.start_transaction(), table.log.start_transaction()
    for txn in (first, second):
        txn.update_metadata(table.metadata)
    assert first.commit([], Operation("CREATE TABLE")).version == 0
    with pytest.raises(ProtocolChangedException, match="several writers are creating") as raised:
        second.commit([], Operation("CREATE TABLE"))
    assert isinstance(raised.value.conflict.winning_version, int)


@pytest.mark.parametrize(
    ("winner", "expected"), [("R-hit-noadd", "DR"), ("R-hit", "CA"), ("A-m", "ok")]
)
def test_whole_table_reader_when_write_serializable(make_table, winner, expected):
    table = make_table(configuration={"delta.isolationLevel": "WriteSerializable"})
    table.create(table.add("f", 1), table.add("h", 2))
    txn = table.log.start_transaction()
    txn.read_whole_table()
    Winner(table).commit(winner)
    assert outcome_of(lambda: txn.commit([table.add("n", 2)], WRITE)) == expected


def unpartitioned_update(table):
    """UPDATE WHERE x = 1 of an unpartitioned table whose file f has x from 0 to 9, to commit."""
    table.log.start_transaction().commit([table.add("f")], WRITE)
    txn = table.log.start_transaction()
    assert txn.filter_files("x = 1").column("path").to_pylist() == ["f"]
    return lambda: txn.commit([table.remove("f"), table.add("f2")], Operation.update(["x = 1"]))


@pytest.mark.parametrize(
    ("options", "level", "expected"),
    [
        (COARSE, "Serializable", "CA"),
        (COARSE, "WriteSerializable", "ok"),
        ({}, "Serializable", "ok"),  # the statistics of the file prove that it has no such row
    ],
)
def test_an_unpartitioned_update_and_an_append_of_other_rows(make_table, options, level, expected):
    configuration = {"delta.isolationLevel": level}
    table = make_table(partitioned=False, options=options, configuration=configuration).create()
    update = unpartitioned_update(table)
    table.log.start_transaction().commit([table.add("g", low=20, high=29)], WRITE)
    try:
        found = f"ok {update().version}"
    except ConcurrentAppendException:
        found = "CA"
    assert found == {"ok": "ok 3", "CA": "CA"}[expected]


@pytest.mark.parametrize(("options", "expected"), [(COARSE, "CA"), ({}, "ok")])
def test_an_unpartitioned_update_and_a_compaction_of_other_files(make_table, options, expected):
    table = make_table(partitioned=False, options=options).create()
    table.log.start_transaction().commit([table.add("g", low=20, high=29)], WRITE)
    update = unpartitioned_update(table)
    old = table.remove("g", data_change=False)
    new = table.add("g2", low=20, high=29, data_change=False)
    table.log.start_transaction().commit([old, new], OPTIMIZE)
    try:
        update()
        found = "ok"
    except ConcurrentAppendException:
        found = "CA"
    assert found == expected
