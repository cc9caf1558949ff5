"""A store over a Spark session's JVM in a process of its own, for races between JVMs."""

from __future__ import annotations

from pyspark.sql import SparkSession

from optimist.logstores.hdfs.store import HDFSLogStore

__all__ = ["QUICK_CLOSE", "jvm_store"]

# The client asks whether the name node knows of the block by now; the mini cluster is quicker than
# the 400 ms that it waits before it asks again. Each pause doubles the one before, so ten of them
# are as patient with a busy machine, 10 s, as Hadoop's own five.
QUICK_CLOSE = {
    "dfs.client.block.write.locateFollowingBlock.initial.delay.ms": "10",
    "dfs.client.block.write.locateFollowingBlock.retries": "10",
}


def _quiet_session() -> SparkSession:
    session = (
        SparkSession.builder.master("local[2]")
        .appName("optimist-hdfs")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.driver.memory", "512m")
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("OFF")
    return session


def jvm_store() -> HDFSLogStore:
    """A store over this process's session, which is made if there is none."""
    _quiet_session()
    return HDFSLogStore({"optimist.store.hdfs.client": "jvm", **QUICK_CLOSE})
