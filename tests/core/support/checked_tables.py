"""A table of ten versions, its damage, and the check of it by a handle that has seen nothing."""

from __future__ import annotations

import shutil
from decimal import Decimal
from pathlib import Path

import pyarrow as pa

from optimist.core import DeltaLog, col
from optimist.core.errors import StorageError
from optimist.core.log.names import classic_checkpoint_name, commit_name
from optimist.core.maintenance.fsck.findings import FINDINGS, REPAIRS
from optimist.core.runtime.clock import SystemClock
from optimist.logstores import LocalLogStore

DEFAULTS = "spark.databricks.delta.properties.defaults."
LONG_AGO = (1_600_000_000, 1_600_000_000)


def opened(path: Path, **properties: str) -> DeltaLog:
    return DeltaLog.for_path(str(path), {f"{DEFAULTS}{key}": x for key, x in properties.items()})


def rows(start: int, count: int = 4) -> pa.Table:
    numbers = range(start, start + count)
    return pa.table(
        {
            "p": pa.array([start] * count, pa.int32()),
            "x": pa.array(numbers, pa.int64()),
            "text": [None if x % 3 == 0 else f"value {x}" * 20 for x in numbers],
            "odd": pa.array(([float("nan"), -0.0, 0.0, None] * count)[:count]),
            "exact": [Decimal("1234567890123456789012345678.0123456789")] * count,
            "nested": [{"a": x, "b": [x]} for x in numbers],
        }
    )


def make(path: Path, **properties: str) -> DeltaLog:
    """Ten versions: appends, a checkpoint at version 6, and rows deleted by inline and by file."""
    log = opened(path, enableDeletionVectors="true", enableChangeDataFeed="true", **properties)
    for start in range(0, 70, 10):
        log.append(rows(start, 600 if start == 60 else 4), partition_by=("p",))
    log.checkpoint()
    log.delete(col("x").isin([1, 11, *range(60, 660, 2)]))
    log.update(set={"text": "'new'"}, predicate="x = 22")
    log.append(rows(1000))
    return log


class HastyClock(SystemClock):
    """The machine's clock, which waits for nothing."""

    def sleep(self, seconds: float) -> None:
        pass


class LateClock(HastyClock):
    """A clock by which every file of the log was written an hour ago."""

    def now_ms(self) -> int:
        return super().now_ms() + 3_600_000


def found(path: Path, *, deep: bool = True) -> list[tuple[str, str]]:
    """The findings of a handle that has seen nothing of the table before."""
    checked = DeltaLog(str(path), LocalLogStore(), clock=LateClock()).fsck(deep=deep)
    assert checked.findings.schema == FINDINGS
    for row in checked.findings.to_pylist():
        assert row["proof"]
        assert row["repair"] == REPAIRS[row["kind"]]
    return [(row["kind"], Path(row["path"]).name) for row in checked.findings.to_pylist()]


def log_file(path: Path, name: str) -> Path:
    return path / "_delta_log" / name


def data_file(path: Path, month: int = 30) -> Path:
    return next(path.glob(f"**/p={month}/*.parquet"))


def gap(path: Path) -> tuple[str, str]:
    log_file(path, commit_name(8)).unlink()
    return "gap", "_delta_log"


def lost_newest_commit(path: Path) -> tuple[str, str]:
    log_file(path, commit_name(9)).unlink()
    return "gap", "_delta_log"


def missing_part(path: Path) -> tuple[str, str]:
    name = f"{7:020}.checkpoint.{1:010}.{2:010}.parquet"
    shutil.copy(log_file(path, classic_checkpoint_name(6)), log_file(path, name))
    return "missing-part", name


def hint_of_another_version(path: Path) -> tuple[str, str]:
    log_file(path, "_last_checkpoint").write_text('{"version":5,"size":1}')
    return "stale-hint", "_last_checkpoint"


class DyingStore(LocalLogStore):
    """A store whose process dies after some changes."""

    def __init__(self, lives: int) -> None:
        super().__init__()
        self.lives = lives

    def _live(self) -> None:
        self.lives -= 1
        if self.lives < 0:
            raise StorageError("The process is dead.", kind="OPTIMIST_STORAGE_FAILED")

    def put_overwrite(self, path, data):
        self._live()
        super().put_overwrite(path, data)

    def put_file_if_absent(self, path, file):
        self._live()
        return super().put_file_if_absent(path, file)

    def put_if_absent(self, path, data):
        self._live()
        return super().put_if_absent(path, data)

    def delete(self, path):
        self._live()
        super().delete(path)
