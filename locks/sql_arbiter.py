"""Entries in an SQL table, for teams that already run a database: SQLite and PostgreSQL.

*Assumes* one database for all writers. SQLite: a local disk on which its locks work, so all writers
on one machine. PostgreSQL: the primary, never a replica (refused), and a server that keeps
committed data (`fsync` on). Each transaction sets `synchronous_commit`.

*Provides* one owner per file: the table's primary key decides, in one INSERT. Reads see every
commit that has returned.

*Does not provide* expiry (delete complete rows whose `expire_time_s` has passed, if the table grows
too large), nor safety across a failover to an asynchronous replica: entries that the replica had
not received are lost. The store's conditional PUT is the second fence there.

*Excludes* other Optimist writers set to the same database and table.
"""

from __future__ import annotations

import os
import weakref
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import astuple, dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Connection,
    Dialect,
    Engine,
    MetaData,
    Select,
    String,
    Table,
    create_engine,
    event,
    insert,
    inspect,
    select,
    text,
    type_coerce,
    update,
)
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.exc import (
    ArgumentError,
    DataError,
    DBAPIError,
    DisconnectionError,
    IntegrityError,
    NoSuchModuleError,
    NotSupportedError,
    ProgrammingError,
)
from sqlalchemy.types import NullType

from optimist.core.errors import ConfigError, OptimistError, StorageError
from optimist.core.errors.kinds import STORE_BUSY, STORE_NO_ANSWER
from optimist.core.forking import NO_FORK_MEANWHILE, ForkSafeLock, PerProcess, keep_inherited
from optimist.core.options.engine import STORE_PREFIX
from optimist.core.options.fields import option, parse_options
from optimist.core.options.values import (
    blank_as,
    invalid_option,
    parse_seconds,
    parse_whole_seconds,
)
from optimist.core.plugins.arbiter import Arbiter, CommitEntry, parse_commit_entry
from optimist.core.plugins.logstore import PutOutcome
from optimist.core.runtime.budget import try_limit_s
from optimist.core.runtime.clock import Clock, SystemClock
from optimist.core.runtime.retry import Patience, call_once, call_patiently
from optimist.core.secrets import Secret, masked_repr
from optimist.locks.connection_limit import broken_off_after

if TYPE_CHECKING:
    from sqlalchemy.engine.interfaces import DBAPIConnection

__all__ = ["SQLArbiter", "SQLOptions"]

_Result = TypeVar("_Result")

_REPEAT = Patience(max_tries=4)
_DIALECTS = ("sqlite", "postgresql")

# SQLite's result codes for "nothing was done". After BUSY and LOCKED we try again.
_SQLITE_BUSY = frozenset({5, 6})
_SQLITE_FULL = 13
_SQLITE_NOTHING_DONE = frozenset({1, 3, 8, _SQLITE_FULL, 14, 23, 26})
"""ERROR, PERM, READONLY, FULL, CANTOPEN, AUTH, NOTADB."""

# Classes of PostgreSQL's SQLSTATE for "the transaction did not take place".
_SQLSTATE_RETRYABLE = ("40", "53", "55")
_SQLSTATE_UNKNOWN = ("08", "40003", "57", "58", "XX")
"""Classes, and one single state: 40003 is "statement completion unknown", while the others of its
class say that all was undone."""
_NO_URL = (ArgumentError, NoSuchModuleError, ModuleNotFoundError, TypeError, ValueError)
_PORTS = range(1, 1 << 16)
_REFUSALS = (DataError, IntegrityError, NotSupportedError, ProgrammingError)
"""Errors that say, without a code, that nothing was done. A driver may raise any other error on an
answer that was cut off."""


@dataclass(frozen=True, slots=True)
class SQLOptions:
    """The options of the database, from the keys `optimist.store.sql.<option>`.

    Attributes:
        url: The URL, as SQLAlchemy takes it: `sqlite:////var/lib/optimist/log.db`,
            `postgresql+psycopg://user@host/db`. It may hold a password.
        password: A password instead of one in the URL.
        table: The table's name; a missing table is created (`table`).
        timeout_s: How long to wait for a locked database or a connection (`timeoutSeconds`).
        entry_ttl_s: How many seconds to keep a complete entry (`entryTtlSeconds`).
    """

    url: Secret[str] = option(
        parse=Secret,
        missing="say where the database is, for example postgresql+psycopg://user@host/db or "
        "sqlite:////var/lib/optimist/log.db",
    )
    password: Secret[str] | None = option(None, Secret)
    table: str = option("delta_log", blank_as("delta_log", str))
    timeout_s: float = option(30.0, parse_seconds)
    entry_ttl_s: int = option(86_400, parse_whole_seconds)

    __repr__ = masked_repr

    @classmethod
    def from_options(cls, options: Mapping[str, str]) -> SQLOptions:
        """Parse SQL's keys.

        Raises:
            ConfigError: The URL is missing, a value does not parse, or a key is unknown.
        """
        return cls(**parse_options(cls, options, f"{STORE_PREFIX}sql."))


