"""The rules for the clauses of a MERGE, and the errors that both planes raise."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from optimist.core.errors import SchemaError, UsageError
from optimist.core.errors.foreign_text import listed, shown
from optimist.core.requests.merge_clauses import Clause, Kind

__all__ = ["ensure_order", "missing_source_column", "nested_insert", "several_matches"]

_OMITTED: dict[Kind, str] = {
    "MATCHED": "DELTA_NON_LAST_MATCHED_CLAUSE_OMIT_CONDITION",
    "NOT MATCHED": "DELTA_NON_LAST_NOT_MATCHED_CLAUSE_OMIT_CONDITION",
    "NOT MATCHED BY SOURCE": "DELTA_NON_LAST_NOT_MATCHED_BY_SOURCE_CLAUSE_OMIT_CONDITION",
}


def ensure_order(clauses: Sequence[Clause[Any, Any]]) -> None:
    """Refuse a MERGE without clauses, or with clauses that no row can reach.

    Raises:
        UsageError: There is no clause (kind `DELTA_MERGE_MISSING_WHEN`), or one that is not the
            last of its kind has no condition.
    """
    if not clauses:
        raise UsageError(
            "There must be at least one WHEN clause in a MERGE statement. Nothing was written. "
            "Call whenMatchedUpdate, whenNotMatchedInsert or another of its kind before execute.",
            kind="DELTA_MERGE_MISSING_WHEN",
        )
    for kind, error in _OMITTED.items():
        alike = [clause for clause in clauses if clause.kind == kind]
        if any(clause.condition is None for clause in alike[:-1]):
            raise UsageError(
                f"When there are more than one {kind} clauses in a MERGE statement, only the last "
                f"{kind} clause can omit the condition. Nothing was written. Give the others one, "
                "or leave out the clauses after it.",
                kind=error,
            )


def several_matches() -> UsageError:
    """Return the error for a row of the table that several source rows would change."""
    return UsageError(
        "Cannot perform Merge as multiple source rows matched and attempted to modify the same "
        "target row in the Delta table in possibly conflicting ways. Nothing was written. Leave "
        "out, or combine, the rows of the source that match the same row, or tell them apart in "
        "the condition.",
        kind="DELTA_MULTIPLE_SOURCE_ROW_MATCHING_TARGET_ROW_IN_MERGE",
    )


def nested_insert(name: str) -> UsageError:
    """Return the error for an INSERT that sets a field of a struct."""
    return UsageError(
        "Nested field is not supported in the INSERT clause of MERGE operation: "
        f"{shown(name)}. Nothing was written. Set the whole struct.",
        kind="DELTA_UNSUPPORTED_NESTED_FIELD_IN_OPERATION",
        column=name,
    )


def missing_source_column(
    name: str, clause: Clause[Any, Any], columns: Sequence[str], remedy: str
) -> SchemaError:
    """Return the error for `UPDATE SET *` or `INSERT *` when the source lacks a column.

    Args:
        name: The column of the table.
        clause: The clause.
        columns: The columns of the source.
        remedy: What the caller can do.
    """
    return SchemaError(
        f"Cannot resolve {shown(name)} in {clause.action.upper()} clause given columns "
        f"{listed(columns)}: the clause takes all columns of the table from the source, which has "
        f"none of that name. Nothing was written. {shown(remedy)}",
        kind="DELTA_MERGE_UNRESOLVED_EXPRESSION",
        column=name,
        candidates=tuple(columns),
    )
