"""The choice of the plane that serves a table (docs/planes.md).

1. Spark Connect: arrow, since the client has no JVM to plan in.
2. `optimist.spark.plane` forces either.
3. Local and HDFS paths: native; every Hadoop opens them.
4. Other schemes: native if Spark's Hadoop has a connector for the scheme, and the connector sees
   all keys that say how to reach the store. It does not see our own keys
   (`optimist.store.<store>.*`), nor keys given to this call alone. Else arrow.
"""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import SparkSession

from optimist.core.errors import ConfigError
from optimist.core.options.engine import STORE_PREFIX, EngineOptions
from optimist.core.paths import scheme_of
from optimist.spark.session.call_options import FILESYSTEM_PREFIXES
from optimist.spark.session.jvm import Jvm
from optimist.spark.session.pyspark_versions import is_connect

__all__ = ["is_native"]

_EVERY_HADOOP = ("", "file", "hdfs", "viewfs")
_STORES = {
    **dict.fromkeys(("s3", "s3a", "s3n"), "s3"),
    **dict.fromkeys(("abfs", "abfss", "az", "wasb", "wasbs"), "azure"),
    "gs": "gcs",
}


def is_native(
    spark: SparkSession, path: str, options: EngineOptions, store_options: Mapping[str, str]
) -> bool:
    """Check whether the native plane, Spark's own readers and writers, serves a path.

    Raises:
        ConfigError: The native plane is forced on Spark Connect (kind
            `OPTIMIST_CLASSIC_SPARK_NEEDED`).
    """
    if is_connect(spark):
        if options.spark_plane == "native":
            raise ConfigError(
                "The option optimist.spark.plane=native needs a classic PySpark session, but this "
                "session is a Spark Connect client. Leave the option out, or set it to arrow.",
                kind="OPTIMIST_CLASSIC_SPARK_NEEDED",
                key="optimist.spark.plane",
            )
        return False
    if options.spark_plane != "auto":
        return options.spark_plane == "native"
    scheme = scheme_of(path)
    if scheme in _EVERY_HADOOP:
        return True
    if _has_own_keys(scheme, store_options):
        return False
    jvm = Jvm.of(spark)
    return jvm.opens(scheme) and _sees_all(jvm, store_options)


def _has_own_keys(scheme: str, store_options: Mapping[str, str]) -> bool:
    prefix = f"{STORE_PREFIX}{_STORES.get(scheme, 'fsspec')}."
    return any(key.removeprefix("spark.").startswith(prefix) for key in store_options)


def _sees_all(jvm: Jvm, store_options: Mapping[str, str]) -> bool:
    """Check whether Hadoop has the same keys for file systems as the store.

    Keys of a call are not in the session's conf: with them, the log's store may reach another
    service than the connector, or the same service as another user.
    """
    keys = [key for key in store_options if key.startswith(FILESYSTEM_PREFIXES)]
    if not keys:
        return True
    settings = jvm.hadoop_settings()
    return all(settings.get(key) == store_options[key] for key in keys)
