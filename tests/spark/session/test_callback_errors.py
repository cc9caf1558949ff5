"""Errors that are raised while Spark calls into Python keep their class, or their message."""

from __future__ import annotations

import pytest

from optimist.core.errors import TableError
from optimist.spark import read, write
from optimist.spark.native.index import TableFileIndex
from optimist.spark.session.callback_errors import callback, original_errors


@pytest.fixture
def broken(monkeypatch):
    def fail(*_):
        raise TableError("The log is damaged.", kind="OPTIMIST_TEST")

    monkeypatch.setattr(TableFileIndex, "_left", fail)


def test_an_error_in_a_callback_keeps_its_class_in_our_entry_points(spark, table, tmp_path, broken):
    frame = read(spark, table)
    with pytest.raises(TableError) as caught:
        write(frame, str(tmp_path / "copy"))
    assert caught.value.kind == "OPTIMIST_TEST"


def test_an_error_in_a_callback_keeps_its_message_in_the_users_own_action(spark, table, broken):
    with pytest.raises(Exception, match="The log is damaged"):
        read(spark, table).count()


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
