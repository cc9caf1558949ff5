"""Views in the catalog of a Spark Connect server, as a client has to know them to read them itself.

The server would read a view by its own catalog, where Delta tables have names and no rows.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf
from pyspark.sql.types import DataType

from optimist.core.errors import UsageError
from optimist.core.errors.foreign_text import shown
from optimist.core.sql import parts_of_name
from optimist.spark.commands.catalog.view_types import (
    ToldType,
    is_up_cast,
    plain_text,
    type_text,
    writes_decimals,
)
from optimist.spark.rows.row_shape import quoted
from optimist.spark.session.conf import is_on
from optimist.spark.session.jvm import conf_entries

__all__ = ["ServerView", "server_view"]

_ANSI = "spark.sql.ansi.enabled"
_GONE = ("TABLE_OR_VIEW_NOT_FOUND", "SCHEMA_NOT_FOUND")
_MEANINGS = ("spark.sql.ansi.", "spark.sql.legacy.", "spark.sql.parser.")
_DEFAULTS: Mapping[str, str | None] = MappingProxyType(
    {
        "spark.sql.ansi.doubleQuotedIdentifiers": "false",
        _ANSI: None,  # what a view without it means differs between versions
        "spark.sql.caseSensitive": "false",
        "spark.sql.decimalOperations.allowPrecisionLoss": "true",
        "spark.sql.legacy.timeParserPolicy": "CORRECTED",
        "spark.sql.mapKeyDedupPolicy": "EXCEPTION",
        "spark.sql.parser.escapedStringLiterals": "false",
        "spark.sql.parser.quotedRegexColumnNames": "false",
        "spark.sql.session.timeZone": None,
        "spark.sql.timestampType": "TIMESTAMP_LTZ",
    }
)
"""Confs that change what a query means, with the values that a view has without them."""


@dataclass(frozen=True, slots=True)
class ServerView:
    """A view of the session catalog.

    Attributes:
        name: The catalog, the database and the name.
        text: Its query.
        within: The catalog and the database in which the query's names are looked up.
        columns: The names of its columns, each with its type as the server describes it.
        query_columns: The query's columns of which they are made.
        mode: How it follows other columns of its tables: `BINDING`, `COMPENSATION`,
            `TYPE EVOLUTION` or `EVOLUTION`.
        confs: The settings under which it was made.
    """

    name: tuple[str, ...]
    text: str
    within: tuple[str, ...]
    columns: Sequence[tuple[str, ToldType]]
    query_columns: Sequence[str]
    mode: str
    confs: Mapping[str, str]

    @property
    def query(self) -> str:
        """Its query within another one, so that a text of an entry runs no other statement."""
        return f"SELECT * FROM (\n{self.text}\n)"

    def shaped(self, rows: DataFrame) -> DataFrame:
        """Return the rows of its query as those of the view.

        Raises:
            AnalysisException: The query has no such columns any more, or has others that only a
                cast by the rules of ANSI could turn into them, which the session has not.
        """
        if self.mode == "EVOLUTION":
            return rows
        found, types = rows.columns, [item.dataType for item in rows.schema]
        numbered = rows.toDF(*(f"c{at}" for at in range(len(found))))
        taken: set[int] = set()
        columns = []
        for (name, kind), wanted in zip(self.columns, self.query_columns, strict=True):
            same = (at for at, each in enumerate(found) if each.lower() == wanted.lower())
            at = next((each for each in same if each not in taken), None)
            if at is None:
                raise self._changed(wanted, found)
            taken.add(at)
            column = sf.col(f"c{at}")
            if self.mode != "TYPE EVOLUTION":
                if not self._is_cast_alike(rows.sparkSession, types[at], kind):
                    raise self._changed(wanted, [f"{wanted} {plain_text(types[at])}"])
                column = column.cast(type_text(kind))
            columns.append(column.alias(name))
        return numbered.select(*columns)

    def _is_cast_alike(self, spark: SparkSession, found: DataType, kind: ToldType) -> bool:
        """Return whether a cast of the session is the one that Spark makes for the view.

        Spark makes up-casts alone, or else casts by the rules of ANSI, whatever the session has.
        """
        if not is_up_cast(found, kind):
            return self.mode != "BINDING" and is_on(spark, _ANSI)
        return self.mode == "BINDING" or not writes_decimals(found, kind) or is_on(spark, _ANSI)

    def ensure_same_confs(self, spark: SparkSession) -> None:
        """Refuse a session in which the query of the view would mean something else.

        Raises:
            UsageError: A setting differs (kind `OPTIMIST_UNSUPPORTED_STATEMENT`).
        """
        own = conf_entries(spark)
        wanted = {key: value for key, value in _DEFAULTS.items() if value is not None}
        wanted |= {key: value for key, value in self.confs.items() if _has_meaning(key)}
        for key, value in wanted.items():
            has = own.get(key) or _DEFAULTS.get(key) or spark.conf.get(key, None)
            if has is not None and has.lower() != value.lower():
                name = ".".join(self.name)
                raise UsageError(
                    f"The view {shown(name)} was made with {key} = {shown(value)}, but the session "
                    f"has {shown(has)}, with which its query may mean something else. Nothing was "
                    f'read. Call spark.conf.set("{key}", ...) with the value of the view.',
                    kind="OPTIMIST_UNSUPPORTED_STATEMENT",
                    statement=f"The view {name} under other settings",
                )

    def _changed(self, wanted: str, found: Sequence[str]) -> AnalysisException:
        name = ".".join(map(quoted, self.name))
        return AnalysisException(
            f"The query of the view {name} has no such column {quoted(wanted)} any more, only "
            f"{', '.join(map(quoted, found))}. Nothing was read. Create the view again.",
            errorClass="INCOMPATIBLE_VIEW_SCHEMA_CHANGE",
            messageParameters={"viewName": name, "colName": wanted},
        )


def server_view(spark: SparkSession, name: tuple[str, ...]) -> ServerView | None:
    """Return a view of the catalog, or None if it was dropped meanwhile.

    Args:
        spark: A Spark Connect client.
        name: Its catalog, its database and its name.
    """
    ask: Any = type(spark).sql
    try:
        (row,) = ask(spark, f"DESCRIBE EXTENDED {'.'.join(map(quoted, name))} AS JSON").collect()
    except AnalysisException as error:
        if error.getCondition() in _GONE:
            return None
        raise
    told: Mapping[str, Any] = json.loads(row[0])
    if "view_text" not in told:
        return None  # a table has taken its name
    columns = [(each["name"], each["type"]) for each in told["columns"]]
    names = [column for column, _ in columns]
    return ServerView(
        name,
        told["view_text"],
        parts_of_name(told.get("view_catalog_and_namespace", "")) or name[:-1],
        columns,
        told.get("view_query_output_columns") or names,
        told.get("view_schema_mode", "BINDING"),
        told.get("view_creation_spark_configuration") or {},
    )


def _has_meaning(key: str) -> bool:
    return key in _DEFAULTS or key.startswith(_MEANINGS)
