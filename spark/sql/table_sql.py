"""SQL of a table's log as columns: constraints, generated columns, defaults.

Anybody who can write into the table's folder can write this SQL, and the next writer's Spark runs
it. So each text is judged before it is used (see `allowed_expressions`). Reads and deletes do not
need it and never look at it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import accumulate

from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as sf

from optimist.core.errors import SchemaError
from optimist.core.errors.foreign_text import quoted, shown
from optimist.core.schema.types import StructField, StructType
from optimist.spark.session.pyspark_versions import is_connect
from optimist.spark.spark_schema import VOID
from optimist.spark.sql.catalyst_sql import constant_of_sql, judged_sql
from optimist.spark.sql.connect_sql import judged_sent_sql
from optimist.spark.sql.quoted_texts import ensure_read_alike, with_texts_for
from optimist.spark.sql.unfit_sql import InvalidSqlError, UnsafeSqlError

__all__ = ["TableSql"]

_DEFAULT = "CURRENT_DEFAULT"
_SUBSTITUTED = "${"
_NO_COLUMNS = StructType()
_MAX_LENGTH = 50_000
_MAX_DEPTH = 200  # of parentheses: Spark's parser takes minutes for thousands


@dataclass(frozen=True, slots=True)
class TableSql:
    """The columns of the SQL in one table's log, each text judged once.

    Attributes:
        spark: The session, classic or of Spark Connect.
        path: The table's path, for errors.
        schema: The table's schema; the SQL may name only its columns.
        is_new: True if the SQL is not in the log yet, and a user wants to put it there.
    """

    spark: SparkSession
    path: str
    schema: StructType
    is_new: bool = False
    _judged: dict[tuple[str, bool], Column] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )

    def constraint(self, name: str, sql: str) -> Column:
        """Return a CHECK constraint as a column.

        Raises:
            SchemaError: The SQL uses something that is forbidden in the SQL of a log (kind
                `OPTIMIST_UNSAFE_EXPRESSION`), or is not an expression over the table's columns
                (kind `OPTIMIST_INVALID_EXPRESSION`).
        """
        return self._column(_Text("CHECK constraint", name, sql))

    def invariant(self, column: str, sql: str) -> Column:
        """Return the invariant of a column.

        It raises errors as `constraint` does.
        """
        return self._column(_Text("invariant of the column", column, sql))

    def generated(self, column: str, sql: str) -> Column:
        """Return the expression of a generated column.

        It raises errors as `constraint` does.
        """
        return self._column(_Text("generation expression of the column", column, sql))

    def default(self, item: StructField) -> Column:
        """Return a column's default, or null, in the type of the SQL and not the column's.

        Raises:
            SchemaError: As for `constraint`; also if the default is not a constant.
        """
        sql = item.metadata.get(_DEFAULT)
        if sql is None:
            return sf.lit(None)
        return self._column(_Text("default value of the column", item.name, str(sql)), True)

    def default_text(self, item: StructField) -> str:
        """Return a column's default as judged SQL, or `NULL`.

        It raises errors as `default` does.
        """
        self.default(item)
        sql = item.metadata.get(_DEFAULT)
        return "NULL" if sql is None else f"({with_texts_for(self.spark, str(sql))})"

    def _column(self, text: _Text, is_constant: bool = False) -> Column:
        # A generated column that the data lacks needs its SQL twice: to compute it, and to check
        # it.
        found = self._judged.get((text.sql, is_constant))
        if found is None:
            found = self._judged[text.sql, is_constant] = self._judge(text, is_constant)
        return found

    def _judge(self, text: _Text, is_constant: bool) -> Column:
        try:
            return self._column_of(text.sql, is_constant)
        except UnsafeSqlError as error:
            reason = error.reason + (f": {quoted(error.part)}" if error.part else "")
            raise self._refusal(text, reason, "OPTIMIST_UNSAFE_EXPRESSION") from None
        except InvalidSqlError as error:
            reason = f"is not an expression over the table's columns ({shown(error)})"
            raise self._refusal(text, reason, "OPTIMIST_INVALID_EXPRESSION") from None

    def _column_of(self, sql: str, is_constant: bool) -> Column:
        if len(sql) > _MAX_LENGTH or _depth(sql) > _MAX_DEPTH:
            raise UnsafeSqlError(
                f"is longer than {_MAX_LENGTH} characters, or nests parentheses more than "
                f"{_MAX_DEPTH} deep"
            )
        if self.is_new:
            ensure_read_alike(self.spark, sql)
        else:
            sql = with_texts_for(self.spark, sql)
        if _SUBSTITUTED in sql:
            # Before parsing, sessions replace this by the value of a variable, even of the
            # environment.
            raise UnsafeSqlError("holds a variable that the session would replace", _SUBSTITUTED)
        columns = _NO_COLUMNS if is_constant else self._columns
        if is_connect(self.spark):
            return judged_sent_sql(self.spark, sql, columns)
        if is_constant:
            return constant_of_sql(self.spark, sql)
        return judged_sql(self.spark, sql, columns)

    @property
    def _columns(self) -> StructType:
        """The columns that rows have while they are checked."""
        return StructType(tuple(item for item in self.schema if item.data_type != VOID))

    def _refusal(self, text: _Text, reason: str, kind: str) -> SchemaError:
        way_out = (
            "Use another expression."
            if self.is_new
            else "Find out who wrote it, and change or drop it with that engine."
        )
        return SchemaError(
            f"The {text.what} {shown(text.name)} of the table {shown(self.path)}, "
            f"{quoted(text.sql)}, {reason}. Every writer runs this text from the table's log, so "
            "it may only compute values from the row, with functions that are known to be safe. "
            f"Nothing was written. {way_out}",
            kind=kind,
            path=self.path,
            name=text.name,
            expression=text.sql,
        )


@dataclass(frozen=True, slots=True)
class _Text:
    """An SQL text, its purpose and its owner's name."""

    what: str
    name: str
    sql: str


def _depth(sql: str) -> int:
    """Return how deep parentheses are nested, counting those inside quotes, too."""
    steps = ((mark == "(") - (mark == ")") for mark in sql if mark in "()")
    return max(accumulate(steps), default=0)
