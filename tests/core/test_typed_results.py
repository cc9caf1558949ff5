"""A program of a user under mypy's strict rules: results need no test for None."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = """
import pyarrow as pa

from optimist.core import DeltaLog

log = DeltaLog.for_path("/data/flights")
rows = pa.table({"id": [1]})
versions: list[int] = [
    log.create({"id": "bigint"}).version,
    log.append(rows).version,
    log.convert().version,
    log.restore(1).version,
    log.delete("id = 1").commit.version,
    log.update(set={"id": 2}).commit.version,
    log.merge(rows, ["id"]).when_matched_delete().execute().commit.version,
    log.recompute_statistics().commit.version,
    log.alter.add_columns({"x": "string"}).version,
    log.alter.change_columns({"id": "bigint"}).version,
    log.scan().version,
    log.scan_changes(starting_version=1).versions.stop,
]
with log.transaction() as txn:
    txn.append(rows)
versions.append(txn.result.version)
"""


def checked(program: Path) -> str:
    command = [sys.executable, "-m", "mypy", "--strict", "--config-file", "pyproject.toml"]
    done = subprocess.run(
        [*command, str(program)], cwd=ROOT, capture_output=True, text=True, check=False
    )
    return done.stdout + done.stderr


@pytest.mark.again
def test_a_strict_type_check_of_a_program_passes(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    assert checked(program).startswith("Success")
    program.write_text(PROGRAM + "wrong: str = log.append(rows).version\n")
    assert checked(program).count("error:") == 1
