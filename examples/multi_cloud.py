"""The pipeline of the flights on every store: `make clouds`, or on a store of your own.

    python examples/multi_cloud.py s3 azure          # emulators, by name; all without names
    python examples/multi_cloud.py --store s3a://bucket/flights my.conf
    python examples/multi_cloud.py --store s3a://bucket/x s3.conf --store gs://bucket/x gcs.conf

On each store, with nothing changed but the URL and the conf keys:

1. Four writers append different months at the same time.
2. *Forget* (DELETE) and *enrich* (UPDATE) run at once in the same months; the loser runs again.
3. The rows are compared with what must have come out, worked out without any engine.

Then the table is carried from each store to the next, commit by commit; in the middle the carrier
is stopped, and goes on where it was. To carry a table of your own, use `examples/carry.py`.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import islice, pairwise
from pathlib import Path

import pyarrow as pa
from pyspark.sql import SparkSession
from rich.progress import Progress

from carry import carry
from clouds import EMULATED, Cloud, emulated_cloud
from conf_file import read_conf
from flight_data import (
    checksum,
    expected_flights,
    load_flights,
    load_planes,
    of_months,
)
from jobs import Job, Jobs
from narration import DemoError, Narrator
from optimist.core import DeltaLog
from optimist.core.errors import DeltaConcurrentModificationException, OptimistError
from optimist.spark import DeltaTable, read
from quiet_spark import start_spark

LOG_FILE = Path(__file__).resolve().parent.parent / "build" / "demo" / "clouds-spark.log"
WRITERS = 4
MONTHS = tuple(range(1, 9))


def main() -> int:
    """Run the pipeline on each store, then carry the table along; 0 if every promise was kept."""
    options = _parse()
    narrator = Narrator()
    try:
        clouds = _clouds(options)
        LOG_FILE.parent.mkdir(parents=True, exist_ok=True)
        narrator.chapter("Spark starts, the flights are read")
        spark = start_spark(LOG_FILE)
        flights, planes = of_months(load_flights(), MONTHS), load_planes()
        narrator.say(f"Spark {spark.version}; {flights.num_rows:,} flights of eight months.")
        expected = checksum(expected_flights(flights, planes, forgotten=MONTHS, enriched=MONTHS))
        sessions = {cloud.name: _session(spark, cloud) for cloud in clouds}
        for cloud in clouds:
            session = sessions[cloud.name]
            run_pipeline(cloud, flights, Jobs(session, planes), narrator)
            _check_contents(narrator, session, f"{cloud.url}/flights", expected)
        for origin, goal in pairwise(clouds):
            carry_along(origin, goal, narrator)
            _check_contents(narrator, sessions[goal.name], _copy_of(origin, goal), expected)
        spark.stop()
        tell_what_is_left(clouds, narrator, are_emulated=not options.store)
    except (DemoError, OptimistError) as error:
        narrator.fail(error)
        return 1
    return 0


def run_pipeline(cloud: Cloud, flights: pa.Table, jobs: Jobs, narrator: Narrator) -> None:
    """Four writers, then two jobs that are in each other's way."""
    path = f"{cloud.url}/flights"
    narrator.chapter(f"{cloud.name}: {path}")
    jobs.create(path, flights, partition_by=["month"])
    rows: list[tuple[int, str, int, int, int]] = []

    def write_months(writer: int) -> None:
        for month in MONTHS[writer::WRITERS]:
            started_s = time.perf_counter()
            done = jobs.append(path, of_months(flights, (month,)))
            elapsed_ms = round((time.perf_counter() - started_s) * 1000)
            rows.append((done.version, f"writer {writer + 1}", month, done.attempts, elapsed_ms))

    with ThreadPoolExecutor(WRITERS) as pool:
        list(pool.map(write_months, range(WRITERS)))
    rows.sort()
    narrator.table(("version", "writer", "month", "attempts", "ms"), rows)
    versions = [row[0] for row in rows]
    narrator.check(versions == list(range(1, len(MONTHS) + 1)), "versions are dense")

    at_once: dict[str, Job] = {
        "forget": lambda: jobs.forget(path, f"month <= {MONTHS[-1]}"),
        "enrich": lambda: jobs.enrich(path, f"month <= {MONTHS[-1]}"),
    }
    with ThreadPoolExecutor(len(at_once)) as pool:
        tries = dict(zip(at_once, pool.map(_until_it_lands, at_once.values()), strict=True))
    for name, lost in tries.items():
        told = f", after a conflict with version {lost[0]}" if lost else ""
        narrator.say(f"  {name} landed{told}.")
    described = DeltaLog.for_path(path, cloud.conf).store.describe()
    narrator.say(
        f"  The store: {described['store']}; one writer wins by "
        f"{described.get('one writer wins by', '?')}."
    )


