"""Row tracking is switched on for a table that has rows: all of them get ids, once and for good."""

from __future__ import annotations

from itertools import count

import pyarrow as pa
import pytest
from deltalake import DeltaTable as OtherTable

from altered_tables import commit_metadata, configuration, table
from optimist.core import DeltaLog
from optimist.core.commands.alter import table_changes
from optimist.core.commands.alter.properties import set_properties
from optimist.core.commands.alter.row_numbering import number_files
from optimist.core.log.file_table import add_files
from optimist.core.transaction.optimistic import OptimisticTransaction
from refusals import fails

TRACKED = {"delta.enableRowTracking": "true"}
TWO_FILES = {"spark.databricks.delta.rowTracking.backfill.maxNumFiles": "2"}
VECTORS = {"delta.enableDeletionVectors": "true"}


def filled(path, num_files=5, properties=None):
    """A table of so many files, of two rows each: (0, 1), (2, 3) and so on."""
    log = DeltaLog.for_path(str(path), TWO_FILES)
    for at in range(num_files):
        rows = pa.table({"id": pa.array([2 * at, 2 * at + 1], pa.int64()), "s": ["x", "y"]})
        log.append(rows)
    if properties:
        log.alter.set_properties(properties)
    return log


def history(log):
    return [record.info.operation for record in reversed(log.history())]


def row_ids(log):
    """The id and the commit version of each row, by its value of `id`; every row has both."""
    names = ["id", "_metadata.row_id", "_metadata.row_commit_version"]
    rows = log.to_arrow(columns=names).to_pylist()
    found = {row["id"]: (row[names[1]], row[names[2]]) for row in rows}
    assert len(rows) == len(found) == len({row_id for row_id, _ in found.values()})
    assert all(None not in pair for pair in found.values())
    return found


def test_all_rows_get_ids_in_bounded_commits_before_the_property_is_set(tmp_path):
    log = filled(tmp_path)
    assert log.alter.set_properties({**TRACKED, "own": "x"}).version == 9
    assert history(log)[5:] == [
        "UPGRADE PROTOCOL",
        *["ROW TRACKING BACKFILL"] * 3,
        "SET TBLPROPERTIES",
    ]
    infos = [record.info for record in reversed(log.history())]
    assert [info.operation_parameters["batchId"] for info in infos[6:9]] == ["0", "1", "2"]
    assert not any(info.is_blind_append for info in infos[6:9])
    found = row_ids(log)
    assert sorted(row_id for row_id, _ in found.values()) == list(range(10))
    assert {version for _, version in found.values()} == {6, 7, 8}
    assert configuration(log)["own"] == "x"
    log.append(pa.table({"id": pa.array([10], pa.int64()), "s": ["z"]}))
    log.delete("id = 3")
    after = row_ids(log)
    assert after.pop(10) == (10, 10)
    assert after == {key: value for key, value in found.items() if key != 3}
    assert OtherTable(str(tmp_path)).to_pyarrow_table().num_rows == 10


def stop_after(num_commits, log, monkeypatch):
    """Switch row tracking on, and be killed when it has made so many commits."""
    left = count(num_commits, -1)

    def stopping(change):
        def run(*arguments, **options):
            wanted = change(*arguments, **options)
            if wanted is None or next(left) > 0:
                return wanted
            raise KeyboardInterrupt

        return run

    with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
        for name in ("support_row_ids", "number_files"):
            patched.setattr(table_changes, name, stopping(getattr(table_changes, name)))
        if num_commits == 4:
            patched.setattr(table_changes.properties, "set_properties", stopping(set_properties))
        log.alter.set_properties(TRACKED)


@pytest.mark.parametrize("written", range(5))
def test_stopped_between_two_commits_it_goes_on_where_it_was(tmp_path, monkeypatch, written):
    log = filled(tmp_path)
    stop_after(written, log, monkeypatch)
    assert log.snapshot().version == 4 + written
    assert "delta.enableRowTracking" not in configuration(log)
    given = {add.path: add.base_row_id for add in add_files(log.snapshot().files)}
    again = DeltaLog.for_path(str(tmp_path), TWO_FILES)
    again.alter.set_properties(TRACKED)
    assert len(history(again)) == 10
    assert len(row_ids(again)) == 10
    for add in add_files(again.snapshot().files):
        assert given[add.path] in (None, add.base_row_id)


def appended(log):
    log.append(pa.table({"id": pa.array([90, 91], pa.int64()), "s": ["n", "n"]}))
    return {90, 91}, set()


def deleted_by_file(log):
    log.delete("id < 2")
    return set(), {0, 1}


def deleted_by_row(log):
    log.delete("id = 0")
    return set(), {0}


def updated(log):
    log.update(set={"s": "'new'"}, predicate="id = 1 OR id = 8")
    return set(), set()


@pytest.mark.parametrize("at", range(4))
@pytest.mark.parametrize("others", [appended, deleted_by_file, deleted_by_row, updated])
@pytest.mark.parametrize("properties", [None, VECTORS], ids=["copies", "vectors"])
def test_commits_of_others_between_and_during_ours_leave_no_row_without_an_id(
    tmp_path, monkeypatch, at, others, properties
):
    log, meanwhile = filled(tmp_path, properties=properties), []
    steps = count()

    def met(change):
        def run(*arguments, **options):
            wanted = change(*arguments, **options)
            if wanted is not None and next(steps) == at:
                meanwhile.append(others(DeltaLog.for_path(str(tmp_path))))
            return wanted

        return run

    for name in ("support_row_ids", "number_files"):
        monkeypatch.setattr(table_changes, name, met(getattr(table_changes, name)))
    log.alter.set_properties(TRACKED)
    [(new, gone)] = meanwhile
    assert set(row_ids(log)) == {*range(10), *new} - gone
    assert log.snapshot().has_active("rowTracking")
    log.snapshot().ensure_intact()


