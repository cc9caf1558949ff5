"""Files that Spark's own committer wrote, looked at again before they are committed."""

from __future__ import annotations

from pathlib import Path

import pytest

from optimist.core.errors import StorageError
from optimist.spark import write
from optimist.spark.native import writer as native_writer


@pytest.fixture(autouse=True)
def on_the_native_plane(conf):
    conf("spark.optimist.spark.plane", "native")


def short(path):
    """Cut the end off, and put what looks like one in its place."""
    data = Path(path).read_bytes()
    Path(path).write_bytes(data[:4] + data[len(data) // 2 :])


@pytest.mark.parametrize("harm", [lambda path: Path(path).write_bytes(b""), short, Path.unlink])
@pytest.mark.parametrize("moment", ["before its footer is read", "after"])
def test_file_that_is_no_longer_what_spark_wrote_is_not_committed(
    spark, table_path, monkeypatch, harm, moment
):
    read_footer = native_writer._read_footer

    def footer(info, filesystem):
        if moment != "after":
            harm(Path(info.path))
        found = read_footer(info, filesystem)
        if moment == "after":
            harm(Path(info.path))
        return found

    monkeypatch.setattr(native_writer, "_read_footer", footer)
    with pytest.raises(StorageError) as caught:
        write(spark.range(100).coalesce(1), table_path)
    assert caught.value.kind in ("OPTIMIST_DATA_FILE_DIFFERS", "OPTIMIST_STORAGE_FAILED")
    assert not list(Path(table_path).rglob("*.json"))
    assert not list(Path(table_path).rglob("*.parquet"))
