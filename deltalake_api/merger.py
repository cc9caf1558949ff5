"""`TableMerger`, the builder of a MERGE."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from optimist.core import FileProgress, LocalMerge, Snapshot
from optimist.core.errors.argument_types import ensure_mapping
from optimist.core.predicates.text import quote_path
from optimist.core.requests.arguments import names
from optimist.core.schema.types import StructType
from optimist.deltalake import metrics
from optimist.deltalake.dialect import both_sides, optional_same_meaning, same_meaning
from optimist.deltalake.exceptions import errors_translated
from optimist.deltalake.handles import Call
from optimist.deltalake.lenient_values import null_where_unfit
from optimist.deltalake.quoting import in_spark_sql

if TYPE_CHECKING:
    from optimist.deltalake.table import DeltaTable

__all__ = ["MergeColumns", "TableMerger"]


@dataclass(frozen=True, slots=True)
class MergeColumns:
    """The columns of both sides of a MERGE, and what happens where they differ.

    Attributes:
        source: The source's columns.
        table: The table's columns.
        aliases: What SQL calls the source and the table.
        evolves: Whether columns that only the source has are added to the table.
        is_lenient: Whether a value that does not fit its column becomes null.
    """

    source: pa.Schema
    table: StructType
    aliases: tuple[str, str]
    evolves: bool = False
    is_lenient: bool = False

    def all_but(self, left_out: Sequence[str]) -> dict[str, str] | None:
        """Return the source's columns as SQL by name, except some; None for Spark's `*`.

        `*` needs all columns of the table in the source. deltalake takes those that are there.
        """
        of_source = self.source.names
        has_all = {name.lower() for name in of_source} >= {
            name.lower() for name in self.table.names
        }
        if not left_out and not self.is_lenient and (self.evolves or has_all):
            return None
        skipped = {name.lower() for name in left_out}
        return {
            quote_path((name,)): quote_path((self.aliases[0], name))
            for name in of_source
            if name.lower() not in skipped and (self.evolves or self.table.find(name) is not None)
        }

    def of_both(self) -> StructType:
        """Return the columns of both sides, by their names and by the aliases."""
        return both_sides(self.aliases, self.source, self.table)

    def condition(self, sql: str | None) -> str | None:
        """Return the condition of a clause as Spark's SQL."""
        return optional_same_meaning(sql, self.of_both)

    def values(self, updates: Mapping[str, str]) -> dict[str, object]:
        """Return the columns that a clause sets and their values as Spark's SQL."""
        ensure_mapping(updates, "updates", "a dict of columns and SQL")
        found = {
            in_spark_sql(name): same_meaning(sql, self.of_both, "updates")
            for name, sql in updates.items()
        }
        if not self.is_lenient:
            return dict(found)
        return null_where_unfit(found, self.table, self.aliases[1])


class FilesSearched:
    """Counts the files that a MERGE searches, as its progress."""

    def __init__(self) -> None:
        self._count = 0

    def __call__(self, progress: FileProgress) -> None:
        """Note a step of the MERGE; a rerun after a conflict begins anew."""
        if progress.step == "search":
            self._count = progress.num_files

    def metrics(self, after: Snapshot, told: Mapping[str, int | None]) -> dict[str, int | None]:
        """Return how many files were searched and how many were not.

        Args:
            after: The version after the MERGE.
            told: The other metrics.
        """
        added, removed = told["num_target_files_added"], told["num_target_files_removed"]
        skipped = None
        if added is not None and removed is not None:
            skipped = max(0, after.num_files - added + removed - self._count)
        return {
            "num_target_files_scanned": self._count,
            "num_target_files_skipped_during_scan": skipped,
        }


class TableMerger:
    """A MERGE that is being put together; get one with `DeltaTable.merge`.

    Each method adds a clause and returns the same object. A row gets the first clause of its kind
    whose condition is true. SQL sees the rows under their aliases.
    """

    def __init__(
        self, merge: LocalMerge, table: DeltaTable, columns: MergeColumns, call: Call
    ) -> None:
        self._merge = merge.with_schema_evolution() if columns.evolves else merge
        self._table = table
        self._columns = columns
        self._call = call

    def __repr__(self) -> str:
        return f"TableMerger({self._merge!r})"

    def when_matched_update(
        self, updates: dict[str, str], predicate: str | None = None
    ) -> TableMerger:
        """Set columns of matching rows to SQL."""
        with errors_translated():
            self._merge = self._merge.when_matched_update(
                self._columns.values(updates), self._columns.condition(predicate)
            )
        return self

    def when_matched_update_all(
        self, predicate: str | None = None, except_cols: list[str] | None = None
    ) -> TableMerger:
        """Set all columns of matching rows to the source's, or all but some."""
        with errors_translated():
            named = self._columns.all_but(names(except_cols, "except_cols"))
            if named is not None:
                return self.when_matched_update(named, predicate)
            self._merge = self._merge.when_matched_update_all(self._columns.condition(predicate))
        return self

    def when_matched_delete(self, predicate: str | None = None) -> TableMerger:
        """Delete matching rows."""
        with errors_translated():
            self._merge = self._merge.when_matched_delete(self._columns.condition(predicate))
        return self

    def when_not_matched_insert(
        self, updates: dict[str, str], predicate: str | None = None
    ) -> TableMerger:
        """Insert a row of SQL for each row of the source without a match."""
        with errors_translated():
            self._merge = self._merge.when_not_matched_insert(
                self._columns.values(updates), self._columns.condition(predicate)
            )
        return self

    def when_not_matched_insert_all(
        self, predicate: str | None = None, except_cols: list[str] | None = None
    ) -> TableMerger:
        """Insert the rows of the source without a match, all columns or all but some."""
        with errors_translated():
            named = self._columns.all_but(names(except_cols, "except_cols"))
            if named is not None:
                return self.when_not_matched_insert(named, predicate)
            self._merge = self._merge.when_not_matched_insert_all(
                self._columns.condition(predicate)
            )
        return self

    def when_not_matched_by_source_update(
        self, updates: dict[str, str], predicate: str | None = None
    ) -> TableMerger:
        """Set columns of rows that match no row of the source to SQL."""
        with errors_translated():
            self._merge = self._merge.when_not_matched_by_source_update(
                self._columns.values(updates), self._columns.condition(predicate)
            )
        return self

    def when_not_matched_by_source_delete(self, predicate: str | None = None) -> TableMerger:
        """Delete rows that match no row of the source."""
        with errors_translated():
            self._merge = self._merge.when_not_matched_by_source_delete(
                self._columns.condition(predicate)
            )
        return self

    def execute(self) -> dict[str, Any]:
        """Run the MERGE in one transaction, and return metrics.

        Raises:
            CommitFailedError: Another commit changed what this one read; nothing was written.
            DeltaError: A row breaks a rule, or an expression can't be evaluated here.
        """
        searched = FilesSearched()
        with errors_translated():
            done = self._merge.execute(txn=self._call.app_txn, progress=searched)
        self._table._catch_up()
        told = metrics.merged(self._table._log, done)
        return told | searched.metrics(self._table._snapshot, told)
