"""A server's catalog as Spark's own in memory is, for clients without Spark, and what they do.

Its managed tables are directories on this disk. A client's statement is one request, as to a real
server.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from random import Random  # noqa: TID251 - the caller gives a seed
from types import SimpleNamespace
from unittest.mock import patch

from pyspark.errors import AnalysisException, PySparkException, SparkRuntimeException

from calls_on_disk import CLONES, COLUMNS, SAVES, VERBS, Rows, WantedError, call, written
from interleaved_names import DONE, FAILED, NAMES, Step, Table
from optimist.core import DeltaLog
from optimist.core.errors import OptimistError
from optimist.core.predicates.text import quote_literal
from optimist.core.requests.table_definition import CreateMode, TableDefinition, columns_of
from optimist.core.transaction.optimistic import OptimisticTransaction
from optimist.spark.commands.catalog.named_tables import create_named
from optimist.spark.commands.catalog.server_names import raise_unknown, server_entry
from optimist.spark.commands.writing.write_options import WriteRequest
from optimist.spark.drop_in.connect.sql import connect_sql
from optimist.spark.drop_in.connect.tables import create_named_as_select

_NAME = r"(?:`spark_catalog`\.)?(?:`db`\.)?`(\w+)`"
_LOCATION = r"(?: LOCATION '(.*)')?"
_MODES = {
    "create": CreateMode.CREATE,
    "as": CreateMode.CREATE,
    "at": CreateMode.CREATE,
    "fail": CreateMode.CREATE,
    "fail at": CreateMode.CREATE,
    "fail or replace": CreateMode.CREATE_OR_REPLACE,
    "if new": CreateMode.CREATE_IF_NOT_EXISTS,
    "if new at": CreateMode.CREATE_IF_NOT_EXISTS,
    "create or replace": CreateMode.CREATE_OR_REPLACE,
    "create or replace at": CreateMode.CREATE_OR_REPLACE,
    "replace it": CreateMode.REPLACE,
}
_INSERTS = {"insert": "append", "insert overwrite": "overwrite"}
STEPS = (*_MODES, *_INSERTS, *SAVES, *VERBS, *CLONES, "another", "drop", "rename", "read")


@dataclass
class Entry:
    """An entry: what kind it is, where its table is, and of which format."""

    kind: str
    location: str
    provider: str = "delta"


@dataclass
class Server:
    """The server: its entries, and what happens before each request of a client."""

    folder: Path
    entries: dict[str, Entry] = field(default_factory=dict)
    before: Callable[[], None] = lambda: None

    def run(self, text: str) -> list[dict[str, object]]:
        """Run a statement of a client."""
        self.before()
        for pattern, run in (
            (rf"CREATE TABLE {_NAME} USING (\w+){_LOCATION}", self._create),
            (rf"ALTER TABLE {_NAME} SET LOCATION '(.*)'", self._move),
            (rf"ALTER TABLE {_NAME} RENAME TO {_NAME}", self._rename),
            (rf"DROP TABLE {_NAME}", self._drop),
            (r"SHOW TABLE EXTENDED (?:IN \S+ )?LIKE '(.*)'", self._show),
        ):
            found = re.fullmatch(pattern, text)
            if found is not None:
                return run(*found.groups()) or []
        raise AssertionError(text)

    def _create(self, name: str, provider: str, location: str | None) -> None:
        if name in self.entries:
            raise AnalysisException("taken", errorClass="TABLE_OR_VIEW_ALREADY_EXISTS")
        place = self.folder / name
        if location is None and place.exists() and any(place.iterdir()):
            told = {"location": quote_literal(str(place), "string"), "identifier": name}
            raise SparkRuntimeException(
                "occupied", errorClass="LOCATION_ALREADY_EXISTS", messageParameters=told
            )
        if location is None:
            place.mkdir(parents=True, exist_ok=True)
        kind = "MANAGED" if location is None else "EXTERNAL"
        self.entries[name] = Entry(kind, location or str(place), provider)

    def known(self, name: str) -> Entry:
        if name not in self.entries:
            raise AnalysisException(f"no {name}", errorClass="TABLE_OR_VIEW_NOT_FOUND")
        return self.entries[name]

    def _move(self, name: str, location: str) -> None:
        self.known(name).location = location

    def _rename(self, name: str, other: str) -> None:
        entry = self.known(name)
        if other in self.entries or (self.folder / other).exists():
            raise AnalysisException("taken", errorClass="TABLE_OR_VIEW_ALREADY_EXISTS")
        if entry.kind == "MANAGED":
            shutil.move(entry.location, self.folder / other)
            entry.location = str(self.folder / other)
        self.entries[other] = self.entries.pop(name)

    def _drop(self, name: str) -> None:
        entry = self.known(name)
        if entry.kind == "MANAGED":
            shutil.rmtree(entry.location, ignore_errors=True)
        del self.entries[name]

    def _show(self, pattern: str) -> list[dict[str, object]]:
        return [
            {
                "namespace": "db",
                "tableName": name,
                "isTemporary": False,
                "information": f"Catalog: spark_catalog\nType: {entry.kind}\n"
                f"Provider: {entry.provider}\n"
                f"Location: {entry.location}",
            }
            for name, entry in self.entries.items()
            if re.fullmatch(pattern, name)
        ]


class Client:
    """A session of the server, as far as names need one."""

    def __init__(self, server: Server) -> None:
        self.server, self.client = server, self
        self.catalog = SimpleNamespace(
            currentCatalog=lambda: "spark_catalog",
            currentDatabase=lambda: "db",
            getDatabase=lambda _: None,
        )
        self.conf = SimpleNamespace(get=lambda _, default=None: default)

    def sql(self, text: str, _: None = None) -> SimpleNamespace:
        rows = self.server.run(text)
        return SimpleNamespace(collect=lambda: rows)

    def table(self, name: str) -> SimpleNamespace:
        self.server.before()
        self.server.known(name.split(".")[-1].strip("`"))
        return SimpleNamespace(schema=None)


Client.__module__ = "pyspark.sql.connect.without_spark"


def take(client: Client, step: Step) -> object:
    """Take a step, and return its answer; its errors are raised."""
    name = f"`{step.name}`"
    if step.what in ("drop", "rename"):
        verb = "DROP TABLE" if step.what == "drop" else "ALTER TABLE"
        other = f" RENAME TO `{step.other}`" if step.what == "rename" else ""
        connect_sql(client, partial(Client.sql, client), f"{verb} {name}{other}", None, {})
        return DONE
    if step.what == "another":
        client.sql(f"CREATE TABLE {name} USING parquet")
        return DONE
    if step.what in _MODES:
        _make(client, step)
        return DONE
    if step.what in (*SAVES, *VERBS, *CLONES):
        call(client, step.what, step.name, _rows(client, step))
        return DONE
    entry = server_entry(client, (step.name,))
    if entry is None:
        raise_unknown(client, step.name)
    if entry.provider != "delta":
        raise AnalysisException("another format", errorClass="UNSUPPORTED")
    if step.what == "read":
        return rows_of(entry.location)
    request = WriteRequest.of(_INSERTS[step.what], None, {})
    written(_rows(client, step), entry.location, replace(request, needs_table=True))
    return DONE


def _rows(client: Client, step: Step) -> Rows:
    return Rows(client, step.row, client.server.before, step.what.startswith("fail"))


def _make(client: Client, step: Step) -> None:
    is_far = step.what.endswith("at")
    location = f"{client.server.folder}/far/{step.name}_{step.row}" if is_far else None
    definition = TableDefinition(mode=_MODES[step.what])
    if step.what == "create":
        columns = columns_of(COLUMNS)
        create_named(client, step.name, replace(definition, columns=columns), location)
        return
    request = WriteRequest.of("error", None, {})
    create_named_as_select(_rows(client, step), step.name, definition, request, location)


def rows_of(location: str) -> tuple[int, ...]:
    """The ids of the rows of a table."""
    return tuple(sorted(DeltaLog.for_path(location).to_arrow().column("id").to_pylist()))


def tables_in(server: Server) -> dict[str, Table | str]:
    """The tables of the server as they are; what can't be read is a text."""
    found: dict[str, Table | str] = {}
    for name, entry in server.entries.items():
        if entry.provider != "delta":
            rows = [path for path in Path(entry.location).glob("[!_]*") if path.name[0] != "."]
            found[name] = f"rows of others: {rows}" if rows else Table(is_other=True)
            continue
        try:
            found[name] = Table(rows_of(entry.location), entry.kind == "MANAGED")
        except OptimistError as error:
            found[name] = f"{type(error).__name__} {error.kind}"
    return found


