"""A notebook that a kernel runs: what its cells end with is shown as HTML."""

from __future__ import annotations

from pathlib import Path

import nbclient
import nbformat
import pytest

CELLS = (
    "import pyarrow as pa\nfrom optimist.core import DeltaLog, Operation\n"
    "log = DeltaLog.for_path({path!r})",
    "log.append(pa.table({{'id': [1, 2, 3], 'name': ['a', '<b>', None]}}))",
    "log",
    "log.snapshot()",
    "log.delete('id = 2')",
    "log.scan('id = 1')",
    "log.sql('DESCRIBE HISTORY this')",
    "log.fsck()",
    "slow = log.start_transaction()\n_ = slow.filter_files()\nlog.delete('id = 1')\n"
    "try:\n    slow.commit([], Operation('MANUAL UPDATE', {{}}))\n"
    "except Exception as error:\n    found = error\nfound",
    "DeltaLog.for_path({path!r} + '-none')",
)


@pytest.mark.filterwarnings("default")
def test_each_cell_shows_html(tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    cells = [nbformat.v4.new_code_cell(cell.format(path=path)) for cell in CELLS]
    notebook = nbformat.v4.new_notebook(cells=cells)
    done = nbclient.NotebookClient(notebook, timeout=300, kernel_name="python3").execute()
    shown = [cell.outputs[0].data for cell in done.cells[1:]]
    for data in shown[:-1]:
        assert data["text/html"].startswith("<div><strong>")
        assert "<b>" not in data["text/html"]
    assert "text/html" not in shown[-1]
    assert shown[-1]["text/plain"].startswith("DeltaLog('")
    assert "<th" in shown[7]["text/html"]
    assert "DELETE" in shown[7]["text/html"]
