"""Which files OPTIMIZE writes again, and what it reads of the others' statistics."""

from __future__ import annotations

import pyarrow as pa

from optimist.core.log.file_table import files_table
from optimist.core.maintenance.optimize import bins
from optimist.core.protocol.actions import AddFile, DeletionVectorDescriptor
from optimist.core.skipping.statistics import FileStatistics


def add(name: str, size: int, deleted: int | None = None, rows: int | None = 10) -> AddFile:
    vector = None if deleted is None else DeletionVectorDescriptor("u", "x" * 20, 40, deleted, 1)
    stats = None if rows is None else f'{{"numRecords":{rows}}}'
    return AddFile(name, {}, size, 0, True, stats=stats, deletion_vector=vector)


FILES = [
    add("small", 1),
    add("large", 100),
    add("large, many deleted", 100, 6),
    add("large, few deleted", 100, 5),
    add("large, unknown rows", 100, 1, rows=None),
    add("small, few deleted", 1, 1),
]


def worth(files: list[AddFile]) -> list[str]:
    found = bins.worth_compacting(files_table(files), min_bytes=50, max_deleted_ratio=0.5)
    return found["path"].to_pylist()


def test_small_files_and_those_of_which_many_rows_are_deleted_are_written_again():
    wanted = ["small", "large, many deleted", "large, unknown rows", "small, few deleted"]
    assert worth(FILES) == wanted
    assert worth([]) == []


def test_only_statistics_of_files_with_vectors_are_parsed(monkeypatch):
    parsed = []

    class Noted(FileStatistics):
        def __init__(self, files: pa.Table, *schema: object) -> None:
            parsed.extend(files["path"].to_pylist())
            super().__init__(files, *schema)

    monkeypatch.setattr(bins, "FileStatistics", Noted)
    worth(FILES)
    assert parsed == [each.path for each in FILES if each.deletion_vector]
