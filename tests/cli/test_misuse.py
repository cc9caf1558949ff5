"""Wrong calls of the command line, and outputs that fail: one line, an exit code, no traceback."""

from __future__ import annotations

import io
import os
import pty
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from optimist.core import DeltaLog

OPTIMIST = [sys.executable, "-m", "optimist.cli"]


@pytest.mark.parametrize(
    "arguments",
    [
        ("count", "fs.azure.account.key=geheim-7f3a"),
        ("count", "--where=geheim-7f3a", "--nope=geheim-7f3a"),
    ],
)
def test_a_wrong_call_shows_no_value_that_may_be_a_secret(shell, table, arguments):
    ran = shell(arguments[0], table, *arguments[1:])
    assert ran.status == 2
    assert ran.errors.count("\n") == 1
    assert "geheim" not in ran.output + ran.errors


LARGEST = 2**63 - 1


@pytest.mark.parametrize(
    "arguments",
    [
        ("count", "--version"),
        ("history", "--limit"),
        ("files", "--limit"),
        ("head", "--limit"),
        ("head", "--version"),
        ("log",),
        ("changes", "--from"),
        ("commit-status", "x", "--version"),
    ],
    ids=" ".join,
)
@pytest.mark.sample(1)
def test_numbers_without_an_end_are_one_error(shell, table, arguments):
    command, *rest = arguments
    ran = shell(command, table, *rest, LARGEST + 1)
    assert (ran.status, ran.errors.count("\n")) == (2, 1)
    ran = shell(command, table, *rest, LARGEST)
    assert ran.status in (0, 1, 3)
    assert "error in Optimist" not in ran.errors


def test_columns_that_can_t_be_parsed_are_misuse(shell, table):
    ran = shell("head", table, "--columns", "a\nb")
    assert (ran.status, ran.errors.count("\n")) == (2, 1)
    assert "list of columns" in ran.errors


def test_tables_are_found_below_any_name(shell, tmp_path):
    odd = tmp_path / "a\nb" / "[red]x"
    DeltaLog.for_path(str(odd)).append(pa.table({"x": [1]}))
    (found,) = shell.json("tables", tmp_path)["tables"]
    assert found["table"] == str(odd)
    assert "[red]x" in shell("tables", tmp_path).output


def answered(table: str, keys: bytes) -> tuple[int, bytes]:
    """The exit code and the errors of a VACUUM whose question is answered by these keys."""
    main, end = pty.openpty()
    command = [*OPTIMIST, "vacuum", table, "--delete", "--retain-hours", "0"]
    conf = "spark.databricks.delta.retentionDurationCheck.enabled=false"
    process = subprocess.Popen(
        [*command, "--conf", conf],
        stdin=end,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
        preexec_fn=lambda: __import__("fcntl").ioctl(end, __import__("termios").TIOCSCTTY, 0),
    )
    told = b""
    while b"?" not in told:
        told += process.stderr.read(1)
    os.write(main, keys)
    _, errors = process.communicate()
    os.close(main)
    os.close(end)
    return process.returncode, errors


@pytest.mark.parametrize(
    ("keys", "status", "told"),
    [(b"\x03", 130, b"Interrupted"), (b"\x04", 2, b"Nothing was")],
    ids=["Ctrl-C", "Ctrl-D"],
)
def test_a_question_can_be_left(table, keys, status, told):
    before = sorted(Path(table).rglob("*"))
    code, errors = answered(table, keys)
    assert code == status
    assert told in errors
    assert b"error in Optimist" not in errors
    assert sorted(Path(table).rglob("*.parquet")) == [p for p in before if p.suffix == ".parquet"]


def test_a_full_disk_is_one_error(table):
    for command in (["count", table], ["cat", table]):
        with Path("/dev/full").open("w") as full:
            done = subprocess.run([*OPTIMIST, *command], stdout=full, stderr=subprocess.PIPE)
        assert done.returncode == 3
        assert done.stderr.count(b"\n") == 1
        assert b"could not be written" in done.stderr


def test_closed_streams_are_no_error(table):
    line = " ".join([*OPTIMIST, "count", table])
    done = subprocess.run(f"{line} >&- 2>&-", shell=True, capture_output=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


def test_parquet_goes_through_a_pipe(table):
    done = subprocess.run([*OPTIMIST, "cat", table, "--format", "parquet"], capture_output=True)
    assert (done.returncode, done.stderr) == (0, b"")
    assert pq.read_table(io.BytesIO(done.stdout)).num_rows == 13
