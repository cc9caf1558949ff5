"""Queries of Spark over a `Story`, in classic sessions and on Spark Connect alike."""

from __future__ import annotations

import random  # noqa: TID251 - the same histories each time
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from changing_descriptions import MODE, STEPS, Story
from connect_process import started
from description_readers import Reader, told
from optimist.core.streams.offset import StreamOffset

__all__ = ["SparkQuery", "tell_story"]

_TABLES = ({}, {MODE: "name"}, {"delta.enableDeletionVectors": "true"})


@dataclass
class SparkQuery(Reader):
    """A query that writes what comes into files of Parquet; each look runs it to its end.

    Attributes:
        spark: The session.
        folder: Where its checkpoints and files are.
    """

    spark: SparkSession | None = None
    folder: str = ""
    num_queries: int = 0
    seen: set[Path] = field(default_factory=set)

    def begin_anew(self) -> None:
        self.num_queries += 1

    def read_on(self) -> None:
        place = f"{self.folder}/{self.changes}-{self.num_queries}"
        options = {"readChangeFeed": "true"} if self.changes else {"skipChangeCommits": "true"}
        if self.start is not None:
            options["startingVersion"] = str(self.start)
        try:
            reader = self.spark.readStream.format("delta").options(**options)
            writer = reader.load(self.story.log.table_path).writeStream.format("parquet")
            writer = writer.option("checkpointLocation", f"{place}/ck").trigger(availableNow=True)
            started(lambda: writer.start(f"{place}/rows")).awaitTermination()
        finally:
            self._take(Path(place))

    def _take(self, place: Path) -> None:
        """Hold what was written since the last look against the story."""
        ends = [path for path in (place / "ck" / "commits").glob("[0-9]*") if path.name.isdigit()]
        if not ends:
            return
        number = max(int(path.name) for path in ends)
        text = (place / "ck" / "offsets" / str(number)).read_text().splitlines()[-1]
        end, files = StreamOffset.from_json(text), set((place / "rows").glob("*.parquet"))
        rows = [row for file in files - self.seen for row in pq.read_table(file).to_pylist()]
        is_whole = self.start is None and self.at is None
        begin = end.version - 1 if is_whole else self.start if self.at is None else self.at.version
        self.seen |= files
        self.at = end
        self.ensure_right(told(rows), begin, end.version, is_whole=is_whole)


def tell_story(spark: SparkSession, folder: str, seed: int) -> int:
    """Let queries read a random history; how many refusals there were."""
    chance = random.Random(seed)
    story = Story.begun(f"{folder}/table", chance.choice(_TABLES))
    start = chance.choice([None, 0, 1])
    queries = [
        SparkQuery(story, changes=changes, start=start, spark=spark, folder=folder)
        for changes in (False, True)
    ]
    for _ in range(chance.randint(3, 6)):
        for _ in range(chance.randint(1, 3)):
            story.take(chance.choice(STEPS), chance.randint(0, 3))
        queries[chance.randint(0, 1)].look()
    for query in queries:
        query.look()
    return sum(query.num_refused for query in queries)
