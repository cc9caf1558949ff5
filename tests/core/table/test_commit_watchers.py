"""Whoever asks is told of each commit of this process that changes rows."""

from __future__ import annotations

import pytest

from optimist.core.log.file_table import files_table
from optimist.core.log.many_files import ManyFiles
from optimist.core.protocol.actions import SetTransaction
from optimist.core.table import commit_watchers
from optimist.core.table.commit_watchers import watch_commits
from optimist.core.transaction.conflicts.operations import Operation

WRITE = Operation("WRITE", {"mode": "Append"})


@pytest.fixture
def told(monkeypatch):
    monkeypatch.setattr(commit_watchers._WATCHERS, "by_name", {})
    tables = []
    watch_commits("the test", lambda *commit: tables.append(commit))
    return tables


def test_a_commit_of_any_handle_is_told_once_rows_have_changed(make_table, told):
    table = make_table().create()
    told.clear()
    log = table.handle()
    log.start_transaction().commit([table.add("a")], WRITE)
    assert [(one.log_path, known.version) for one, known in told] == [(log.log_path, 1)]
    log.start_transaction().commit([SetTransaction("app", 1)], WRITE)
    log.start_transaction().commit([table.add("b", data_change=False)], WRITE)
    assert len(told) == 1


def test_a_commit_whose_files_are_columns_is_told_if_it_names_any(make_table, told):
    table = make_table().create()
    some, none = files_table([table.add("a")]), files_table([])
    told.clear()
    for removed in (none, some):
        many = ManyFiles(none, removed, 5)
        table.log.start_transaction().commit_large((), Operation("RESTORE"), files=many)
    assert [known.version for _, known in told] == [2]


def test_a_commit_stands_though_a_watcher_fails(make_table, told, caplog):
    def fail(*_):
        raise OSError("gone")

    table = make_table().create()
    watch_commits("the test", fail)
    log = table.handle()
    assert log.start_transaction().commit([table.add("a")], WRITE).version == 1
    assert "the test could not be notified" in caplog.text