class SQLArbiter(Arbiter):
    """One row per entry, with the primary key (`table_path`, `file_name`).

    Args:
        options: See `SQLOptions`.
        clock: Paces retries.
        engine: An SQLAlchemy engine to use instead of one from the options.
    """

    def __init__(
        self,
        options: Mapping[str, str] | None = None,
        *,
        clock: Clock | None = None,
        engine: Engine | None = None,
    ) -> None:
        super().__init__(options)
        self._parsed = SQLOptions.from_options(self.options)
        self.entry_ttl_s = self._parsed.entry_ttl_s
        self._clock: Clock = clock or SystemClock()
        self._engines = PerProcess(_engines_from(self._parsed, engine))
        self._engines.get()  # reports wrong options at once
        if engine is None:  # pooled connections end with the arbiter
            weakref.finalize(self, _dispose_engine, self._engines)
        self._table = _make_table(self._parsed.table)
        self._lock = ForkSafeLock()
        self._is_ready = False

    def create(self, entry: CommitEntry) -> PutOutcome:
        """See `Arbiter.create`.

        It sends one INSERT in its own transaction, once.

        If the key is taken, nothing changes, and the existing row shows whether it is ours.
        """
        self._ensure_ready()
        failed = partial(
            _sql_error,
            doing=f"create the entry of {entry.file_name}",
            outcome="Nothing was committed.",
        )
        try:
            call_once(partial(self._insert, entry), self._clock)
        except OptimistError:  # not sent
            raise
        except _NotConnectedError as error:  # without a connection nothing was sent
            raise failed(error.reason) from error.reason
        except IntegrityError:
            winner = self.get(entry.table_path, entry.file_name)
            if winner is None:  # deleted meanwhile: its owner is unknown
                return PutOutcome.UNKNOWN
            is_ours = winner.temp_path == entry.temp_path
            return PutOutcome.CREATED if is_ours else PutOutcome.EXISTS
        except Exception as error:
            if _is_unanswered(error):
                return PutOutcome.UNKNOWN
            raise failed(error) from error
        return PutOutcome.CREATED

    def _insert(self, entry: CommitEntry) -> None:
        with self._delay_forks():
            try:
                connection = self._engines.get().connect()
            except Exception as error:
                raise _NotConnectedError(error) from error
            with connection, self._limit_time(connection), connection.begin():
                connection.execute(insert(self._table).values(astuple(entry)))

    def get(self, table_path: str, file_name: str) -> CommitEntry | None:
        """See `Arbiter.get`."""
        columns = self._table.c
        query = self._entries_of(table_path).where(columns.file_name == file_name)
        return self._ask_when_ready(
            lambda connection: _first_entry(connection, self._table, table_path, query),
            f"read the entry of {file_name}",
        )

    def latest(self, table_path: str) -> CommitEntry | None:
        """See `Arbiter.latest`.

        Names are compared as bytes, in any locale of the database.
        """
        query = self._entries_of(table_path).order_by(self._table.c.file_name.desc()).limit(1)
        return self._ask_when_ready(
            lambda connection: _first_entry(connection, self._table, table_path, query),
            f"read the newest entry of {table_path}",
        )

    def complete(self, entry: CommitEntry) -> None:
        """See `Arbiter.complete`.

        It is an UPDATE of the row with the same `temp_path`.
        """
        columns = self._table.c
        statement = (
            update(self._table)
            .where(
                columns.table_path == entry.table_path,
                columns.file_name == entry.file_name,
                columns.temp_path == entry.temp_path,
            )
            .values(complete=True, expire_time_s=entry.expire_time_s)
        )
        self._ask_when_ready(
            lambda connection: connection.execute(statement),
            f"mark the entry of {entry.file_name} as complete",
        )

    def describe(self) -> Mapping[str, str]:
        """See `Arbiter.describe`."""
        return {
            **super().describe(),
            "database": self._engines.get().dialect.name,
            "table": self._parsed.table,
            "excludes": "Optimist writers set to the same database and table",
        }

    def _entries_of(self, table_path: str) -> Select[Any]:
        """Return a query of a table's rows, with the driver's raw values.

        SQLite columns take any type, and SQLAlchemy would turn the text `false` into True.
        """
        columns = self._table.c
        raw = type_coerce(columns.complete, NullType()).label("complete")
        return select(columns.file_name, columns.temp_path, raw, columns.expire_time_s).where(
            columns.table_path == table_path
        )

    def _ask_when_ready(self, request: Callable[[Connection], _Result], doing: str) -> _Result:
        """Run a request that may run more than once, in its own transaction."""
        self._ensure_ready()
        return self._ask_patiently(request, doing)

    def _ask_patiently(self, request: Callable[[Connection], _Result], doing: str) -> _Result:
        def ask() -> _Result:
            with (
                self._delay_forks(),
                self._engines.get().connect() as connection,
                self._limit_time(connection),
                connection.begin(),
            ):
                return request(connection)

        return call_patiently(ask, _REPEAT, self._clock, error_of=partial(_sql_error, doing=doing))

    def _limit_time(self, connection: Connection) -> AbstractContextManager[None]:
        """Break off the connection if the server does not answer in time."""
        return broken_off_after(
            try_limit_s(self._parsed.timeout_s), connection.connection.dbapi_connection
        )

    def _delay_forks(self) -> AbstractContextManager[object]:
        """Delay forks while SQLite works: a child would find SQLite's own locks taken."""
        is_sqlite = self._engines.get().dialect.name == "sqlite"
        return NO_FORK_MEANWHILE if is_sqlite else nullcontext()

    def _ensure_ready(self) -> None:
        with self._lock:
            if not self._is_ready:
                self._ask_patiently(self._prepare_table, f"create the table {self._parsed.table}")
                self._is_ready = True

    def _prepare_table(self, connection: Connection) -> None:
        is_postgresql = connection.dialect.name == "postgresql"
        if is_postgresql and connection.scalar(text("SELECT pg_is_in_recovery()")):
            raise ConfigError(
                "optimist.store.sql.url leads to a replica, which may be behind and takes no "
                "writes. Nothing was committed. Name the primary server.",
                kind="OPTIMIST_SQL_REPLICA",
            )
        if is_postgresql:  # two may create the table at once: the lock lets one do it
            connection.execute(text("SELECT pg_advisory_xact_lock(7310868735154676)"))
        if not inspect(connection).has_table(self._parsed.table):
            self._table.create(connection, checkfirst=False)


