"""What the commands of a table's handle are built on."""

from __future__ import annotations

from abc import ABC, abstractmethod

from optimist.core.options.engine import EngineOptions
from optimist.core.running.clock import Clock
from optimist.core.snapshot import Snapshot
from optimist.core.transaction.optimistic import OptimisticTransaction

__all__ = ["TableHandle"]


class TableHandle(ABC):
    """The part of `DeltaLog` that its commands call."""

    @property
    @abstractmethod
    def options(self) -> EngineOptions:
        """The engine's options."""

    @property
    @abstractmethod
    def clock(self) -> Clock:
        """Where time comes from."""

    @abstractmethod
    def start_transaction(self, snapshot: Snapshot | None = None) -> OptimisticTransaction:
        """A new transaction."""
