"""DELETE, UPDATE and MERGE of a Spark Connect client, from the text to `DeltaTable`."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import DataFrame, SparkSession

from optimist.core.commands.assigned_paths import ensure_apart
from optimist.core.predicates.text import quote_path
from optimist.core.sql import RowChange, SqlText, TableName
from optimist.core.sql.statements import Assignment, Delete, Merge, MergeClause, Update
from optimist.spark.commands.merge.builder import DeltaMergeBuilder
from optimist.spark.commands.tables import DeltaTable
from optimist.spark.drop_in.connect.formats import FormattedSql
from optimist.spark.rows.row_shape import quoted

__all__ = ["change_rows"]


def change_rows(spark: SparkSession, change: RowChange, sql: FormattedSql) -> DataFrame:
    """Run a change whose table is a path.

    Returns:
        One row with the numbers of rows, as `DeltaTable` gives it.
    """
    table = DeltaTable.forPath(spark, str(change.table.path))
    if change.alias is not None:
        table = table.alias(change.alias)
    if isinstance(change, Delete):
        told = table.delete(_text(change.condition))
    elif isinstance(change, Update):
        told = table.update(_text(change.condition), _values(change.assignments))
    else:
        told = _merge(spark, table, change, sql)
    if told is None:
        raise TypeError("a Spark Connect client is always told how many rows changed")
    return told


def _merge(spark: SparkSession, table: DeltaTable, change: Merge, sql: FormattedSql) -> DataFrame:
    source = _source(spark, change.source, sql)
    alias = change.source_alias
    if alias is None and isinstance(change.source, TableName) and change.source.path is None:
        alias = change.source.parts[-1]
    if alias is not None:
        source = source.alias(alias)
    builder = table.merge(source, change.condition.sql)
    for clause in change.clauses:
        builder = _with_clause(builder, clause)
    if change.evolves_schema:
        builder = builder.withSchemaEvolution()
    return builder.execute()


def _source(spark: SparkSession, source: TableName | SqlText, sql: FormattedSql) -> DataFrame:
    if isinstance(source, SqlText):
        return sql.query(spark, source.sql)
    given = sql.frame(source)
    if given is not None:
        return given
    if source.path is not None:
        return DeltaTable.forPath(spark, source.path).toDF()
    return spark.table(".".join(map(quoted, source.parts)))


def _with_clause(builder: DeltaMergeBuilder, clause: MergeClause) -> DeltaMergeBuilder:
    condition = _text(clause.condition)
    inserts = clause.kind == "NOT MATCHED"
    values = None if clause.assignments is None else _values(clause.assignments, inserts=inserts)
    if inserts:
        if values is None:
            return builder.whenNotMatchedInsertAll(condition)
        return builder.whenNotMatchedInsert(condition, values)
    if clause.kind == "NOT MATCHED BY SOURCE":
        if clause.action == "delete":
            return builder.whenNotMatchedBySourceDelete(condition)
        return builder.whenNotMatchedBySourceUpdate(condition, values)
    if clause.action == "delete":
        return builder.whenMatchedDelete(condition)
    if values is None:
        return builder.whenMatchedUpdateAll(condition)
    return builder.whenMatchedUpdate(condition, values)


def _text(condition: SqlText | None) -> str | None:
    return None if condition is None else condition.sql


def _values(assignments: tuple[Assignment, ...], *, inserts: bool = False) -> Mapping[str, str]:
    ensure_apart((assignment.column for assignment in assignments), inserts=inserts)
    return {quote_path(assignment.column): assignment.value.sql for assignment in assignments}
