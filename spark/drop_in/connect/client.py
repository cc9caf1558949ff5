"""`enable` and `disable` on Spark Connect: what a client can have without a JVM.

The client's own methods are exchanged: `sql` of the one session, and `load`, `table`, `save` and
their kin of the classes of readers and writers, and the changes of `DeltaTable`, which ask whose
session it is. The server is not changed, and nothing stays there.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial, wraps
from types import MappingProxyType
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from optimist.core.forking import ForkSafeLock
from optimist.spark.commands.row_changes import RowChanges
from optimist.spark.drop_in.connect.catalog import CATALOG
from optimist.spark.drop_in.connect.delta_tables import ROW_CHANGES
from optimist.spark.drop_in.connect.frames import READER, session_of
from optimist.spark.drop_in.connect.plans import SentPlans
from optimist.spark.drop_in.connect.refusals import refused
from optimist.spark.drop_in.connect.sql import connect_sql
from optimist.spark.drop_in.connect.streams import STREAM_READER, STREAM_WRITER
from optimist.spark.drop_in.connect.writers import WRITER, WRITER_TO
from optimist.spark.session.callback_errors import original_errors

__all__ = ["disable_connect", "enable_connect"]

_LOCK = ForkSafeLock()
_ENABLED: weakref.WeakSet[SparkSession] = weakref.WeakSet()
_ORIGINALS: dict[tuple[type, str], Callable[..., Any]] = {}
_PLANS: weakref.WeakKeyDictionary[Any, SentPlans] = weakref.WeakKeyDictionary()
_NO_CATALOG = "CANNOT_LOAD_CATALOG.PLUGIN_CLASS_NOT_FOUND"
_DELTA_CATALOG = ".DeltaCatalog'"
"""How the catalogs of ours and of Delta's jar end, which a view keeps from the session it is of."""
_OWN_QUERY = "Run the view's query by itself, or read the view in a classic session."
_SENDING = ("execute_command", "execute_command_as_iterator", "_analyze")


def enable_connect(spark: SparkSession) -> SparkSession:
    """Let `format("delta")` and SQL over paths reach Delta tables in a client's session.

    Calling it again changes nothing.
    """
    session: Any = spark
    with _LOCK:
        if spark not in _ENABLED:
            _ENABLED.add(spark)
            # The session must not hold itself, or it would not be closed when it is left.
            session.sql = _of_session(weakref.ref(spark), type(spark).sql)
            client = session.client
            client._handle_error = _with_our_errors(weakref.ref(client), type(client))
            _change_what_is_sent(client, SentPlans(spark))
            _exchange_methods()
    return spark


def disable_connect(spark: SparkSession) -> None:
    """Undo `enable_connect`, or do nothing if the session is not enabled."""
    with _LOCK:
        if spark in _ENABLED:
            _ENABLED.discard(spark)
            vars(spark).pop("sql", None)
            client: Any = spark.client
            for name in ("_handle_error", *_SENDING):
                vars(client).pop(name, None)
            _PLANS.pop(client, None)
        if not _ENABLED:
            for (owner, name), original in _ORIGINALS.items():
                setattr(owner, name, original)
            _ORIGINALS.clear()


