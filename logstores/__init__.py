"""The stores of a log's bytes: local disk, memory, HDFS, S3, Azure, Google Cloud Storage, fsspec.

A class that needs an SDK, or much time to load, is imported only at its first use. So you install
only the SDKs of the stores that you use.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from optimist.core.plugins.logstore import LogStore
from optimist.logstores.local.store import LocalLogStore
from optimist.logstores.memory import MemoryLogStore

if TYPE_CHECKING:
    from optimist.logstores.azure.store import AzureLogStore
    from optimist.logstores.fsspec.arbiter import FsspecArbiterLogStore
    from optimist.logstores.fsspec.store import FsspecLogStore
    from optimist.logstores.gcs.store import GCSLogStore
    from optimist.logstores.hdfs.native_store import HDFSNativeLogStore
    from optimist.logstores.hdfs.store import HDFSLogStore
    from optimist.logstores.s3.arbiter import S3ArbiterLogStore
    from optimist.logstores.s3.client import S3Credentials
    from optimist.logstores.s3.dynamodb import S3DynamoDBLogStore
    from optimist.logstores.s3.redis import S3RedisLogStore
    from optimist.logstores.s3.store import S3LogStore

__all__ = [
    "AzureLogStore",
    "FsspecArbiterLogStore",
    "FsspecLogStore",
    "GCSLogStore",
    "HDFSLogStore",
    "HDFSNativeLogStore",
    "LocalLogStore",
    "LogStore",
    "MemoryLogStore",
    "S3ArbiterLogStore",
    "S3Credentials",
    "S3DynamoDBLogStore",
    "S3LogStore",
    "S3RedisLogStore",
]

_AT_FIRST_USE = {
    "AzureLogStore": "optimist.logstores.azure.store",
    "FsspecArbiterLogStore": "optimist.logstores.fsspec.arbiter",
    "FsspecLogStore": "optimist.logstores.fsspec.store",
    "GCSLogStore": "optimist.logstores.gcs.store",
    "HDFSLogStore": "optimist.logstores.hdfs.store",
    "HDFSNativeLogStore": "optimist.logstores.hdfs.native_store",
    "S3ArbiterLogStore": "optimist.logstores.s3.arbiter",
    "S3Credentials": "optimist.logstores.s3.client",
    "S3DynamoDBLogStore": "optimist.logstores.s3.dynamodb",
    "S3LogStore": "optimist.logstores.s3.store",
    "S3RedisLogStore": "optimist.logstores.s3.redis",
}


def __getattr__(name: str) -> Any:
    if name not in _AT_FIRST_USE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(_AT_FIRST_USE[name]), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
