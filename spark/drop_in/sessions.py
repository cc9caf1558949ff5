"""Maps a session of the JVM to the user's own Python session, where there is one.

A session is found by the id that Spark gives it, so that new sessions and clones, which Python has
not seen yet, have theirs.
"""

from __future__ import annotations

import weakref
from collections import OrderedDict
from typing import Any

from pyspark import RDD, SparkContext
from pyspark.sql import SparkSession

from optimist.core.forking import ForkSafeLock

__all__ = ["remember_session", "session_of"]

_MAX_KEPT = 32  # a stream clones its session, and each clone that writes costs one entry
_LOCK = ForkSafeLock()
_KNOWN: weakref.WeakValueDictionary[str, SparkSession] = weakref.WeakValueDictionary()
_MADE: OrderedDict[str, SparkSession] = OrderedDict()


def remember_session(spark: SparkSession) -> None:
    """Answer for a session with the Python object that the user has."""
    session: Any = spark._jsparkSession
    with _LOCK:
        _KNOWN[str(session.sessionUUID())] = spark


def session_of(context: SparkContext, session: Any, session_id: str | None = None) -> SparkSession:
    """Return the Python session of a Java one.

    Args:
        context: The context of both.
        session: The Java session.
        session_id: Its id, if the caller knows it.
    """
    key = session_id or str(session.sessionUUID())
    with _LOCK:
        known = _KNOWN.get(key)
        if known is None:
            known = _made(context, session)
            _KNOWN[key] = _MADE[key] = known
            if len(_MADE) > _MAX_KEPT:
                _MADE.popitem(last=False)
        return known


def _made(context: SparkContext, session: Any) -> SparkSession:
    """Make the Python session of a Java one that the user did not make.

    PySpark lets the session that was made last serve `RDD.toDF`. It stays with the user's own: the
    clone in which Spark plans what it caches, say, does not have their temporary views.
    """
    kept = getattr(RDD, "toDF", None)
    try:
        return SparkSession(context, session)
    finally:
        if kept is not None:
            RDD.toDF = kept  # type: ignore[method-assign]
