"""Names of a log that are taken by what is no file: an error at once, or passed over; no hang.

Each victim runs in a process of its own, which is killed if it waits for a pipe.
"""

import json
import os
import stat
import subprocess
import sys

import pytest

from optimist.core.log.names import checksum_name, classic_checkpoint_name, commit_name
from optimist.logstores import LocalLogStore
from optimist.logstores.local.queue import turn_at

GENEROUS_S = 120

VICTIM = """
import json, sys
import pyarrow as pa
from optimist.core import DeltaLog
from optimist.core.errors import OptimistError

table, steps = sys.argv[1], sys.argv[2:]

def told(step):
    store, _, step = step.partition(" ")
    log = DeltaLog.for_path(table, {"spark.delta.logStore.class": store})
    try:
        if step == "read":
            return sorted(log.to_arrow().column("id").to_pylist())
        if step == "append":
            version = log.snapshot().version + 1 if log.table_exists() else 0
            return log.append(pa.table({"id": [version]})).version
        log.checkpoint()
        return "done"
    except OptimistError as error:
        return [error.kind, str(error)]

print(json.dumps([told(step) for step in steps]))
"""


def outcome_of(table, *steps):
    finished = subprocess.run(
        [sys.executable, "-c", VICTIM, str(table), *steps],
        capture_output=True,
        text=True,
        timeout=GENEROUS_S,
        check=False,
    )
    assert finished.returncode == 0, finished.stderr
    return json.loads(finished.stdout)


def make_directory(path):
    path.mkdir()
    (path / "inside").write_text("x")


def make_dangling(path):
    path.symlink_to(path.parent / "nothing-is-here")


def make_loop(path):
    path.symlink_to(path)


def make_socket(path):
    os.mknod(path, stat.S_IFSOCK | 0o600)


def make_link_to_pipe(path):
    os.mkfifo(path.parent / "pipe")
    path.symlink_to(path.parent / "pipe")


KINDS = {
    "directory": make_directory,
    "dangling link": make_dangling,
    "loop": make_loop,
    "pipe": os.mkfifo,
    "socket": make_socket,
    "link to a pipe": make_link_to_pipe,
}


@pytest.fixture(scope="module")
def made_table(tmp_path_factory):
    """Versions 0 and 1."""
    table = tmp_path_factory.mktemp("made") / "table"
    assert outcome_of(table, "local append", "local append", "fsspec read") == [0, 1, [0, 1]]
    return table


@pytest.fixture
def table(made_table, tmp_path):
    copy = tmp_path / "table"
    subprocess.run(["cp", "-r", str(made_table), str(copy)], check=True)
    return copy


@pytest.mark.parametrize("kind", KINDS)
def test_the_next_version_is_an_error_that_names_it(table, kind):
    KINDS[kind](table / "_delta_log" / commit_name(2))
    before = sorted((table / "_delta_log").iterdir())
    found = outcome_of(table, "local read", "local append", "fsspec read", "fsspec append")
    assert found[0] == found[2] == [0, 1]
    for kind, message in (found[1], found[3]):
        assert kind == "OPTIMIST_NOT_A_FILE"
        assert commit_name(2) in message
    assert sorted((table / "_delta_log").iterdir()) == before


@pytest.mark.parametrize("kind", KINDS)
def test_what_the_engine_can_do_without_is_passed_over(table, kind):
    log = table / "_delta_log"
    (log / "_last_checkpoint").unlink(missing_ok=True)
    (log / checksum_name(1)).unlink(missing_ok=True)
    names = [
        "_last_checkpoint",
        checksum_name(1),
        classic_checkpoint_name(1),
        f".{commit_name(2)}.tmp",
        "zzz",
    ]
    for name in names:
        KINDS[kind](log / name)
        if kind == "link to a pipe":
            (log / "pipe").unlink()
    steps = ("local read", "local append", "fsspec read", "fsspec append", "local read")
    assert outcome_of(table, *steps) == [[0, 1], 2, [0, 1, 2], 3, [0, 1, 2, 3]]


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "directory"])
def test_a_log_that_is_no_directory_is_an_error(tmp_path, kind):
    table = tmp_path / "table"
    table.mkdir()
    KINDS[kind](table / "_delta_log")
    for told in outcome_of(table, "local read", "local append"):
        assert told[0].startswith(("OPTIMIST_", "DELTA_")), told
        assert str(table) in told[1]


def test_a_pipe_is_no_place_to_take_turns_at(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    script = (
        "import sys\n"
        "from optimist.logstores.local.queue import turn_at\n"
        "with turn_at(sys.argv[1], timeout_s=1):\n"
        "    print('went on')\n"
    )
    finished = subprocess.run(
        [sys.executable, "-c", script, str(tmp_path / "pipe")],
        capture_output=True,
        text=True,
        timeout=GENEROUS_S,
        check=True,
    )
    assert finished.stdout == "went on\n"


def test_names_taken_by_what_is_no_file_are_not_listed_and_not_found(tmp_path):
    (tmp_path / "file").write_text("x")
    for number, make in enumerate(KINDS.values()):
        make(tmp_path / f"{number}")
    store = LocalLogStore()
    assert [status.name for status in store.list_from(f"{tmp_path}/")] == ["file"]
    assert all(store.find(f"{tmp_path}/{number}") is None for number in range(len(KINDS)))
    assert store.find(f"{tmp_path}/file").size_bytes == 1
    with turn_at(str(tmp_path), timeout_s=1):
        pass
