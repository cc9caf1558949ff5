"""`FsspecLogStore` with an arbiter, for drivers that do not create exclusively.

*Assumes* the same as `external_arbiter`, and a driver of `EXCLUSIVE_DRIVERS` (`fsspec/drivers.py`),
whose files appear whole. Its version may be older than the first version that creates exclusively.

*Provides* the arbiter's entry as the fence, and both fences with a driver that creates exclusively.

*Does not provide* writing on other drivers: if half a file is visible, recovery mistakes it for a
commit, and no arbiter can prevent this.

*Excludes* the writers that ask the same arbiter, and with both fences also those in the driver's
row. Without the second fence, any other writer of the table can overwrite and be overwritten.
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
        options: The options of `FsspecLogStore` and of the arbiter.
        arbiter: An arbiter to use instead of the one that the conf names.
        clock: Paces retries, and decides when entries may expire.

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