def _of_session(session: Any, original: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(original)
    def sql(sqlQuery: str, args: Any = None, **kwargs: Any) -> Any:
        spark = session()
        return connect_sql(spark, partial(original, spark), sqlQuery, args, kwargs)

    return sql


def _with_our_errors(client: Any, kind: Any) -> Callable[..., Any]:
    """Raise our errors in place of the server's, for users' own queries, too.

    An error that our code raises beside the server comes as the text of another, with the stacks of
    both sides; what is raised is the error itself.
    """

    @wraps(kind._handle_error)
    def handle(*args: Any, **kwargs: Any) -> Any:
        with original_errors(is_own_call=False):
            try:
                kind._handle_error(client(), *args, **kwargs)
            except PySparkException as error:
                if error.getCondition() == _NO_CATALOG and _DELTA_CATALOG in str(error):
                    raise refused(
                        "A view that a session with Delta tables made", _OWN_QUERY
                    ) from None
                raise

    return handle


def _change_what_is_sent(client: Any, plans: SentPlans) -> None:
    """Change a client, so that it sends the needed rows of our tables with a query."""
    _PLANS[client] = plans
    own, kind = weakref.ref(client), type(client)

    def with_command(name: str) -> Callable[..., Any]:
        original = getattr(kind, name)

        @wraps(original)
        def run(command: Any, *args: Any, **kwargs: Any) -> Any:
            with original_errors():
                plans.prepare_command(command)
            return original(own(), command, *args, **kwargs)

        return run

    @wraps(kind._analyze)
    def analyze(method: str, **kwargs: Any) -> Any:
        if "relation" in kwargs:
            with original_errors():
                kwargs["relation"] = plans.persisted(method, kwargs["relation"])
        return kind._analyze(own(), method, **kwargs)

    for name in _SENDING[:2]:
        setattr(client, name, with_command(name))
    client._analyze = analyze


@dataclass(frozen=True, slots=True)
class _Prepared:
    """A client's plan, which is sent without what it does not need."""

    inner: Any
    plans: SentPlans

    def plan(self, session: Any) -> Any:
        with original_errors():
            return self.plans.prepared(self.inner.plan(session))


def _to_proto(original: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(original)
    def to_proto(self: Any, session: Any, *args: Any, **kwargs: Any) -> Any:
        plans = _PLANS.get(session)
        sent = self if plans is None else _Prepared(self, plans)
        return original(sent, session, *args, **kwargs)

    return to_proto


def _persist(original: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(original)
    def persist(self: Any, *args: Any, **kwargs: Any) -> Any:
        plans = _PLANS.get(self._session.client)
        if plans is not None:
            plans.let_go_with(self._plan)
        return original(self, *args, **kwargs)

    return persist


def _exchange_methods() -> None:
    """Put our methods before Spark's, to which they pass calls of other sessions."""
    if _ORIGINALS:
        return
    for owner, methods in _methods().items():
        for name, ours in methods.items():
            original = getattr(owner, name)
            _ORIGINALS[owner, name] = original
            setattr(owner, name, _or_original(ours, original))
    for owner, name, made in _wrapped():
        original = _ORIGINALS[owner, name] = getattr(owner, name)
        setattr(owner, name, made(original))


def _or_original(ours: Callable[..., Any], original: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(original)
    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        if session_of(self) not in _ENABLED:
            return original(self, *args, **kwargs)
        with original_errors(is_own_call=False):
            return ours(partial(original, self), self, *args, **kwargs)

    return method


def _wrapped() -> Iterator[tuple[type, str, Callable[..., Any]]]:
    """Return the methods to exchange, each with what wraps Spark's."""
    from pyspark.sql.connect.dataframe import DataFrame
    from pyspark.sql.connect.plan import LogicalPlan

    yield LogicalPlan, "to_proto", _to_proto
    yield DataFrame, "persist", _persist


def _methods() -> Mapping[type, Mapping[str, Callable[..., Any]]]:
    # The client's classes need packages that classic sessions do not.
    from pyspark.sql.connect.catalog import Catalog
    from pyspark.sql.connect.readwriter import (
        DataFrameReader,
        DataFrameWriter,
        DataFrameWriterV2,
    )
    from pyspark.sql.connect.streaming.readwriter import DataStreamReader, DataStreamWriter

    return MappingProxyType(
        {
            Catalog: {name: ours for name, ours in CATALOG.items() if hasattr(Catalog, name)},
            DataFrameReader: READER,
            DataFrameWriter: WRITER,
            DataFrameWriterV2: WRITER_TO,
            DataStreamReader: STREAM_READER,
            DataStreamWriter: STREAM_WRITER,
            RowChanges: ROW_CHANGES,
        }
    )
