"""HDFSLogStore that never asks for a JVM, for those who want to say so by name."""

from __future__ import annotations

from optimist.logstores.hdfs import HDFSLogStore
from optimist.logstores.hdfs_client import HdfsClient, HdfsPlace
from optimist.logstores.hdfs_native_client import NativeHdfsClient

__all__ = ["HDFSNativeLogStore"]


class HDFSNativeLogStore(HDFSLogStore):
    """`HDFSLogStore` over hdfs-native: the same algorithm, promises and options.

    The same as `optimist.store.hdfs.client=native`, whatever that option says.
    """

    def _connect(self, path: str, place: HdfsPlace) -> HdfsClient:  # noqa: ARG002
        return NativeHdfsClient(place, self._parsed)
