"""Entries in an SQL table, for teams that run a database anyway: SQLite and PostgreSQL.

*Assumes* one database for all writers. SQLite: a local disk on which its locks work, so all writers
on one machine. PostgreSQL: the primary, never a replica (refused), and a server that keeps what it
has committed (`fsync` on); each transaction here asks for `synchronous_commit`.

*Provides* one owner per file: the primary key of the table decides, in one INSERT. Reads see every
commit that has returned.

*Does not provide* expiry (delete complete rows whose `expire_time_s` has passed, if the table grows
too large), nor safety across a failover to an asynchronous replica: what the replica had not
received is lost, entries too. The conditional PUT of the store is the second fence there.

*Excludes* other Optimist writers set to the same database and table.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Mapping
from dataclasses import astuple, dataclass, field
from typing import Any, TypeVar

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
    update,
)
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.exc import (
    ArgumentError,
    DBAPIError,
    IntegrityError,
    NoSuchModuleError,
    OperationalError,
    SQLAlchemyError,
)

from optimist.core.arbiter import Arbiter, CommitEntry
from optimist.core.clock import Clock, SystemClock
from optimist.core.errors import ConfigError, StorageError
from optimist.core.logstore import PutOutcome
from optimist.locks.lock_options import OwnOptions, invalid_option

__all__ = ["SQLArbiter", "SQLOptions"]

T = TypeVar("T")

_TRIES = 4
_FIRST_PAUSE_S = 0.05
_DIALECTS = ("sqlite", "postgresql")

# SQLite's result codes by which it says that nothing was done; BUSY and LOCKED may be asked again.
_SQLITE_BUSY = frozenset({5, 6})
_SQLITE_NOTHING_DONE = frozenset({1, 3, 8, 14, 23, 26})
"""ERROR, PERM, READONLY, CANTOPEN, AUTH, NOTADB."""

# Classes of PostgreSQL's SQLSTATE by which the server says that the transaction did not take place.
_SQLSTATE_RETRYABLE = ("40", "53", "55")
_SQLSTATE_UNKNOWN = ("08", "57", "58", "XX")


@dataclass(frozen=True, slots=True)
class SQLOptions:
    """Which database, from the keys `optimist.store.sql.<option>`.

    Attributes:
        url: As SQLAlchemy takes it: `sqlite:////var/lib/optimist/log.db`,
            `postgresql+psycopg://user@host/db`. May hold a password, so it is never shown.
        password: Instead of one in the URL; never shown.
        table: The table's name; made where it is missing (`table`).
        timeout_s: How long to wait for a locked database or a connection (`timeoutSeconds`).
        entry_ttl_s: Seconds a complete entry is to be kept (`entryTtlSeconds`).
    """

    url: str = field(repr=False)
    password: str | None = field(default=None, repr=False)
    table: str = "delta_log"
    timeout_s: float = 30.0
    entry_ttl_s: int = 86_400

    @classmethod
    def from_options(cls, options: Mapping[str, str]) -> SQLOptions:
        """Parse the keys that are SQL's.

        Raises:
            ConfigError: There is no URL, a value does not parse, or a key is unknown.
        """
        own = OwnOptions(options, "sql")
        url = own.text("url")
        if url is None:
            raise ConfigError(
                "optimist.store.sql.url is missing: say where the database is, for example "
                "postgresql+psycopg://user@host/db or sqlite:////var/lib/optimist/log.db.",
                kind="OPTIMIST_MISSING_OPTION",
                key="optimist.store.sql.url",
            )
        parsed = cls(
            url=url,
            password=own.text("password"),
            table=own.text("table") or "delta_log",
            timeout_s=own.seconds("timeoutSeconds", 30.0),
            entry_ttl_s=int(own.seconds("entryTtlSeconds", 86_400)),
        )
        own.ensure_all_taken()
        return parsed


class SQLArbiter(Arbiter):
    """One row per entry; the primary key is (`table_path`, `file_name`).

    Args:
        options: See `SQLOptions`.
        clock: For the waits between tries.
        engine: An SQLAlchemy engine to use instead of one made from the options.
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
        self._engine = engine if engine is not None else _new_engine(self._parsed)
        if engine is None:  # connections that are kept open end with the arbiter
            weakref.finalize(self, self._engine.dispose)
        self._table = _table_of(self._parsed.table)
        self._lock = threading.Lock()
        self._is_ready = False

    def create(self, entry: CommitEntry) -> PutOutcome:
        """See `Arbiter.create`: one INSERT in a transaction of its own, sent once.

        A key that is taken changes nothing; then the row that took it tells whether it is ours.
        """
        self._ensure_ready()
        doing = f"create the entry of {entry.file_name}, and did not"
        try:
            connection = self._engine.connect()
        except SQLAlchemyError as error:  # without a connection nothing was sent
            raise _sql_error(error, doing=doing) from error
        try:
            with connection, connection.begin():
                connection.execute(insert(self._table).values(astuple(entry)))
        except IntegrityError:
            winner = self.get(entry.table_path, entry.file_name)
            if winner is None:  # deleted in between; whose it was can't be told
                return PutOutcome.UNKNOWN
            is_ours = winner.temp_path == entry.temp_path
            return PutOutcome.CREATED if is_ours else PutOutcome.EXISTS
        except SQLAlchemyError as error:
            if _is_unanswered(error):
                return PutOutcome.UNKNOWN
            raise _sql_error(error, doing=doing) from error
        return PutOutcome.CREATED

    def get(self, table_path: str, file_name: str) -> CommitEntry | None:
        """See `Arbiter.get`."""
        columns = self._table.c
        query = select(self._table).where(
            columns.table_path == table_path, columns.file_name == file_name
        )
        return self._ask(
            lambda connection: _first_entry(connection, query),
            f"read the entry of {file_name}",
        )

    def latest(self, table_path: str) -> CommitEntry | None:
        """See `Arbiter.latest`; names are compared as bytes, whatever the database's locale."""
        columns = self._table.c
        query = (
            select(self._table)
            .where(columns.table_path == table_path)
            .order_by(columns.file_name.desc())
            .limit(1)
        )
        return self._ask(
            lambda connection: _first_entry(connection, query),
            f"read the newest entry of {table_path}",
        )

    def complete(self, entry: CommitEntry) -> None:
        """See `Arbiter.complete`: an UPDATE of the row with the same `temp_path`."""
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
        self._ask(
            lambda connection: connection.execute(statement),
            f"mark the entry of {entry.file_name} as complete",
        )

    def describe(self) -> Mapping[str, str]:
        """See `Arbiter.describe`."""
        return {
            **super().describe(),
            "database": self._engine.dialect.name,
            "table": self._parsed.table,
            "excludes": "Optimist writers set to the same database and table",
        }

    def _ask(self, request: Callable[[Connection], T], doing: str) -> T:
        """Run what may run more than once, in a transaction of its own."""
        self._ensure_ready()
        return self._retried(request, doing)

    def _retried(self, request: Callable[[Connection], T], doing: str) -> T:
        pause_s = _FIRST_PAUSE_S
        for number in range(_TRIES):
            try:
                with self._engine.begin() as connection:
                    return request(connection)
            except SQLAlchemyError as error:
                translated = _sql_error(error, doing=doing)
                if number == _TRIES - 1 or not translated.retryable:
                    raise translated from error
            self._clock.sleep(self._clock.uniform(0, pause_s))
            pause_s *= 2
        raise AssertionError("unreachable")

    def _ensure_ready(self) -> None:
        with self._lock:
            if not self._is_ready:
                self._retried(self._prepare, f"make the table {self._parsed.table}")
                self._is_ready = True

    def _prepare(self, connection: Connection) -> None:
        is_postgresql = connection.dialect.name == "postgresql"
        if is_postgresql and connection.scalar(text("SELECT pg_is_in_recovery()")):
            raise ConfigError(
                "optimist.store.sql.url leads to a replica, which lags behind and takes no "
                "entries. Nothing was written. Name the primary.",
                kind="OPTIMIST_SQL_REPLICA",
            )
        if is_postgresql:  # two that make one table at once: both are told that it exists
            connection.execute(text("SELECT pg_advisory_xact_lock(7310868735154676)"))
        if not inspect(connection).has_table(self._parsed.table):
            self._table.create(connection, checkfirst=False)