@pytest.mark.parametrize("at", range(4))
@pytest.mark.parametrize("others", [appended, deleted_by_row, updated])
@pytest.mark.parametrize("properties", [None, VECTORS], ids=["copies", "vectors"])
def test_writes_that_began_before_land_with_ids(tmp_path, monkeypatch, at, others, properties):
    """What others have written is committed only after so many of our commits."""
    log, started = filled(tmp_path, properties=properties), []
    late = DeltaLog.for_path(str(tmp_path))

    def after_ours(commit):
        def run(txn, *arguments, **options):
            if not started:
                started.append(txn.read_version)
                stop_after(at, log, monkeypatch)
            return commit(txn, *arguments, **options)

        return run

    with monkeypatch.context() as patched:
        for name in ("commit", "commit_if_needed"):
            real = getattr(OptimisticTransaction, name)
            patched.setattr(OptimisticTransaction, name, after_ours(real))
        new, gone = others(late)
    assert started
    log.alter.set_properties(TRACKED)
    assert set(row_ids(log)) == {*range(10), *new} - gone


def test_two_that_number_the_same_files_give_each_row_one_id(tmp_path, monkeypatch):
    log, seen = filled(tmp_path), []

    def beside(*arguments, **options):
        wanted = number_files(*arguments, **options)
        if not seen:
            seen.append(wanted)
            DeltaLog.for_path(str(tmp_path), TWO_FILES).alter.set_properties(TRACKED)
            seen.append(row_ids(log))
        return wanted

    monkeypatch.setattr(table_changes, "number_files", beside)
    log.alter.set_properties(TRACKED)
    assert row_ids(log) == seen[1]


@pytest.mark.parametrize(
    ("properties", "kind"),
    [
        ({"delta.nope": "1"}, "DELTA_UNKNOWN_CONFIGURATION"),
        ({"delta.appendOnly": "perhaps"}, "OPTIMIST_INVALID_TABLE_PROPERTY"),
        ({"delta.rowTrackingSuspended": "true"}, "DELTA_ROW_TRACKING_ILLEGAL_PROPERTY_COMBINATION"),
        ({"delta.columnMapping.mode": "id"}, "DELTA_UNSUPPORTED_COLUMN_MAPPING_MODE_CHANGE"),
        ({"delta.dataSkippingStatsColumns": "gone"}, "DELTA_COLUMN_NOT_FOUND_IN_SCHEMA"),
        ({"location": "/elsewhere"}, "DELTA_CANNOT_CHANGE_LOCATION"),
    ],
)
def test_what_can_not_be_set_is_refused_before_a_row_is_numbered(tmp_path, properties, kind):
    log = filled(tmp_path, 2)
    fails(kind, log.alter.set_properties, {**TRACKED, **properties})
    assert log.snapshot().version == 1


def test_rows_are_not_numbered_while_that_is_suspended(tmp_path):
    log = filled(tmp_path, 2, {"delta.rowTrackingSuspended": "true"})
    kind = "DELTA_ROW_TRACKING_ILLEGAL_PROPERTY_COMBINATION"
    fails(kind, log.alter.set_properties, TRACKED)
    fails(kind, log.alter.set_properties, {**TRACKED, "delta.rowTrackingSuspended": "false"})
    assert log.snapshot().version == 2
    log.alter.set_properties({"delta.rowTrackingSuspended": "false"})
    log.alter.set_properties(TRACKED)
    assert len(row_ids(log)) == 4


def test_rows_of_files_without_a_count_are_not_numbered(tmp_path):
    log = filled(tmp_path, 1)
    bare = DeltaLog.for_path(str(tmp_path), {"spark.databricks.delta.stats.collect": "false"})
    bare.append(pa.table({"id": pa.array([7], pa.int64()), "s": ["x"]}))
    error = fails("DELTA_ROW_ID_ASSIGNMENT_WITHOUT_STATS", log.alter.set_properties, TRACKED)
    assert error.fields["path"] in bare.snapshot().files["path"].to_pylist()
    assert log.snapshot().version == 1


def test_a_property_that_meant_nothing_so_far_promises_ids_only_once_there_are_some(
    tmp_path, monkeypatch
):
    filled(tmp_path, 3)
    commit_metadata(DeltaLog.for_path(str(tmp_path)), configuration=TRACKED)
    log = DeltaLog.for_path(str(tmp_path), TWO_FILES)
    seen = []

    def noted(*arguments, **options):
        seen.append(log.snapshot().has_active("rowTracking"))
        return number_files(*arguments, **options)

    monkeypatch.setattr(table_changes, "number_files", noted)
    log.alter.set_properties(TRACKED)
    assert seen == [False] * 3
    assert len(row_ids(log)) == 6


def test_an_empty_table_and_one_that_tracks_its_rows_need_no_numbers(tmp_path):
    log = table(tmp_path)
    log.delete("true")
    log.alter.set_properties(TRACKED)
    assert history(log)[2:] == ["UPGRADE PROTOCOL", "SET TBLPROPERTIES"]
    log.alter.set_properties({"delta.ENABLEROWTRACKING": "TRUE"})
    assert history(log)[4:] == ["SET TBLPROPERTIES"]
