"""`TableMerger`, the builder of a MERGE."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from optimist.core import LocalMerge
from optimist.core.predicates.text import quote_path
from optimist.deltalake import metrics
from optimist.deltalake.exceptions import errors_translated
from optimist.deltalake.handles import Call
from optimist.deltalake.quoting import in_spark_sql, optional_spark_sql

if TYPE_CHECKING:
    from optimist.deltalake.table import DeltaTable

__all__ = ["TableMerger"]


class TableMerger:
    """A MERGE that is being put together; get one with `DeltaTable.merge`.

    Each method adds a clause and returns the same object. A row gets the first clause of its kind
    whose condition is true. SQL sees the rows under their aliases.
    """

    def __init__(
        self, merge: LocalMerge, table: DeltaTable, source: tuple[str, Sequence[str]], call: Call
    ) -> None:
        self._merge = merge
        self._table = table
        self._source_alias, self._source_columns = source
        self._call = call

    def __repr__(self) -> str:
        return f"TableMerger({self._merge!r})"

    def when_matched_update(
        self, updates: dict[str, str], predicate: str | None = None
    ) -> TableMerger:
        """Set columns of matching rows to SQL."""
        with errors_translated():
            self._merge = self._merge.when_matched_update(
                _sql(updates), optional_spark_sql(predicate)
            )
        return self

    def when_matched_update_all(
        self, predicate: str | None = None, except_cols: list[str] | None = None
    ) -> TableMerger:
        """Set all columns of matching rows to the source's, or all but some."""
        with errors_translated():
            if except_cols:
                return self.when_matched_update(self._all_but(except_cols), predicate)
            self._merge = self._merge.when_matched_update_all(optional_spark_sql(predicate))
        return self

    def when_matched_delete(self, predicate: str | None = None) -> TableMerger:
        """Delete matching rows."""
        with errors_translated():
            self._merge = self._merge.when_matched_delete(optional_spark_sql(predicate))
        return self

    def when_not_matched_insert(
        self, updates: dict[str, str], predicate: str | None = None
    ) -> TableMerger:
        """Insert a row of SQL for each row of the source without a match."""
        with errors_translated():
            self._merge = self._merge.when_not_matched_insert(
                _sql(updates), optional_spark_sql(predicate)
            )
        return self

    def when_not_matched_insert_all(
        self, predicate: str | None = None, except_cols: list[str] | None = None
    ) -> TableMerger:
        """Insert the rows of the source without a match, all columns or all but some."""
        with errors_translated():
            if except_cols:
                return self.when_not_matched_insert(self._all_but(except_cols), predicate)
            self._merge = self._merge.when_not_matched_insert_all(optional_spark_sql(predicate))
        return self

    def when_not_matched_by_source_update(
        self, updates: dict[str, str], predicate: str | None = None
    ) -> TableMerger:
        """Set columns of rows that match no row of the source to SQL."""
        with errors_translated():
            self._merge = self._merge.when_not_matched_by_source_update(
                _sql(updates), optional_spark_sql(predicate)
            )
        return self

    def when_not_matched_by_source_delete(self, predicate: str | None = None) -> TableMerger:
        """Delete rows that match no row of the source."""
        with errors_translated():
            self._merge = self._merge.when_not_matched_by_source_delete(
                optional_spark_sql(predicate)
            )
        return self

    def execute(self) -> dict[str, Any]:
        """Run the MERGE in one transaction, and return metrics.

        Raises:
            CommitFailedError: Another commit changed what this one read; nothing was written.
            DeltaError: A row breaks a rule, or an expression can't be evaluated here.
        """
        with errors_translated():
            done = self._merge.execute(txn=self._call.app_txn)
        self._table._catch_up()
        return metrics.merged(self._table._log, done)

    def _all_but(self, left_out: Sequence[str]) -> dict[str, str]:
        """Return the source's columns by name, except some, as SQL."""
        return {
            quote_path((name,)): quote_path((self._source_alias, name))
            for name in self._source_columns
            if name not in left_out
        }


def _sql(updates: Mapping[str, str]) -> dict[str, str]:
    """Return the columns of a clause and their values as Spark's SQL."""
    return {in_spark_sql(name): in_spark_sql(sql) for name, sql in updates.items()}
