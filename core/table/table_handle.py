"""The part of a table's handle that its commands are built on."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection
from typing import TYPE_CHECKING

from optimist.core.data.table_ref import TableRef
from optimist.core.errors.short_repr import path_in_repr
from optimist.core.log.timestamps import Timestamp
from optimist.core.options.engine import EngineOptions
from optimist.core.plugins.table_path import TablePath
from optimist.core.runtime.clock import Clock
from optimist.core.schema.types import StructType
from optimist.core.snapshot import Snapshot

if TYPE_CHECKING:
    from optimist.core.transaction.optimistic import OptimisticTransaction

__all__ = ["TableHandle"]


class TableHandle(ABC):
    """The part of `DeltaLog` that its commands call."""

    table: TableRef

    @property
    @abstractmethod
    def options(self) -> EngineOptions:
        """The engine's options."""

    @property
    @abstractmethod
    def clock(self) -> Clock:
        """Where time comes from."""

    @abstractmethod
    def snapshot(
        self,
        version: int | None = None,
        timestamp: Timestamp | None = None,
        *,
        to_read: bool = False,
    ) -> Snapshot:
        """Return a version of the table, the newest without arguments."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}({path_in_repr(self.table.table_path)})"

    def version(self) -> int:
        """Return the number of the newest version. Each call looks for it."""
        return self.snapshot().version

    def schema(self) -> StructType:
        """Return the columns of the newest version. Each call looks for it."""
        return self.snapshot().schema

    def ensure_sources_fit(self, versions: Collection[int]) -> None:
        """Refuse rows that a command would write, read from these versions of the same table.

        A transaction on the newest version can do with any.
        """
        del versions

    @abstractmethod
    def _at_path(self, path: TablePath) -> TableHandle:
        """Return the handle of another table, which need not exist, with the same options."""

    @abstractmethod
    def start_transaction(self, snapshot: Snapshot | None = None) -> OptimisticTransaction:
        """Start a transaction."""
