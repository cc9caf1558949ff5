"""The code of docs/streams.md does what the page says."""

import re
from pathlib import Path

import pyarrow as pa
import pytest

from optimist.core import DeltaLog
from optimist.spark import DeltaTable, write

PAGE = Path(__file__).resolve().parents[3] / "docs" / "streams.md"
BLOCKS = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)


@pytest.fixture
def given(enabled, tmp_path):
    """What the page takes for granted."""
    enabled.range(3).write.parquet(f"{tmp_path}/in")
    write(enabled.range(1), f"{tmp_path}/target")
    return {
        "spark": enabled,
        "flights": enabled.readStream.schema("id LONG").parquet(f"{tmp_path}/in"),
        "target": DeltaTable.forPath(enabled, f"{tmp_path}/target"),
        "position": None,
    }


def run(code, given, tmp_path):
    exec(code.replace("/data", str(tmp_path)), given)
    for query in given["spark"].streams.active:
        query.processAllAvailable()
        query.stop()


def ids(path):
    return sorted(DeltaLog.for_path(path, {}).to_arrow()["id"].to_pylist())


def test_each_block_runs(given, tmp_path):
    writing, by_function, merging, reading, following = BLOCKS
    run(writing, given, tmp_path)
    assert ids(tmp_path / "flights") == [0, 1, 2]
    run(by_function, given, tmp_path)
    assert ids(tmp_path / "flights") == [0, 1, 2]
    run(merging, given, tmp_path)
    assert (ids(tmp_path / "target"), ids(tmp_path / "audit")) == ([0, 1, 2], [0, 1, 2])
    run(reading, given, tmp_path)
    assert given["stream"].isStreaming
    found = []
    run(following, {**given, "deal_with": found.append}, tmp_path)
    assert sorted(pa.concat_tables(found)["id"].to_pylist()) == [0, 1, 2]
