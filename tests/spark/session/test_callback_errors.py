"""Errors that are raised while Spark calls into Python keep their class, or their message."""

from __future__ import annotations

import traceback
import weakref
from types import SimpleNamespace

import pyarrow as pa
import pytest

from optimist.core import DeltaLog
from optimist.core.errors import StorageError, TableError
from optimist.core.maintenance.vacuum.file_deletion import Deletion
from optimist.core.runtime.begun_changes import note_change_begun, num_changes_begun
from optimist.core.statements.result_columns import OPTIMIZED
from optimist.spark import read, write
from optimist.spark.native.index import TableFileIndex
from optimist.spark.rows import local_rows
from optimist.spark.session.callback_errors import callback, original_errors


@pytest.fixture
def broken(monkeypatch):
    def fail(*_):
        raise TableError("The log is damaged.", kind="OPTIMIST_TEST")

    monkeypatch.setattr(TableFileIndex, "_apply_filters", fail)


def test_an_error_in_a_callback_keeps_its_class_in_our_entry_points(spark, table, tmp_path, broken):
    frame = read(spark, table)
    with pytest.raises(TableError) as caught:
        write(frame, str(tmp_path / "copy"))
    assert caught.value.kind == "OPTIMIST_TEST"


def test_an_error_in_a_callback_keeps_its_message_in_the_users_own_action(spark, table, broken):
    with pytest.raises(Exception, match="The log is damaged"):
        read(spark, table).collect()


def test_errors_without_a_ticket_pass_through():
    with pytest.raises(KeyError), original_errors():
        raise KeyError("x")


def test_a_ticket_leads_to_the_original_error():
    with pytest.raises(KeyError, match="first"), original_errors():
        try:
            with callback():
                raise KeyError("first")
        except RuntimeError as error:
            raise OSError(f"Java says: {error}") from None


class _Rows:
    """What a function may hold while it fails."""


def test_an_error_that_is_kept_holds_no_locals_and_still_tells_its_lines():
    held = []

    def fail():
        rows = _Rows()
        held.append(weakref.ref(rows))
        try:
            raise KeyError("first")
        except KeyError as error:
            raise ValueError("second") from error

    with pytest.raises(ValueError, match="second") as caught, original_errors():
        try:
            with callback():
                fail()
        except RuntimeError as error:
            text = str(error)
        assert held[0]() is None
        raise OSError(f"Java says: {text}")
    assert "in fail" in "".join(traceback.format_exception(caught.value))


class _GoneError(Exception):
    """What gRPC raises where nobody answers."""

    def code(self):
        return SimpleNamespace(name="UNAVAILABLE")


def test_a_lost_server_is_told_by_what_the_call_had_begun():
    with pytest.raises(StorageError) as caught, original_errors():
        raise _GoneError
    assert caught.value.kind == "OPTIMIST_SPARK_SERVER_LOST"
    assert "Nothing was written" in str(caught.value)
    note_change_begun()  # by a call before, which is none of the next one's
    with pytest.raises(StorageError) as caught, original_errors():
        raise _GoneError
    assert caught.value.kind == "OPTIMIST_SPARK_SERVER_LOST"
    with pytest.raises(StorageError) as caught, original_errors():
        note_change_begun()
        with original_errors():
            raise _GoneError
    assert caught.value.kind == "OPTIMIST_SPARK_SERVER_LOST_MIDWAY"
    assert "Nothing was written" not in str(caught.value)


@pytest.mark.parametrize("way", ["commit", "large", "group", "delete"])
def test_every_way_to_change_a_table_is_noted(tmp_path, way):
    path = str(tmp_path / "t")
    log = DeltaLog.for_path(path, {})
    rows = pa.table({"id": [1]})
    log.append(rows)
    before = num_changes_begun()
    if way == "commit":
        log.append(rows)
    elif way == "large":
        log.append(rows)
        before = num_changes_begun()
        log.restore(version=0)
    elif way == "delete":
        Deletion(log.table, lambda _: None).delete(pa.array(["none.parquet"]))
    else:
        DeltaLog.for_path(path, {"optimist.commit.group.enabled": "true"}).append(rows)
    assert num_changes_begun() > before


def test_what_a_command_has_done_is_told_without_the_server(monkeypatch):
    monkeypatch.setattr(local_rows, "is_connect", lambda _: True)
    row = {"path": "/t", "metrics": {"numFilesAdded": 3}}
    nobody = object()  # a session that answers nothing
    table = pa.Table.from_pylist([row], schema=OPTIMIZED)
    frame = local_rows.result_frame(nobody, table)
    assert frame._plan._table.to_pylist()[0]["metrics"]["numFilesAdded"] == 3
    assert frame._session is nobody
