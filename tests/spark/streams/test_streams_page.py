"""The code of docs/streams.md does what the page says."""

import re
import shutil
from pathlib import Path

import pyarrow as pa
import pytest

from optimist.core import DeltaLog
from optimist.spark import DeltaTable, write

PAGE = Path(__file__).resolve().parents[3] / "docs" / "streams.md"
FEED = {"delta.enableChangeDataFeed": "true"}
BLOCKS = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)


@pytest.fixture
def given(enabled, tmp_path):
    """What the page takes for granted."""
    enabled.range(3).write.parquet(f"{tmp_path}/in")
    write(enabled.range(1).selectExpr("id", "5L AS count"), f"{tmp_path}/counts")
    return {
        "spark": enabled,
        "flights": enabled.readStream.schema("id LONG").parquet(f"{tmp_path}/in"),
        "DeltaTable": DeltaTable,
        "position": None,
    }


def run(code, given, tmp_path):
    exec(code.replace("/data", str(tmp_path)), given)
    for query in given["spark"].streams.active:
        query.processAllAvailable()
        query.stop()


def ids(path):
    return sorted(DeltaLog.for_path(path, {}).to_arrow()["id"].to_pylist())


@pytest.mark.again
def test_each_block_runs(given, tmp_path):
    writing, by_function, merging, reading, changing, tracking, following, by_schemas = BLOCKS
    run(writing, given, tmp_path)
    assert ids(tmp_path / "flights") == [0, 1, 2]
    run(by_function, given, tmp_path)
    assert ids(tmp_path / "flights") == [0, 1, 2]
    for _ in range(2):
        run(merging, given, tmp_path)
        counts = DeltaLog.for_path(tmp_path / "counts", {}).to_arrow().to_pylist()
        assert sorted((row["id"], row["count"]) for row in counts) == [(0, 6), (1, 1), (2, 1)]
        assert ids(tmp_path / "audit") == [0, 1, 2]
        # As if the driver had crashed before Spark's record of the batch.
        shutil.rmtree(tmp_path / "checkpoints" / "upsert" / "commits")
    run(reading, given, tmp_path)
    assert given["stream"].isStreaming
    DeltaTable.forPath(given["spark"], str(tmp_path / "flights")).alter.set_properties(FEED)
    run(changing, given, tmp_path)
    assert "_change_type" in given["changes"].columns
    run(tracking, given, tmp_path)
    checkpoint, target = tmp_path / "checkpoints" / "copy", tmp_path / "copy"
    writer = given["stream"].writeStream.format("delta").trigger(availableNow=True)
    writer.option("checkpointLocation", f"{checkpoint}").start(f"{target}").awaitTermination()
    assert ids(target) == [0, 1, 2]
    assert len(list(checkpoint.glob("schemas/_schema_log_*/0"))) == 1
    found = []
    run(following, {**given, "deal_with": found.append}, tmp_path)
    assert sorted(pa.concat_tables(found)["id"].to_pylist()) == [0, 1, 2]
    stored = []
    store = lambda rows, position: stored.append((rows, position))  # noqa: E731
    run(by_schemas, {**given, "DeltaLog": DeltaLog, "store": store}, tmp_path)
    assert sorted(stored[0][0]["id"].to_pylist()) == [0, 1, 2]
    assert len(list(tmp_path.glob("followers/copy/_schema_log_*/0"))) == 1
