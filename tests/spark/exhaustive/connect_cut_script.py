"""Run by test_cut_wires_connect.py: commands whose server is gone at some step.

All commands have one server; to each client it is gone when the client's wire is cut.
"""

from __future__ import annotations

import os
import shutil
import signal
import sys
import traceback
import uuid
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pyspark import SparkContext
from pyspark.sql import SparkSession
from pyspark.sql.connect.client.retries import DefaultPolicy

from connect_process import tell
from cut_commands import GROUPS, Command, Seen, seen
from cut_wire import Wire
from exhaustive_cases import in_proportion
from optimist.core.errors import OptimistError
from optimist.core.transaction.result import CommitResult
from optimist.spark import enable

LOST, MIDWAY = "OPTIMIST_SPARK_SERVER_LOST", "OPTIMIST_SPARK_SERVER_LOST_MIDWAY"
_LONGEST, _STEPS = 2, 50
_CONFS = {
    "spark.optimist.spark.driverShortcut.maxBytes": "0",
    "spark.sql.shuffle.partitions": "2",
    "spark.databricks.delta.retentionDurationCheck.enabled": "false",
}
_SESSION = f"session_id={uuid.uuid4()}"
"""One for all clients: each session of the server has Python workers of its own."""


def client_of(wire: Wire):
    spark = SparkSession.builder.remote(f"sc://{wire.endpoint}/;{_SESSION}").create()
    policy = DefaultPolicy(max_retries=1, initial_backoff=10, max_backoff=10, jitter=0)
    spark.client.set_retry_policies([policy])
    return enable(spark)


def how_it_ends(command, spark, folder: Path) -> tuple[str, object]:
    """What is told: a kind or class of error, or that it is done; and the version, or the words."""
    try:
        result = command.run(spark, str(folder))
    except OptimistError as error:
        return error.kind, str(error)
    except Exception as error:  # noqa: BLE001 - the test looks at what came
        return type(error).__name__, str(error)
    return "done", result.version if isinstance(result, CommitResult) else None


def wrong(told: str, more: object, before: Seen, after: Seen, now: Seen) -> str | None:
    """What is told that is not so; None if all is."""
    if told == "done":
        if now.content != after.content or now.versions != after.versions:
            return f"done, but there are {now}"
        if more not in (None, now.versions["t"]):
            return f"version {more} was told, {now.versions} are there"
        return None
    if told not in (LOST, MIDWAY):
        return f"{told}: {more}"
    if ("Nothing was written" in str(more)) != (told == LOST):
        return f"other words than the kind has: {more}"
    if told == LOST:
        return None if now == before else f"something was written: {now}, not {before}"
    # Of several commits some are in, such as one that changes a property first.
    if now.rows not in (before.rows, after.rows):
        return f"neither before nor after: {now}"
    return None if now.versions != before.versions else "midway, and nothing has begun"


def steps_of(wire: Wire) -> Iterator[tuple[int, str, float]]:
    """Where to cut the next wires, by one that was not cut.

    To the client it is all one whether the server has heard a request that it does not answer. It
    matters only for what the server does then, so for those that it takes long for.
    """
    took_s = wire.durations_s
    for number in sorted(took_s, key=took_s.__getitem__)[-_LONGEST:]:
        yield number, "answered", 0
        yield number, "working", took_s[number] / 2
    stride = -(-_STEPS // in_proportion(_STEPS))
    # Some requests are made beside others, so their number is not always the same.
    for number in range(wire.num_requests % stride, wire.num_requests + 3, stride):
        yield number, "asked", 0


@dataclass(frozen=True)
class Case:
    """A command, in a directory of its own, of a client of a server."""

    server: str
    command: Command
    folder: Path

    def make(self) -> Seen:
        """Make what each run begins with."""
        (self.folder / "before").mkdir(parents=True)
        self.command.make(self.folder / "before")
        return seen(self.folder / "before")

    def run(self, name: str, *cut: Any, then: Callable[[], None] = lambda: None):
        """Run the command over a wire that is cut at some point: how it ends, and what is there."""
        shutil.copytree(self.folder / "before", self.folder / name)
        wire = Wire(self.server, then)
        spark = client_of(wire)
        self.command.begin(spark, str(self.folder / name))
        wire.arm(*cut or (None,))
        told = how_it_ends(self.command, spark, self.folder / name)
        wire.cut()
        return told, wire, seen(self.folder / name)


def outcomes_of(case: Case) -> Iterator[tuple[str, str, str | None]]:
    """Each step of the command at which the server is gone: what is told, and what is wrong."""
    before = case.make()
    (told, version), whole, after = case.run("whole")
    yield "whole", told, None if told == "done" else f"{told}: {version}"
    for cut in steps_of(whole):
        name = f"{cut[1]}-{cut[0]}"
        (told, more), wire, now = case.run(name, *cut)
        if case.command.is_query and told != "done":
            # Nobody can tell; but it goes on where it was.
            spark = client_of(Wire(case.server))
            (told_again, more) = how_it_ends(case.command, spark, case.folder / name)
            now = seen(case.folder / name)
            yield f"{name} again", told, wrong(told_again, more, before, after, now)
            continue
        # What a server still writes that was not killed after all, is not for the client to remove.
        may_leave = wire.was_busy or case.command.keeps_copies
        now = replace(now, files=before.files) if may_leave else now
        yield f"{name} of {whole.num_requests}", told, wrong(told, more, before, after, now)
        shutil.rmtree(case.folder / name)


def outcome_of_a_kill(case: Case, server: int) -> tuple[str, str | None]:
    """The server is killed while it works on what it takes longest for."""
    before = case.make()
    _, whole, after = case.run("whole")
    at = max(whole.durations_s, key=whole.durations_s.__getitem__)
    half_s = whole.durations_s[at] / 2
    (told, more), _, now = case.run("killed", at, "working", half_s, then=lambda: kill_all(server))
    return told, wrong(told, more, before, after, replace(now, files=before.files))


def kill_all(process: int) -> None:
    """Kill a process and those below it, they first."""
    for task in Path(f"/proc/{process}/task").glob("*/children"):
        for child in map(int, task.read_text().split()):
            kill_all(child)
    with suppress(ProcessLookupError):
        os.kill(process, signal.SIGKILL)


def main(folder: str, group: str, killed_in: str | None = None) -> None:
    spark = SparkSession.builder.remote("local[2]").getOrCreate()
    server = spark.client._builder.endpoint
    wire = Wire(server)
    shared = client_of(wire)
    for key, value in _CONFS.items():
        shared.conf.set(key, value)
    if killed_in is not None:
        case = Case(server, GROUPS[group][killed_in], Path(folder, "0"))
        tell(killed_in, outcome_of_a_kill(case, SparkContext._gateway.proc.pid))
    else:
        for number, (name, command) in enumerate(GROUPS[group].items()):
            outcomes = list(outcomes_of(Case(server, command, Path(folder, str(number)))))
            problems = [[step, problem] for step, _, problem in outcomes if problem is not None]
            tell(name, [Counter(told for _, told, _ in outcomes), problems])


def run_and_exit(arguments: list[str]) -> None:
    """Run the script, and leave without closing the sessions, which would wait for ever."""
    code = 0
    try:
        main(*arguments)
    except BaseException:  # noqa: BLE001 - the test shows it
        traceback.print_exc()
        code = 1
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


run_and_exit(sys.argv[1:])
