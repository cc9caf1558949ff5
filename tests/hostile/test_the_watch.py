"""That the fuzzer of tables would notice: faults are planted, and it tells of each."""

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import log_mutations
import trial_runner
from hostile_cases import case_of
from hostile_records import Record, arbiter_with
from hostile_values import Chance, Surroundings
from log_mutations import Mutated, mutate
from optimist.core.errors import StorageError
from table_trial import Trial

pytestmark = pytest.mark.skipif(
    sys.platform != "linux", reason="only Linux limits memory and tells who opened a file"
)

PLANT = """
import json, sys
sys.path.insert(0, {support!r})
from pathlib import Path
import table_trial, trial_worker
from log_mutations import Mutated
from hostile_cases import Case
from seed_tables import seed_tables
from optimist.core.errors import TableError
trial_worker.SECONDS, trial_worker.WALL_SECONDS = 1, {wall_seconds}
workshop = trial_worker.Workshop(Path({folder!r}))
workshop.limit()
around = workshop.around
seed = seed_tables()[0]
class Odd(TableError):
    def __str__(self):
        return chr(self.fields["code"]) * self.fields["times"]
def plant(log):
    exec(fault)
told = {{}}
for name, fault, outside in {faults!r}:
    answers = {{"count": lambda log: -1, "rows": lambda log: 99}}
    table_trial._READING = {{name: answers[name]}} if name in answers else {{"planted": plant}}
    case = Case(0, seed, Mutated(dict(seed.files)), around.table, outside)
    trial_worker._begin()
    told[name] = workshop.try_case(case).faults
print(json.dumps(told))
"""
SUPPORT = str(Path(__file__).parent / "support")
FAULTS = {
    "reads a file": ("import pyarrow.parquet as pq; pq.read_table(around.parquet)", "was opened"),
    "reads with Python": ("open(around.text).read()", "was opened"),
    "writes elsewhere": ("open('/tmp/' + around.text.name, 'w').close()", "opened to write"),
    "changes the canary": ("around.text.write_text('x')", "was changed"),
    "makes a file": ("(around.canaries / 'new').touch()", "new was made"),
    "calls the host": (
        "import socket; socket.create_connection(('127.0.0.1', around.port))",
        "the host was called",
    ),
    "looks a name up": ("import socket; socket.getaddrinfo('localhost', 1)", "a host was asked"),
    "runs a program": ("import subprocess; subprocess.run(['true'])", "a program was started"),
    "tells the secret": (
        "import os; raise TableError(os.environ['OPTIMIST_CANARY'], kind='X')",
        "the secret is told",
    ),
    "logs the secret": (
        "import logging, os; logging.getLogger('x').warning(os.environ['OPTIMIST_CANARY'])",
        "the secret is told",
    ),
    "raises": ("{}['key']", "KeyError"),
    "recurses": ("plant(log)", "RecursionError"),
    "takes memory": ("bytearray(1 << 31)", "MemoryError"),
    "is long": ("raise Odd('', kind='X', code=65, times=10_000)", "X has 10000 characters"),
    "tells control characters": ("raise Odd('', kind='X', code=27, times=1)", "'\\x1b' as it is"),
    "count": ("", "it is -1"),
    "rows": ("", "rows: 99 instead of "),
}
SOUND = ("sound", "log.count()", "never")
MAY_READ = ("may read", FAULTS["reads a file"][0], "same-store")
MAY_NOT_CHANGE = ("may not change", FAULTS["changes the canary"][0], "same-store")


def run_planted(folder, *faults, wall_seconds=120):
    program = PLANT.format(
        support=SUPPORT, folder=str(folder), faults=faults, wall_seconds=wall_seconds
    )
    return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)


@pytest.fixture(scope="module")
def told(tmp_path_factory):
    """What is told of each fault; one process plants them one after the other."""
    faults = [(name, fault, "never") for name, (fault, _) in FAULTS.items()]
    folder = tmp_path_factory.mktemp("planted")
    done = run_planted(folder, SOUND, MAY_READ, MAY_NOT_CHANGE, *faults)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_is_noticed(told, name):
    assert any(FAULTS[name][1] in fault for fault in told[name]), told[name]


def test_a_sound_table_has_no_faults(told):
    assert told["sound"] == []


