"""The jobs of the demonstration, written as in a pipeline, and how several of them race."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TypeAlias

import pyarrow as pa
from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as sf

from flight_data import FORGOTTEN
from meeting_store import MeetingLogStore
from optimist.core import CommitResult
from optimist.core.errors import DeltaConcurrentModificationException
from optimist.spark import DeltaTable, write

__all__ = ["Job", "Jobs", "Outcome", "race"]

Job: TypeAlias = Callable[[], object]
Outcome: TypeAlias = object | DeltaConcurrentModificationException


@dataclass(frozen=True, slots=True)
class Jobs:
    """What the pipelines do to a table of flights; each call is one transaction."""

    spark: SparkSession
    planes: pa.Table

    def create(
        self,
        path: str,
        rows: pa.Table,
        *,
        partition_by: Sequence[str] = (),
        properties: Mapping[str, str] | None = None,
    ) -> None:
        """Make an empty table for rows like these."""
        empty = self.spark.createDataFrame(rows.slice(0, 0))
        write(empty, path, mode="error", partitionBy=list(partition_by), **(properties or {}))

    def append(self, path: str, rows: pa.Table) -> CommitResult:
        """Append as one file; the first append makes the table."""
        result = write(self.spark.createDataFrame(rows).coalesce(1), path, mode="append")
        assert result is not None, "only a replay of an application's write commits nothing"
        return result

    def forget(self, path: str, where: str) -> None:
        """Delete the flights of certain tail numbers: the right to be forgotten."""
        tails = ", ".join(f"'{tail}'" for tail in FORGOTTEN)
        DeltaTable.forPath(self.spark, path).delete(f"{where} AND tailnum IN ({tails})")

    def enrich(self, path: str, where: str) -> None:
        """Fill in seats and manufacturer by tail number."""
        values = {"seats": self._by_tail("seats", "bigint")}
        values["manufacturer"] = self._by_tail("manufacturer", "string")
        DeltaTable.forPath(self.spark, path).update(where, values)

    def _by_tail(self, name: str, data_type: str) -> Column:
        pairs = zip(self.planes["tailnum"].to_pylist(), self.planes[name].to_pylist(), strict=True)
        lookup = sf.from_json(sf.lit(json.dumps(dict(pairs))), f"map<string, {data_type}>")
        return sf.try_element_at(lookup, sf.col("tailnum"))


def race(jobs: Mapping[str, Job]) -> dict[str, Outcome]:
    """Run jobs in threads, all based on one version; return each one's result or conflict."""

    def run(job: Job) -> Outcome:
        try:
            return job()
        except DeltaConcurrentModificationException as error:
            return error
        except Exception:
            MeetingLogStore.call_off()
            raise

    with MeetingLogStore.meeting_of(len(jobs)), ThreadPoolExecutor(len(jobs)) as pool:
        return dict(zip(jobs, pool.map(run, jobs.values()), strict=True))
