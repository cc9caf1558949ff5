"""`DataAccess`: which Arrow file system reaches a table's data files, and with which settings.

A store makes one for its paths (`LogStore.data_access`) from the options that it was itself built
with, so that credentials are set once for the log and the data. It is pickled into the closures of
Spark tasks. Plans, errors and `repr` never show its settings, and secrets in it are `Secret`
values.

Arrow's file systems read the files, but a store creates them, as it does commits: Arrow makes a
file by several unconditional requests, and one of them that arrives late leaves the file empty.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from optimist.core.plugins.data_origin import DataOrigin
from optimist.core.secrets import Options, Secret

__all__ = ["DataAccess"]

_OF_CREDENTIALS = ("credential_token_expiration",)
"""Settings that change with the credentials, beside the secrets."""


@dataclass(frozen=True, slots=True)
class DataAccess:
    """How to open a store's data files. Build it with `of`.

    Attributes:
        system: `s3`, `azure` or `gcs` for Arrow's own file systems, `fsspec` for a driver.
        origin: The store that it reaches; files elsewhere are opened without its settings.
        settings: What the file system is built with, by name; see `revealed_settings`.
        store_options: The options from which each process finds the store that creates files, by
            `find_store`; empty if the file system itself writes.
        copies_alike: Whether a copy that the service makes for Arrow is like a file that the store
            creates: Arrow's request can't ask for an encryption.
        renewal: The name of the `Renewal` of credentials that expire; empty where none do.
    """

    system: str
    origin: DataOrigin
    settings: tuple[tuple[str, Any], ...] = field(default=(), repr=False)
    store_options: Options = field(default_factory=Options, repr=False)
    copies_alike: bool = True
    renewal: str = ""

    @classmethod
    def of(
        cls,
        system: str,
        origin: DataOrigin,
        settings: Mapping[str, Any],
        *,
        store_options: Mapping[str, str] | None = None,
        copies_alike: bool = True,
        renewal: str = "",
    ) -> DataAccess:
        """Build the access; settings that are None are left out."""
        given = tuple(sorted((key, value) for key, value in settings.items() if value is not None))
        return cls(system, origin, given, Options(store_options), copies_alike, renewal)

    @property
    def place(self) -> tuple[object, ...]:
        """Which store is reached, whatever the credentials: the same before and after a renewal."""
        kept = (
            (key, value)
            for key, value in self.settings
            if not isinstance(value, Secret) and key not in _OF_CREDENTIALS
        )
        return (self.system, self.origin, *kept)

    def revealed_settings(self) -> dict[str, Any]:
        """The settings with their secrets in plain, for the call that builds the file system."""
        return {
            key: value.reveal() if isinstance(value, Secret) else value
            for key, value in self.settings
        }