def _engines_from(options: SQLOptions, given: Engine | None) -> Callable[[], Engine]:
    """Return a maker of engines, one per process.

    In a child, a given engine opens new connections.
    """
    process = os.getpid()

    def adopt(engine: Engine) -> Engine:
        if os.getpid() != process:
            keep_inherited(engine.pool)
            engine.dispose(close=False)
        return engine

    return (lambda: _new_engine(options)) if given is None else lambda: adopt(given)


def _dispose_engine(engines: PerProcess[Engine]) -> None:
    engine = engines.made
    if engine is not None:
        engine.dispose()


def _new_engine(options: SQLOptions) -> Engine:
    engine = _build_engine(options)
    if engine.dialect.name not in _DIALECTS:
        rule = f"must be of one of {', '.join(_DIALECTS)}"
        raise invalid_option("optimist.store.sql.url", rule)
    if engine.url.port is not None and engine.url.port not in _PORTS:
        raise invalid_option("optimist.store.sql.url", "must name a port from 1 to 65535")
    event.listen(engine, "do_connect", _with_timeout(options.timeout_s))
    if engine.dialect.name == "postgresql":
        event.listen(engine, "checkout", _ensure_alive(engine.dialect, options.timeout_s))
        event.listen(engine, "begin", _commit_synchronously)
    else:
        event.listen(engine, "connect", _prepare_sqlite)
        event.listen(engine, "begin", _lock_at_once(options.timeout_s))
    return engine


def _build_engine(options: SQLOptions) -> Engine:
    own = {"password": options.password.reveal()} if options.password is not None else {}
    try:
        return create_engine(options.url.reveal(), hide_parameters=True, connect_args=own)
    # It raises the last two for invalid ports and settings. Any of these errors may show the URL.
    except _NO_URL as error:
        rule = f"must be a URL of SQLAlchemy whose driver is installed ({type(error).__name__})"
    raise invalid_option("optimist.store.sql.url", rule)


def _with_timeout(timeout_s: float) -> Callable[..., None]:
    def set_timeout(dialect: Dialect, *event_arguments: Any) -> None:
        named: dict[str, Any] = event_arguments[-1]
        if dialect.name == "sqlite":
            named.setdefault("timeout", timeout_s)
        else:
            named.setdefault("connect_timeout", max(1, round(try_limit_s(timeout_s))))

    return set_timeout


def _commit_synchronously(connection: Connection) -> None:
    # A server with `off` would confirm entries that a crash loses.
    connection.exec_driver_sql(
        "SELECT set_config('synchronous_commit', 'on', true) "
        "WHERE current_setting('synchronous_commit') = 'off'"
    )