def _new_engine(options: SQLOptions) -> Engine:
    arguments: dict[str, Any] = {}
    if options.password is not None:
        arguments["password"] = options.password
    try:
        engine = create_engine(
            options.url, pool_pre_ping=True, hide_parameters=True, connect_args=arguments
        )
    except (ArgumentError, NoSuchModuleError, ModuleNotFoundError) as error:
        # Not chained and not quoted: the text of the cause may show the URL.
        reason = f"must be a URL of SQLAlchemy whose driver is installed ({type(error).__name__})"
        raise invalid_option("optimist.store.sql.url", "(not shown)", reason) from None
    if engine.dialect.name not in _DIALECTS:
        reason = f"{engine.dialect.name} is not supported; use one of {', '.join(_DIALECTS)}"
        raise invalid_option("optimist.store.sql.url", "(not shown)", reason)
    event.listen(engine, "do_connect", _with_timeout(options.timeout_s))
    if engine.dialect.name == "postgresql":
        event.listen(engine, "begin", _commit_synchronously)
    else:
        event.listen(engine, "connect", _leave_transactions_to_us)
        event.listen(engine, "begin", _lock_at_once)
    return engine


def _with_timeout(timeout_s: float) -> Callable[..., None]:
    def set_timeout(dialect: Dialect, *event_arguments: Any) -> None:
        named: dict[str, Any] = event_arguments[-1]
        if dialect.name == "sqlite":
            named.setdefault("timeout", timeout_s)
        else:
            named.setdefault("connect_timeout", max(1, round(timeout_s)))

    return set_timeout


