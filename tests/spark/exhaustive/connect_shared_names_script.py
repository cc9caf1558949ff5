"""Run by test_shared_names.py: clients of one server that use the same names, or are killed.

Prints what happened as JSON lines. With the address of a server, it is a client that dies within a
statement, right before or after the server makes the entry of a name.
"""

from __future__ import annotations

import os
import random  # noqa: TID251 - each client takes the same steps each time
import re
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from threading import Barrier
from unittest.mock import patch

from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession

from connect_process import another_session, kind_of, started, tell
from optimist.core.errors import UsageError
from optimist.spark import enable
from optimist.spark.commands.catalog import named_tables, server_entries
from optimist.spark.commands.maintenance import clone
from optimist.spark.drop_in.connect import inserts, sql, streams, tables, writers
from read_back import ids

_ROUNDS = 20
_NAMES = ("a", "b")
_KILLED = {
    "entry": "CREATE TABLE k_entry USING delta AS SELECT 1L AS id",
    "name": "CREATE TABLE k_name (id BIGINT) USING delta LOCATION '{folder}/k_name'",
    "back": "CREATE TABLE k_back USING delta AS SELECT 1L AS id",
}


def die(*_: object, **__: object) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def die_at_drop(run: Callable[..., None], spark: SparkSession, text: str) -> None:
    if text.startswith("DROP"):
        die()
    run(spark, text)


def be_killed(server: str, folder: str, moment: str) -> None:
    """Run a statement as a client that is killed at a moment."""
    spark = enable(SparkSession.builder.remote(server).getOrCreate())
    spark.sql("USE shared")
    register = server_entries._FullName.register

    def register_and_die(*args: object) -> None:
        register(*args)
        die()

    if moment == "back":  # the statement fails, and its client is killed as it drops the name
        tables.create_as_select = lambda *_, **__: 1 / 0
        server_entries._run = partial(die_at_drop, server_entries._run)
    else:
        server_entries._FullName.register = register_and_die if moment == "entry" else die
    spark.sql(_KILLED[moment].format(folder=folder))


def tell_kills(spark: SparkSession, folder: Path) -> None:
    server = f"sc://{spark.client._builder.endpoint}"
    for moment, text in _KILLED.items():
        run = [sys.executable, "-W", "ignore", __file__, str(folder), server, moment]
        tell(f"{moment}: killed", subprocess.run(run, check=False).returncode)
        name, again = f"k_{moment}", text.format(folder=folder)
        tell(f"{moment}: left", kind_of(lambda name=name: spark.table(name).collect()))
        tell(f"{moment}: again", kind_of(lambda again=again: spark.sql(again)))
        tell(f"{moment}: rows", kind_of(lambda name=name: tell(name, ids(spark.table(name)))))
        tell(f"{moment}: dropped", kind_of(lambda name=name: spark.sql(f"DROP TABLE {name}")))
        tell(f"{moment}: gone", spark.catalog.tableExists(name))


_MADE = "USING delta AS SELECT 1L AS id"
_MEANWHILE = {
    "insert": (inserts, "write_inserted", "INSERT OVERWRITE {name} SELECT 2L AS id"),
    "replace": (tables, "create_as_select", "CREATE OR REPLACE TABLE {name} " + _MADE),
    "empty": (
        named_tables,
        "create_table",
        "CREATE OR REPLACE TABLE {name} (id BIGINT) USING delta",
    ),
    "clone": (clone, "clone_to_path", "CREATE OR REPLACE TABLE {name} SHALLOW CLONE source"),
}
"""Statements, and the step of each before which another client drops the table."""


def tell_drops(spark: SparkSession, folder: Path) -> None:
    """Drop a table right before another client writes to it or replaces it."""
    other = enable(another_session(spark))
    other.sql("USE shared")
    spark.sql(f"CREATE TABLE source {_MADE}")
    for what in _MEANWHILE:
        tell_drop(spark, other, what)
    tell_forgotten(spark, other)
    tell_given_back(spark, other)
    tell_made(spark, other)
    tell_streamed(spark, other, folder)
    other.client.close()


