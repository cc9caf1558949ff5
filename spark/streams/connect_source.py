"""A Python data source over a table as a stream, for Spark Connect, which has no JVM.

*Assumes* that this package is installed where Spark's Python workers run, the server's among them.
*Provides* the offsets and batches of `StreamPlanner`, and from PySpark 4.2 on limits and
`Trigger.AvailableNow`. *Does not provide* limits and a log of schemas before that: those versions
don't tell a source where the last batch ended, so a batch takes all that has come.

With a log of schemas, the offset from which a query continues decides which entry's schema is used
(`PlacedSchemas`), since Spark tells a source nothing else of its query. The frame has the columns
of the last entry, and that schema must have the same. The layout of rows then travels with each
task, since readers on executors do not know the offset.

The options of the table travel inside the pickled class, as in `arrow/source.py`.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import datasource as ds
from pyspark.sql.types import StructType as SparkStruct

from optimist.core.commands.not_built_yet import not_built_yet
from optimist.core.data.parquet.parquet_reader import RowLayout
from optimist.core.secrets import Options
from optimist.core.snapshot.row_layout import row_layout
from optimist.core.streams.followed_schemas import PlacedSchemas
from optimist.core.streams.indexed_files import Capacity
from optimist.core.streams.offset import StreamOffset
from optimist.core.streams.options import StreamOptions
from optimist.core.streams.planner import StreamPlanner
from optimist.core.streams.schema_log import logs_at
from optimist.core.streams.unblocked import Allowed
from optimist.core.table.delta_log import DeltaLog
from optimist.spark.arrow.tasks import Grouping, encode_groups, read_group
from optimist.spark.conditions.connect_expressions import messages
from optimist.spark.session.conf import engine_options, session_zone_name
from optimist.spark.session.pyspark_versions import is_connect, stream_reader_traits
from optimist.spark.session.task_errors import portable_errors
from optimist.spark.streams.source import ensure_same_columns, stream_schema

__all__ = ["read_stream", "streamed_paths"]

_BEGIN = {"begin": True}
"""The offset before the first batch.

The checkpoint's first offset says which version that is.
"""
_PREFIX = "streamed_by_optimist_"  # not that of scans, which are narrowed when they are sent
_GROUPING = "optimist.grouping"
_ZONE = "optimist.zone"


def read_stream(
    spark: SparkSession, log: DeltaLog, options: Mapping[str, str], parsed: StreamOptions
) -> DataFrame:
    """Return a stream over a table.

    Args:
        spark: The session.
        log: The table.
        options: The options of the stream as text; a time as epoch milliseconds.
        parsed: The same options, parsed.

    Raises:
        UsageError: This PySpark does not support such a start, or a log of schemas (kind
            `OPTIMIST_NOT_BUILT_YET`).
        TableError: See `StreamPlanner.of`.
    """
    if not _TRAITS.tells_start:
        parsed.ensure_untracked("a stream on Spark Connect before PySpark 4.2")
    if not _TRAITS.tells_start and parsed.starts_at_a_moment:
        raise not_built_yet(
            "A start that is latest or a time, of a stream on Spark Connect before PySpark 4.2,",
            "Use PySpark 4.2, or give a startingVersion.",
        )
    given = Options({**engine_options(spark), **log.table.store.options})
    planner = _planner(log, parsed, given)
    grouping = Grouping.of(spark, is_connect=is_connect(spark))
    name = f"{_PREFIX}{uuid.uuid4().hex[:12]}"
    members: dict[str, Any] = {
        "source_name": name,
        "table_options": given,
    }
    spark.dataSource.register(type(name, (TableStreamSource,), members))
    reader = spark.readStream.format(name).schema(stream_schema(planner))
    sent = {
        **options,
        _GROUPING: json.dumps([grouping.max_bytes, grouping.num_groups, grouping.open_cost]),
        _ZONE: session_zone_name(spark),
    }
    return reader.options(**sent).option("path", log.table_path).load()


def streamed_paths(plan: Any) -> set[str]:
    """Return the tables that a client's plan, a message, reads as streams."""
    sources = (item for item in messages(plan) if item.DESCRIPTOR.name == "DataSource")
    return {str(item.options["path"]) for item in sources if item.format.startswith(_PREFIX)}


class TableStreamSource(ds.DataSource):
    """A table as a stream, whose registered classes `read_stream` makes."""

    source_name: ClassVar[str] = ""
    table_options: ClassVar[Options] = Options()

    @classmethod
    def name(cls) -> str:
        """Return the format's name."""
        return cls.source_name

    def streamReader(self, schema: SparkStruct) -> ds.DataSourceStreamReader:
        """Return the reader of one query."""
        folded = {key.lower(): value for key, value in self.options.items()}
        with portable_errors():
            return _Reader(folded, self.table_options, schema)


