"""Several jobs at once on one Delta table of real flights: run it with `make demo`.

1. Four writers append different months at the same time.
2. Two jobs, *forget* some tail numbers (DELETE) and *enrich* from planes (UPDATE), start from one
   version: in the same files, in different months, in a table without partitions, and with
   different people in one file.
3. Two appends race for one version.
4. The history, and what another engine reads.

Every promise is checked against the flights themselves; the exit code tells.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import deltalake
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import functions as sf
from rich.progress import Progress

from flight_data import (
    checksum,
    expected_flights,
    late_flights,
    load_airlines,
    load_flights,
    load_planes,
    of_months,
    punctual_flights,
)
from jobs import Job, Jobs, Outcome, race
from meeting_store import MeetingLogStore
from narration import DemoError, Narrator
from optimist.core import CommitResult, DeltaLog
from optimist.core.errors import DeltaConcurrentModificationException, OptimistError
from optimist.spark import DeltaTable, read
from quiet_spark import start_spark

DEFAULT_PATH = Path(__file__).resolve().parent.parent / "build" / "demo" / "flights"
WRITERS = 4
YEAR = tuple(range(1, 13))
ENRICHED_CARRIER = "VX"
GRANULARITY = "spark.optimist.conflict.granularity"


@dataclass(frozen=True, slots=True)
class Demo:
    """What every chapter needs."""

    path: str
    flights: pa.Table
    planes: pa.Table
    jobs: Jobs
    narrator: Narrator


def main() -> int:
    """Run the demonstration; 0 if every promise was kept."""
    options = _parse()
    narrator = Narrator()
    try:
        path = _fresh_path(options.path)
        demo = start(path, narrator)
        for chapter in CHAPTERS:
            chapter(demo)
        demo.jobs.spark.stop()
    except (DemoError, OptimistError) as error:
        narrator.fail(error)
        return 1
    narrator.chapter("Done")
    narrator.say(f"The table is in {path}; look at its _delta_log.")
    return 0


def start(path: str, narrator: Narrator) -> Demo:
    """Start Spark and read the flights."""
    narrator.chapter("Spark starts, the flights are read")
    log_file = Path(path).with_name("spark.log")
    store = f"{MeetingLogStore.__module__}:MeetingLogStore"
    spark = start_spark(log_file, {"spark.delta.logStore.file.impl": store})
    flights, planes = load_flights(), load_planes()
    narrator.say(f"Spark {spark.version}; its own words go to {log_file}.")
    narrator.say(f"{flights.num_rows:,} flights of 2013, {planes.num_rows:,} planes.")
    return Demo(path, flights, planes, Jobs(spark, planes), narrator)


def four_writers(demo: Demo) -> None:
    """Four writers append different months at the same time."""
    narrator = demo.narrator
    narrator.chapter("1. Four writers append different months at the same time")
    demo.jobs.create(demo.path, demo.flights, partition_by=["month"])
    rows: list[tuple[int, str, int, int, int, int]] = []
    with Progress(console=narrator.console, transient=True) as progress:

        def write_months(writer: int) -> None:
            months = range(writer, 13, WRITERS)
            for month in progress.track(months, description=f"writer {writer}"):
                flights = punctual_flights(of_months(demo.flights, (month,)))
                started_s = time.perf_counter()
                done = demo.jobs.append(demo.path, flights)
                elapsed_ms = round((time.perf_counter() - started_s) * 1000)
                name = f"writer {writer}"
                rows.append(
                    (done.version, name, month, flights.num_rows, done.attempts, elapsed_ms)
                )

        with MeetingLogStore.meeting_of(WRITERS), ThreadPoolExecutor(WRITERS) as pool:
            list(pool.map(write_months, range(1, WRITERS + 1)))
    rows.sort()
    narrator.table(("version", "writer", "month", "rows", "attempts", "ms"), rows)
    narrator.check([row[0] for row in rows] == list(YEAR), "versions are dense: 1 to 12")
    landed = read(demo.jobs.spark, demo.path).count()
    expected = punctual_flights(demo.flights).num_rows
    narrator.check(landed == expected, f"every flight is in, once: {landed:,}")


def same_files(demo: Demo) -> None:
    """Forget and enrich in the same files: one wins, the other is told why, and runs again."""
    demo.narrator.chapter("2a. Forget and enrich, both in January: the same files")
    jobs = _forget_and_enrich(demo, demo.path, "month = 1", "month = 1")
    _explain_and_run_again(demo, jobs, race(jobs))
    january = of_months(demo.flights, (1,))
    expected = expected_flights(january, demo.planes, forgotten=(1,), enriched=(1,))
    found = read(demo.jobs.spark, demo.path).where("month = 1").toArrow()
    demo.narrator.check(
        checksum(found) == checksum(expected), "January is as if one had run after the other"
    )


def different_months(demo: Demo) -> None:
    """Forget and enrich in different months: both succeed."""
    demo.narrator.chapter("2b. Forget and enrich, in different months")
    first, second = "month BETWEEN 2 AND 6", "month >= 7"
    _check_both_commit(demo, _forget_and_enrich(demo, demo.path, first, second))
    _check_both_commit(demo, _forget_and_enrich(demo, demo.path, second, first))


def unpartitioned(demo: Demo) -> None:
    """Forget and enrich in a table without partitions: overlapping and disjoint ranges."""
    narrator, path = demo.narrator, _unpartitioned(demo.path)
    narrator.chapter("2c. A table without partitions, one file per month, January to June")
    for month in range(1, 7):
        demo.jobs.append(path, of_months(demo.flights, (month,)))

    narrator.say("Overlapping: forget in months 1 to 2, enrich in months 2 to 3.")
    jobs = _forget_and_enrich(demo, path, "month <= 2", "month BETWEEN 2 AND 3")
    error = _explain_and_run_again(demo, jobs, race(jobs))
    narrator.check(
        "Files were added to the root of the table" in str(error), "they met in the table's root"
    )

    narrator.say(f"\nDisjoint, under Delta's own, coarser rule ({GRANULARITY} = partition):")
    jobs = _forget_and_enrich(demo, path, "month = 4", "month = 5")
    demo.jobs.spark.conf.set(GRANULARITY, "partition")
    outcomes = race(jobs)
    demo.jobs.spark.conf.unset(GRANULARITY)
    _explain_and_run_again(demo, jobs, outcomes)

    narrator.say("\nDisjoint, without that option: statistics prove that they do not touch.")
    _check_both_commit(demo, _forget_and_enrich(demo, path, "month = 3", "month = 6"))
    expected = expected_flights(
        of_months(demo.flights, range(1, 7)),
        demo.planes,
        forgotten=(1, 2, 3, 4),
        enriched=(2, 3, 5, 6),
    )
    found = read(demo.jobs.spark, path).toArrow()
    narrator.check(checksum(found) == checksum(expected), "the table holds exactly what it should")


def same_file(demo: Demo) -> None:
    """Forget some people and enrich others, whose rows stand in one file: both commit."""
    narrator, path = demo.narrator, _with_vectors(demo.path)
    narrator.chapter("2d. Different people in the same file, marked in deletion vectors")
    january = of_months(demo.flights, (1,))
    vectors = {"delta.enableDeletionVectors": "true"}
    demo.jobs.create(path, january, properties=vectors)
    demo.jobs.append(path, january)
    before = _marked(path)
    narrator.say("Forget three tail numbers of January; enrich the flights of Virgin America.")
    enrich = f"carrier = '{ENRICHED_CARRIER}'"
    _check_both_commit(demo, _forget_and_enrich(demo, path, "month = 1", enrich))

    is_enriched = pc.equal(january["carrier"], ENRICHED_CARRIER)
    enriched, rest = january.filter(is_enriched), january.filter(pc.invert(is_enriched))
    expected = pa.concat_tables(
        [
            expected_flights(enriched, demo.planes, forgotten=(1,), enriched=(1,)),
            expected_flights(rest, demo.planes, forgotten=(1,), enriched=()),
        ]
    )
    after = _marked(path)
    narrator.table(
        ("file", "rows", "marked before", "marked now"),
        [(name, rows, before.get(name, (0, 0))[1], gone) for name, (rows, gone) in after.items()],
    )
    forgotten = january.num_rows - expected.num_rows
    (name,) = before
    marks = forgotten + enriched.num_rows
    narrator.check(after[name][1] == marks, "one vector holds the marks of both; no row moved")
    readers = {"Spark": read(demo.jobs.spark, path).toArrow(), "without Spark": _rows(path)}
    for reader, found in readers.items():
        same = checksum(found) == checksum(expected)
        narrator.check(same, f"{reader}: {forgotten} flights forgotten, {len(enriched)} enriched")


def lost_race(demo: Demo) -> None:
    """Append, lose the race for a version, and commit at the next one."""
    demo.narrator.chapter("3. Two appends race for one version")
    late = late_flights(demo.flights)
    is_newark = pc.equal(late["origin"], "EWR")
    halves = {"Newark": late.filter(is_newark), "New York": late.filter(pc.invert(is_newark))}
    outcomes = race({name: _appending(demo, rows) for name, rows in halves.items()})
    results = [(name, done) for name, done in outcomes.items() if isinstance(done, CommitResult)]
    demo.narrator.table(
        ("append", "version", "attempts"),
        [(name, done.version, done.attempts) for name, done in results],
    )
    attempts = sorted(done.attempts for _, done in results)
    demo.narrator.check(attempts == [1, 2], "the second needed two attempts, and no help")
    first, second = sorted(done.version for _, done in results)
    demo.narrator.check(second == first + 1, "it has the version after the first")


def what_is_there(demo: Demo) -> None:
    """Show the history, and the table as another engine reads it."""
    narrator, spark = demo.narrator, demo.jobs.spark
    narrator.chapter("4. The history, and another engine")
    history = DeltaTable.forPath(spark, demo.path).history().collect()
    columns = ("version", "operation", "readVersion", "isolationLevel", "isBlindAppend")
    narrator.table(columns, [tuple(row[name] for name in columns) for row in history])
    versions = [row["version"] for row in history]
    narrator.check(versions == list(range(len(versions) - 1, -1, -1)), "no version is missing")

    punctual = punctual_flights(demo.flights)
    done = expected_flights(punctual, demo.planes, forgotten=YEAR, enriched=YEAR)
    other_engine = pa.table(deltalake.DeltaTable(demo.path).to_pyarrow_table())
    tables = {
        "worked out from the package": pa.concat_tables([done, late_flights(demo.flights)]),
        "Spark, through Optimist": read(spark, demo.path).toArrow(),
        f"deltalake {deltalake.__version__}": other_engine,
    }
    sums = {reader: checksum(rows) for reader, rows in tables.items()}
    narrator.table(
        ("", "flights", "checksum of contents"),
        [(reader, rows.num_rows, sums[reader]) for reader, rows in tables.items()],
    )
    narrator.check(len(set(sums.values())) == 1, "all three agree, to the last value")
    _who_is_late(demo)


CHAPTERS = (
    four_writers,
    same_files,
    different_months,
    unpartitioned,
    same_file,
    lost_race,
    what_is_there,
)


def _forget_and_enrich(demo: Demo, path: str, forget: str, enrich: str) -> dict[str, Job]:
    return {
        f"forget ({forget})": lambda: demo.jobs.forget(path, forget),
        f"enrich ({enrich})": lambda: demo.jobs.enrich(path, enrich),
    }


def _appending(demo: Demo, rows: pa.Table) -> Job:
    return lambda: demo.jobs.append(demo.path, rows)


def _explain_and_run_again(
    demo: Demo, jobs: Mapping[str, Job], outcomes: Mapping[str, Outcome]
) -> DeltaConcurrentModificationException:
    """Show the one conflict among the outcomes, and run its job again, which then succeeds."""
    errors = [
        (name, outcome)
        for name, outcome in outcomes.items()
        if isinstance(outcome, DeltaConcurrentModificationException)
    ]
    demo.narrator.check(len(errors) == 1, "one wins, the other is told that it lost")
    loser, error = errors[0]
    demo.narrator.conflict(loser, error)
    jobs[loser]()
    demo.narrator.say(f"  {loser} was run again, and is in the table too.")
    return error


def _check_both_commit(demo: Demo, jobs: Mapping[str, Job]) -> None:
    for outcome in race(jobs).values():
        if isinstance(outcome, OptimistError):
            raise DemoError("There should be no conflict.") from outcome
    demo.narrator.check(True, f"{' and '.join(jobs)}: one version, both committed")


def _who_is_late(demo: Demo) -> None:
    airlines = demo.jobs.spark.createDataFrame(load_airlines())
    ranking = (
        read(demo.jobs.spark, demo.path)
        .where("month IN (6, 7)")
        .join(sf.broadcast(airlines), "carrier")
        .groupBy("name")
        .agg(sf.count("*").alias("flights"), sf.round(sf.avg("dep_delay"), 1).alias("late"))
        .orderBy(sf.desc("late"))
        .limit(3)
    )
    demo.narrator.say(
        "\nMost late in June and July, in minutes; only those months' files are read:"
    )
    demo.narrator.table(("airline", "flights", "late"), [tuple(row) for row in ranking.collect()])


def _marked(path: str) -> dict[str, tuple[int, int]]:
    """Show the rows of each file, and how many of them a deletion vector marks as deleted."""
    return {
        item["path"][:13]: (
            json.loads(item["stats"])["numRecords"],
            (item["deletionVector"] or {"cardinality": 0})["cardinality"],
        )
        for item in DeltaLog.for_path(path).snapshot().files.to_pylist()
    }


def _rows(path: str) -> pa.Table:
    return DeltaLog.for_path(path).to_arrow()


def _unpartitioned(path: str) -> str:
    return f"{path}_unpartitioned"


def _with_vectors(path: str) -> str:
    return f"{path}_with_vectors"


def _fresh_path(given: str | None) -> str:
    """Return the table's path, after removing a table at the default path."""
    path = str(Path(given).absolute() if given else DEFAULT_PATH)
    for table in map(Path, (path, _unpartitioned(path), _with_vectors(path))):
        if given and table.exists():
            raise DemoError(f"{table} is there already; name a path where nothing is.")
        shutil.rmtree(table, ignore_errors=True)
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    return path


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Several jobs at once on one table of flights.")
    parser.add_argument("--path", help="where to put the table (default: build/demo/flights)")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
