"""A Python data source over a table as a stream, for Spark Connect, where no JVM can be asked.

*Assumes* that this package is installed where Spark's Python workers run, the server's among them.
*Provides* the offsets and batches of `StreamPlanner`; limits and `Trigger.AvailableNow` from
PySpark 4.2 on. *Does not provide* limits before that, since those versions don't tell a source
where the last batch ended: a batch takes all that has come.

The options of the table's store travel inside the pickled class, as those of `arrow/source.py`.
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
from optimist.core.secrets import Options
from optimist.core.snapshot.row_layout import row_layout
from optimist.core.streams.indexed_files import Capacity
from optimist.core.streams.offset import StreamOffset
from optimist.core.streams.options import StreamOptions
from optimist.core.streams.planner import StreamPlanner
from optimist.core.table.delta_log import DeltaLog
from optimist.spark.arrow.tasks import Grouping, encode_groups, read_group
from optimist.spark.conditions.connect_expressions import messages
from optimist.spark.session.conf import session_zone_name
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
        UsageError: This PySpark can't keep such a start (kind `OPTIMIST_NOT_BUILT_YET`).
    """
    if not _TRAITS.tells_start and parsed.starts_at_a_moment:
        raise not_built_yet(
            "A start that is latest or a time, of a stream on Spark Connect before PySpark 4.2,",
            "Use PySpark 4.2, or give a startingVersion.",
        )
    planner = StreamPlanner.of(log.table, parsed, log.snapshot)
    grouping = Grouping.of(spark, is_connect=is_connect(spark))
    name = f"{_PREFIX}{uuid.uuid4().hex[:12]}"
    members: dict[str, Any] = {
        "source_name": name,
        "store_options": Options(log.table.store.options),
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
    store_options: ClassVar[Options] = Options()

    @classmethod
    def name(cls) -> str:
        """The format's name."""
        return cls.source_name

    def streamReader(self, schema: SparkStruct) -> ds.DataSourceStreamReader:
        """The reader of one query."""
        folded = {key.lower(): value for key, value in self.options.items()}
        with portable_errors():
            return _Reader(folded, self.store_options, schema)


@dataclass(frozen=True, slots=True)
class _Group(ds.InputPartition):
    """One task's files, as Arrow's bytes, and the place of their view among the planner's."""

    data: bytes
    view: int

    def __repr__(self) -> str:
        return f"_Group({len(self.data)} bytes)"


_TRAITS = stream_reader_traits()


class _Reader(ds.DataSourceStreamReader, *_TRAITS.bases):  # type: ignore[misc]
    """Plans in a process beside the server for the length of a query, and reads on executors."""

    def __init__(
        self, options: Mapping[str, str], store_options: Options, schema: SparkStruct
    ) -> None:
        log = DeltaLog.for_path(options["path"], store_options)
        parsed = StreamOptions.parse(options, int)
        self._planner = StreamPlanner.of(log.table, parsed, log.snapshot)
        ensure_same_columns(self._planner, schema)
        self._grouping = Grouping(*json.loads(options[_GROUPING]))
        self._schema = schema
        self._layouts = [
            row_layout(
                view,
                self._planner.stream_schema,
                zone=options[_ZONE],
                access=log.table.data_access(),
            )
            for view in self._planner.empty_views()
        ]
        self._last_version: int | None = None

    def __getstate__(self) -> dict[str, Any]:
        """What `read` needs, on executors."""
        return {"_layouts": self._layouts, "_schema": self._schema}

    def initialOffset(self) -> dict[str, Any]:
        """Before everything."""
        return _BEGIN

    def latestOffset(self, start: dict[str, Any], limit: Any) -> dict[str, Any]:
        """Where the next batch ends."""
        capacity = Capacity() if _TRAITS.is_unlimited(limit) else self._planner.capacity()
        with portable_errors():
            end = self._planner.latest_offset(
                _offset(start), capacity, last_version=self._last_version
            )
        found: dict[str, Any] = json.loads(end.to_json())
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
            views = self._planner.views_between(_offset(start), reached)
            return [
                _Group(data, place)
                for place, view in enumerate(views)
                for data in encode_groups(view.data_paths, view.files, self._grouping)
            ]

    def read(self, partition: ds.InputPartition) -> Iterator[pa.RecordBatch]:
        """The rows of one group."""
        if not isinstance(partition, _Group):
            return
        with portable_errors():
            yield from read_group(partition.data, self._layouts[partition.view], self._schema)


if not _TRAITS.tells_start:

    def _everything(self: _Reader) -> dict[str, Any]:
        """All that has come, where Spark does not tell what came before."""
        with portable_errors():
            return json.loads(self._planner.whole_offset().to_json())  # type: ignore[no-any-return]

    _Reader.latestOffset = _everything  # type: ignore[method-assign,assignment]


def _offset(found: Mapping[str, Any]) -> StreamOffset | None:
    return None if found == _BEGIN else StreamOffset.from_json(json.dumps(found))
