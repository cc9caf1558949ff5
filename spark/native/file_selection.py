"""The files that a query would read, before it runs, which `explain` can't show."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame

from optimist.spark.native.index import KEY_PREFIX
from optimist.spark.session.callback_errors import original_errors
from optimist.spark.session.jvm import Jvm, iterate

__all__ = ["FileSelection", "file_selections"]


@dataclass(frozen=True, slots=True)
class FileSelection:
    """The files that one scan of a query reads.

    Attributes:
        key: The scan's table and version, as Spark knows them.
        num_files: Files that are left after partition pruning and data skipping.
        num_files_total: Files of the version.
        num_partitions: Partitions that are left.
        size_bytes: Bytes of the files that are left.
        partition_filters: The filters that pruned partitions, as Spark prints them.
        data_filters: The filters by which files were skipped, where statistics allow it.
    """

    key: str
    num_files: int
    num_files_total: int
    num_partitions: int
    size_bytes: int
    partition_filters: tuple[str, ...]
    data_filters: tuple[str, ...]

    def __str__(self) -> str:
        files = f"{self.num_files} of {self.num_files_total} files ({self.size_bytes} bytes)"
        return (
            f"{self.key.removeprefix(KEY_PREFIX)}: {files} in {self.num_partitions} partitions; "
            f"partition filters: [{', '.join(self.partition_filters)}], "
            f"data filters: [{', '.join(self.data_filters)}]"
        )


def file_selections(frame: DataFrame) -> tuple[FileSelection, ...]:
    """Return the scans of our tables in a frame's plan, with the files that each would read.

    Filters whose values are only known while the query runs (dynamic pruning) are not applied.
    """
    jvm = Jvm.of(frame.sparkSession)
    leaves = frame._jdf.queryExecution().sparkPlan().collectLeaves()
    scans = [leaf for leaf in iterate(leaves) if _is_ours(leaf)]
    with original_errors():
        return tuple(_selection(jvm, scan) for scan in scans)


def _is_ours(leaf: Any) -> bool:
    if leaf.getClass().getSimpleName() != "FileSourceScanExec":
        return False
    return str(leaf.relation().location().toString()).startswith(KEY_PREFIX)


def _selection(jvm: Jvm, scan: Any) -> FileSelection:
    index = scan.relation().location()
    whole = index.whole() if index.getClass().getSimpleName() == "PrunedFiles" else index
    static = [item for item in iterate(scan.partitionFilters()) if not _is_dynamic(item)]
    directories = index.listFiles(jvm.seq(static), scan.dataFilters())
    files = [directory.files() for directory in iterate(directories)]
    return FileSelection(
        key=str(whole.toString()),
        num_files=sum(part.size() for part in files),
        num_files_total=len(whole.inputFiles()),
        num_partitions=len(files),
        size_bytes=sum(status.getLen() for part in files for status in iterate(part)),
        partition_filters=tuple(str(item.toString()) for item in static),
        data_filters=tuple(str(item.toString()) for item in iterate(scan.dataFilters())),
    )


def _is_dynamic(expression: Any) -> bool:
    return "dynamicpruning" in str(expression.toString())
