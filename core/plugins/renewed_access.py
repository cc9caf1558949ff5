"""Renewal of the credentials of a `DataAccess` during reads and writes of data files.

An access is a value that holds credentials, and a long read may outlast them. The process that made
it can ask its store again. A task of Spark can't, and works with the credentials that it received.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable
from weakref import WeakValueDictionary

from optimist.core.plugins.data_access import DataAccess

__all__ = ["Renewal", "newest_access"]


class Renewal:
    """The renewal of one access's credentials, as long as its store keeps this object.

    Args:
        renew: Returns the access with credentials that stay good for a while. It must be quick if
            the old ones have not expired.

    Attributes:
        name: A name that finds the object again in the same process, and in no other.
    """

    def __init__(self, renew: Callable[[], DataAccess]) -> None:
        self.name = uuid.uuid4().hex
        self.renew = renew
        _RENEWALS[self.name] = self


_RENEWALS: WeakValueDictionary[str, Renewal] = WeakValueDictionary()


def newest_access(access: DataAccess) -> DataAccess:
    """Return the access with valid credentials, if this process can renew them."""
    renewal = _RENEWALS.get(access.renewal) if access.renewal else None
    return access if renewal is None else renewal.renew()
