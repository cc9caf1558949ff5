"""Processes that write to one table on a local disk."""

from __future__ import annotations

from append_races import append_in_processes, create_table, ensure_every_append_is_there_once


def test_8_processes_append_5_times_each(tmp_path):
    create_table(tmp_path)
    append_in_processes(tmp_path, writers=8, appends=5, timeout_s=240)
    ensure_every_append_is_there_once(tmp_path, writers=8, appends=5)
