"""Entries of Delta tables in the catalog of a Spark Connect server: how they are made.

The server makes the entries itself. A table at a place of its own gets its log first and then its
name, so that nobody finds a name without a table. Where the catalog chooses the place, it takes
only an empty directory, so the name comes first. A name whose table was never made, since its maker
was stopped, is taken by the next statement that makes it.

Somebody may drop a name while its table is made. The table then gets it again, but the server makes
such an entry only with a location, so a later DROP TABLE leaves the files.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

import pyarrow.compute as pc
from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import SparkSession

from optimist.core.commands.create.vacant_place import (
    has_only_intents,
    is_left_empty,
    leave,
    occupied,
)
from optimist.core.errors import TableNotFoundError, UsageError
from optimist.core.errors.foreign_text import shown
from optimist.core.paths import join, scheme_of
from optimist.core.predicates.text import quote_literal
from optimist.core.requests.table_definition import CreateMode
from optimist.core.schema.types import StructField, StructType
from optimist.core.sql import TableName, parts_of_name
from optimist.core.sql.reader import Reader
from optimist.core.statements.type_texts import full_type_text
from optimist.core.table.delta_log import DeltaLog
from optimist.spark.commands.catalog.names import is_delta, without_location
from optimist.spark.commands.catalog.places import Place
from optimist.spark.commands.catalog.relocation import ensure_movable, not_of_paths
from optimist.spark.commands.catalog.server_names import (
    Name,
    ServerEntry,
    not_of_session,
    raise_unknown,
    server_entry,
)
from optimist.spark.commands.catalog.server_source import ensure_format_known
from optimist.spark.rows.row_shape import quoted
from optimist.spark.session.conf import open_log

__all__ = [
    "drop_entry",
    "ensure_still_named",
    "give_columns",
    "move_entry",
    "named_place",
    "register_at",
    "rename_entry",
]

_SESSION_CATALOG = "spark_catalog"
_CATALOGS = "spark.sql.catalog."
_MANAGED = "MANAGED"
_TAKEN = "TABLE_OR_VIEW_ALREADY_EXISTS"
_UNKNOWN = "TABLE_OR_VIEW_NOT_FOUND"
_OCCUPIED = "LOCATION_ALREADY_EXISTS"
_TAKEN_BACK = re.compile("(?P<place>.*)__dropped_[0-9a-f]{32}", re.DOTALL)
"""The place of a name that its maker is about to drop, and before it the place that it had."""
_MAX_LOOKS = 20
"""How often a name is asked about that is about to be dropped: for a second or so."""
_WAREHOUSE = "spark.sql.warehouse.dir"


@contextmanager
def named_place(
    spark: SparkSession, name: str, location: str | None, mode: CreateMode
) -> Iterator[Place | None]:
    """Give the place for a table that the body makes or replaces, which has its name afterwards.

    Args:
        spark: A Spark Connect client.
        name: The name, as SQL writes it.
        location: The place, if the caller gives one.
        mode: What to do with a table that is there.

    Yields:
        The place; None if the name's table exists and is kept.

    Raises:
        UsageError: See `Place.of_entry`, or the name is one of another catalog (kind
            `DELTA_NOT_A_DELTA_TABLE`), or the catalog's place for it holds a table (kind
            `DELTA_CREATE_TABLE_WITH_NON_EMPTY_LOCATION`).
        AnalysisException: The name exists already, or does not and should be replaced, or its
            database does not exist.
        SparkRuntimeException: The catalog's place for it has files.
    """
    full = _FullName.of(spark, name)
    where = None if location is None else _absolute(spark, location)
    entry = full.settled_entry(spark)
    left = None if entry is None else _place_before(entry)
    if entry is not None and left is not None:
        entry = full.forget_left(spark, entry, left)
        where = left if entry is None and where is None else where
    if entry is not None:
        is_empty = _has_no_table(spark, entry)
        place = _known_place(entry, where, mode, is_empty=is_empty)
        yield place
        if place is not None and (is_empty or place.is_managed):
            full.ensure_kept(spark, place.path)
    elif mode is CreateMode.REPLACE:
        raise_unknown(spark, name)
    elif where is not None:
        spark.catalog.getDatabase(quoted(full.parts[1]))  # a missing database is an error
        yield Place(where, full.text, is_new_name=True)
        full.register(spark, where)
    elif not full.is_registered_now(spark, mode):
        with named_place(spark, name, None, mode) as place:
            yield place
    else:
        with full.kept_if_made(spark) as place:
            yield place


def ensure_still_named(spark: SparkSession, place: Place) -> None:
    """Refuse to commit files where the catalog may have removed them with the table's name.

    Args:
        spark: A Spark Connect client.
        place: The place of `named_place`, within its body.

    Raises:
        TableNotFoundError: The name was dropped or renamed (kind `DELTA_TABLE_NOT_FOUND`). Nothing
            was committed.
    """
    if not place.is_managed:
        return
    entry = server_entry(spark, parts_of_name(place.name))
    if entry is None or entry.location != place.path or not is_delta(entry.provider):
        raise _dropped(place.name, place.path)


def move_entry(spark: SparkSession, table: TableName, location: str) -> None:
    """Let a name mean the table at another place, without touching any files.

    Args:
        spark: A Spark Connect client.
        table: The table.
        location: The other place.

    Raises:
        UsageError: The table is named by its path (kind
            `DELTA_CANNOT_SET_LOCATION_ON_PATH_IDENTIFIER`).
        SchemaError: See `ensure_movable`.
        TableNotFoundError: See `ensure_movable`.
    """
    if table.location is None:
        raise not_of_paths(str(table.path))
    full, where = _FullName.of(spark, str(table)), _absolute(spark, location)
    ensure_movable(spark, full.text, table.location, where)
    full.move(spark, where)


def register_at(spark: SparkSession, name: Name, location: str | None) -> None:
    """Give a name, with its catalog and database, to the Delta table at a place."""
    _FullName(name).register(spark, location)


def rename_entry(spark: SparkSession, name: Name, other: str) -> None:
    """Give another name to an entry that has a location of its own, whose files stay there."""
    _run(spark, f"ALTER TABLE {_text(name)} RENAME TO {_text((*name[1:-1], other))}")


def drop_entry(spark: SparkSession, name: Name) -> None:
    """Drop an entry that has a location of its own, whose files stay."""
    _run(spark, f"DROP TABLE {_text(name)}")


def give_columns(spark: SparkSession, entry: ServerEntry, schema: StructType) -> None:
    """Let the entry of a Delta table have these columns, which else are in the table's log alone.

    Args:
        spark: A Spark Connect client.
        entry: The entry.
        schema: The columns.
    """
    columns = ", ".join(map(_column_text, schema))
    ensure_format_known(spark)
    _run(spark, f"ALTER TABLE {entry.name} REPLACE COLUMNS ({columns})")


def _column_text(column: StructField) -> str:
    text = f"{quoted(column.name)} {full_type_text(column.data_type)}"
    comment = column.metadata.get("comment")
    return (
        f"{text} COMMENT {quote_literal(comment, 'string')}" if isinstance(comment, str) else text
    )


def _known_place(
    entry: ServerEntry, location: str | None, mode: CreateMode, *, is_empty: bool
) -> Place | None:
    """Return the place of a name that is there, or None if its table is kept."""
    if mode.replaces or is_empty:
        return Place.of_entry(entry.name, entry.kind, entry.provider, entry.location, location)
    if mode is CreateMode.CREATE:
        raise AnalysisException(
            f"Cannot create table or view {entry.name} because it already exists. Nothing was "
            "written. Choose a different name, drop or replace the existing object, or add the IF "
            "NOT EXISTS clause to tolerate pre-existing objects.",
            errorClass=_TAKEN,
            messageParameters={"relationName": entry.name},
        )
    return None


def _has_no_table(spark: SparkSession, entry: ServerEntry) -> bool:
    """Return whether an entry is one of Delta whose table was never made, or is gone."""
    if entry.location is None or not is_delta(entry.provider):
        return False
    return not open_log(spark, entry.location).table_exists()


def _is_whole(log: DeltaLog) -> bool:
    """Return whether a table is there, with all of its data files."""
    if not log.table_exists():
        return False
    return not pc.any(pc.equal(log.fsck().findings["kind"], "missing-file")).as_py()


@dataclass(frozen=True, slots=True)
class _FullName:
    """The name of a table that is to be made, with its catalog and its database."""

    parts: tuple[str, ...]

    @classmethod
    def of(cls, spark: SparkSession, name: str) -> _FullName:
        parts = parts_of_name(name)
        catalog = parts[0] if len(parts) == 3 else spark.catalog.currentCatalog()
        if catalog.lower() != _SESSION_CATALOG or not 1 <= len(parts) <= 3:
            raise not_of_session(name)
        if len(parts) == 2 and spark.conf.get(f"{_CATALOGS}{parts[0]}", None) is not None:
            raise not_of_session(name)  # as Spark reads it, whether a database has the name or not
        database = parts[-2] if len(parts) > 1 else spark.catalog.currentDatabase()
        return cls((_SESSION_CATALOG, database, parts[-1]))

    @property
    def text(self) -> str:
        return _text(self.parts)

    def settled_entry(self, spark: SparkSession) -> ServerEntry | None:
        """Return the entry, once no other client is about to take the name back (`_forget`).

        One that is still there after some looks was left by a client that was stopped at it.
        """
        entry = server_entry(spark, self.parts)
        for _ in range(_MAX_LOOKS):
            if entry is None or _place_before(entry) is None:
                break
            entry = server_entry(spark, self.parts)
        return entry

    def register(self, spark: SparkSession, location: str | None) -> None:
        """Let the server make the entry, which it refuses if there is one."""
        at = "" if location is None else f" LOCATION {quote_literal(location, 'string')}"
        ensure_format_known(spark)
        _run(spark, f"CREATE TABLE {self.text} USING delta{at}")

    def is_registered_now(self, spark: SparkSession, mode: CreateMode) -> bool:
        """Register the name in an empty place, or return False if somebody else was faster.

        Raises:
            AnalysisException: The name is taken, and has to be new.
        """
        try:
            self.register_in_empty_place(spark)
        except AnalysisException as error:
            if error.getCondition() != _TAKEN or mode is CreateMode.CREATE:
                raise
            return False
        return True

    def register_in_empty_place(self, spark: SparkSession) -> None:
        """Let the server make the entry at a place of its choice, which must be empty.

        Directories without files may be left there by a write that failed when its table was
        dropped. A file that occupies the place (`_forget`) goes after some looks; if it does not,
        the entry gets the place as its location, so that nobody deletes the files with it.

        Raises:
            UsageError: A table is there (kind `DELTA_CREATE_TABLE_WITH_NON_EMPTY_LOCATION`).
            SparkRuntimeException: Other files are there.
            AnalysisException: The name is taken.
        """
        for looks_left in reversed(range(_MAX_LOOKS)):
            try:
                self.register(spark, None)
            except PySparkException as error:
                place = _occupied_place(error)
                if place is None:
                    raise
                log = open_log(spark, place)
                if log.table_exists():
                    raise self._place_taken(place) from None
                if looks_left and is_left_empty(log.table):
                    continue
                if not has_only_intents(log.table):
                    raise
                if not looks_left:  # left there in `_forget`, or somebody is about to write
                    self.register(spark, place)
            else:
                return

    def _place_taken(self, place: str) -> UsageError:
        return UsageError(
            f"The catalog's place for {self.text}, {shown(place)}, holds a Delta table already. "
            "Nothing was written. If the table has no other name, give it this one: CREATE TABLE "
            f"{self.text} USING delta LOCATION {quote_literal(place, 'string')}. Else choose "
            "another name or a location, or remove the directory.",
            kind="DELTA_CREATE_TABLE_WITH_NON_EMPTY_LOCATION",
            path=place,
        )

    def move(self, spark: SparkSession, location: str) -> None:
        """Let the server change the place in the entry."""
        ensure_format_known(spark)
        _run(spark, f"ALTER TABLE {self.text} SET LOCATION {quote_literal(location, 'string')}")

    @contextmanager
    def kept_if_made(self, spark: SparkSession) -> Iterator[Place]:
        """Give the place that the catalog has chosen, and forget the name if no table is made.

        The catalog would take a name again only for an empty place, so another one keeps its name.
        """
        entry = server_entry(spark, self.parts)
        if entry is None or not is_delta(entry.provider):
            raise _dropped(self.text, None)
        if entry.location is None:
            raise without_location(self.text)
        try:
            is_managed = entry.kind == _MANAGED
            yield Place(entry.location, self.text, is_new_name=True, is_managed=is_managed)
        except Exception:
            with suppress(Exception):  # the body's error says what happened
                log = open_log(spark, entry.location)
                if not log.table_exists() and is_left_empty(log.table):
                    self._forget(spark, entry.location, entry.location)
            raise
        self.ensure_kept(spark, entry.location)

    def ensure_kept(self, spark: SparkSession, location: str) -> None:
        """Name a table again whose name somebody has taken back or dropped meanwhile.

        It is somebody whose own table of that name was never made, or who dropped the name before
        the table was made: DROP TABLE removes the files where the catalog keeps them. A table
        without its files was dropped with them, right before its commit, and stays dropped.
        """
        is_named = server_entry(spark, self.parts) is not None
        if not is_named and _is_whole(open_log(spark, location)):
            try:
                self.register(spark, location)
            except AnalysisException as error:
                if error.getCondition() != _TAKEN:
                    raise  # else somebody has named it at this moment

    def forget_left(
        self, spark: SparkSession, entry: ServerEntry, place: str
    ) -> ServerEntry | None:
        """Drop a name for a client that was stopped in `_forget`, and return what it means now.

        That client may only be slow, and drop the name once more when it goes on. So whoever takes
        the name now has to give it a location: then the catalog does not delete the files.
        """
        with suppress(AnalysisException):  # somebody else has dropped it
            self._forget(spark, str(entry.location), place)
        return server_entry(spark, self.parts)

    def _forget(self, spark: SparkSession, location: str, place: str) -> None:
        """Drop the name alone: somebody else may make a table at the place at this moment.

        1. A name that somebody else has made anew for another place, or of another format, is left.
        2. The name is moved to a place without files, since the catalog deletes those with it.
        3. The place is occupied, so that the catalog makes no other entry for it that owns the
           files: somebody may drop this name and make it anew before step 5, which would delete
           the files of such an entry.
        4. A name that somebody else has made anew since then is left; one of another format, whose
           place step 2 has changed, gets it back.
        5. The name is dropped.
        6. The place's directory is removed, if it is empty: the catalog takes it for no other name.
        7. A table that somebody else has made at the place meanwhile is named again. One that is
           made later finds that it has no name (`ensure_kept`).
        """
        entry = server_entry(spark, self.parts)
        if entry is None or entry.location != location or not is_delta(entry.provider):
            return
        mark = f"__dropped_{uuid4().hex}"
        self.move(spark, f"{place.rstrip('/')}{mark}")
        table = open_log(spark, place).table
        with occupied(table):
            entry = server_entry(spark, self.parts)
            if entry is None or entry.location is None or not entry.location.endswith(mark):
                return
            if not is_delta(entry.provider):
                self.move(spark, place)
                return
            _run(spark, f"DROP TABLE {self.text}")
        leave(table)
        self.ensure_kept(spark, place)


def _dropped(name: str, path: str | None) -> TableNotFoundError:
    return TableNotFoundError(
        f"The table {name} was dropped or renamed by another client while it was made. Nothing was "
        "committed. Run the statement again.",
        kind="DELTA_TABLE_NOT_FOUND",
        name=name,
        path=path,
    )


def _place_before(entry: ServerEntry) -> str | None:
    """Return the place that an entry had before `_forget`, or None for any other entry."""
    found = _TAKEN_BACK.fullmatch(entry.location or "")
    return None if found is None else found["place"]


def _occupied_place(error: PySparkException) -> str | None:
    """Return the place that the server wants to be empty, or None for another error."""
    if error.getCondition() != _OCCUPIED:
        return None
    told = (error.getMessageParameters() or {}).get("location")
    return None if told is None else Reader(told).text("a location")


def _text(name: Name) -> str:
    return ".".join(map(quoted, name))


def _absolute(spark: SparkSession, location: str) -> str:
    """Return a location as the server's catalog takes it: a relative path is in the warehouse."""
    if location.startswith("/") or scheme_of(location):
        return location
    return join(str(spark.conf.get(_WAREHOUSE)), location)


def _run(spark: SparkSession, text: str) -> None:
    own: Any = type(spark).sql  # ours would take the statement for a user's
    own(spark, text)
