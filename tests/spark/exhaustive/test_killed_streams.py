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

from optimist.core import DeltaLog
from optimist.core.running.clock import SystemClock

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
            env={**os.environ, "PYSPARK_PYTHON": sys.executable},
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
