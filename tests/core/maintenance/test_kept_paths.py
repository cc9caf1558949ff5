"""The paths that VACUUM and fsck compare with a listing: those to which the log's paths lead."""

from __future__ import annotations

import os
from pathlib import Path

import pyarrow as pa
import pytest

from optimist.core import DeltaLog
from optimist.core.data.storage.data_paths import DataPaths
from optimist.core.maintenance.fsck import unnamed_files
from optimist.core.maintenance.vacuum.kept_paths import relative_paths


@pytest.mark.parametrize("link", ["link", "li\nnk", "a/link"])
def test_a_path_through_a_link_is_that_of_the_file_it_leads_to(tmp_path: Path, link: str):
    (tmp_path / "real").mkdir()
    (tmp_path / link).parent.mkdir(exist_ok=True)
    (tmp_path / link).symlink_to(tmp_path / "real")
    named = pa.array([f"{link}/x\ny.parquet", "top.parquet", "real/z.parquet"])
    found = relative_paths(named, DataPaths.of(str(tmp_path)))
    assert found.to_pylist() == ["real/x\ny.parquet", "top.parquet", "real/z.parquet"]


def test_fsck_looks_for_each_file_of_the_log_once_in_the_listing(tmp_path: Path, monkeypatch):
    log = DeltaLog.for_path(tmp_path / "t")
    log.append(pa.table({"id": [1]}))
    log.append(pa.table({"id": [2]}))
    for file in (tmp_path / "t").glob("*.parquet"):
        os.utime(file, (0, 1))  # so old that no version may need it

    def refuse(*_: object) -> None:
        raise AssertionError("a file was looked for again")

    monkeypatch.setattr(unnamed_files, "relative_paths", refuse)
    assert not log.fsck().findings.num_rows
