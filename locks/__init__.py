"""Arbiters decide who owns a version of a table, and leases let one holder work at a time.

A class that needs an SDK is imported only at its first use, so you install only the SDKs of the
classes that you use.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from optimist.core.plugins.arbiter import Arbiter, CommitEntry
from optimist.core.plugins.lease import Lease, LeaseGrant
from optimist.locks.file_lease import FileLease
from optimist.locks.in_process_lease import InProcessLease

if TYPE_CHECKING:
    from optimist.locks.dynamodb_arbiter import DynamoDBArbiter
    from optimist.locks.dynamodb_lease import DynamoDBLease
    from optimist.locks.redis_arbiter import RedisArbiter
    from optimist.locks.redis_lease import RedisLease
    from optimist.locks.sql_arbiter import SQLArbiter

__all__ = [
    "Arbiter",
    "CommitEntry",
    "DynamoDBArbiter",
    "DynamoDBLease",
    "FileLease",
    "InProcessLease",
    "Lease",
    "LeaseGrant",
    "RedisArbiter",
    "RedisLease",
    "SQLArbiter",
]

_WITH_SDK = {
    "DynamoDBArbiter": "optimist.locks.dynamodb_arbiter",
    "DynamoDBLease": "optimist.locks.dynamodb_lease",
    "RedisArbiter": "optimist.locks.redis_arbiter",
    "RedisLease": "optimist.locks.redis_lease",
    "SQLArbiter": "optimist.locks.sql_arbiter",
}


def __getattr__(name: str) -> Any:
    if name not in _WITH_SDK:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(_WITH_SDK[name]), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
