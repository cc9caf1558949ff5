"""The arguments of `DeltaLog.write`, as a value that is checked once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from optimist.core.commands.idempotence import ensure_app_txn
from optimist.core.commands.written_schema import NewTable
from optimist.core.errors import UsageError
from optimist.core.errors.argument_types import ensure_optional_text, optional_whole
from optimist.core.errors.foreign_text import shown
from optimist.core.predicates import Predicate

__all__ = ["LocalWrite"]

_MODES = ("append", "overwrite", "error", "ignore")
_PARTITION_MODES = ("static", "dynamic")
_SCHEMA_MODES = ("merge", "overwrite")


@dataclass(frozen=True, slots=True)
class LocalWrite:
    """One write.

    Attributes:
        mode: `append`, `overwrite`, `error` or `ignore`.
        predicate: An overwrite replaces only the rows for which it is true; None for all rows.
        partition_by: The partition columns that the caller names.
        partition_overwrite: `dynamic` for an overwrite of only the partitions that are written.
        schema_mode: How the write may change the table's schema: None for not at all.
        target_file_size: A file ends with the row group that takes it to this size in bytes; None
            for the usual size.
        user_metadata: Text for the history.
        app_txn: Application id and version of a write that may be repeated; None to take both from
            the options.
        new_table: What a table gets that the write creates.
        keeps_not_null: Whether a schema that the write sets takes NOT NULL from the data's columns.
    """

    mode: str = "append"
    predicate: str | Predicate | None = None
    partition_by: Sequence[str] = ()
    partition_overwrite: str = "static"
    schema_mode: str | None = None
    target_file_size: int | None = None
    user_metadata: str | None = None
    app_txn: tuple[str, int] | None = None
    new_table: NewTable = field(default_factory=NewTable)
    keeps_not_null: bool = False

    def __post_init__(self) -> None:
        _ensure_one_of("mode", self.mode, _MODES)
        _ensure_one_of("partition_overwrite", self.partition_overwrite, _PARTITION_MODES)
        if self.schema_mode is not None:
            _ensure_one_of("schema_mode", self.schema_mode, _SCHEMA_MODES)
        size = optional_whole(self.target_file_size, "target_file_size", least=1)
        object.__setattr__(self, "target_file_size", size)  # numbers of NumPy and Arrow, too
        ensure_optional_text(self.user_metadata, "user_metadata")
        ensure_app_txn(self.app_txn)
        self._ensure_consistent()

    @property
    def is_overwrite(self) -> bool:
        """Whether the write replaces existing rows."""
        return self.mode == "overwrite"

    @property
    def is_dynamic(self) -> bool:
        """Whether only the partitions are replaced that are written."""
        return self.partition_overwrite == "dynamic"

    @property
    def merges_schema(self) -> bool:
        """Whether columns may be added, and types widened."""
        return self.schema_mode == "merge"

    @property
    def overwrites_schema(self) -> bool:
        """Whether schema and partitioning may be replaced, together with all rows."""
        return self.schema_mode == "overwrite"

    def _ensure_consistent(self) -> None:
        for argument, is_given in (
            ("predicate", self.predicate is not None),
            ("partition_overwrite='dynamic'", self.is_dynamic),
            ("schema_mode='overwrite'", self.overwrites_schema),
        ):
            if is_given and not self.is_overwrite:
                raise UsageError(
                    f"{argument} says what the mode overwrite replaces, but the mode is "
                    f"{self.mode}. Nothing was written. Write with mode='overwrite', or leave the "
                    "argument out.",
                    kind="OPTIMIST_INVALID_ARGUMENT",
                    argument=argument.split("=")[0],
                )
        if self.predicate is not None and self.is_dynamic:
            raise _exclude_each_other(
                "predicate",
                "partition_overwrite='dynamic'",
                "DELTA_REPLACE_WHERE_WITH_DYNAMIC_PARTITION_OVERWRITE",
            )
        if self.overwrites_schema and self.is_dynamic:
            raise _exclude_each_other(
                "schema_mode='overwrite'",
                "partition_overwrite='dynamic'",
                "DELTA_OVERWRITE_SCHEMA_WITH_DYNAMIC_PARTITION_OVERWRITE",
            )
        if self.overwrites_schema and self.predicate is not None:
            raise _exclude_each_other(
                "schema_mode='overwrite'", "predicate", "OPTIMIST_INVALID_ARGUMENT"
            )


def _ensure_one_of(argument: str, given: object, known: Sequence[str]) -> None:
    if not isinstance(given, str) or given not in known:
        kind = "OPTIMIST_UNKNOWN_MODE" if argument == "mode" else "OPTIMIST_INVALID_ARGUMENT"
        raise UsageError(
            f"The argument {argument} is {shown(given)}, which is unknown. Nothing was written. "
            f"Use one of {', '.join(known)}.",
            kind=kind,
            argument=argument,
        )


def _exclude_each_other(one: str, other: str, kind: str) -> UsageError:
    return UsageError(
        f"The arguments {one} and {other} can't be combined. Nothing was written. Leave out one "
        "of the two.",
        kind=kind,
    )
