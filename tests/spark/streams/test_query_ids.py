"""By which id a batch is recorded where Spark's thread does not tell that of the query."""

from __future__ import annotations

import json
import uuid

from optimist.core import DeltaLog
from optimist.spark.streams.sink import StreamSink
from optimist.spark.streams.write_stream import batch_function


def test_batches_of_two_queries_are_never_taken_for_each_other(spark, tmp_path):
    path = str(tmp_path / "t")
    sink = StreamSink.of(path, "append", {})
    assert spark.sparkContext.getLocalProperty("sql.streaming.queryId") is None
    ids = [str(uuid.uuid4()), str(uuid.uuid4())]
    for query in ids:
        checkpoint = tmp_path / query
        checkpoint.mkdir()
        (checkpoint / "metadata").write_text(json.dumps({"id": query}))
        for _ in range(2):  # a batch that is run again is skipped
            batch_function(sink, str(checkpoint))(spark.range(3), 0)
    log = DeltaLog.for_path(path)
    assert log.count() == 6
    assert log.snapshot().set_transactions.keys() == set(ids)