def tell_drop(spark: SparkSession, other: SparkSession, what: str) -> None:
    name = f"m_{what}"
    make = f"CREATE TABLE {name} {_MADE}"
    spark.sql(make)
    module, step, text = _MEANWHILE[what]
    original = getattr(module, step)

    def drop_first(*args: object, **named: object) -> object:
        other.sql(f"DROP TABLE {name}")
        return original(*args, **named)

    with patch.object(module, step, drop_first):
        tell(f"{what}: dropped", outcome(lambda: spark.sql(text.format(name=name))))
    tell(f"{what}: is there", spark.catalog.tableExists(name))
    spark.sql(f"DROP TABLE IF EXISTS {name}")
    tell(f"{what}: anew", outcome(lambda: spark.sql(make)))
    found = spark.sql(f"SHOW TABLE EXTENDED LIKE '{name}'").collect()
    tell(f"{what}: is managed", ["Type: MANAGED" in row["information"] for row in found])


def tell_forgotten(spark: SparkSession, other: SparkSession) -> None:
    """Drop a name before its client has asked for the place that the catalog chose."""
    register = server_entries._FullName.register

    def drop_at_once(*args: object) -> None:
        register(*args)
        other.sql("DROP TABLE m_forgotten")

    make = f"CREATE TABLE m_forgotten {_MADE}"
    with patch.object(server_entries._FullName, "register", drop_at_once):
        tell("forgotten: dropped", outcome(lambda: spark.sql(make)))
    tell("forgotten: anew", outcome(lambda: spark.sql(make)))


def tell_given_back(spark: SparkSession, other: SparkSession) -> None:
    """Drop a name and make it anew, right before its first maker, which has failed, drops it."""
    run = server_entries._run

    def make_first(session: SparkSession, text: str) -> None:
        if session is spark and text.startswith("DROP"):
            other.sql("DROP TABLE m_back")
            tell("given back: anew", outcome(lambda: other.sql(f"CREATE TABLE m_back {_MADE}")))
        run(session, text)

    wrong = "USING delta AS SELECT raise_error('wanted') AS id"
    with patch.object(server_entries, "_run", make_first):
        tell("given back: failed", outcome(lambda: spark.sql(f"CREATE TABLE m_back {wrong}")))
    tell("given back: rows", outcome(lambda: tell("m_back", ids(spark.table("m_back")))))


def rows_of(spark: SparkSession) -> DataFrame:
    return spark.range(5, 6)


_MADE_MEANWHILE = {
    "insert": (sql, "_answer", lambda spark: spark.sql("INSERT INTO made VALUES (5)")),
    "alter": (
        sql,
        "named_statement",
        lambda spark: spark.sql("ALTER TABLE made ADD COLUMNS (x INT)"),
    ),
    "truncate": (sql, "named_statement", lambda spark: spark.sql("TRUNCATE TABLE made")),
    "into": (
        writers,
        "place_of_name",
        lambda spark: rows_of(spark).write.insertInto("made"),
    ),
    "append": (writers, "place_of_name", lambda spark: rows_of(spark).writeTo("made").append()),
    "save": (
        writers,
        "saved_table",
        lambda spark: rows_of(spark).write.format("delta").mode("overwrite").saveAsTable("made"),
    ),
}
"""Statements, and the step of each after which another client makes the table."""


def tell_made(spark: SparkSession, other: SparkSession) -> None:
    """Make a table right after another client has found no such name."""
    for what, (module, step, run) in _MADE_MEANWHILE.items():
        tell_made_at(spark, other, what, (module, step, run))


def tell_made_at(spark: SparkSession, other: SparkSession, what: str, at: tuple) -> None:
    module, step, run = at
    original, asked = getattr(module, step), []

    def then_make(*args: object, **named: object) -> object:
        found = original(*args, **named)
        if not asked:
            asked.append(step)
            other.sql(f"CREATE TABLE made {_MADE}")
        return found

    with patch.object(module, step, then_make):
        tell(f"made: {what}", outcome(lambda: run(spark)))
    made = spark.table("made")
    tell(f"made: {what}: rows", [made.columns, ids(made)])
    spark.sql("DROP TABLE made")


def tell_streamed(spark: SparkSession, other: SparkSession, folder: Path) -> None:
    """Start a stream into a name whose table another client drops before the first batch."""
    spark.sql("CREATE TABLE sink (id BIGINT) USING delta")
    writer = spark.readStream.table("source").writeStream.trigger(availableNow=True)
    writer = writer.option("checkpointLocation", f"{folder}/checkpoint")
    begin = streams.batch_function

    def drop_first(*args: object, **named: object) -> object:
        other.sql("DROP TABLE sink")
        return begin(*args, **named)

    with patch.object(streams, "batch_function", drop_first):
        try:
            started(partial(writer.toTable, "sink")).awaitTermination()
        except StreamingQueryException as error:
            tell("stream: dropped", re.findall("DELTA_[A-Z_]+|PATH_NOT_FOUND", str(error))[:1])
    tell("stream: left", (folder / "shared" / "sink" / "_delta_log").exists())
    tell("stream: format", outcome(lambda: writer.toTable("source", "parquet")))


