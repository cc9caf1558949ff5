"""The examples of the pages: blocks of Python, and which of them no test runs in order."""

from __future__ import annotations

import ast
import re
import textwrap
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
_BLOCK = re.compile(r"^( *)```python\n(.*?)^\1```$", re.MULTILINE | re.DOTALL)
_CLOUD = "needs an account of a cloud"
_OPTIONS = "only values of options"
_OF_OTHER_TESTS = "runs in a test of its own"
LEFT_OUT = {
    "azure": dict.fromkeys(range(2), _CLOUD),
    "clone": {2: "needs tables of Parquet and Iceberg in a catalog"},
    "commit": {
        **dict.fromkeys(range(3), f"{_OF_OTHER_TESTS}: tests/test_pages.py"),
        3: "needs a session and rows of a job",
        4: _CLOUD,
    },
    "connect": dict.fromkeys(range(2), "needs a server of Spark Connect"),
    "convert": {
        1: "needs a table of the catalog",
        2: "needs a table of Iceberg",
        3: "needs a table of Iceberg",
    },
    "create": {
        1: f"{_OF_OTHER_TESTS}: tests/spark/test_readme.py",
        2: f"{_OF_OTHER_TESTS}: tests/spark/test_compat.py",
    },
    "drop-in": dict.fromkeys(range(2), f"{_OF_OTHER_TESTS}: tests/spark/test_readme.py"),
    "fsspec": {0: _CLOUD, 1: _OPTIONS},
    "gcs": dict.fromkeys(range(2), _CLOUD),
    "hdfs": dict.fromkeys(range(2), "needs a cluster of Hadoop"),
    "locks": dict.fromkeys(range(6), f"{_OF_OTHER_TESTS}: tests/locks/test_own_locks.py"),
    "planes": {0: "must run before the session begins", 1: "measures, for minutes"},
    "proofs": {0: "needs a store of its reader, and takes minutes"},
    "s3": dict.fromkeys(range(5), _CLOUD),
    "security": {0: _OPTIONS},
    "skipping": dict.fromkeys(range(2), f"{_OF_OTHER_TESTS}: tests/spark/test_readme.py"),
    "stores": dict.fromkeys(range(3), f"{_OF_OTHER_TESTS}: tests/logstores/test_own_store.py"),
    "streams": dict.fromkeys(
        range(8), f"{_OF_OTHER_TESTS}: tests/spark/streams/test_streams_page.py"
    ),
}
"""The blocks that the tests of whole pages leave out, by page and number, each with its reason."""

GIVEN = {"api": {"size": 1, "modified_ms": 1}}
"""What a page takes for granted."""


def pages() -> list[str]:
    """The names of the pages of docs/ that have blocks of Python."""
    found = sorted((ROOT / "docs").glob("*.md"))
    return [page.stem for page in found if _BLOCK.search(page.read_text(encoding="utf-8"))]


def blocks_of(page: str) -> list[str]:
    """The blocks of a page of docs/, in order."""
    text = (ROOT / "docs" / f"{page}.md").read_text(encoding="utf-8")
    return [textwrap.dedent(code) for _, code in _BLOCK.findall(text)]


def needs_spark(code: str) -> bool:
    """Whether a block names a session, or the package for Spark."""
    names = {node.id for node in ast.walk(ast.parse(code)) if isinstance(node, ast.Name)}
    is_of_spark = "DeltaTable" in names and "optimist.deltalake" not in code
    return "spark" in names or is_of_spark or "optimist.spark" in code


def examples(page: str) -> list[tuple[int, str]]:
    """The blocks that run in order on the table that the page makes, with their numbers."""
    left_out = LEFT_OUT.get(page, {})
    return [item for item in enumerate(blocks_of(page)) if item[0] not in left_out]


def run_example(page: str, number: int, code: str, folder: Path, names: dict[str, object]) -> None:
    """Run a block with the tables of `/data` in a folder, so that an error names the page."""
    placed = code.replace("/data/", f"{folder}/")
    exec(compile(placed, f"docs/{page}.md, block {number}", "exec"), names)
