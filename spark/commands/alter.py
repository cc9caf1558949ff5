"""ALTER TABLE with Spark: what `DeltaLog.alter` offers, and its names in the manner of Delta."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

from pyspark.sql import SparkSession
from pyspark.sql import types as st

from optimist.core.commands.alter.table_changes import TableChanges
from optimist.core.requests.columns import ColumnChange, ColumnName, NewColumn
from optimist.core.table.delta_log import DeltaLog
from optimist.core.transaction.result import CommitResult
from optimist.spark.commands.existing_rows import SparkRowChecks
from optimist.spark.session.arguments import ensure_kind
from optimist.spark.session.callback_errors import original_errors
from optimist.spark.spark_schema import sql_of_spark_type

__all__ = ["DeltaTableChanges", "changes_of"]

TypeOfColumn: TypeAlias = str | st.DataType


def changes_of(spark: SparkSession, log: DeltaLog) -> TableChanges:
    """What `DeltaLog.alter` offers, with Spark for the rules and the rows that need it.

    Args:
        spark: A classic session, or a Spark Connect client.
        log: The table.
    """
    return TableChanges(log, SparkRowChecks(spark))


class DeltaTableChanges:
    """Changes of a table's schema, properties, constraints, layout and protocol.

    Get one with `DeltaTable.alter`. Each method is one commit on the newest version (switching row
    tracking on makes others before it), and conflicts with commits that change the metadata
    meanwhile; see docs/alter.md. A column is given as SQL text (``a.`b c` ``), or as the names on
    the way to it, `("a", "b c")`; parts of arrays and maps are called `element`, `key` and
    `value`. Types are SQL texts or Spark's types.

    All methods raise:
        DeltaConcurrentModificationException: Another commit changed what this one relies on.
        SchemaError, ConfigError, ProtocolError: The change is not allowed; nothing was written.
    """

    def __init__(self, spark: SparkSession, log: DeltaLog) -> None:
        self._changes = changes_of(spark, log)

    def setProperties(self, properties: Mapping[str, str]) -> CommitResult:
        """Set table properties; `comment` is the table's description."""
        ensure_kind(properties, dict, "properties")
        with original_errors():
            return self._changes.set_properties(properties)

    def unsetProperties(self, names: Sequence[str], ifExists: bool = False) -> CommitResult:
        """Take table properties away, so that their defaults hold again."""
        with original_errors():
            return self._changes.unset_properties(names, if_exists=ifExists)

    def setComment(self, comment: str | None) -> CommitResult:
        """Describe the table; None takes the description away."""
        with original_errors():
            return self._changes.set_comment(comment)

    def addColumn(
        self,
        colName: ColumnName,
        dataType: TypeOfColumn,
        comment: str | None = None,
        *,
        first: bool = False,
        after: str | None = None,
    ) -> CommitResult:
        """Add a nullable column or field, at the end or where `first` or `after` say."""
        data_type = _sql_type(dataType)
        new = NewColumn(colName, data_type, comment=comment, first=first, after=after)
        with original_errors():
            return self._changes.add_columns([new])

    def addColumns(self, cols: st.StructType | Sequence[st.StructField]) -> CommitResult:
        """Add nullable columns at the end, with the comments that they have."""
        new = [
            NewColumn(
                (item.name,),
                _sql_type(item.dataType),
                nullable=item.nullable,
                comment=item.metadata.get("comment"),
            )
            for item in cols
        ]
        with original_errors():
            return self._changes.add_columns(new)

    def renameColumn(self, colName: ColumnName, newName: str) -> CommitResult:
        """Rename a column or a field of a struct; column mapping must be on."""
        ensure_kind(newName, str, "newName")
        with original_errors():
            return self._changes.rename_column(colName, newName)

    def dropColumns(self, *cols: ColumnName, ifExists: bool = False) -> CommitResult:
        """Drop columns or fields of structs; column mapping must be on."""
        with original_errors():
            return self._changes.drop_columns(cols, if_exists=ifExists)

    def changeColumn(  # noqa: PLR0913  one for each thing that can change, all by name
        self,
        colName: ColumnName,
        dataType: TypeOfColumn | None = None,
        *,
        nullable: bool | None = None,
        comment: str | None = None,
        default: str | None = None,
        dropDefault: bool = False,
        first: bool = False,
        after: str | None = None,
    ) -> CommitResult:
        """Change a column's type, NOT NULL, comment, default or place; the rest stays.

        Args:
            colName: The column.
            dataType: A wider type.
            nullable: False for NOT NULL, for which all rows are checked; true takes it off.
            comment: Another comment.
            default: SQL of a constant, for rows to come that bring no value.
            dropDefault: Take the default off.
            first: Put it before all others.
            after: Put it behind the column of that name.
        """
        change = ColumnChange(
            colName,
            None if dataType is None else _sql_type(dataType),
            nullable,
            comment,
            default,
            dropDefault,
            first=first,
            after=after,
        )
        with original_errors():
            return self._changes.change_columns([change])

    def addConstraint(self, name: str, expression: str) -> CommitResult:
        """Add a CHECK constraint, which all rows of the table satisfy; one that does not is shown.

        Raises:
            SchemaError: A row violates it (kind `DELTA_NEW_CHECK_CONSTRAINT_VIOLATION`), or it is
                no safe and boolean expression over the columns of a row.
        """
        ensure_kind(name, str, "name")
        ensure_kind(expression, str, "expression")
        with original_errors():
            return self._changes.add_constraint(name, expression)

    def dropConstraint(self, name: str, ifExists: bool = False) -> CommitResult:
        """Drop a CHECK constraint."""
        ensure_kind(name, str, "name")
        with original_errors():
            return self._changes.drop_constraint(name, if_exists=ifExists)

    def clusterBy(self, *cols: ColumnName) -> CommitResult | None:
        """Cluster the table by up to four columns, or by none; None where nothing was to do."""
        with original_errors():
            return self._changes.cluster_by(cols)

    def setDomainMetadata(self, domain: str, configuration: str) -> CommitResult:
        """Keep a text in the table under a name."""
        ensure_kind(domain, str, "domain")
        ensure_kind(configuration, str, "configuration")
        with original_errors():
            return self._changes.set_domain(domain, configuration)

    def removeDomainMetadata(self, domain: str) -> CommitResult:
        """Remove the text that is kept under a name."""
        ensure_kind(domain, str, "domain")
        with original_errors():
            return self._changes.remove_domain(domain)

    def syncIdentity(self, colName: ColumnName) -> CommitResult:
        """Give out no number of an identity column that a row has already."""
        with original_errors():
            return self._changes.sync_identity(colName)


def _sql_type(data_type: TypeOfColumn) -> str:
    return data_type if isinstance(data_type, str) else sql_of_spark_type(data_type)
