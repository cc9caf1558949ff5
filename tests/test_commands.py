"""docs/commands.md has every command, in each of the places where one looks for it."""

from __future__ import annotations

import inspect
import re
from pathlib import Path
from typing import NamedTuple, get_args

import pytest

from optimist.core import DeltaLog
from optimist.core.requests.alterations import SetComment, TableAlteration
from optimist.core.sql.spark_statements.table_statements import PathStatement
from optimist.core.sql.statements import AlterTable, Command
from optimist.core.statements.run import MAKERS, RUNNERS
from optimist.spark import DeltaTable

ROOT = Path(__file__).resolve().parent.parent
PAGE = (ROOT / "docs" / "commands.md").read_text(encoding="utf-8")
NOT_BUILT = "(not built)"
# What tells of a table, or leads to a command, and is none.
NO_COMMANDS_OF_LOGS = {
    "changes", "clock", "commit_queue", "count", "ensure_sources_fit", "files", "follow",
    "for_path", "fsck", "head", "lease", "log_path", "metadata", "options", "protocol",
    "resolve_commit", "scan", "scan_changes", "schema", "snapshot", "sql", "start_transaction",
    "store", "table",
    "table_exists", "table_path", "to_arrow", "to_pandas", "to_polars", "undo_repair", "version",
    "wait_for_background_work",
}  # fmt: skip
NO_COMMANDS_OF_TABLES = {"alias", "forName", "forPath", "isDeltaTable", "toDF"}


class Row(NamedTuple):
    command: str
    log: str
    table: str
    sql: str
    history: str
    profile: str
    page: str

    def named(self, cell: str) -> set[str]:
        return set(re.findall(r"`([^`]+)`", cell))


ROWS = [
    Row(*(cell.strip() for cell in line.strip("|").split("|")))
    for line in PAGE.splitlines()
    if line.startswith("| ") and not line.startswith("| command")
]


def public(owner: type) -> set[str]:
    return {name for name, _ in inspect.getmembers(owner) if not name.startswith("_")}


def test_methods_without_spark_are_those_of_the_handle() -> None:
    named = set().union(*(row.named(row.log) for row in ROWS))
    assert named == public(DeltaLog) - NO_COMMANDS_OF_LOGS


def test_methods_with_spark_are_those_of_delta_tables() -> None:
    named = set().union(*(row.named(row.table) for row in ROWS))
    assert named == public(DeltaTable) - NO_COMMANDS_OF_TABLES


STATEMENTS = {*get_args(Command), *get_args(PathStatement)} - {AlterTable}


@pytest.mark.parametrize(
    "kind",
    sorted(
        STATEMENTS | {*get_args(TableAlteration)} - {SetComment}, key=lambda kind: kind.__name__
    ),
    ids=lambda kind: kind.__name__,
)
def test_each_statement_of_the_grammar_is_in_a_row_and_runs_where_it_says_so(kind: type) -> None:
    words = set(kind.statement.split())
    fits = [
        (len(named & words), row)
        for row in ROWS
        for cell in row.named(row.sql)
        if (named := set(cell.replace("...", " ").split())) <= words or words <= named
    ]
    assert fits, f"no row for {kind.statement}"
    _, row = max(fits, key=lambda fit: fit[0])
    if kind in STATEMENTS:
        runs = RUNNERS.keys() | MAKERS.keys()
        assert (kind in runs) == (NOT_BUILT not in row.sql)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.command)
def test_a_command_is_in_the_specification_and_on_a_page(row: Row) -> None:
    spec = ROOT / "docs" / "spec"
    operations = (spec / "08-operations.md").read_text(encoding="utf-8")
    for operation in row.named(row.history):
        assert f"| `{operation}`" in operations
    profiles = (spec / "02-conflicts.md").read_text(encoding="utf-8")
    matrix = (ROOT / "tests" / "core" / "transaction" / "test_transaction_matrix.py").read_text()
    for profile in filter(None, row.profile.split(", ")):
        assert re.search(rf"\*\*[^*]*\b{re.escape(profile)}\b", profiles), profile
        assert f'"{profile}":' in matrix, f"{profile} has no row in the outcome matrix"
    is_built = NOT_BUILT not in row.table + row.sql
    assert bool(row.page) == is_built
    if is_built and row.named(row.sql):
        sql = (ROOT / "docs" / "sql.md").read_text(encoding="utf-8")
        drop_in = (ROOT / "docs" / "drop-in.md").read_text(encoding="utf-8")
        first = min(row.named(row.sql), key=len).split(" ...")[0]
        assert first in sql or first in drop_in
