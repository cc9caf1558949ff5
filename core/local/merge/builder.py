"""`LocalMerge`: a MERGE without Spark that is being put together."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TypeAlias

from optimist.core.errors.argument_types import ensure_mapping
from optimist.core.local.commands import CommandOptions, RowsChanged
from optimist.core.local.merge.request import LocalClause, LocalMergeRequest
from optimist.core.predicates import Predicate
from optimist.core.requests.merge_clauses import Action, Clause, Kind
from optimist.core.runtime.progress import Progress

__all__ = ["LocalMerge"]

_Condition: TypeAlias = "str | Predicate | None"


class LocalMerge:
    """A MERGE that is being put together; get one with `DeltaLog.merge`.

    Each call returns a new builder with one more clause; a MERGE can have any number. A row gets
    the first clause of its kind whose condition is true. Only the last clause of a kind can have no
    condition.

    Conditions and values of `when_matched_...` see both rows, those of `when_not_matched_...` the
    source's row, and those of `when_not_matched_by_source_...` the table's row. Values are those
    that `DeltaLog.update` takes.
    """

    def __init__(
        self,
        request: LocalMergeRequest,
        run: Callable[[LocalMergeRequest, CommandOptions], RowsChanged],
    ) -> None:
        self._request = request
        self._run = run

    def __repr__(self) -> str:
        clauses = ", ".join(f"{item.kind} {item.action}" for item in self._request.clauses)
        return f"LocalMerge(on {self._request.on!r}: {clauses or 'no clause yet'})"

    def when_matched_update(
        self, updates: Mapping[str, object], predicate: _Condition = None
    ) -> LocalMerge:
        """Set columns, or fields within structs, of rows of the table that match."""
        return self._with("MATCHED", "update", predicate, updates)

    def when_matched_update_all(self, predicate: _Condition = None) -> LocalMerge:
        """Set all columns of rows that match to the source's columns of the same names."""
        return self._with("MATCHED", "update", predicate)

    def when_matched_delete(self, predicate: _Condition = None) -> LocalMerge:
        """Delete rows of the table that match."""
        return self._with("MATCHED", "delete", predicate)

    def when_not_matched_insert(
        self, updates: Mapping[str, object], predicate: _Condition = None
    ) -> LocalMerge:
        """Insert a row for each source row without a match, with defaults for other columns."""
        return self._with("NOT MATCHED", "insert", predicate, updates)

    def when_not_matched_insert_all(self, predicate: _Condition = None) -> LocalMerge:
        """Insert the rows of the source that match none, column by column."""
        return self._with("NOT MATCHED", "insert", predicate)

    def when_not_matched_by_source_update(
        self, updates: Mapping[str, object], predicate: _Condition = None
    ) -> LocalMerge:
        """Set columns, or fields within structs, of rows of the table that match none."""
        return self._with("NOT MATCHED BY SOURCE", "update", predicate, updates)

    def when_not_matched_by_source_delete(self, predicate: _Condition = None) -> LocalMerge:
        """Delete rows of the table that match no row of the source."""
        return self._with("NOT MATCHED BY SOURCE", "delete", predicate)

    def with_schema_evolution(self) -> LocalMerge:
        """Add the columns and fields that clauses assign and only the source has to the table.

        Clauses for all columns then take those that the source has. Its structs can lack fields: an
        UPDATE keeps the table's values there, and an INSERT writes null.
        """
        return LocalMerge(replace(self._request, evolves_schema=True), self._run)

    def execute(
        self,
        *,
        user_metadata: str | None = None,
        txn: tuple[str, int] | None = None,
        progress: Progress | None = None,
        retry: bool | None = None,
    ) -> RowsChanged:
        """Run the MERGE in one transaction.

        Args:
            user_metadata: Text for the history.
            txn: Application id and version of a command that may be repeated, as for `append`.
            progress: Called after each file, see `FileProgress`.
            retry: Whether to run again after a conflict, as for `DeltaLog.delete`.

        Raises:
            DeltaConcurrentModificationException: Another commit changed what this one read; nothing
                was written.
            ProtocolError: The table has a feature under which files can't be rewritten yet.
            SchemaError: A column does not exist, a row breaks a rule of the table, or the source
                has two columns of one name, in whatever case.
            UsageError: Several rows of the source change one of the table (kind
                `DELTA_MULTIPLE_SOURCE_ROW_MATCHING_TARGET_ROW_IN_MERGE`); the clauses stand in an
                impossible order; or only Spark can evaluate an expression (kind
                `OPTIMIST_NEEDS_SPARK`).
        """
        options = CommandOptions(user_metadata, txn, progress, retry)
        return self._run(self._request, options)

    def _with(
        self,
        kind: Kind,
        action: Action,
        predicate: _Condition,
        values: Mapping[str, object] | None = None,
    ) -> LocalMerge:
        if values is not None:
            ensure_mapping(values, "updates", "a dict of columns and their new values")
        clause: LocalClause = Clause(kind, action, predicate, values)
        request = replace(self._request, clauses=(*self._request.clauses, clause))
        return LocalMerge(request, self._run)
