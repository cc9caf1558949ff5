"""Checkpoints of ours over tables of delta-spark: deltalake finds the same files in them."""

import os
import shutil
from pathlib import Path

import deltalake
import pytest

from optimist.core import DeltaLog
from optimist.core.errors import ProtocolError

ROOT = os.environ.get("OPTIMIST_DAT")
TABLES = sorted(Path(ROOT).iterdir()) if ROOT else []
pytestmark = pytest.mark.skipif(
    not ROOT, reason="set OPTIMIST_DAT to the folder of the Delta Acceptance Tests"
)


def their_files(path):
    """What deltalake finds, or None where it can't read the table at all."""
    try:
        return sorted(deltalake.DeltaTable(str(path)).file_uris())
    except deltalake.exceptions.DeltaError:
        return None


def checkpointed(table, tmp_path):
    """A copy whose newest version has a checkpoint of ours and no other way to it."""
    copy = tmp_path / table.name
    shutil.copytree(table / "delta", copy)
    before = their_files(copy)
    try:
        log = DeltaLog.for_path(str(copy))
        ours = sorted(log.snapshot().files["path"].to_pylist())
        version = log.checkpoint().version
    except ProtocolError as error:
        pytest.skip(f"not supported yet: {error}")
    for path in (copy / "_delta_log").iterdir():
        if path.is_file() and path.name[:20].isdecimal() and int(path.name[:20]) < version:
            path.unlink()
    return copy, before, ours


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.name)
def test_a_table_reads_the_same_from_our_checkpoint_alone(table, tmp_path):
    copy, before, ours = checkpointed(table, tmp_path)
    again = DeltaLog(str(copy), DeltaLog.for_path(str(copy)).store).snapshot()
    assert sorted(again.files["path"].to_pylist()) == ours
    assert their_files(copy) == before