@dataclass(frozen=True, slots=True)
class _Group(ds.InputPartition):
    """The files of one task, as Arrow's bytes, and the index of their view in the planner.

    The layout of their rows is given if it depends on the batch's first offset.
    """

    data: bytes
    view: int
    layout: RowLayout | None = None

    def __repr__(self) -> str:
        return f"_Group({len(self.data)} bytes)"


_TRAITS = stream_reader_traits()


class _Reader(ds.DataSourceStreamReader, *_TRAITS.bases):  # type: ignore[misc]
    """A reader that plans beside the server during a query, and reads on executors."""

    def __init__(
        self, options: Mapping[str, str], table_options: Options, schema: SparkStruct
    ) -> None:
        log = DeltaLog.for_path(options["path"], table_options)
        parsed = StreamOptions.parse(options, int)
        self._planner = _planner(log, parsed, table_options)
        self._allowed = Allowed(parsed, table_options)
        self._grouping = Grouping(*json.loads(options[_GROUPING]))
        self._zone = options[_ZONE]
        self._schema = schema
        self._is_placed = not self._planner.is_placed_by_position
        self._layouts = self._make_layouts() if self._is_placed else []
        self._last_version: int | None = None

    def __getstate__(self) -> dict[str, Any]:
        """Return what `read` needs on executors."""
        return {"_layouts": self._layouts, "_schema": self._schema}

    def _make_layouts(self) -> list[RowLayout]:
        """Return how the rows of each view are read.

        Raises:
            TableError: The table's columns differ from the frame's.
        """
        planner = self._planner
        ensure_same_columns(planner, self._schema)
        access = planner.table.data_access()
        return [
            row_layout(view, planner.stream_schema, zone=self._zone, access=access)
            for view in planner.empty_views()
        ]

    def _choose_schema(self, start: StreamOffset | None, end: StreamOffset | None = None) -> None:
        """Let the first offset that Spark gives choose the entry by which rows are read."""
        if not self._is_placed:
            self._planner.begin_following(start, self._allowed, end=end)
            self._layouts = self._make_layouts()
            self._is_placed = True

    def initialOffset(self) -> dict[str, Any]:
        """Return the offset before the first batch."""
        return _BEGIN

    def latestOffset(self, start: dict[str, Any], limit: Any) -> dict[str, Any]:
        """Return the offset at which the next batch ends."""
        capacity = Capacity() if _TRAITS.is_unlimited(limit) else self._planner.capacity()
        with portable_errors():
            begin = _offset(start)
            self._choose_schema(begin)
            end = self._planner.latest_offset(begin, capacity, last_version=self._last_version)
        found: dict[str, Any] = start if end is None else json.loads(end.to_json())
        return found

    def getDefaultReadLimit(self) -> Any:
        """Return some limit, to tell Spark that there is one."""
        return _TRAITS.some_limit()

    def prepareForTriggerAvailableNow(self) -> None:
        """Read up to the version that is newest now."""
        with portable_errors():
            self._last_version = self._planner.latest_version()

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[_Group]:
        """Return the files of a batch, in balanced groups."""
        with portable_errors():
            reached = _offset(end)
            if reached is None:
                return []
            begin = _offset(start)
            self._choose_schema(begin, reached)
            views = self._planner.views_between(begin, reached)
            has_own_layout = self._planner.is_placed_by_position
            return [
                _Group(data, index, self._layouts[index] if has_own_layout else None)
                for index, view in enumerate(views)
                for data in encode_groups(view.data_paths, view.files, self._grouping)
            ]

    def read(self, partition: ds.InputPartition) -> Iterator[pa.RecordBatch]:
        """Read the rows of one group."""
        if not isinstance(partition, _Group):
            return
        with portable_errors():
            layout = partition.layout or self._layouts[partition.view]
            yield from read_group(partition.data, layout, self._schema)


if not _TRAITS.tells_start:

    def _latest_of_all(self: _Reader) -> dict[str, Any]:
        """Return all that has come, where Spark does not say what came before."""
        with portable_errors():
            return json.loads(self._planner.whole_offset().to_json())  # type: ignore[no-any-return]

    _Reader.latestOffset = _latest_of_all  # type: ignore[method-assign,assignment]


def _planner(log: DeltaLog, parsed: StreamOptions, given: Options) -> StreamPlanner:
    open_schema_log = None
    if parsed.schema_location is not None:
        schema_table = DeltaLog.for_path(parsed.schema_location, given).table
        open_schema_log = logs_at(schema_table, parsed.tracking_id)
    return StreamPlanner.of(
        log.table, parsed, log.snapshot, open_schema_log, tracked_by=PlacedSchemas
    )


def _offset(found: Mapping[str, Any]) -> StreamOffset | None:
    return None if found == _BEGIN else StreamOffset.from_json(json.dumps(found))
