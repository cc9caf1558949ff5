"""HDFS, through Spark's JVM or through hdfs-native."""

from optimist.logstores.hdfs.store import HDFSLogStore

__all__ = ["HDFSLogStore"]
