"""A Python data source over a table as a stream, for Spark Connect, where no JVM can be asked.

*Assumes* that this package is installed where Spark's Python workers run, the server's among them.
*Provides* the offsets and batches of `StreamPlanner`; limits and `Trigger.AvailableNow` from
PySpark 4.2 on. *Does not provide* limits before that, since those versions don't tell a source
where the last batch ended: a batch takes all that has come, and there is no log of schemas.

With a log of schemas, the offset that a query goes on from decides by which entry rows are read
(`PlacedSchemas`), for Spark tells a source no more of its query; the columns of the frame, those of
the last entry, have to be the same. The layout of rows then travels with each task, since readers
on executors know no offset.

The options of the table travel inside the pickled class, as those of `arrow/source.py`.
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
"""Before the first batch: where that is, the first offset tells, which is in the checkpoint."""
_PREFIX = "streamed_by_optimist_"  # not that of scans, which are narrowed when they are sent
_GROUPING = "optimist.grouping"
_ZONE = "optimist.zone"


def read_stream(
    spark: SparkSession, log: DeltaLog, options: Mapping[str, str], parsed: StreamOptions
) -> DataFrame:
    """A stream over a table.

    Args:
        spark: The session.
        log: The table.
        options: The options of the stream as text; a time as epoch milliseconds.
        parsed: The same, parsed.

    Raises:
        UsageError: This PySpark can't keep such a start, or a log of schemas (kind
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
    """The tables that a client's plan, a message, reads as streams."""
    sources = (item for item in messages(plan) if item.DESCRIPTOR.name == "DataSource")
    return {str(item.options["path"]) for item in sources if item.format.startswith(_PREFIX)}


class TableStreamSource(ds.DataSource):
    """A table as a stream; `read_stream` makes the class that is registered."""

    source_name: ClassVar[str] = ""
    table_options: ClassVar[Options] = Options()

    @classmethod
    def name(cls) -> str:
        """The format's name."""
        return cls.source_name

    def streamReader(self, schema: SparkStruct) -> ds.DataSourceStreamReader:
        """The reader of one query."""
        folded = {key.lower(): value for key, value in self.options.items()}
        with portable_errors():
            return _Reader(folded, self.table_options, schema)


@dataclass(frozen=True, slots=True)
class _Group(ds.InputPartition):
    """One task's files, as Arrow's bytes, and the place of their view among the planner's.

    The layout of their rows goes with them where it follows from where the batch begins.
    """

    data: bytes
    view: int
    layout: RowLayout | None = None

    def __repr__(self) -> str:
        return f"_Group({len(self.data)} bytes)"


_TRAITS = stream_reader_traits()


class _Reader(ds.DataSourceStreamReader, *_TRAITS.bases):  # type: ignore[misc]
    """Plans in a process beside the server for the length of a query, and reads on executors."""

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
        self._layouts = self._found_layouts() if self._is_placed else []
        self._last_version: int | None = None

    def __getstate__(self) -> dict[str, Any]:
        """What `read` needs, on executors."""
        return {"_layouts": self._layouts, "_schema": self._schema}

    def _found_layouts(self) -> list[RowLayout]:
        """How the rows of each view are read.

        Raises:
            TableError: The table has other columns than the frame.
        """
        planner = self._planner
        ensure_same_columns(planner, self._schema)
        access = planner.table.data_access()
        return [
            row_layout(view, planner.stream_schema, zone=self._zone, access=access)
            for view in planner.empty_views()
        ]

    def _place(self, start: StreamOffset | None, end: StreamOffset | None = None) -> None:
        """Let the first offset that Spark tells decide by which entry of the log rows are read."""
        if not self._is_placed:
            self._planner.begin_following(start, self._allowed, end=end)
            self._layouts = self._found_layouts()
            self._is_placed = True

    def initialOffset(self) -> dict[str, Any]:
        """Before everything."""
        return _BEGIN

    def latestOffset(self, start: dict[str, Any], limit: Any) -> dict[str, Any]:
        """Where the next batch ends."""
        capacity = Capacity() if _TRAITS.is_unlimited(limit) else self._planner.capacity()
        with portable_errors():
            begin = _offset(start)
            self._place(begin)
            end = self._planner.latest_offset(begin, capacity, last_version=self._last_version)
        found: dict[str, Any] = start if end is None else json.loads(end.to_json())
        return found

    def getDefaultReadLimit(self) -> Any:
        """Only tells Spark that there is a limit."""
        return _TRAITS.some_limit()

    def prepareForTriggerAvailableNow(self) -> None:
        """Read up to the newest version of now."""
        with portable_errors():
            self._last_version = self._planner.latest_version()

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[_Group]:
        """The files of a batch, in balanced groups."""
        with portable_errors():
            reached = _offset(end)
            if reached is None:
                return []
            begin = _offset(start)
            self._place(begin, reached)
            views = self._planner.views_between(begin, reached)
            is_told = self._planner.is_placed_by_position
            return [
                _Group(data, place, self._layouts[place] if is_told else None)
                for place, view in enumerate(views)
                for data in encode_groups(view.data_paths, view.files, self._grouping)
            ]

    def read(self, partition: ds.InputPartition) -> Iterator[pa.RecordBatch]:
        """The rows of one group."""
        if not isinstance(partition, _Group):
            return
        with portable_errors():
            layout = partition.layout or self._layouts[partition.view]
            yield from read_group(partition.data, layout, self._schema)


if not _TRAITS.tells_start:

    def _everything(self: _Reader) -> dict[str, Any]:
        """All that has come, where Spark does not tell what came before."""
        with portable_errors():
            return json.loads(self._planner.whole_offset().to_json())  # type: ignore[no-any-return]

    _Reader.latestOffset = _everything  # type: ignore[method-assign,assignment]


def _planner(log: DeltaLog, parsed: StreamOptions, given: Options) -> StreamPlanner:
    log_of = None
    if parsed.schema_location is not None:
        place = DeltaLog.for_path(parsed.schema_location, given).table
        log_of = logs_at(place, parsed.tracking_id)
    return StreamPlanner.of(log.table, parsed, log.snapshot, log_of, tracked_by=PlacedSchemas)


def _offset(found: Mapping[str, Any]) -> StreamOffset | None:
    return None if found == _BEGIN else StreamOffset.from_json(json.dumps(found))
