"""`DataAccess`: the Arrow file system of a table's data files, and its settings.

A store makes one for its paths (`LogStore.data_access`) from the store's own options, so that users
set credentials once for the log and the data. It is pickled into the closures of Spark tasks.
Plans, errors and `repr` never show its settings, and secrets in it are `Secret` values.

Arrow's file systems read the files, but a store creates them, as it creates commits. Arrow writes a
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
"""Settings that change with the credentials, in addition to the secrets."""


@dataclass(frozen=True, slots=True)
class DataAccess:
    """The way to open a store's data files. Build it with `of`.

    Attributes:
        system: `s3`, `azure` or `gcs` for Arrow's own file systems, `fsspec` for a driver.
        origin: The store that it reaches. Files elsewhere are opened without its settings.
        settings: The arguments of the file system, by name (see `revealed_settings`).
        store_options: The options from which each process finds the store that creates files, by
            `find_store`. Empty if the file system itself writes.
        copies_alike: Whether a copy that the service makes for Arrow equals a file that the store
            creates. Arrow's request can't ask for an encryption.
        renewal: The name of the `Renewal` of credentials that expire. Empty where they don't
            expire.
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
        """Build the access, and leave out settings that are None."""
        given = tuple(sorted((key, value) for key, value in settings.items() if value is not None))
        return cls(system, origin, given, Options(store_options), copies_alike, renewal)

    @property
    def store_key(self) -> tuple[object, ...]:
        """The store without its credentials: the same before and after a renewal."""
        kept = (
            (key, value)
            for key, value in self.settings
            if not isinstance(value, Secret) and key not in _OF_CREDENTIALS
        )
        return (self.system, self.origin, *kept)

    def revealed_settings(self) -> dict[str, Any]:
        """Return the settings with plain secrets, for the call that builds the file system."""
        return {
            key: value.reveal() if isinstance(value, Secret) else value
            for key, value in self.settings
        }