def carry_along(origin: Cloud, goal: Cloud, narrator: Narrator) -> None:
    """Carry the table of one store to the next, in two runs."""
    narrator.chapter(f"From {origin.name} to {goal.name}, commit by commit")
    source = DeltaLog.for_path(f"{origin.url}/flights", origin.conf)
    target = DeltaLog.for_path(_copy_of(origin, goal), goal.conf)
    half = (source.snapshot().version + 1) // 2
    with Progress(console=narrator.console, transient=True) as progress:
        task = progress.add_task("carried", total=source.snapshot().version + 1)
        for _ in islice(carry(source, target), half):
            progress.advance(task)
        stopped_at = target.snapshot().version
        carried = []
        for item in carry(source, target):
            carried.append(item)
            progress.advance(task)
    narrator.table(
        ("version here", "version there", "operation", "files", "bytes"),
        [
            (
                item.source_version,
                item.target_version,
                item.operation,
                item.num_files,
                item.size_bytes,
            )
            for item in carried
        ],
    )
    narrator.check(
        carried[0].source_version == stopped_at + 1,
        f"stopped after version {stopped_at}, the second run went on with the next",
    )
    narrator.check(list(carry(source, target)) == [], "a third run finds nothing to do")


def tell_what_is_left(clouds: Sequence[Cloud], narrator: Narrator, *, are_emulated: bool) -> None:
    """Print where the tables are, and what still runs."""
    narrator.chapter("What is left")
    for cloud in clouds:
        narrator.say(f"  {cloud.url}/flights")
    for origin, goal in pairwise(clouds):
        narrator.say(f"  {_copy_of(origin, goal)}")
    if are_emulated:
        narrator.say(
            "The emulators are still up, with these tables in their memory, and take about 1.4 GB "
            "when all run.\n"
            "  python3 localstack/up.py --list   tells what is up\n"
            "  python3 localstack/down.py        stops them; the tables are gone then\n"
            "examples/clouds/ has the conf keys that lead to each."
        )


def _check_contents(narrator: Narrator, spark: SparkSession, path: str, expected: str) -> None:
    narrator.check(
        checksum(read(spark, path).toArrow()) == expected, "the rows are as they must be"
    )
    january = read(spark, path).where("month = 1")
    history = DeltaTable.forPath(spark, path).history().select("version").collect()
    narrator.say(f"  {january.count():,} flights in January; {len(history)} versions.")


def _session(spark: SparkSession, cloud: Cloud) -> SparkSession:
    """Start a session for one store: two stores may need different confs for one scheme."""
    session = spark.newSession()
    for key, value in cloud.conf.items():
        session.conf.set(key, value)
    return session


def _until_it_lands(job: Job) -> list[int]:
    """Run a job, again after each conflict; the versions that it conflicted with."""
    lost: list[int] = []
    while True:
        try:
            job()
        except DeltaConcurrentModificationException as error:
            lost.append(error.conflict.winning_version)
        else:
            return lost


def _copy_of(origin: Cloud, goal: Cloud) -> str:
    return f"{goal.url}/from-{origin.name}"


def _clouds(options: argparse.Namespace) -> Sequence[Cloud]:
    if options.store:
        return [_own_cloud(number, *given) for number, given in enumerate(options.store, start=1)]
    clouds = []
    for name in options.names or EMULATED:
        try:
            clouds.append(emulated_cloud(name))
        except KeyError as error:
            raise DemoError(
                f"{name} needs {error.args[0]}: bring it up with python3 localstack/up.py"
            ) from None
    return clouds


def _own_cloud(number: int, url: str, conf: str | None = None, *more: str) -> Cloud:
    if more:
        raise DemoError(f"--store takes a URL and a conf file, and not {' '.join(more)}")
    entries = read_conf(Path(conf), {}) if conf is not None else {}
    return Cloud(f"your-store-{number}", url.rstrip("/"), entries)


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="The flights on every store.")
    parser.add_argument("names", nargs="*", choices=[*EMULATED, []], help="emulated stores")
    parser.add_argument(
        "--store",
        nargs="+",
        action="append",
        metavar=("URL", "CONF"),
        help="a store of your own, for example s3a://bucket/folder, and a file of Spark conf keys "
        "for it; may be given several times",
    )
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