def _prepare_sqlite(connection: Any, _record: object) -> None:
    connection.isolation_level = None  # we begin and end transactions ourselves
    # A column may hold any bytes, which `parse_commit_entry` judges.
    connection.text_factory = lambda data: data.decode("utf-8", "replace")


def _lock_at_once(timeout_s: float) -> Callable[[Connection], None]:
    def begin(connection: Connection) -> None:
        wait_ms = round(try_limit_s(timeout_s) * 1000)
        connection.exec_driver_sql(f"PRAGMA busy_timeout = {wait_ms}")
        # Else two transactions that first read and then write would fail without waiting for each
        # other.
        connection.exec_driver_sql("BEGIN IMMEDIATE")

    return begin


def _ensure_alive(dialect: Dialect, timeout_s: float) -> Callable[..., None]:
    """Replace a pooled connection whose server is gone, as `pool_pre_ping` does, but in time."""

    def ping(connection: DBAPIConnection, *_: object) -> None:
        try:
            with broken_off_after(try_limit_s(timeout_s), connection):
                dialect.do_ping(connection)
        except Exception as error:
            raise DisconnectionError("The server no longer answers.") from error

    return ping


def _make_table(name: str) -> Table:
    # "C" compares bytes, as SQLite does by default.
    words = String().with_variant(postgresql.TEXT(collation="C"), "postgresql")
    words = words.with_variant(sqlite.TEXT(), "sqlite")
    return Table(
        name,
        MetaData(),
        Column("table_path", words, primary_key=True),
        Column("file_name", words, primary_key=True),
        Column("temp_path", words, nullable=False),
        Column("complete", Boolean, nullable=False),
        Column("expire_time_s", BigInteger, nullable=True),
    )


class _NotConnectedError(Exception):
    """No connection was made, for the reason in `reason`."""

    def __init__(self, reason: Exception) -> None:
        super().__init__(str(reason))
        self.reason = reason


def _first_entry(
    connection: Connection, table: Table, table_path: str, query: Select[Any]
) -> CommitEntry | None:
    row = connection.execute(query).first()
    if row is None:
        return None
    file_name, temp_path, complete, expire_time_s = row
    return parse_commit_entry(
        {"tempPath": temp_path, "complete": complete, "expireTime": expire_time_s},
        table_path=table_path,
        file_name=file_name,
        keeper=f"the SQL table {table.name}",
    )


def _sql_error(error: Exception, *, doing: str, outcome: str = "") -> StorageError:
    """Translate SQLAlchemy's error by class, SQLSTATE and SQLite's code, never by text."""
    state, code = _sqlstate_of(error), _sqlite_code_of(error)
    if not _is_unanswered(error) and (code in _SQLITE_BUSY or state[:2] in _SQLSTATE_RETRYABLE):
        kind, cause = STORE_BUSY, "the database is busy; try again"
    elif state[:2] == "28":
        kind, cause = (
            "OPTIMIST_INVALID_CREDENTIALS",
            "the user or the password was refused; check them",
        )
    elif state == "42501" or code in (3, 8, 23):
        kind, cause = "OPTIMIST_PERMISSION_DENIED", "the user lacks a permission"
    elif code == _SQLITE_FULL:
        kind, cause = "OPTIMIST_NO_SPACE", "the disk of the database is full; make room"
    elif _is_unanswered(error):
        kind, cause = (
            STORE_NO_ANSWER,
            "the database can't be reached, or gave no answer; check that it is up, and try again",
        )
    else:
        kind, cause = "OPTIMIST_STORAGE_FAILED", "the database refused the statement"
    shown = state or (f"SQLite code {code}" if code else type(error).__name__)
    return StorageError(
        f"Cannot {doing} in the SQL database: {cause} ({shown}). {outcome}".rstrip(),
        kind=kind,
        code=shown,
        retryable=kind in (STORE_BUSY, STORE_NO_ANSWER),
    )


def _is_unanswered(error: Exception) -> bool:
    """Check whether the transaction may have taken place although it failed."""
    if isinstance(error, DBAPIError) and error.connection_invalidated:
        return True
    state, code = _sqlstate_of(error), _sqlite_code_of(error)
    if state:
        return state.startswith(_SQLSTATE_UNKNOWN)
    if code:
        return code not in _SQLITE_NOTHING_DONE | _SQLITE_BUSY
    return not isinstance(error, _REFUSALS)


def _sqlstate_of(error: Exception) -> str:
    cause = getattr(error, "orig", None)
    return str(getattr(cause, "sqlstate", None) or getattr(cause, "pgcode", None) or "")


def _sqlite_code_of(error: Exception) -> int:
    """Return the primary result code, which Python has since 3.11."""
    return int(getattr(getattr(error, "orig", None), "sqlite_errorcode", 0)) & 0xFF
