"""CONVERT TO DELTA of a table of the catalog; and how a Spark Connect client does it.

The server can't change the format of an entry. So, once the log is there, the entry gives its name
to a new one:

1. The entry of the Parquet files is renamed: its name is free, and still known to the next run.
2. The name is given to the Delta table at the same place.
3. The renamed entry is dropped, which leaves the files of a table with a location of its own.

If the client dies in between, the statement is run again, and goes on where it was. If another
client has made another table of the name meanwhile, that table keeps it. The catalog would move the
files of a managed table with its name, and delete them with its entry; such a table is refused.
"""

from __future__ import annotations

from dataclasses import replace

from pyspark.sql import SparkSession

from optimist.core.errors import TableNotFoundError, UsageError
from optimist.core.errors.foreign_text import shown
from optimist.core.maintenance.convert.conversion_commit import PARQUET
from optimist.core.predicates.text import quote_identifier
from optimist.core.sql.statements import ConvertToDelta
from optimist.core.statements.conversions import convert_named_files, ensure_convertible
from optimist.spark.commands.catalog.named_tables import ensure_names_known
from optimist.spark.commands.catalog.names import is_delta, without_location
from optimist.spark.commands.catalog.places import is_one_place
from optimist.spark.commands.catalog.server_entries import drop_entry, register_at, rename_entry
from optimist.spark.commands.catalog.server_files import files_on_server
from optimist.spark.commands.catalog.server_names import ServerEntry, raise_unknown, server_entry
from optimist.spark.commands.statement_context import SparkStatements
from optimist.spark.session.callback_errors import original_errors
from optimist.spark.session.conf import open_log
from optimist.spark.session.pyspark_versions import is_connect

__all__ = ["convert_named", "convert_on_server"]

_ASIDE = "__before_delta"
"""What is added to the name of an entry whose name a Delta table gets."""

_EXTERNAL = "EXTERNAL"
_PURGED = "external.table.purge"
"""With this property, a metastore of Hive deletes the files even of a table with a location."""


def convert_named(spark: SparkSession, command: ConvertToDelta) -> None:
    """Convert a table of the session's catalog, and turn its entry into a Delta table's.

    Raises:
        UsageError: The session does not know Delta tables by name (kind
            `OPTIMIST_CATALOG_NAMES_UNSUPPORTED`); on Spark Connect, see `convert_on_server`.
    """
    name = str(command.table)
    if is_connect(spark):
        with original_errors():
            convert_on_server(spark, command)
        return
    ensure_names_known(spark, name)
    text = f"CONVERT TO DELTA {name}"
    if command.partitioned_by:
        columns = (
            f"{quote_identifier(each.name)} {each.type_text.sql}" for each in command.partitioned_by
        )
        text += f" PARTITIONED BY ({', '.join(columns)})"
    with original_errors():
        spark.sql(text)


def convert_on_server(spark: SparkSession, command: ConvertToDelta) -> None:
    """Convert a Parquet table with a location, or do nothing where there is a Delta table already.

    Raises:
        AnalysisException: The server knows no such table.
        UsageError: The table is managed (kind `OPTIMIST_UNSUPPORTED_STATEMENT`), or of another
            format (`DELTA_CONVERT_NON_PARQUET_TABLE`).
        TableNotFoundError: Another client has dropped it meanwhile (kind `DELTA_TABLE_NOT_FOUND`).
        SchemaError: See `ensure_convertible` and `convert_named_files`.
        OptimistError: See `core.maintenance.convert.convert`.
    """
    entry = server_entry(spark, command.table.parts)
    left = _left_aside(spark, command)
    if entry is None:
        if left is None:
            raise_unknown(spark, str(command.table))
        _name_again(spark, left, command.table.parts[-1])
    elif is_delta(entry.provider):
        _forget(spark, left, entry)
    else:
        _convert(spark, command, entry)


def _convert(spark: SparkSession, command: ConvertToDelta, entry: ServerEntry) -> None:
    provider = PARQUET if entry.is_parquet else entry.provider or ""
    ensure_convertible(str(command.table), None if entry.kind == "VIEW" else provider)
    if entry.kind != _EXTERNAL:
        raise _managed(entry)
    found = files_on_server(spark, entry.name)
    if found is None:
        raise without_location(entry.name)
    path, known = found
    if known.properties.get(_PURGED, "").lower() == "true":
        raise _managed(entry)
    convert_named_files(
        SparkStatements(spark), command, path, replace(known, catalog_table=entry.name)
    )
    aside = replace(entry, parts=(*entry.parts[:-1], f"{entry.parts[-1]}{_ASIDE}"))
    if server_entry(spark, entry.parts) != entry:
        raise _replaced(entry)
    rename_entry(spark, entry.parts, aside.parts[-1])
    if server_entry(spark, aside.parts) != aside:
        rename_entry(spark, aside.parts, entry.parts[-1])
        raise _replaced(entry)
    _name_again(spark, aside, entry.parts[-1])


def _left_aside(spark: SparkSession, command: ConvertToDelta) -> ServerEntry | None:
    """Return an entry of converted files, whose name this table has, or is to have."""
    *within, name = command.table.parts
    left = server_entry(spark, (*within, f"{name}{_ASIDE}"))
    if left is None or left.location is None:
        return None
    is_of_files = left.kind == _EXTERNAL and left.is_parquet
    return left if is_of_files and open_log(spark, left.location).table_exists() else None


def _name_again(spark: SparkSession, left: ServerEntry, name: str) -> None:
    register_at(spark, (*left.parts[:-1], name), left.location)
    drop_entry(spark, left.parts)


def _forget(spark: SparkSession, left: ServerEntry | None, entry: ServerEntry) -> None:
    """Drop an entry that was left aside by a run that was stopped just before its end."""
    places = [each.location for each in (left, entry) if each is not None and each.location]
    if left is not None and len(places) == 2 and is_one_place(*places):
        drop_entry(spark, left.parts)


def _replaced(entry: ServerEntry) -> TableNotFoundError:
    return TableNotFoundError(
        f"Another client has dropped or replaced {shown(entry.shown_name)} while it was converted. "
        f"Its files at {shown(entry.location)} are a Delta table now, which has no name. Give it "
        "one with CREATE TABLE name USING delta LOCATION.",
        kind="DELTA_TABLE_NOT_FOUND",
        name=entry.shown_name,
        path=entry.location,
    )


def _managed(entry: ServerEntry) -> UsageError:
    return UsageError(
        f"The table {shown(entry.shown_name)} is managed, or {_PURGED} is set, so the server's "
        "catalog would delete its files with the entry that a Delta table's takes the place of. "
        "Nothing was written. Use CREATE TABLE other SHALLOW CLONE of it, or convert it in a "
        "classic session.",
        kind="OPTIMIST_UNSUPPORTED_STATEMENT",
        statement="CONVERT TO DELTA of a managed table",
    )
