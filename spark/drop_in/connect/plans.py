"""Narrows the frames over Delta tables that a Spark Connect client sends.

The server tells its Python data sources neither columns nor filters nor limits, and it resolves a
scan once. So the client looks at each plan before it sends it:

1. A scan that follows its table gets the newest version, one for all scans of the table.
2. A scan leaves out what the plan surely does not need (`needs_of_scans`).
3. A part that was persisted is sent as it was then, so that the server finds what it has kept; for
   as long as there is a frame over it, and the cache is not cleared.

The frames keep their plans; what is sent is a changed copy.
"""

from __future__ import annotations

import re
import weakref
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial, reduce
from operator import and_
from typing import Any

from pyspark.sql import SparkSession

from optimist.core.predicates import Predicate
from optimist.core.predicates.resolution import map_columns, map_leaves
from optimist.core.predicates.tree import Column
from optimist.core.schema.types import StructType
from optimist.core.snapshot import Snapshot
from optimist.core.sql import Mentions
from optimist.core.sql.first_words import begin_of
from optimist.core.sql.query_needs import folded
from optimist.core.sql.reader import Reader
from optimist.spark.arrow.frame import Needed, narrow_sent_scan
from optimist.spark.arrow.row_metadata import METADATA
from optimist.spark.arrow.sent_scans import NewestVersions, is_scan, known_scan
from optimist.spark.arrow.source import ScanOptions
from optimist.spark.conditions.connect_condition import known_in_zone, known_without, sure_predicate
from optimist.spark.conditions.connect_expressions import SentExpressions, messages
from optimist.spark.conditions.connect_text import SentTexts
from optimist.spark.drop_in.connect.sent_needs import (
    ScanNeeds,
    has_unknown_names,
    mentions,
    needs_of_scans,
)
from optimist.spark.drop_in.connect.sent_rows import RowFilter
from optimist.spark.rows.scanned_table import is_scan_alias, scan_alias
from optimist.spark.session.jvm import conf_entries

__all__ = ["SentPlans"]

_CLEAR = re.compile(r"clear\b", re.IGNORECASE)


class SentPlans:
    """Changes the messages of one client before they are sent."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = weakref.ref(spark)
        self._persisted: dict[int, Any] = {}

    def prepared(self, relation: Any) -> Any:
        """Return what to send for a message `Relation`."""
        if _clears_cache(relation):
            self._persisted.clear()
        if not any(is_scan(item) for item in _relations(relation)):
            return relation
        made = type(relation)()
        made.CopyFrom(relation)
        self._prepare(made)
        return made

    def prepare_command(self, command: Any) -> None:
        """Change the relation that a message `Command` runs, in place."""
        for item in messages(command):
            if item.DESCRIPTOR.name == "Relation":
                item.CopyFrom(self.prepared(item))
                return

    def persisted(self, method: str, relation: Any) -> Any:
        """Return what to send where a relation is persisted or unpersisted."""
        made = self.prepared(relation)
        plan_id = relation.common.plan_id
        if method == "persist":
            self._persisted[plan_id] = made
        elif method == "unpersist":
            self._persisted.pop(plan_id, None)
        return made

    def let_go_with(self, plan: Any) -> None:
        """Forget a persisted plan of the client once no frame uses it."""
        weakref.finalize(plan, self._persisted.pop, plan._plan_id, None)

    def _prepare(self, relation: Any) -> None:
        versions = NewestVersions()
        read: list[tuple[Any, Snapshot, ScanNeeds]] = []
        for scan, needs in needs_of_scans(relation, self._is_kept):
            known = known_scan(scan)
            if known is not None:
                snapshot = versions.read_by(known, scan.read.data_source.options)
                read.append((scan, snapshot, needs if known.is_whole else ScanNeeds()))
        columns = {METADATA, *(name for _, at, _ in read for name in at.schema.names)}
        # An error about a name tells the columns that there are: all of them.
        names = None if has_unknown_names(relation, columns) else mentions(relation)
        for scan, snapshot, needs in read:
            self._narrow(scan, snapshot, needs, names)
        for item in _relations(relation):
            if is_scan(item):
                self._fit_session(item.read.data_source)
            _name_version(item)

    def _is_kept(self, relation: Any) -> bool:
        """Replace a part that was persisted, and return whether it was."""
        kept = self._persisted.get(relation.common.plan_id)
        if kept is not None:
            relation.CopyFrom(kept)
        return kept is not None

    def _narrow(
        self, relation: Any, snapshot: Snapshot, needs: ScanNeeds, names: Mentions | None
    ) -> None:
        spark = self._spark()
        if spark is None or needs == ScanNeeds():
            return
        columns = None
        if not needs.takes_all and names is not None:
            hidden = ((METADATA,),) if names.has(METADATA) else ()
            columns = (*names.paths(snapshot.schema), *hidden)
        predicate = _predicate(spark, needs, snapshot)
        needed = Needed(columns, predicate, limit=needs.limit)
        narrow_sent_scan(spark, relation.read.data_source, snapshot, needed)

    def _fit_session(self, source: Any) -> None:
        """Let a scan skip no files by what the session's conf gives another meaning by now."""
        spark, sent = self._spark(), ScanOptions.from_options(dict(source.options))
        if spark is None:
            return
        predicate = Predicate.parse(sent.predicate)
        known = known_in_zone(spark, predicate, sent.zone)
        if sent.without and known != Predicate.TRUE:
            known = known_without(conf_entries(spark), known, sent.without)
        if known != predicate:
            source.options.update(replace(sent, predicate=str(known)).to_options())


