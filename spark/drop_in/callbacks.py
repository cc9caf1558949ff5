"""What Spark's side asks of Python, and whose session it is: the answers of the compiled classes.

A session is found by the id that Spark gives it, so that new sessions and clones, which Python has
not seen yet, have theirs.
"""

from __future__ import annotations

import weakref
from collections import OrderedDict
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, TypeAlias

from pyspark.sql import SparkSession

from optimist.core.forking import ForkSafeLock
from optimist.spark.drop_in import catalog, relations
from optimist.spark.session.callback_errors import callback

__all__ = ["Answers", "remember_session"]

Answer: TypeAlias = Callable[[SparkSession, Any, Any], Any]
_MAX_KEPT = 32  # a stream clones its session, and each clone that writes costs one entry
_LOCK = ForkSafeLock()
_KNOWN: weakref.WeakValueDictionary[str, SparkSession] = weakref.WeakValueDictionary()
_MADE: OrderedDict[str, SparkSession] = OrderedDict()
_ANSWERS: Mapping[str, Answer] = MappingProxyType(
    {
        "load": catalog.load,
        "exists": catalog.exists,
        "drop": catalog.drop,
        "read": relations.read_format,
        "changes": relations.changes,
    }
)


class Answers:
    """The one object that the JVM calls; it knows by a word what is asked."""

    class Java:
        """The interface that py4j makes a proxy of."""

        implements = ["scala.Function5"]  # noqa: RUF012 - py4j wants a list

    def __init__(self, context: Any) -> None:
        self._context = context

    def apply(self, what: str, session_id: str, session: Any, about: Any, more: Any) -> Any:
        """The answer to a question; what `about` and `more` are depends on the question."""
        with callback():
            answer = _ANSWERS.get(what)
            if answer is None:
                return None
            return answer(self._session(session_id, session), about, more)

    def _session(self, session_id: str, session: Any) -> SparkSession:
        with _LOCK:
            known = _KNOWN.get(session_id)
            if known is None:
                known = SparkSession(self._context, session)
                _KNOWN[session_id] = _MADE[session_id] = known
                if len(_MADE) > _MAX_KEPT:
                    _MADE.popitem(last=False)
            return known

    def toString(self) -> str:
        """A name for logs."""
        return "optimist"

    def hashCode(self) -> int:
        """One object, one hash."""
        return id(self) & 0x7FFFFFFF

    def equals(self, other: Any) -> bool:
        """Whether the other is this object; it arrives as a Java object, never as ours."""
        return other is not None and int(other.hashCode()) == self.hashCode()


def remember_session(spark: SparkSession) -> None:
    """Answer for a session with the Python object that the user has."""
    session: Any = spark._jsparkSession
    with _LOCK:
        _KNOWN[str(session.sessionUUID())] = spark
