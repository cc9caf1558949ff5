"""Flights arrive month by month, and two streams take them on: run it with `make stream`.

1. The months are appended to a table, one after the other.
2. A driver runs two streams over that table: one copies the flights, one counts them by carrier.
3. The driver is killed in the middle, with its JVM, and comes back.

Every flight must arrive once; the exit code tells.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pyarrow.compute as pc
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn

from flight_data import checksum, load_flights, of_months
from narration import DemoError, Narrator
from optimist.core import DeltaLog
from optimist.core.errors import OptimistError
from optimist.spark import enable
from quiet_spark import start_spark

DEFAULT_FOLDER = Path(__file__).resolve().parent.parent / "build" / "demo" / "streams"
YEAR = tuple(range(1, 13))
KILLED_AFTER = 4
LOOK_S = 0.2
PATIENCE_S = 180


def drive(folder: Path) -> None:
    """Run both streams until the process is stopped; this is what gets killed."""
    spark = enable(start_spark(folder / "spark.log"))
    flights = spark.readStream.format("delta").option("maxFilesPerTrigger", 1)
    arrived = flights.load(str(folder / "flights"))
    for name, rows, mode in (
        ("copy", arrived, "append"),
        ("carriers", arrived.groupBy("carrier").count(), "complete"),
    ):
        writer = rows.writeStream.format("delta").outputMode(mode)
        writer.option("checkpointLocation", f"{folder}/checkpoints/{name}").start(
            f"{folder}/{name}"
        )
    spark.streams.awaitAnyTermination()


def start_driver(folder: Path) -> subprocess.Popen[bytes]:
    """Start the driver as a process group of its own."""
    script = [sys.executable, __file__, "--driver", "--folder", str(folder)]
    return subprocess.Popen(script, start_new_session=True, stderr=subprocess.DEVNULL)


def kill(driver: subprocess.Popen[bytes]) -> None:
    """End the driver and its JVM at once, whatever they are doing."""
    os.killpg(driver.pid, signal.SIGKILL)
    driver.wait()


def rows_in(folder: Path, name: str) -> int:
    """How many rows a table has; none if it is not there yet."""
    log = DeltaLog.for_path(folder / name, {})
    return log.count() if log.table_exists() else 0


def counted_in(folder: Path) -> int:
    """How many flights the second stream has counted."""
    log = DeltaLog.for_path(folder / "carriers", {})
    return pc.sum(log.to_arrow()["count"]).as_py() if log.table_exists() else 0


def watch(folder: Path, progress: Progress, bars: dict[str, TaskID], wanted: int) -> None:
    """Show how far the tables are, until both streams have had so many flights."""
    deadline_s = time.perf_counter() + PATIENCE_S
    while True:
        for name, bar in bars.items():
            progress.update(bar, completed=rows_in(folder, name))
        if min(rows_in(folder, "copy"), counted_in(folder)) >= wanted:
            return
        if time.perf_counter() > deadline_s:
            raise DemoError(f"NOT TRUE: {wanted} flights arrive within {PATIENCE_S} s")
        time.sleep(LOOK_S)


def stream(folder: Path, narrator: Narrator) -> None:
    """Let the months arrive, kill the driver, and bring it back."""
    flights, source = load_flights(), DeltaLog.for_path(folder / "flights", {})
    source.append(of_months(flights, YEAR[:1]))
    columns = (TextColumn("{task.description:>10}"), BarColumn(), MofNCompleteColumn())
    driver = start_driver(folder)
    try:
        with Progress(*columns, console=narrator.console) as progress:
            bars = {
                name: progress.add_task(name, total=flights.num_rows)
                for name in ("flights", "copy")
            }
            watch(folder, progress, bars, 1)
            for month in YEAR[1:]:
                source.append(of_months(flights, (month,)))
                if month == KILLED_AFTER:
                    kill(driver)
                    progress.console.print("  the driver was killed; flights go on arriving")
                if month == KILLED_AFTER + 2:
                    driver = start_driver(folder)
                    progress.console.print("  a new driver goes on from the checkpoints")
            watch(folder, progress, bars, flights.num_rows)
    finally:
        kill(driver)
    copy = DeltaLog.for_path(folder / "copy", {})
    narrator.check(checksum(copy.to_arrow()) == checksum(flights), "the copy has each flight once")
    batches = sorted(
        int(str(record.info.operation_parameters["epochId"]))
        for record in copy.history()
        if record.info and record.info.operation_parameters
    )
    narrator.check(batches == list(range(len(batches))), "each batch was committed once")
    narrator.check(counted_in(folder) == flights.num_rows, "each flight was counted once")
    narrator.say(f"  the follower without Spark: {json.dumps(followed(copy))}")


def followed(log: DeltaLog) -> dict[str, int]:
    """Read the copy without Spark."""
    items = list(log.follow(starting_version=0))
    return {"commits": len(items), "rows": sum(item.to_arrow().num_rows for item in items)}


def main() -> int:
    """Run the demonstration."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--folder", type=Path, default=DEFAULT_FOLDER)
    parser.add_argument("--driver", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.driver:
        drive(given.folder)
        return 0
    narrator = Narrator()
    shutil.rmtree(given.folder, ignore_errors=True)
    given.folder.mkdir(parents=True)
    narrator.chapter("Two streams over one table, one driver that dies")
    try:
        stream(given.folder, narrator)
    except (DemoError, OptimistError) as error:
        narrator.fail(error)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
