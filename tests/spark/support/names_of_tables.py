"""One name in one command on a table of the catalog, held against Spark's own query by that name.

Tables, databases, aliases, columns, structs and fields may all be called alike. What a name means,
and whether it means anything, is what `SELECT name FROM table [JOIN source]` says.
"""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import functions as sf

from odd_names import quoted
from optimist.core import DeltaLog
from optimist.spark import DeltaTable

NAMES = ("t", "a", "Shop", "spark_catalog", "x", "out")
DATABASES = ("shop", "t", "a")
COMMANDS = ("delete", "update", "merge")
BY = ("SQL", "text", "column")


@dataclass(frozen=True)
class Layout:
    """What everything is called.

    Attributes:
        table: The table.
        database: Its database; that of the source is `mall`.
        columns: A column, a struct and a field of the table.
        others: The same of the source.
        alias: The source's alias; None if it goes by the table's name, in another database.
        is_case_sensitive: As the session's conf says.
    """

    table: str
    database: str
    columns: tuple[str, str, str]
    others: tuple[str, str, str]
    alias: str | None
    is_case_sensitive: bool

    @property
    def parts(self):
        return ("spark_catalog", self.database, self.table)

    @property
    def source(self):
        table = sql(("mall", self.table))
        return table if self.alias is None else f"{table} AS {quoted(self.alias)}"


@dataclass(frozen=True)
class Use:
    """One name in one command.

    Attributes:
        name: The parts of the name.
        num_above: How many parts of the table's name stand before the column that is assigned.
        command: What is run.
        by: How.
    """

    name: tuple[str, ...]
    num_above: int
    command: str
    by: str

    @property
    def value(self):
        return f"CAST({sql(self.name)} AS STRING)"


def sql(parts):
    return ".".join(map(quoted, parts))


def made(spark, folder, layout):
    """The table and its source, both with three rows."""
    for database, columns, more in (
        (layout.database, layout.columns, {"key_": [0, 1, 2], "result_": ["", "", ""]}),
        ("mall", layout.others, {"other_": [0, 1, 2], "more_": [0, 0, 0]}),
    ):
        plain, struct, field = columns
        first = 10 if database == layout.database else 1010
        path = f"{folder}/{database}"
        values = pa.StructArray.from_arrays([pa.array(range(first + 10, first + 13))], [field])
        rows = pa.table({**more, plain: pa.array(range(first, first + 3)), struct: values})
        DeltaLog.for_path(path).append(rows)
        spark.sql(f"CREATE TABLE {sql((database, layout.table))} USING delta LOCATION '{path}'")


def wanted(spark, layout, use):
    """The value of the name by the key of each row; None where Spark finds no meaning in it."""
    query = f"SELECT key_, {use.value} AS found FROM {sql(layout.parts)}"
    if use.command == "merge":
        query += f" JOIN {layout.source} ON key_ = other_"
    try:
        return {row.key_: row.found for row in spark.sql(query).collect()}
    except PySparkException:
        return None


def run(spark, layout, use, chosen):
    """Run the command; `chosen` is the value of the rows that a DELETE removes."""
    value, condition = use.value, f"{use.value} = '{chosen}'"
    assigned = sql((*layout.parts[3 - use.num_above :], "result_"))
    if use.by == "SQL":
        table = sql(layout.parts)
        spark.sql(
            {
                "delete": f"DELETE FROM {table} WHERE {condition}",
                "update": f"UPDATE {table} SET {assigned} = {value}",
                "merge": f"MERGE INTO {table} USING {layout.source} ON key_ = other_ "
                f"WHEN MATCHED THEN UPDATE SET {assigned} = {value}",
            }[use.command]
        )
        return
    table = DeltaTable.forName(spark, sql(layout.parts))
    if use.by == "column":
        value, condition = sf.expr(value), sf.expr(condition)
    if use.command == "delete":
        table.delete(condition)
    elif use.command == "update":
        table.update(set={assigned: value})
    else:
        other = spark.table(sql(("mall", layout.table)))
        other = other if layout.alias is None else other.alias(layout.alias)
        merge = table.merge(other, "key_ = other_")
        merge.whenMatchedUpdate(set={assigned: value}).execute()


def failures(spark, folder, layout, uses):
    """The uses that do not do what Spark's query says, each with what is wrong."""
    spark.conf.set("spark.sql.caseSensitive", str(layout.is_case_sensitive).lower())
    databases = {layout.database, "mall"}
    for database in databases:
        spark.sql(f"CREATE DATABASE {quoted(database)}")
    try:
        made(spark, folder, layout)
        told = ((use, failure(spark, layout, use)) for use in uses)
        return [(use, problem) for use, problem in told if problem is not None]
    finally:
        for database in databases:
            spark.sql(f"DROP DATABASE {quoted(database)} CASCADE")
        spark.conf.unset("spark.sql.caseSensitive")


def failure(spark, layout, use):
    expected = wanted(spark, layout, use)
    chosen = max(expected.values(), default=None) if expected else None
    try:
        run(spark, layout, use, chosen)
    except PySparkException as error:
        return None if expected is None else f"{type(error).__name__}: {error}"
    if expected is None:
        return "a name without meaning was taken"
    rows = {row.key_: row.result_ for row in spark.table(sql(layout.parts)).collect()}
    if use.command == "delete":
        expected = {key: value for key, value in expected.items() if value != chosen}
        return None if rows.keys() == expected.keys() else f"{rows} for {expected}"
    return None if rows == expected else f"{rows} for {expected}"
