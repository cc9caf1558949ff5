"""`enable` and `disable`: format("delta"), names and SQL over Delta tables in a session."""

from __future__ import annotations

from pyspark.sql import SparkSession

from optimist.core.forking import ForkSafeLock
from optimist.spark.drop_in.cached_tables import refresh_after_commits
from optimist.spark.drop_in.classic.callbacks import Answers
from optimist.spark.drop_in.compiler import dropin, is_loaded, load_classes
from optimist.spark.drop_in.connect.client import disable_connect, enable_connect
from optimist.spark.drop_in.known_confs import register_confs
from optimist.spark.drop_in.session_state import ensure_no_delta_jar, install, remove
from optimist.spark.drop_in.sessions import remember_session
from optimist.spark.session.callback_errors import raise_original_errors
from optimist.spark.session.jvm import Jvm
from optimist.spark.session.pyspark_versions import is_connect

__all__ = ["disable", "enable"]

_LOCK = ForkSafeLock()


def enable(spark: SparkSession) -> SparkSession:
    """Let Spark's own reader, writer and SQL reach Delta tables, in this session and those from it.

    Afterwards `spark.read.format("delta")`, `df.write.format("delta")`, ``delta.`/path` `` in SQL
    and tables made with `USING delta` are served by Optimist. New sessions and clones made from
    this one are served, too. Calling it again changes nothing.

    Args:
        spark: A classic session without Delta's jar, or a Spark Connect client, which has less:
            docs/connect.md.

    Returns:
        The session.

    Raises:
        ConfigError: The session has Delta's jar (kind `OPTIMIST_DELTA_JAR_PRESENT`), or is of a
            Spark whose insides are not known (kind `OPTIMIST_DROP_IN_UNSUPPORTED`). Nothing was
            changed.
    """
    if is_connect(spark):
        return enable_connect(spark)
    jvm = Jvm.of(spark)
    with _LOCK:
        if not is_loaded(jvm):
            ensure_no_delta_jar(jvm)
            load_classes(jvm)
            register_confs(jvm)
        dropin(jvm).Python.listen(Answers(spark.sparkContext))
        install(jvm)
        remember_session(spark)
        raise_original_errors()
        refresh_after_commits(spark)
    return spark


def disable(spark: SparkSession) -> None:
    """Undo `enable` for this session and those that will be made from it.

    Sessions that were made from it in the meantime stay as they are. The name `delta` stays taken,
    and a use of it says that it is not served.
    """
    if is_connect(spark):
        disable_connect(spark)
        return
    jvm = Jvm.of(spark)
    with _LOCK:
        if is_loaded(jvm):
            remove(jvm)
