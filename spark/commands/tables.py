"""`DeltaTable`: names and signatures of `delta.tables`, to the letter."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TypeAlias

from pyspark.sql import Column, DataFrame, SparkSession

from optimist.core.errors import UsageError
from optimist.core.table.delta_log import DeltaLog
from optimist.spark import delete as delete_command
from optimist.spark import update as update_command
from optimist.spark.commands.history import detail_frame, history_frame
from optimist.spark.planes.planes import plane_of
from optimist.spark.rows.touched_files import aliased
from optimist.spark.session.callback_errors import original_errors
from optimist.spark.session.conf import open_log
from optimist.spark.session.pyspark_versions import ensure_supported

__all__ = ["DeltaTable"]

ExpressionOrColumn: TypeAlias = str | Column
_PATH_NAME = re.compile(r"^\s*delta\s*\.\s*`(?P<path>(?:[^`]|``)+)`\s*$", re.IGNORECASE)


class DeltaTable:
    """A Delta table to look at and to change. Get one with `DeltaTable.forPath`.

    Each method sees the newest version when it is called, and each change is a transaction of its
    own.
    """

    def __init__(self, spark: SparkSession, log: DeltaLog, alias: str | None = None) -> None:
        self._spark = spark
        self._log = log
        self._alias = alias

    @classmethod
    def forPath(
        cls,
        sparkSession: SparkSession,
        path: str,
        hadoopConf: Mapping[str, str] = {},
    ) -> DeltaTable:
        """The table at a path.

        Args:
            sparkSession: A classic session, or a Spark Connect client.
            path: The table.
            hadoopConf: Options for the file system; their keys start with `fs.` or `dfs.`.

        Raises:
            TableNotFoundError: There is no Delta table at the path.
        """
        ensure_supported(sparkSession)
        _ensure(path, str, "path")
        log = open_log(sparkSession, path, hadoopConf)
        log.update()
        return cls(sparkSession, log)

    @classmethod
    def forName(cls, sparkSession: SparkSession, tableOrViewName: str) -> DeltaTable:
        """The table that a name such as ``delta.`/path` `` means.

        Raises:
            UsageError: Any other name (kind `OPTIMIST_CATALOG_NAMES_UNSUPPORTED`): Spark's catalog
                knows no Delta tables without a jar.
            TableNotFoundError: There is no Delta table at the path.
        """
        ensure_supported(sparkSession)
        _ensure(tableOrViewName, str, "tableOrViewName")
        match = _PATH_NAME.match(tableOrViewName)
        if match is None:
            raise UsageError(
                f"{tableOrViewName!r} is a name in the catalog, which is not supported yet. Use "
                "DeltaTable.forPath(spark, path), or a name of the form delta.`path`.",
                kind="OPTIMIST_CATALOG_NAMES_UNSUPPORTED",
                name=tableOrViewName,
            )
        return cls.forPath(sparkSession, match["path"].replace("``", "`"))

    @classmethod
    def isDeltaTable(cls, sparkSession: SparkSession, identifier: str) -> bool:
        """Whether there is a Delta table at a path (or at a name of the form ``delta.`path` ``)."""
        ensure_supported(sparkSession)
        _ensure(identifier, str, "identifier")
        match = _PATH_NAME.match(identifier)
        path = match["path"].replace("``", "`") if match else identifier
        return open_log(sparkSession, path).table_exists()

    def toDF(self) -> DataFrame:
        """The newest version as a DataFrame."""
        with original_errors():
            frame = plane_of(self._spark, self._log).scan(self._log.update())
            return aliased(frame, self._alias)

    def alias(self, aliasName: str) -> DeltaTable:
        """The same table under a name that conditions and expressions may use."""
        _ensure(aliasName, str, "aliasName")
        return DeltaTable(self._spark, self._log, aliasName)

    def delete(self, condition: ExpressionOrColumn | None = None) -> None:
        """Delete the rows for which the condition is true; all rows without one.

        Raises:
            DeltaConcurrentModificationException: Another commit changed what this one read; nothing
                is deleted.
            UsageError: The condition is not deterministic or holds a subquery.
        """
        if condition is not None:
            _ensure(condition, (str, Column), "condition")
        with original_errors():
            delete_command.delete(self._spark, self._log, condition, alias=self._alias)

    def update(
        self,
        condition: ExpressionOrColumn | None = None,
        set: Mapping[str, ExpressionOrColumn] | None = None,
    ) -> None:
        """Set columns to new values where the condition is true; in all rows without one.

        Args:
            condition: SQL text or a column.
            set: Column names to new values, SQL text or columns.

        Raises:
            DeltaConcurrentModificationException: Another commit changed what this one read; nothing
                is updated.
            SchemaError: A new value violates a constraint.
            UsageError: A column that does not exist, or an empty `set`.
        """
        if condition is not None:
            _ensure(condition, (str, Column), "condition")
        _ensure(set, Mapping, "set")
        assignments = dict(set or {})
        for name, value in assignments.items():
            _ensure(name, str, "a key of set")
            _ensure(value, (str, Column), f"set[{name!r}]")
        with original_errors():
            update_command.update(self._spark, self._log, condition, assignments, alias=self._alias)

    def history(self, limit: int | None = None) -> DataFrame:
        """The commits, newest first; at most `limit` of them."""
        if limit is not None:
            _ensure(limit, int, "limit")
        return history_frame(self._spark, self._log, limit)

    def detail(self) -> DataFrame:
        """One row about the table: where it is, how large, its properties and its protocol."""
        return detail_frame(self._spark, self._log)


def _ensure(value: object, expected: type | tuple[type, ...], name: str) -> None:
    if not isinstance(value, expected):
        kinds = expected if isinstance(expected, tuple) else (expected,)
        wanted = " or ".join(kind.__name__ for kind in kinds)
        raise UsageError(
            f"{name} must be a {wanted}, not {type(value).__name__}.",
            kind="OPTIMIST_INVALID_ARGUMENT",
            argument=name,
        )
