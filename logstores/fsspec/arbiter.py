"""`FsspecLogStore` with an arbiter, for drivers that do not create exclusively.

*Assumes* what `external_arbiter` assumes, and a driver of `EXCLUSIVE_DRIVERS`
(`fsspec/drivers.py`): what it writes appears whole. Its version may be older than the one that
excludes by itself.

*Provides* the arbiter's entry as the fence; with a driver that creates exclusively both fences.

*Does not provide* writing on other drivers: where half a file can be seen, recovery takes it for a
commit, and no arbiter mends that.

*Excludes* the writers that ask the same arbiter; with both fences also those that the driver's row
names. Without the second fence, any other writer of the table can overwrite and be overwritten.
"""

from __future__ import annotations

from collections.abc import Mapping

from optimist.core.plugins.arbiter import Arbiter
from optimist.core.plugins.lock_registry import needed_arbiter
from optimist.core.runtime.clock import Clock
from optimist.logstores.fsspec.store import FsspecLogStore
from optimist.logstores.shared.external_arbiter import ExternalArbiterLogStore

__all__ = ["FsspecArbiterLogStore"]


class FsspecArbiterLogStore(ExternalArbiterLogStore):
    """Any object store that fsspec reaches, with the arbiter that the conf names.

    Args:
        options: Those of `FsspecLogStore` and of the arbiter.
        arbiter: An arbiter to use instead of the one that the conf names.
        clock: Paces retries, and tells when entries may expire.

    Raises:
        ConfigError: The conf names no arbiter (kind `OPTIMIST_NO_ARBITER`).
    """

    def __init__(
        self,
        options: Mapping[str, str] | None = None,
        *,
        arbiter: Arbiter | None = None,
        clock: Clock | None = None,
    ) -> None:
        given = options or {}
        super().__init__(
            given,
            store=FsspecLogStore(given, clock=clock, has_arbiter=True),
            arbiter=arbiter or needed_arbiter(given),
            clock=clock,
        )
