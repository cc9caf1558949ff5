"""How many threads read files: as many as processors on a disk, more on a store."""

from __future__ import annotations

import pytest

from optimist.core.data.storage.reader_threads import reader_threads


@pytest.mark.parametrize(
    ("path", "cores", "wanted"),
    [
        ("/data/t", 1, 2),
        ("/data/t", 4, 4),
        ("file:///data/t", 64, 8),
        ("s3://bucket/t", 1, 8),
        ("abfss://c@a.dfs.core.windows.net/t", 4, 8),
    ],
)
def test_threads_of_a_disk_are_as_many_as_processors(monkeypatch, path, cores, wanted):
    monkeypatch.setattr("os.sched_getaffinity", lambda _: set(range(cores)), raising=False)
    assert reader_threads(path) == wanted
