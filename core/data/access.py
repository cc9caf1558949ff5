"""How data files are reached: which of Arrow's file systems, and with which settings.

A store gives one for its paths (`LogStore.data_access`), from the options it was itself built with,
so that credentials are set once for the log and the data. It is pickled into the closures of Spark
tasks; plans, errors and `repr` never show what is in it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from optimist.core.errors import ConfigError

__all__ = ["DataAccess"]


@dataclass(frozen=True, slots=True)
class DataAccess:
    """One way to data files. Build it with `of`.

    Attributes:
        system: `s3`, `azure` or `gcs` for Arrow's own file systems, `fsspec` for a driver.
        schemes: The URL schemes that it serves.
        settings: What the file system is built with, by name; may hold secrets.
        account: Whose files they are, where a URL may name another account; empty if it can't.
        refuses_writes: Why nothing may be written this way, as a sentence; empty if it may.
    """

    system: str
    schemes: tuple[str, ...]
    settings: tuple[tuple[str, Any], ...] = field(default=(), repr=False)
    account: str = ""
    refuses_writes: str = ""

    @classmethod
    def of(
        cls,
        system: str,
        schemes: tuple[str, ...],
        settings: Mapping[str, Any],
        *,
        account: str = "",
        refuses_writes: str = "",
    ) -> DataAccess:
        """The access with those settings that say something; None says nothing."""
        given = tuple(sorted((key, value) for key, value in settings.items() if value is not None))
        return cls(system, schemes, given, account, refuses_writes)

    def ensure_writable(self) -> None:
        """Refuse where what was asked for can't be kept, before anything is written.

        Raises:
            ConfigError: An option is set that Arrow's file system can't honour (kind
                `OPTIMIST_UNSUPPORTED_OPTION`).
        """
        if self.refuses_writes:
            raise ConfigError(
                f"{self.refuses_writes} Nothing was written.", kind="OPTIMIST_UNSUPPORTED_OPTION"
            )
