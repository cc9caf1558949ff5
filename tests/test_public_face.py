"""docs/api.md has every public name, and each of them is reached by code that runs in a test."""

from __future__ import annotations

import ast
import importlib
import re
import textwrap
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from optimist.core import DeltaLog

ROOT = Path(__file__).resolve().parent.parent
PAGE = (ROOT / "docs" / "api.md").read_text(encoding="utf-8")
# Values that users only ever get are reached by what gives them.
GIVEN_BY = {
    "ChangeScan": "scan_changes",
    "CheckedTable": "fsck",
    "ClonedTable": "clone",
    "CommitRecord": "history",
    "CommitResolution": "resolve_commit",
    "CommitResult": "commit",
    "DeltaMergeBuilder": "merge",
    "DeltaTableBuilder": "createIfNotExists",
    "DeltaTableTransaction": "transaction",
    "LastCheckpoint": "checkpoint",
    "LocalMerge": "when_matched_update",
    "Predicate": "col",
    "OptimisticTransaction": "start_transaction",
    "Optimized": "optimize",
    "FileSizes": "optimize",
    "FollowedCommit": "follow",
    "Recomputed": "recompute_statistics",
    "RestoredTable": "restore",
    "RowScan": "scan",
    "RowsChanged": "num_updated",
    "Snapshot": "snapshot",
    "StatementResult": "run_sql",
    "TableChanges": "alter",
    "TableDetail": "detail",
    "TableTransaction": "transaction",
    "UndoneRepair": "undo_repair",
    "Vacuumed": "vacuum",
    "VacuumProgress": "vacuum",
    "FileSelection": "file_selections",
}
PAGES_THAT_RUN = (
    "alter", "api", "change-feed", "commit", "create", "drop-in", "local", "skipping", "sql",
    "streams", "transactions",
)  # fmt: skip
# Where pages hold code that a test runs, and the scripts that tests or `make demo` run.
RUN = [
    ROOT / "README.md",
    *(ROOT / "docs" / f"{page}.md" for page in PAGES_THAT_RUN),
    *(ROOT / "examples").rglob("*.py"),
]
# Not built yet, an undoing, or what few ever name.
NOT_SHOWN = {
    "disable",
    "DeltaOptimizeBuilder",
    "EngineOptions",
    "Metadata",
    "Protocol",
    "RemoveFile",
}


def blocks(page: str) -> list[str]:
    return re.findall(r"```python\n(.*?)```", page, re.DOTALL)


def listed(heading: str) -> set[str]:
    section = PAGE.partition(f"## {heading}")[2].partition("\n## ")[0]
    rows = [line.split("|")[1] for line in section.splitlines() if line.startswith("| `")]
    return {name for row in rows for name in re.findall(r"`(\w+)`", row)}


@pytest.mark.parametrize(
    ("heading", "module"),
    [
        ("Without Spark: `optimist.core`", "optimist.core"),
        ("With Spark: `optimist.spark`", "optimist.spark"),
    ],
)
def test_the_page_has_the_names_that_the_code_has(heading: str, module: str) -> None:
    assert listed(heading) == set(importlib.import_module(module).__all__)


def test_every_name_of_the_core_is_there_and_has_a_docstring() -> None:
    core = importlib.import_module("optimist.core")
    assert [name for name in core.__all__ if not getattr(core, name).__doc__] == []


def code_of(path: Path) -> list[str]:
    text = path.read_text(encoding="utf-8")
    return [text] if path.suffix == ".py" else [textwrap.dedent(code) for code in blocks(text)]


def words_of(code: str) -> set[str]:
    """The names that code uses, imports among them."""
    words = set()
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.Name):
            words.add(node.id)
        elif isinstance(node, ast.Attribute):
            words.add(node.attr)
        elif isinstance(node, ast.alias):
            words.add(node.name)
    return words


def test_every_name_is_reached_by_code_that_runs() -> None:
    reached = set().union(*(words_of(code) for path in RUN for code in code_of(path)))
    names = [
        name
        for module in ("optimist.core", "optimist.spark")
        for name in importlib.import_module(module).__all__
        if name not in NOT_SHOWN
    ]
    assert [name for name in names if GIVEN_BY.get(name, name) not in reached] == []


def test_a_table_lives_as_the_page_shows_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code = blocks(PAGE)[0].replace("/data/people", str(tmp_path / "people"))
    exec(code, {})
    told = capsys.readouterr().out.splitlines()
    assert told[-1].count("Ada L.") == 1
    assert told[-1].count("Oslo") == 1
    assert "Cid" not in told[-1]


def test_files_made_elsewhere_get_in_as_the_page_shows_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    place = tmp_path / "events"
    log = DeltaLog.for_path(str(place))
    log.append(pa.table({"month": [2], "n": [0]}), partition_by=["month"])
    (place / "month=1").mkdir()
    file = place / "month=1" / "made-elsewhere.parquet"
    pq.write_table(pa.table({"n": pa.array([7], pa.int64())}), file)
    status = file.stat()
    code = blocks(PAGE)[1].replace("/data/events", str(place))
    exec(code, {"size": status.st_size, "modified_ms": int(status.st_mtime * 1000)})
    assert capsys.readouterr().out == "1 1\n"
    assert log.to_arrow("month = 1").to_pylist() == [{"month": 1, "n": 7}]


def test_several_operations_become_one_commit_as_the_page_shows_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = (ROOT / "docs" / "transactions.md").read_text(encoding="utf-8")
    exec(blocks(page)[0].replace("/data/people", str(tmp_path / "people")), {})
    assert capsys.readouterr().out == "3\n1 2\n"


def test_statements_run_as_the_page_shows_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = (ROOT / "docs" / "sql.md").read_text(encoding="utf-8")
    exec(blocks(page)[0].replace("/data/people", str(tmp_path / "people")), {})
    assert capsys.readouterr().out == "DESCRIBE HISTORY ['MERGE']\n"
    rows = DeltaLog.for_path(tmp_path / "people").to_arrow().sort_by("id").to_pylist()
    assert [row["name"] for row in rows] == ["Ada", "Bea", "Cid"]