def answer(client: Client, step: Step) -> object:
    """Take a step, and return its answer, or the error as a text."""
    try:
        return take(client, step)
    except (OptimistError, PySparkException, WantedError) as error:
        return f"{FAILED} {type(error).__name__} {getattr(error, 'kind', error)}"


def prepare(server: Server, chance: Random) -> None:
    """Let managed tables be there, and nothing without a name."""
    for name, table in tables_in(server).items():
        is_odd = isinstance(table, str) or not table.is_managed or table.is_other
        if is_odd or chance.random() < 0.5:
            server.run(f"DROP TABLE `{name}`")
    for place in server.folder.iterdir():
        if place.name not in server.entries:
            shutil.rmtree(place)
    for number, name in enumerate(chance.sample(NAMES, 2)):
        answer(Client(server), Step("if new", name, "", 1_000_000 + number))


def interleaved(
    server: Server, outer: Step, inner: Sequence[Step], at: int
) -> tuple[object, Sequence[object]]:
    """Take the inner steps before a request or commit of the outer one, or after all of them."""
    left, answers = [at], list[object]()
    commit = OptimisticTransaction.commit

    def count() -> None:
        left[0] -= 1
        if left[0] == 0:
            answers.extend(answer(Client(server), step) for step in inner)

    def commit_then(*args: object, **named: object) -> object:
        count()
        return commit(*args, **named)

    server.before = count
    with patch.object(OptimisticTransaction, "commit", commit_then):
        told = answer(Client(server), outer)
    server.before = lambda: None
    if not answers:
        answers.extend(answer(Client(server), step) for step in inner)
    return told, answers
