"""The sink of a stream: what a batch waits for."""

from __future__ import annotations

import pytest

from optimist.core import DeltaLog
from optimist.spark.streams import sink as sinks


@pytest.mark.sample(1)
@pytest.mark.parametrize("is_on_server", [False, True])
def test_a_batch_waits_for_its_checkpoint_where_the_server_ends_the_process(
    spark, tmp_path, monkeypatch, is_on_server
):
    waited: list[str] = []
    monkeypatch.setattr(sinks, "is_connect", lambda _: is_on_server)
    monkeypatch.setattr(
        DeltaLog, "wait_for_background_work", lambda log: waited.append(log.table_path)
    )
    rows = spark.range(3)
    sinks.StreamSink.of(str(tmp_path), "append", {}).add_batch(rows, rows, "query", 0)
    assert DeltaLog.for_path(str(tmp_path)).count() == 3
    assert len(waited) == is_on_server