def test_with_the_option_for_it_a_file_elsewhere_may_be_read_and_not_changed(told):
    assert told["may read"] == []
    assert any("was changed" in fault for fault in told["may not change"])


@pytest.mark.again
def test_a_busy_loop_ends_its_process(tmp_path):
    done = run_planted(tmp_path, ("loops", "while True: pass", "never"))
    assert done.returncode == -signal.SIGXCPU
    assert "in plant" in done.stderr


def test_waiting_for_ever_ends_its_process(tmp_path):
    waits = ("waits", "import threading; threading.Event().wait()", "never")
    done = run_planted(tmp_path, waits, wall_seconds=1)
    assert done.returncode == 1
    assert "in plant" in done.stderr


DIES_AT_3 = """
import json, os, sys
for number in range(int(sys.argv[1]), int(sys.argv[1]) + int(sys.argv[2])):
    print(json.dumps({"begins": number}), flush=True)
    if number == 3:
        os._exit(7)
    faults = ["CASE=5 is bad"] if number == 5 else []
    told = {"ended": number, "faults": faults, "read": ["rows"], "refused": {"count": "X"}}
    print(json.dumps(told), flush=True)
"""


def test_a_process_that_dies_is_told_of_and_replaced(tmp_path, monkeypatch):
    worker = tmp_path / "worker.py"
    worker.write_text(DIES_AT_3)
    monkeypatch.setattr(trial_runner, "_WORKER", worker)
    tally = trial_runner.run_cases(0, 8)
    assert tally.cases == 8
    assert [fault.split("\n")[0] for fault in tally.faults] == [
        "CASE=3: the process ended (7)",
        "CASE=5 is bad",
    ]
    assert tally.read["rows"] == tally.refused["X"] == 7


def test_a_case_is_the_same_each_time(tmp_path):
    around = Surroundings("/t", tmp_path, 1)
    for number in range(50):
        assert case_of(number, around) == case_of(number, around)


def test_what_was_put_in_a_place_last_is_what_is_there(tmp_path, monkeypatch):
    def put_directory(table, chance, around):
        table.files.pop("a", None)
        table.special["a"] = "directory"
        return "a directory"

    def put_file(table, chance, around):
        table.files["a"] = b""
        return "a file"

    table, around = Mutated({"b": b""}), Surroundings("/t", tmp_path, 1)
    for step in (put_file, put_directory, put_file):
        monkeypatch.setattr(log_mutations, "_STEPS", (step,))
        monkeypatch.setattr(log_mutations, "_WEIGHTS", (1,))
        mutate(table, Chance(1), around)
    assert table.files == {"a": b"", "b": b""}
    assert table.special == {}


@pytest.mark.parametrize(
    ("statistics_are_kept", "rows", "count_after", "faults"),
    [
        (True, 5, 9, []),
        (True, 5, 5, ["count was 9, and 5 after the checkpoint"]),
        (False, 5, 5, []),
        (False, None, None, []),
        (False, 5, 7, ["count was 9, and 7 after the checkpoint"]),
        (False, 5, None, ["count was 9, and X after the checkpoint"]),
    ],
)
def test_a_checkpoint_changes_a_count_only_where_it_drops_statistics(
    statistics_are_kept, rows, count_after, faults
):
    answers = {
        "count": 9,
        "rows": rows,
        "statistics are kept": statistics_are_kept,
        "checkpoint": "written",
        "count after the checkpoint": count_after,
    }
    trial = Trial("/t", {}, None, refused={"count after the checkpoint": "X"})
    trial.answers = {name: answer for name, answer in answers.items() if answer is not None}
    trial.compare()
    assert trial.faults == faults


@pytest.mark.parametrize("temp_path", [1 << 64, -(1 << 63) - 1, 7, 1.5, None, "\ud800"])
def test_any_entry_gets_into_the_database_of_an_arbiter(temp_path, tmp_path):
    name = f"{5:020}.json"
    arbiter = arbiter_with(Record("sql", name, "true", temp_path, "{}", ""), "/t", tmp_path)
    with pytest.raises(StorageError) as raised:
        arbiter.get("/t", name)
    assert raised.value.kind == "OPTIMIST_ARBITER_ENTRY_DAMAGED"