def _commit_synchronously(connection: Connection) -> None:
    # A server set to `off` would confirm entries that a crash takes back.
    connection.exec_driver_sql(
        "SELECT set_config('synchronous_commit', 'on', true) "
        "WHERE current_setting('synchronous_commit') = 'off'"
    )


def _leave_transactions_to_us(connection: Any, _record: object) -> None:
    connection.isolation_level = None


def _lock_at_once(connection: Connection) -> None:
    # Two that read first and then want to write would refuse each other without waiting.
    connection.exec_driver_sql("BEGIN IMMEDIATE")


def _table_of(name: str) -> Table:
    # "C" compares bytes; SQLite does so by itself.
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


def _first_entry(connection: Connection, query: Select[Any]) -> CommitEntry | None:
    row = connection.execute(query).first()
    return None if row is None else CommitEntry(*row)


def _sql_error(error: Exception, *, doing: str) -> StorageError:
    """Ours for one of SQLAlchemy's, by class, SQLSTATE and SQLite's result code, never by text."""
    state, code = _sqlstate_of(error), _sqlite_code_of(error)
    if code in _SQLITE_BUSY or state[:2] in _SQLSTATE_RETRYABLE:
        kind, cause = "OPTIMIST_STORE_BUSY", "the database is busy"
    elif state[:2] == "28":
        kind, cause = "OPTIMIST_INVALID_CREDENTIALS", "the user or password was refused"
    elif state == "42501" or code in (3, 8, 23):
        kind, cause = "OPTIMIST_PERMISSION_DENIED", "the user may not do this"
    elif _is_unanswered(error):
        kind, cause = "OPTIMIST_STORE_NO_ANSWER", "the database can't be reached, or gave no answer"
    else:
        kind, cause = "OPTIMIST_STORAGE_FAILED", "the database refused"
    shown = state or (f"SQLite code {code}" if code else type(error).__name__)
    return StorageError(
        f"SQL: could not {doing}: {cause} ({shown}).",
        kind=kind,
        code=shown,
        retryable=kind in ("OPTIMIST_STORE_BUSY", "OPTIMIST_STORE_NO_ANSWER"),
    )


def _is_unanswered(error: Exception) -> bool:
    """Whether the transaction may have taken place although it failed."""
    if isinstance(error, DBAPIError) and error.connection_invalidated:
        return True
    state, code = _sqlstate_of(error), _sqlite_code_of(error)
    if state:
        return state.startswith(_SQLSTATE_UNKNOWN)
    if code:
        return code not in _SQLITE_NOTHING_DONE | _SQLITE_BUSY
    return isinstance(error, OperationalError)


def _sqlstate_of(error: Exception) -> str:
    cause = getattr(error, "orig", None)
    return str(getattr(cause, "sqlstate", None) or getattr(cause, "pgcode", None) or "")


def _sqlite_code_of(error: Exception) -> int:
    """The primary result code; Python tells it from 3.11 on."""
    return int(getattr(getattr(error, "orig", None), "sqlite_errorcode", 0)) & 0xFF
