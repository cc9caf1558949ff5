"""Renews the credentials of a `DataAccess` while data files are read and written.

An access is a value that holds credentials, and a long read may outlast them. The process that made
it can ask its store again; a task of Spark can't, and works with those that it was sent.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable
from weakref import WeakValueDictionary

from optimist.core.plugins.data_access import DataAccess

__all__ = ["Renewal", "newest_access"]


class Renewal:
    """One way to data files whose credentials expire, for as long as its store keeps this.

    Args:
        renew: Gives the access with credentials that are good for a while; it must be quick where
            nothing has expired.

    Attributes:
        name: Found again by this in the same process, and in no other.
    """

    def __init__(self, renew: Callable[[], DataAccess]) -> None:
        self.name = uuid.uuid4().hex
        self.renew = renew
        _RENEWALS[self.name] = self


_RENEWALS: WeakValueDictionary[str, Renewal] = WeakValueDictionary()


def newest_access(access: DataAccess) -> DataAccess:
    """The access with credentials that hold, where this process can renew them."""
    renewal = _RENEWALS.get(access.renewal) if access.renewal else None
    return access if renewal is None else renewal.renew()
