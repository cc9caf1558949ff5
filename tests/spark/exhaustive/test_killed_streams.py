"""Drivers of streams killed at aimed and at random moments: each row arrives once."""

import json
import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pyarrow as pa
import pytest

from connect_process import environment
from optimist.core import DeltaLog
from optimist.core.runtime.clock import SystemClock

SCRIPT = Path(__file__).with_name("killed_stream_script.py")
KILLS = int(os.environ.get("KILLS", "3"))
AIMED = [
    ("an offset is known", 1),
    ("a batch is planned", 1),
    ("files are written", 1),
    ("our commit is done", 1),
    ("our commit is done", 2),
    ("a batch is planned", 2),
]


# Around each of the two writes: the first schema's, and that of a change.
IN_A_CHANGE = [
    "a change is to be recorded",
    "a schema is to be written",
    "a schema is written",
    "a change is recorded",
]


class Streams:
    """A source that grows, a sink, and the driver between them."""

    def __init__(self, folder, plane, options):
        self.source = DeltaLog.for_path(folder / "source", {})
        self.given = {
            "source": str(folder / "source"),
            "target": str(folder / "target"),
            "checkpoint": str(folder / "checkpoint"),
            "plane": plane,
            "options": {"maxFilesPerTrigger": "2", "skipChangeCommits": "true", **options},
        }
        self.expected = []
        self.next_id = 0

    def grow(self, commits=3, *, counts=True):
        """Commits of another writer: appends, and rows rearranged and deleted behind the stream."""
        for _ in range(commits):
            rows = list(range(self.next_id, self.next_id + 10))
            self.source.append(pa.table({"id": pa.array(rows, pa.int64())}))
            self.next_id += 10
            self.expected += rows if counts else []

    def drive(self, point=None, count=1):
        """Start the driver; the process."""
        given = json.dumps({**self.given, "point": point, "count": count})
        return subprocess.Popen(
            [sys.executable, "-W", "ignore", str(SCRIPT), given],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            start_new_session=True,
            env=environment(on_connect=self.given["plane"] == "connect"),
        )

    def check(self):
        """The sink has each row once, and each batch once, from the first without a gap."""
        target = DeltaLog.for_path(self.given["target"], {})
        assert sorted(target.to_arrow()["id"].to_pylist()) == sorted(self.expected)
        commits = sorted(Path(target.log_path).glob("*.json"))
        actions = [json.loads(line) for file in commits for line in file.read_text().splitlines()]
        txns = [action["txn"] for action in actions if "txn" in action]
        assert len({txn["appId"] for txn in txns}) == 1
        assert [txn["version"] for txn in txns] == list(range(len(txns)))


@pytest.mark.parametrize("plane", ["native", "arrow"])
def test_a_driver_killed_at_each_point_loses_and_doubles_nothing(tmp_path, plane):
    streams = Streams(tmp_path, plane, {})
    streams.grow(5)
    for point, count in AIMED:
        driver = streams.drive(point, count)
        driver.communicate(timeout=200)
        assert driver.returncode == -signal.SIGKILL
        streams.grow(2)
        streams.source.optimize()
    driver = streams.drive()
    driver.communicate(timeout=200)
    assert driver.returncode == 0
    streams.check()


@pytest.mark.parametrize("start", [{"startingVersion": "latest"}, {"startingVersion": "1"}])
def test_a_driver_killed_in_the_first_batch_keeps_its_start(tmp_path, start):
    streams = Streams(tmp_path, "native", start)
    streams.grow(1, counts=False)
    streams.grow(1, counts=start["startingVersion"] == "1")
    for point in ("a batch is planned", "files are written", "our commit is done"):
        driver = streams.drive(point)
        driver.communicate(timeout=200)
        assert driver.returncode == -signal.SIGKILL
        streams.grow(1)
    driver = streams.drive()
    driver.communicate(timeout=200)
    assert driver.returncode == 0
    streams.check()


def test_a_client_and_its_server_killed_after_a_commit_lose_and_double_nothing(tmp_path):
    streams = Streams(tmp_path, "connect", {})
    streams.grow(5)
    for count in (1, 2):
        driver = streams.drive("our commit is done", count)
        driver.communicate(timeout=200)
        assert driver.returncode == -signal.SIGKILL
        streams.grow(2)
    driver = streams.drive()
    driver.communicate(timeout=200)
    assert driver.returncode == 0
    streams.check()


def test_drivers_killed_at_random_moments_lose_and_double_nothing(tmp_path):
    streams = Streams(tmp_path, "native", {})
    streams.grow(10)
    for number in range(KILLS):
        driver = streams.drive()
        assert driver.stdout.readline() == "STARTED\n"
        moment = SystemClock().uniform(0, 4)
        sys.stdout.write(f"killed after {moment} s\n")
        with suppress(subprocess.TimeoutExpired):
            driver.wait(timeout=moment)
        with suppress(ProcessLookupError):
            os.killpg(driver.pid, signal.SIGKILL)
        driver.communicate(timeout=60)
        streams.grow(5)
        if Path(streams.given["target"]).exists():  # the version of the first batch is fixed
            streams.source.delete(f"id = {number % 10}")
    driver = streams.drive()
    driver.communicate(timeout=200)
    assert driver.returncode == 0
    streams.check()


@pytest.mark.parametrize("plane", ["native", "arrow"])
def test_a_driver_killed_within_a_change_of_schema_loses_and_doubles_nothing(tmp_path, plane):
    log = {
        "schemaTrackingLocation": f"{tmp_path}/checkpoint/schemas",
        "allowSourceColumnRename": "always",
        "allowSourceColumnDrop": "always",
    }
    streams = Streams(tmp_path, plane, log)
    schema = pa.schema([("id", pa.int64()), ("name_0", pa.string())])
    streams.source.create(schema, properties={"delta.columnMapping.mode": "name"})
    expected = []

    def grow(column):
        for _ in range(3):
            number = streams.next_id
            streams.source.append(pa.table({"id": [number], column: [str(number)]}))
            expected.append((number, column, str(number)))
            streams.next_id += 1

    grow("name_0")
    for point in ("a schema is to be written", "a schema is written"):
        killed(streams, point)
    assert finished(streams.drive()) == 0
    for number, point in enumerate(IN_A_CHANGE, 1):
        column = f"name_{number}"
        streams.source.alter.rename_column(f"name_{number - 1}", column)
        grow(column)
        killed(streams, point)
    streams.source.alter.drop_columns([column])
    streams.source.append(pa.table({"id": [streams.next_id]}))
    expected.append((streams.next_id, None, None))
    # Three of the changes are yet to be met: kills before a record meet theirs again.
    assert [finished(streams.drive()) for _ in range(4)] == [1, 1, 1, 0]
    rows = DeltaLog.for_path(streams.given["target"], {}).to_arrow().to_pylist()
    found = []
    for row in rows:
        values = [(key, text) for key, text in row.items() if key != "id" and text is not None]
        found.append((row["id"], *(values[0] if values else (None, None))))
        assert len(values) < 2
    assert sorted(found) == expected


def killed(streams, point):
    assert finished(streams.drive(point)) == -signal.SIGKILL


def finished(driver):
    driver.communicate(timeout=200)
    return driver.returncode
