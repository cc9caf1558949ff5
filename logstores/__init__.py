"""Where the bytes of a log go: local disk, memory, HDFS, S3, Azure, Google Cloud Storage, fsspec.

The classes that need an SDK are imported when they are first named here, so that nothing is needed
for what is not used.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from optimist.core.logstore import LogStore
from optimist.logstores.fsspec_store import FsspecLogStore
from optimist.logstores.local import LocalLogStore
from optimist.logstores.memory import MemoryLogStore

if TYPE_CHECKING:
    from optimist.logstores.azure import AzureLogStore
    from optimist.logstores.fsspec_arbiter import FsspecArbiterLogStore
    from optimist.logstores.gcs import GCSLogStore
    from optimist.logstores.hdfs import HDFSLogStore
    from optimist.logstores.s3 import S3LogStore
    from optimist.logstores.s3_arbiter import S3ArbiterLogStore
    from optimist.logstores.s3_dynamodb import S3DynamoDBLogStore
    from optimist.logstores.s3_redis import S3RedisLogStore

__all__ = [
    "AzureLogStore",
    "FsspecArbiterLogStore",
    "FsspecLogStore",
    "GCSLogStore",
    "HDFSLogStore",
    "LocalLogStore",
    "LogStore",
    "MemoryLogStore",
    "S3ArbiterLogStore",
    "S3DynamoDBLogStore",
    "S3LogStore",
    "S3RedisLogStore",
]

_WITH_SDK = {
    "AzureLogStore": "optimist.logstores.azure",
    "FsspecArbiterLogStore": "optimist.logstores.fsspec_arbiter",
    "GCSLogStore": "optimist.logstores.gcs",
    "HDFSLogStore": "optimist.logstores.hdfs",
    "S3ArbiterLogStore": "optimist.logstores.s3_arbiter",
    "S3DynamoDBLogStore": "optimist.logstores.s3_dynamodb",
    "S3LogStore": "optimist.logstores.s3",
    "S3RedisLogStore": "optimist.logstores.s3_redis",
}


def __getattr__(name: str) -> Any:
    if name not in _WITH_SDK:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(_WITH_SDK[name]), name)
