"""Streams with a log of schemas, driven as Spark drives them."""

from functools import partial

import pyarrow as pa

from optimist.core import DeltaLog
from optimist.core.errors import OptimistError
from optimist.core.paths import join, parent_of
from optimist.core.snapshot.local_scan import to_arrow
from optimist.core.streams.options import StreamOptions
from optimist.core.streams.planner import StreamPlanner
from optimist.core.streams.schema_log import SchemaLog
from optimist.core.streams.unblocked import Allowed

MAPPED = {"delta.columnMapping.mode": "name"}
SOURCE = "file:/ck/sources/0"
EVOLVED = "DELTA_STREAMING_METADATA_EVOLUTION"
BLOCKED = "DELTA_STREAMING_CANNOT_CONTINUE_PROCESSING_POST_SCHEMA_EVOLUTION"
ALL = {
    "spark.databricks.delta.streaming.allowSourceColumnRenameAndDrop": "always",
    "spark.databricks.delta.streaming.allowSourceColumnTypeChange": "always",
}


def mapped_table(path, options=None):
    """A table with two columns and one row, at version 1."""
    log = DeltaLog.for_path(path, options)
    log.create(pa.schema([("id", pa.int64()), ("name", pa.string())]), properties=MAPPED)
    add(log, id=1, name="one")
    return log


def add(log, **row):
    log.append(pa.table({key: pa.array([value]) for key, value in row.items()}))


def schema_log(log, tracking_id=None):
    return log_of(log, tracking_id)(log.metadata.id)


def log_of(log, tracking_id=None):
    """What gives the log of schemas for the id of the table."""
    place = join(parent_of(log.table_path), "ck")
    return partial(SchemaLog.of, log.store, place, tracking_id=tracking_id)


def stream(log, conf=ALL, source=SOURCE, tracking_id=None, **options):
    """A new run of a stream, as a driver that starts makes it."""
    parsed = StreamOptions.parse({key: str(value) for key, value in options.items()}, int)
    planner = StreamPlanner.of(log.table, parsed, log.snapshot, log_of(log, tracking_id))
    planner.tracking.begin(source, Allowed(parsed, conf), checks_path=True)
    return planner


def rows(log, views):
    access = log.table.data_access()
    return [row for view in views for row in to_arrow(view, access=access).to_pylist()]


class Query:
    """A stream as Spark drives it, with its checkpoint."""

    def __init__(self, log, **options):
        self.log, self.options = log, options
        self.offsets, self.num_done, self.seen = [], 0, []

    def run(self, conf=ALL, **options):
        """One run to its end or its error; the kind of the error."""
        try:
            self._run(stream(self.log, conf, **{**self.options, **options}))
        except OptimistError as error:
            return error.kind
        return None

    def _run(self, planner):
        while True:
            if self.num_done == len(self.offsets):
                start = self.offsets[-1] if self.offsets else None
                end = planner.latest_offset(start, planner.capacity())
                if end == start:
                    return
                self.offsets.append(end)
                if start is not None:
                    planner.done_with(start)
            start = self.offsets[-2] if len(self.offsets) > 1 else None
            self.seen += rows(self.log, planner.views_between(start, self.offsets[-1]))
            self.num_done += 1

    @property
    def places(self):
        return [offset.sort_key for offset in self.offsets]


def entries(log):
    found, number = [], 0
    while (entry := schema_log(log).entry(number)) is not None:
        found.append(entry)
        number += 1
    return found


def renamed(log):
    log.alter.rename_column("name", "title")


def dropped(log):
    log.alter.drop_columns(["name"])
