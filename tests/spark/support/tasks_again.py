"""Writes whose tasks fail late, run again or are interrupted, counted against their source."""

from __future__ import annotations

import os
import random  # noqa: TID251 - a story is its seed
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from pyspark import TaskContext, cloudpickle
from pyspark.sql import functions as sf

import tasks_again
from optimist.core import DeltaLog
from optimist.core.log.file_table import add_files
from optimist.spark import write
from optimist.spark.arrow import writer as arrow_writer

__all__ = ["Story", "play", "stories", "with_attempts"]

_TASKS, _ROWS, _ATTEMPTS = 3, 30, 3
_PLANE = "spark.optimist.spark.plane"
_VERSION = "mapreduce.fileoutputcommitter.algorithm.version"
# Workers have no path to this module.
cloudpickle.register_pickle_by_value(tasks_again)


@dataclass(frozen=True, slots=True)
class Story:
    """What happens to one write.

    Attributes:
        plane: Who writes.
        version: Of the file committer's algorithm, as the session has it.
        failures: How many runs of each task fail; from `_ATTEMPTS` on the write fails.
        after_files: They fail once their files are written (arrow), not at their last row.
        interrupted: The task that is interrupted at its last row; None if none is.
        partitions: Of the table.
    """

    plane: str
    version: str
    failures: tuple[int, ...]
    after_files: bool
    interrupted: int | None
    partitions: tuple[str, ...]

    @property
    def succeeds(self) -> bool:
        """Whether the rows come into the table."""
        return self.interrupted is None and max(self.failures) < _ATTEMPTS


def stories(seed: int) -> Iterator[Story]:
    """Stories without end, the same for a seed."""
    drawn = random.Random(seed)
    while True:
        for plane, version in [("native", "1"), ("native", "2"), ("arrow", "1"), ("arrow", "2")]:
            interrupted = drawn.choice((None, None, *range(_TASKS)))
            # A write that fails by itself may do so before the task runs that is interrupted.
            failures = (0, 0, 1, 2, _ATTEMPTS) if interrupted is None else (0, 1, 2)
            yield Story(
                plane,
                version,
                tuple(drawn.choice(failures) for _ in range(_TASKS)),
                plane == "arrow" and drawn.random() < 0.5,
                interrupted,
                drawn.choice(((), ("p",))),
            )


@contextmanager
def with_attempts(spark):
    """Let Spark run a task again, which local sessions else do not."""
    scheduler = spark.sparkContext._jsc.sc().taskScheduler()
    field = scheduler.getClass().getDeclaredField("maxTaskFailures")
    field.setAccessible(True)
    before = field.getInt(scheduler)
    field.setInt(scheduler, _ATTEMPTS)
    try:
        yield
    finally:
        field.setInt(scheduler, before)


class _LateTask(arrow_writer.WriteTask):
    """A task that fails in its first runs, once its files are there."""

    __slots__ = ()
    failures: tuple[int, ...] = ()

    def __call__(self, batches):
        answers = list(super().__call__(batches))
        _fail(self.failures)
        yield from answers


def play(spark, folder: Path, story: Story, conf, monkeypatch) -> None:
    """Append the rows of a story to a table of three, and look at what is there."""
    path = str(folder / "table")
    conf(_PLANE, story.plane)
    conf(_VERSION, story.version)
    begin = spark.range(-3, 0, 1, 1).selectExpr("id", "id % 2 AS p")
    write(begin, path, partitionBy=list(story.partitions))
    if story.after_files:
        late = type("_Late", (_LateTask,), {"__slots__": (), "failures": story.failures})
        monkeypatch.setattr(arrow_writer, "WriteTask", late)
    begun, go = folder / "begun", folder / "go"
    os.mkfifo(begun)
    os.mkfifo(go)
    rows = _rows(spark, story, str(begun), str(go))
    with ThreadPoolExecutor(1) as pool:
        writing = pool.submit(write, rows, path, mode="append")
        if story.interrupted is not None:
            begun.open().close()
            assert spark.interruptAll()
            os.close(os.open(go, os.O_RDWR | os.O_NONBLOCK))
        failed = writing.exception()
    assert (failed is None) == story.succeeds, failed
    _look(path, list(range(-3, _ROWS if story.succeeds else 0)))


def _rows(spark, story: Story, begun: str, go: str):
    step = _ROWS // _TASKS
    failures = (0,) * _TASKS if story.after_files else story.failures
    interrupted = story.interrupted

    def late(value):
        if value % step == step - 1:
            if value // step == interrupted:
                Path(begun).open("w").close()
                Path(go).open().close()
            _fail(failures)
        return value

    found = sf.udf(late, "long")("id").alias("id")
    return spark.range(0, _ROWS, 1, _TASKS).select(found, (sf.col("id") % 2).alias("p"))


def _fail(failures: tuple[int, ...]) -> None:
    context = TaskContext.get()
    if context.attemptNumber() < failures[context.partitionId()]:
        raise RuntimeError("the task fails late")


def _look(path: str, expected: list[int]) -> None:
    log = DeltaLog.for_path(path, {})
    assert sorted(log.to_arrow()["id"].to_pylist()) == expected
    named = {add.path.rpartition("/")[2] for add in add_files(log.snapshot().files)}
    there = {file.name for file in Path(path).rglob("*.parquet") if "_delta_log" not in file.parts}
    assert there == named
