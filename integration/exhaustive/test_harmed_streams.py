"""A stream into S3 while one in twenty messages is harmed: in the end each batch is in once.

A batch that fails stops its query, as it would in production, and the query is started again.
`FAULTY_WIRE_SEED` (1) says which messages are harmed.
"""

import json
import os
import sys

from pyspark.errors import StreamingQueryException

from faulty_wires import wires_of
from lossy_places import s3_options, s3_place
from optimist.core import DeltaLog
from optimist.spark import write_stream

SEED = int(os.environ.get("FAULTY_WIRE_SEED", "1"))
RATE = 0.05
BATCHES = 12
MOST_STARTS = 20


def batches_told(place):
    """The numbers of the batches that the log's commits record, commit by commit."""
    commits = place.files("sink/_delta_log/")
    lines = [
        line
        for name in sorted(commits)
        if name.endswith(".json")
        for line in commits[name].decode().splitlines()
    ]
    actions = [json.loads(line) for line in lines]
    return [action["txn"]["version"] for action in actions if "txn" in action]


def test_each_batch_arrives_once(spark, conf, s3_server, tmp_path):
    folder = tmp_path / "in"
    folder.mkdir()
    for number in range(BATCHES):
        file = folder / f"{number}.json"
        file.write_text("".join(f'{{"id": {number * 10 + each}}}\n' for each in range(10)))
        os.utime(file, (1_700_000_000 + number,) * 2)
    with s3_place(s3_server.endpoint) as place:
        for key, value in s3_options(place.proxies["s3"].endpoint).items():
            conf(f"spark.{key}" if key.startswith("optimist") else key, value)
        stopped = []
        with wires_of(place).disturbed(SEED, RATE) as (weather, _):
            for _ in range(MOST_STARTS):
                rows = spark.readStream.schema("id LONG").option("maxFilesPerTrigger", 1)
                query = write_stream(
                    rows.json(str(folder)),
                    f"{place.url}/sink",
                    f"{tmp_path}/checkpoint",
                    trigger={"availableNow": True},
                )
                try:
                    query.awaitTermination()
                    break
                except StreamingQueryException as error:
                    stopped.append(str(error))
        sys.stdout.write(f"seed {SEED}: stopped {len(stopped)} times; {weather}\n")
        assert len(stopped) < MOST_STARTS, stopped[-1]
        assert weather.met.total() > 3, "the weather was too fair to prove anything"
        assert batches_told(place) == list(range(BATCHES))
        sink = DeltaLog(f"{place.direct_url}/sink", place.direct).to_arrow()
        assert sorted(sink["id"].to_pylist()) == list(range(10 * BATCHES))
