"""A table that is put back to an older copy of itself while a stream is over it."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pyarrow as pa
import pytest

from optimist.core import DeltaLog
from optimist.core.errors import TableError


def append(log: DeltaLog, number: int) -> None:
    log.append(pa.table({"id": [number]}))


def put_back(copy: str, table: str) -> None:
    """As `rsync` does: the files are those of the copy again, with new times."""
    shutil.rmtree(table)
    shutil.copytree(copy, table, copy_function=shutil.copyfile)
    for file in Path(table).rglob("*"):
        os.utime(file)


@pytest.mark.parametrize("more", [1, 2, 5])
def test_commits_in_place_of_those_that_were_read_are_not_passed_over_in_silence(tmp_path, more):
    table, copy = str(tmp_path / "t"), str(tmp_path / "copy")
    log = DeltaLog.for_path(table)
    append(log, 0)
    shutil.copytree(table, copy)
    following = log.follow(wait_s=0.001)
    assert next(following).to_arrow()["id"].to_pylist() == [0]
    append(log, 1)
    assert next(following).to_arrow()["id"].to_pylist() == [1]
    append(log, 2)
    assert next(following).to_arrow()["id"].to_pylist() == [2]
    put_back(copy, table)
    other = DeltaLog.for_path(table, {"spark.optimist.engineInfo": "another"})
    for number in range(more):
        append(other, 100 + number)
    with pytest.raises(TableError, match="older state"):
        for _ in range(10):
            next(following)


def test_a_stream_goes_on_while_its_log_is_cleaned_up_and_read_anew(tmp_path):
    log = DeltaLog.for_path(str(tmp_path / "t"))
    append(log, 0)
    following = log.follow(wait_s=0.001)
    read = [next(following).to_arrow()["id"].to_pylist()]
    for number in range(1, 25):
        append(
            DeltaLog.for_path(log.table_path, {"spark.optimist.engineInfo": str(number)}), number
        )
        if number % 5 == 0:
            log.checkpoint()
        read.append(next(following).to_arrow()["id"].to_pylist())
    assert read == [[number] for number in range(25)]