def _clears_cache(relation: Any) -> bool:
    if relation.WhichOneof("rel_type") == "sql":
        start = begin_of(relation.sql.query, _CLEAR)
        return start is not None and Reader(relation.sql.query, start=start).is_at("CLEAR", "CACHE")
    return bool(relation.catalog.HasField("clear_cache"))


def _relations(message: Any) -> Iterator[Any]:
    return (item for item in messages(message) if item.DESCRIPTOR.name == "Relation")


def _name_version(relation: Any) -> None:
    """Have the alias of a scan tell the version that it reads."""
    if relation.WhichOneof("rel_type") == "subquery_alias":
        named = relation.subquery_alias
        if is_scan(named.input) and is_scan_alias(named.alias):
            options = ScanOptions.from_options(dict(named.input.read.data_source.options))
            named.alias = scan_alias(options.scanned_table)


def _predicate(spark: SparkSession, needs: ScanNeeds, snapshot: Snapshot) -> Predicate:
    """Return the parts of the filters above a scan that have one clear meaning."""
    if not needs.filters:
        return Predicate.TRUE
    confs = conf_entries(spark)
    read = partial(_filter, spark, snapshot, confs)
    found = [part for item in needs.filters for part in read(item)]
    return reduce(and_, found) if found else Predicate.TRUE


def _filter(
    spark: SparkSession, snapshot: Snapshot, confs: Mapping[str, str], item: RowFilter
) -> Iterator[Predicate]:
    names = item.names(snapshot.schema.names)
    changes_names = item.is_joined or any(name != column for name, column in names.items())
    is_strict = confs.get("spark.sql.caseSensitive", "").strip().lower() == "true"
    if changes_names and (is_strict or item.names_plans()):
        return
    schema = _as_named(snapshot.schema, names)
    texts = SentTexts(schema, item.alias, confs, has_others=True)
    predicate = SentExpressions(texts, "").predicate(item.condition)

    def own(column: Column) -> Column:
        return Column((names[column.path[0]], *column.path[1:]))

    for part in sure_predicate(spark, predicate, schema).conjuncts():
        if all(path[0] in names and item.is_of(path) for path in part.columns()):
            yield map_leaves(part, lambda leaf: map_columns(leaf, own))


def _as_named(schema: StructType, names: Mapping[str, str]) -> StructType:
    """Return the schema under other names, and under its own where these are free."""
    named = [replace(schema.fields[schema.names.index(names[name])], name=name) for name in names]
    taken = set(map(folded, names))
    return StructType((*named, *(item for item in schema if folded(item.name) not in taken)))
