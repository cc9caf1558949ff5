"""A command of the command line, run in this process: its exit code and what it wrote."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import jsonschema
import pyarrow as pa
import pytest

from optimist.cli.app import run
from optimist.core import DeltaLog

SCHEMAS = Path(__file__).parents[2] / "cli" / "schemas"
FEED = {"spark.databricks.delta.properties.defaults.enableChangeDataFeed": "true"}


@dataclass(frozen=True)
class Ran:
    """What a command has done."""

    status: int
    output: str
    errors: str


class Shell:
    """Runs commands, and holds each JSON answer against the schema of its command."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self._capsys = capsys

    def __call__(self, *arguments: object) -> Ran:
        self._capsys.readouterr()
        status = run([str(each) for each in arguments])
        written = self._capsys.readouterr()
        return Ran(status, written.out, written.err)

    def json(self, command: str, *arguments: object, status: int = 0) -> dict:
        ran = self(command, *arguments, "--output", "json")
        assert (ran.status, ran.errors) == (status, "")
        answer = json.loads(ran.output)
        schema = json.loads((SCHEMAS / f"{command}.json").read_text())
        jsonschema.validate(answer, schema, cls=jsonschema.Draft202012Validator)
        return answer


@pytest.fixture
def shell(capsys: pytest.CaptureFixture[str]) -> Shell:
    return Shell(capsys)


def flights(path: Path) -> DeltaLog:
    """Three months of five rows, one file each, of which two rows are deleted again."""
    log = DeltaLog.for_path(str(path), FEED)
    for month in (1, 2, 3):
        rows = {
            "month": pa.array([month] * 5, pa.int32()),
            "delay": [month * 10 + i for i in range(5)],
            "tail": [f"N{i}" for i in range(4)] + [None],
        }
        log.append(pa.table(rows), partition_by=("month",))
    log.delete("month = 1 AND delay > 12")
    return log


@pytest.fixture
def table(tmp_path: Path) -> str:
    flights(tmp_path / "flights")
    return str(tmp_path / "flights")
