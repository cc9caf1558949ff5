"""What commands need from the engine, imported on first use, so that `--help` is quick."""

from __future__ import annotations

from typing import TYPE_CHECKING

from optimist.core.imports import names_by_need

if TYPE_CHECKING:
    from optimist.cli.answers.answer import Answer
    from optimist.cli.answers.json_columns import json_facts
    from optimist.cli.answers.live_commits import show_commits
    from optimist.cli.answers.show import show
    from optimist.cli.report.table_report import table_report
    from optimist.cli.work.columns import schema_rows
    from optimist.cli.work.commit_words import describe_commit
    from optimist.cli.work.examination import examine
    from optimist.cli.work.left_out_files import explain_files
    from optimist.cli.work.logged_conflicts import logged_conflicts
    from optimist.cli.work.nearest import with_nearest
    from optimist.cli.work.overtaken_commits import overtaken_commits
    from optimist.cli.work.rows_out import target_of, write_rows
    from optimist.cli.work.tables_below import tables_below
    from optimist.cli.work.version_difference import difference_of
    from optimist.cli.work.watched_commits import watch_commits
    from optimist.cli.work.watched_streams import WatchedStream
    from optimist.core.runtime.progress_bars import opening_bar, progress_bar
    from optimist.core.statements.history import detail_rows, history_rows
    from optimist.core.table.delta_log import DeltaLog
    from optimist.core.table.run_sql import run_sql

__all__ = [
    "Answer",
    "DeltaLog",
    "WatchedStream",
    "describe_commit",
    "detail_rows",
    "difference_of",
    "examine",
    "explain_files",
    "history_rows",
    "json_facts",
    "logged_conflicts",
    "opening_bar",
    "overtaken_commits",
    "progress_bar",
    "run_sql",
    "schema_rows",
    "show",
    "show_commits",
    "table_report",
    "tables_below",
    "target_of",
    "watch_commits",
    "with_nearest",
    "write_rows",
]

_WORK = "optimist.cli.work"
__getattr__ = names_by_need(
    __name__,
    {
        "Answer": "optimist.cli.answers.answer",
        "DeltaLog": "optimist.core.table.delta_log",
        "WatchedStream": f"{_WORK}.watched_streams",
        "describe_commit": f"{_WORK}.commit_words",
        "detail_rows": "optimist.core.statements.history",
        "difference_of": f"{_WORK}.version_difference",
        "examine": f"{_WORK}.examination",
        "explain_files": f"{_WORK}.left_out_files",
        "history_rows": "optimist.core.statements.history",
        "json_facts": "optimist.cli.answers.json_columns",
        "logged_conflicts": f"{_WORK}.logged_conflicts",
        "opening_bar": "optimist.core.runtime.progress_bars",
        "overtaken_commits": f"{_WORK}.overtaken_commits",
        "progress_bar": "optimist.core.runtime.progress_bars",
        "run_sql": "optimist.core.table.run_sql",
        "schema_rows": f"{_WORK}.columns",
        "show": "optimist.cli.answers.show",
        "show_commits": "optimist.cli.answers.live_commits",
        "table_report": "optimist.cli.report.table_report",
        "tables_below": f"{_WORK}.tables_below",
        "target_of": f"{_WORK}.rows_out",
        "watch_commits": f"{_WORK}.watched_commits",
        "with_nearest": f"{_WORK}.nearest",
        "write_rows": f"{_WORK}.rows_out",
    },
)
