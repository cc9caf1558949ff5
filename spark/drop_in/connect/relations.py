"""The frames that stand for Delta tables in a query of a Spark Connect client.

The server would read every column and file of them. So what the query surely leaves unread
(`query_needs`) is left out here; a filter stays in the query, where Spark applies it.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from optimist.core.errors import SchemaError, UsageError
from optimist.core.predicates import Predicate
from optimist.core.snapshot import Snapshot
from optimist.core.sql import Mentions, PathRelation, RowNeeds, SqlText
from optimist.core.statements.missing_tables import as_missing_name
from optimist.spark.arrow.frame import Needed
from optimist.spark.arrow.plane import ArrowPlane
from optimist.spark.commands.reading.read import (
    TableVersion,
    ensure_table_at,
    epoch_millis,
    open_rows,
    read,
)
from optimist.spark.conditions.connect_condition import sure_predicate
from optimist.spark.conditions.connect_text import SentTexts, changing_confs
from optimist.spark.drop_in.connect.refusals import refused
from optimist.spark.planes.planes import plane_of
from optimist.spark.session.jvm import conf_entries

__all__ = ["RelationFrames"]

_WHOLE_NUMBER = re.compile(r"'?([0-9]{1,19})'?")
_TEXT = re.compile(r"'([^'\\]*)'")
_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.timezone.utc)
_METADATA = "_metadata"
_PATTERNS = "spark.sql.parser.quotedRegexColumnNames"


@dataclass
class RelationFrames:
    """Makes the frames of one statement: a table that it names twice is opened once.

    Attributes:
        spark: The client's session.
        mentions: The columns that the statement can read; None if it may read any.
    """

    spark: SparkSession
    mentions: Mentions | None
    _versions: dict[PathRelation, TableVersion] = field(default_factory=dict)

    def frame(self, relation: PathRelation, rows: RowNeeds) -> DataFrame:
        """Return the needed rows of a relation."""
        if relation.changes:
            return self._changes(relation)
        version = self._versions.get(relation)
        if version is None:
            version = self._versions[relation] = self._opened(relation)
        plane = plane_of(self.spark, version.log.table)
        if not isinstance(plane, ArrowPlane):
            raise TypeError("no other plane serves a Spark Connect client")
        snapshot = version.snapshot
        limit = rows.limit if version.partition is None else None
        columns = self._columns(snapshot)
        if columns is not None:
            columns = (*columns, *version.partition_paths)
        needed = replace(self._needed_rows(rows, snapshot), columns=columns, limit=limit)
        frame = plane.scan_needed(snapshot, needed, is_time_travel=version.is_time_travel)
        return version.in_partition(frame)

    def _opened(self, relation: PathRelation) -> TableVersion:
        number = None if relation.version is None else _version(relation.version)
        millis = None
        if relation.timestamp is not None:
            millis = epoch_millis(self.spark, self._time(relation.timestamp))
        told = as_missing_name(".".join(relation.name)) if relation.name else nullcontext()
        with told:
            if relation.name:
                ensure_table_at(self.spark, relation.path)
            return open_rows(self.spark, relation.path, number, millis)

    def _changes(self, relation: PathRelation) -> DataFrame:
        bounds: dict[str, Any] = {}
        for side, sql in zip(("starting", "ending"), relation.changes, strict=False):
            number = _WHOLE_NUMBER.fullmatch(sql.sql)
            value = int(number[1]) if number and sql.sql[0] != "'" else self._time(sql)
            bounds[f"{side}{'Version' if isinstance(value, int) else 'Timestamp'}"] = value
        return read(self.spark, relation.path, readChangeFeed=True, **bounds)

    def _columns(self, snapshot: Snapshot) -> tuple[tuple[str, ...], ...] | None:
        mentions = self.mentions
        if mentions is None:
            return None
        if mentions.has_patterns and self._confs.get(_PATTERNS, "false").lower() != "false":
            return None
        hidden = ((_METADATA,),) if mentions.has(_METADATA) else ()
        return (*mentions.paths(snapshot.schema), *hidden)

    def _needed_rows(self, rows: RowNeeds, snapshot: Snapshot) -> Needed:
        """Return the parts of the condition that have one clear meaning."""
        if rows.where is None:
            return Needed()
        texts = SentTexts(snapshot.schema, rows.alias, self._confs)
        try:
            found = texts.predicate(rows.where.sql)
        except SchemaError:
            return Needed()  # a column of another table, of a query around this one
        predicate = sure_predicate(self.spark, found, snapshot.schema)
        is_whole = predicate == Predicate.TRUE
        without = () if is_whole else changing_confs(rows.where.sql)
        return Needed(predicate=predicate, without=without)

    @cached_property
    def _confs(self) -> Mapping[str, str]:
        return conf_entries(self.spark)

    def _time(self, sql: SqlText) -> str | dt.datetime:
        """Return the time of an expression, a text as `read` reads it."""
        text = _TEXT.fullmatch(sql.sql)
        if text is not None:
            return text[1]
        query = f"SELECT unix_micros(CAST(({sql.sql}) AS TIMESTAMP)) AS micros"
        micros = self.spark.sql(query).collect()[0]["micros"]
        if micros is None:
            raise UsageError(
                f"The time {sql.sql} is null. Nothing was read. Give a time.",
                kind="DELTA_TIMESTAMP_INVALID",
                value=sql.sql,
            )
        return _EPOCH + dt.timedelta(microseconds=micros)


def _version(sql: SqlText) -> int:
    number = _WHOLE_NUMBER.fullmatch(sql.sql)
    if number is None:
        raise refused(f"The version {sql.sql}", "Give the number itself, or a parameter.")
    return int(number[1])
