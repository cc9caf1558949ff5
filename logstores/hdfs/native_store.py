"""The HDFSLogStore that never uses a JVM, under its own name."""

from __future__ import annotations

from optimist.logstores.hdfs.client import HdfsClient, HdfsLocation
from optimist.logstores.hdfs.native_client import NativeHdfsClient
from optimist.logstores.hdfs.store import HDFSLogStore

__all__ = ["HDFSNativeLogStore"]


class HDFSNativeLogStore(HDFSLogStore):
    """`HDFSLogStore` over hdfs-native: the same algorithm, promises and options.

    It behaves as with `optimist.store.hdfs.client=native`, whatever that option says.
    """

    def _connect(self, path: str, location: HdfsLocation) -> HdfsClient:  # noqa: ARG002
        return NativeHdfsClient(location, self._parsed)
