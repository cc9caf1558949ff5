"""What a commit says it did: operation names and parameters (spec 8.1, 8.2).

Parameter values are written as JSON values. Delta encodes lists and maps once more, as a string
that holds JSON; `json_text` does that.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from optimist.core.errors.short_repr import short_repr

__all__ = [
    "BACKFILLS",
    "DATA_CHANGING",
    "DOMAIN_CLEANUP",
    "ROW_TRACKING_BACKFILL",
    "ROW_TRACKING_UNBACKFILL",
    "TRANSACTION",
    "Operation",
    "json_text",
]

# All writers of Delta tables spell these names alike, so they also show what other engines did.
ROW_TRACKING_BACKFILL = "ROW TRACKING BACKFILL"
"""Gives row ids to files that have none, by adding the files again; changes no data."""
ROW_TRACKING_UNBACKFILL = "ROW TRACKING UNBACKFILL"
"""Takes the row ids away again in the same way."""
DOMAIN_CLEANUP = "DOMAIN METADATA CLEANUP"
"""Removes all metadata domains, so that their feature can be dropped."""
BACKFILLS = frozenset({ROW_TRACKING_BACKFILL, ROW_TRACKING_UNBACKFILL})
TRANSACTION = "TRANSACTION"
"""Several operations in one commit (spec 1.18); Delta has no name for that."""
DATA_CHANGING = frozenset(
    {
        "WRITE",
        "STREAMING UPDATE",
        "DELETE",
        "TRUNCATE",
        "CONVERT",
        "MERGE",
        "UPDATE",
        "CREATE TABLE AS SELECT",
        "REPLACE TABLE",
        "CREATE OR REPLACE TABLE",
        "REPLACE TABLE AS SELECT",
        "CREATE OR REPLACE TABLE AS SELECT",
        "RESTORE",
        "CLONE",
        TRANSACTION,
    }
)
"""The operations that Delta marks `changesData`.

On a WriteSerializable table the mark decides the level of a commit whose actions change no data.
"""


def json_text(values: Sequence[object] | Mapping[str, object]) -> str:
    """Write a list or a map as Delta does in operationParameters: a string that holds JSON."""
    plain = dict(values) if isinstance(values, Mapping) else list(values)
    return json.dumps(plain, separators=(",", ":"), ensure_ascii=False)


@dataclass(frozen=True, slots=True)
class Operation:
    """One operation as it stands in commitInfo and in the history.

    Attributes:
        name: For example `WRITE`, `DELETE`, `SET TBLPROPERTIES`.
        parameters: Values that JSON can hold; None values are written as null.
        metrics: Names and values as text (spec 8.3).
        user_metadata: What the user wants recorded; wins over the option `commitInfo.userMetadata`.
    """

    name: str
    parameters: Mapping[str, object] = field(default_factory=dict)
    metrics: Mapping[str, str] = field(default_factory=dict)
    user_metadata: str | None = None

    __repr__ = short_repr

    @property
    def changes_data(self) -> bool:
        """Whether the operation, by its name, changes data."""
        return self.name in DATA_CHANGING

    def with_metrics(self, metrics: Mapping[str, object]) -> Operation:
        """Return the operation with metrics, whose values become text."""
        return replace(self, metrics={name: str(value) for name, value in metrics.items()})

    @classmethod
    def write(
        cls,
        mode: str,
        partition_by: Sequence[str] = (),
        *,
        predicate: str | None = None,
        user_metadata: str | None = None,
    ) -> Operation:
        """Return a `WRITE` whose `mode` is `Append`, `Overwrite`, `ErrorIfExists` or `Ignore`."""
        parameters: dict[str, object] = {"mode": mode, "partitionBy": json_text(partition_by)}
        if predicate is not None:
            parameters["predicate"] = predicate
        return cls("WRITE", parameters, user_metadata=user_metadata)

    @classmethod
    def delete(cls, predicates: Sequence[str], *, user_metadata: str | None = None) -> Operation:
        """Return a `DELETE` of the rows that match all the predicates."""
        return cls("DELETE", {"predicate": json_text(predicates)}, user_metadata=user_metadata)

    @classmethod
    def truncate(cls) -> Operation:
        """Return a `TRUNCATE`, which removes all rows and reads none."""
        return cls("TRUNCATE")

    @classmethod
    def update(cls, predicates: Sequence[str], *, user_metadata: str | None = None) -> Operation:
        """Return an `UPDATE` of the rows that match all the predicates."""
        return cls("UPDATE", {"predicate": json_text(predicates)}, user_metadata=user_metadata)

    @classmethod
    def merge(
        cls,
        predicate: str,
        *,
        matched: Sequence[Mapping[str, str]],
        not_matched: Sequence[Mapping[str, str]],
        not_matched_by_source: Sequence[Mapping[str, str]],
    ) -> Operation:
        """Return a `MERGE`. Each clause tells its `actionType`, and its `predicate` if any."""
        parameters: dict[str, object] = {
            "predicate": json_text([predicate]),
            "matchedPredicates": json_text(matched),
            "notMatchedPredicates": json_text(not_matched),
            "notMatchedBySourcePredicates": json_text(not_matched_by_source),
        }
        return cls("MERGE", parameters)