def steps(spark: SparkSession, own: int) -> dict[str, Callable[[str, str], object]]:
    """What a client does with a name, and another one. A table has two rows of one id."""

    def make(text: str) -> None:
        spark.sql(f"{text} USING delta AS SELECT explode(array({own}L, {own}L)) AS id")

    def read(name: str, _: str) -> None:
        found = ids(spark.table(name))
        if len(found) != 2 or len(set(found)) != 1:
            raise AssertionError(f"{name} has the rows {found}")

    return {
        "make": lambda name, _: make(f"CREATE TABLE {name}"),
        "replace": lambda name, _: make(f"CREATE OR REPLACE TABLE {name}"),
        "fail": lambda name, _: spark.sql(
            f"CREATE TABLE {name} USING delta AS SELECT raise_error('wanted') AS id"
        ),
        "overwrite": lambda name, _: spark.sql(
            f"INSERT OVERWRITE {name} SELECT explode(array({own}L, {own}L)) AS id"
        ),
        "drop": lambda name, _: spark.sql(f"DROP TABLE {name}"),
        "rename": lambda name, other: spark.sql(f"ALTER TABLE {name} RENAME TO {other}"),
        "read": read,
    }


def be_client(spark: SparkSession, own: int, start: Barrier) -> Counter[str]:
    told: Counter[str] = Counter()
    chance, all_steps = random.Random(own), steps(spark, own)
    start.wait()
    for _ in range(_ROUNDS):
        names = chance.sample(_NAMES, 2)
        what = chance.choice(list(all_steps))
        told[f"{what}: {outcome(lambda names=names, what=what: all_steps[what](*names))}"] += 1
    return told


def outcome(call: Callable[[], object]) -> str:
    try:
        call()
    except AssertionError as error:
        return f"WRONG {error}"
    except Exception as error:  # noqa: BLE001 - the test looks at what came
        condition = getattr(error, "kind", None) or getattr(error, "getCondition", lambda: "")()
        return f"{type(error).__name__} {condition} {str(error)[:200] if not condition else ''}"
    return "done"


def tell_clients(spark: SparkSession, folder: Path) -> None:
    spark.sql("CREATE TABLE quiet USING delta AS SELECT explode(array(7L, 8L)) AS id")
    sessions = [enable(another_session(spark)) for _ in range(2)]
    for session in sessions:
        session.sql("USE shared")
    start = Barrier(len(sessions))
    with ThreadPoolExecutor(len(sessions)) as pool:
        runs = [pool.submit(be_client, each, own, start) for own, each in enumerate(sessions)]
        told = sum((run.result() for run in runs), Counter())
    tell("clients", dict(sorted(told.items())))
    for name in _NAMES:
        ensure_table(spark, name, folder)
        tell(f"then {name}", outcome(lambda name=name: steps(spark, 9)["read"](name, "")))
    tell("quiet", ids(spark.table("quiet")))
    for session in sessions:
        session.client.close()


def ensure_table(spark: SparkSession, name: str, folder: Path) -> None:
    make = f"CREATE TABLE IF NOT EXISTS {name} USING delta"
    try:
        spark.sql(f"{make} AS SELECT explode(array(9L, 9L)) AS id")
    except UsageError as error:
        if error.kind != "DELTA_CREATE_TABLE_WITH_NON_EMPTY_LOCATION":
            raise
        # It was dropped while it was made, and its files stayed: what the error says helps.
        spark.sql(f"{make} LOCATION '{folder}/shared/{name}'")


def main(folder: Path) -> None:
    spark = enable(SparkSession.builder.remote("local[2]").getOrCreate())
    spark.conf.set("spark.sql.shuffle.partitions", "2")
    spark.sql(f"CREATE DATABASE shared LOCATION '{folder}/shared'")
    spark.sql("USE shared")
    tell_kills(spark, folder)
    tell_drops(spark, folder)
    tell_clients(spark, folder)
    spark.stop()


if len(sys.argv) == 4:
    be_killed(sys.argv[2], sys.argv[1], sys.argv[3])
else:
    main(Path(sys.argv[1]))
