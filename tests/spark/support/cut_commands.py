"""Commands of a Spark Connect client, each on tables that it finds made, and what is in those.

Each case has a directory of its own, with the table `t` and, for some, a table or files beside it.
A command may make or change the tables `t` and `u`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import functions as sf

from connect_process import started
from optimist.core import DeltaLog
from optimist.core.data.intents.intents import INTENTS
from optimist.spark import DeltaTable, read, write
from row_histories import DEFAULTS

__all__ = ["COMMANDS", "GROUPS", "Command", "Seen", "seen"]

TABLES = ("t", "u")
_VECTORS = {f"{DEFAULTS}enableDeletionVectors": "true"}
_FED = {f"{DEFAULTS}enableChangeDataFeed": "true"}
_MAPPED = {f"{DEFAULTS}columnMapping.mode": "name"}


@dataclass(frozen=True)
class Command:
    """A command.

    Attributes:
        run: What a client runs, given its session and the directory.
        prepare: What is in the directory before.
        options: Of the table `t`, which has two files with the ids 0 to 2 and 3 to 5.
        is_query: The server runs it by itself; where its end is unknown, it is run again.
        keeps_copies: Files that it has copied stay, and its next try uses them.
        begin: What the client has done before, on a wire that is not cut.
    """

    run: Callable[[object, str], object]
    prepare: Callable[[str], object] = lambda folder: None
    options: Mapping[str, str] = field(default_factory=dict)
    is_query: bool = False
    keeps_copies: bool = False
    begin: Callable[[object, str], object] = lambda spark, folder: None

    def make(self, folder: Path) -> None:
        """Make what the command finds."""
        log = DeltaLog.for_path(str(folder / "t"), dict(self.options))
        for first in (0, 3):
            ids = range(first, first + 3)
            log.append(pa.table({"id": ids, "v": [number % 2 for number in ids]}))
        self.prepare(str(folder))


@dataclass(frozen=True)
class Seen:
    """What is in the tables, by their names; nothing of one that is not there.

    Attributes:
        versions: The newest version.
        rows: The rows, in an order.
        columns: What describes the columns, and the properties.
        files: All data files, whether a version names them or not.
    """

    versions: Mapping[str, int]
    rows: Mapping[str, list[str]]
    columns: Mapping[str, object]
    files: Mapping[str, frozenset[str]]

    @property
    def content(self):
        return (self.rows, self.columns)


def seen(folder: Path) -> Seen:
    """Look at the tables, by handles that know nothing of what this process has done."""
    paths = {name: folder / name for name in TABLES if list((folder / name).glob("_delta_log/*n"))}
    commits = {name: sorted((path / "_delta_log").glob("*.json")) for name, path in paths.items()}
    snapshots = {name: DeltaLog.for_path(str(path), {}).snapshot() for name, path in paths.items()}
    return Seen(
        {name: int(files[-1].stem) for name, files in commits.items()},
        {
            name: sorted(map(str, DeltaLog.for_path(str(path), {}).to_arrow().to_pylist()))
            for name, path in paths.items()
        },
        {
            name: (str(snapshot.schema), properties(snapshot, folder))
            for name, snapshot in snapshots.items()
        },
        {name: data_files(folder / name) for name in TABLES},
    )


def properties(snapshot, folder: Path) -> dict[str, str]:
    """The properties, without the place of this case."""
    given = snapshot.metadata.configuration
    return {key: value.replace(str(folder), "") for key, value in given.items()}


def data_files(path: Path) -> frozenset[str]:
    files = (file.relative_to(path) for file in path.rglob("*") if file.is_file())
    return frozenset(
        str(file)
        for file in files
        if file.parts[0] not in ("_delta_log", INTENTS) and file.suffix != ".crc"
    )


def sql(text: str) -> Callable[[object, str], object]:
    """Run a statement, in which `t`, `u` and `{folder}` stand for the paths."""

    def run(spark, folder):
        return spark.sql(
            text.replace("{t}", f"delta.`{folder}/t`")
            .replace("{u}", f"delta.`{folder}/u`")
            .replace("{rows}", "range(2, 5, 1, 1)")
            .replace("{folder}", folder)
        )

    return run


def table(work: Callable[[DeltaTable], object]) -> Callable[[object, str], object]:
    return lambda spark, folder: work(DeltaTable.forPath(spark, f"{folder}/t"))


def rows(spark):
    return spark.range(4, 8, 1, 1).selectExpr("id", "id AS v")


def saved(mode: str, **options: str) -> Callable[[object, str], object]:
    def run(spark, folder):
        writer = rows(spark).write.format("delta").mode(mode).options(**options)
        writer.save(f"{folder}/t")

    return run


def merged(spark, folder):
    target = DeltaTable.forPath(spark, f"{folder}/t").alias("t")
    merge = target.merge(rows(spark).alias("s"), "t.id = s.id")
    merge = merge.whenMatchedUpdateAll().whenNotMatchedInsertAll()
    merge.whenNotMatchedBySourceDelete("t.id = 0").execute()


def from_itself(spark, folder):
    frame = read(spark, f"{folder}/t").where("id > 1")
    return write(frame, f"{folder}/t", mode="overwrite")


def view_of_it(spark, folder):
    read(spark, f"{folder}/t").createOrReplaceTempView("own_rows")


def block(spark, folder):
    with DeltaTable.forPath(spark, f"{folder}/t").transaction() as txn:
        txn.delete("pmod(hash(id), 1) = 0 AND id = 1")
        txn.write(rows(spark))
    return txn.result


def streamed(spark, folder):
    writer = spark.readStream.format("delta").load(f"{folder}/t").writeStream.format("delta")
    writer = writer.option("checkpointLocation", f"{folder}/checkpoint")
    started(lambda: writer.trigger(availableNow=True).start(f"{folder}/u")).awaitTermination()


def partly_deleted(folder):
    DeltaLog.for_path(f"{folder}/t").delete("id = 1")


def parquet(folder):
    Path(folder, "u").mkdir()
    pq.write_table(pa.table({"id": [1, 2]}), f"{folder}/u/a.parquet")


def removed(folder):
    """Files that no version names any more, and one of nobody's."""
    DeltaLog.for_path(f"{folder}/t").delete("id < 3")
    Path(folder, "t", "nobody.parquet").touch()


def kept_features(folder):
    log = DeltaLog.for_path(f"{folder}/t")
    log.alter.set_properties({"delta.enableDeletionVectors": "true"})
    log.delete("id = 1")


HASHED = "pmod(hash(id), 2) = 0"
"""A condition that Spark alone can tell the rows of."""
GROUPS = {
    "writes": {
        "append": Command(lambda spark, at: write(rows(spark), f"{at}/t", mode="append")),
        "save": Command(saved("append")),
        "INSERT": Command(sql("INSERT INTO {t} SELECT id, 7 FROM {rows}")),
        "INSERT of a variable": Command(
            sql("INSERT INTO {t} SELECT 7, ${spark.sql.shuffle.partitions}")
        ),
        "INSERT VALUES": Command(sql("INSERT INTO {t} VALUES (8, 8)")),
        "writeTo": Command(lambda spark, at: rows(spark).writeTo(f"delta.`{at}/t`").append()),
        "insertInto": Command(lambda spark, at: rows(spark).write.insertInto(f"delta.`{at}/t`")),
        "a wider append": Command(
            lambda spark, at: write(
                rows(spark).withColumn("w", sf.lit("x")), f"{at}/t", mode="append", mergeSchema=True
            )
        ),
        "optimizeWrite": Command(saved("append", optimizeWrite="true")),
    },
    "overwrites": {
        "overwrite": Command(saved("overwrite")),
        "overwrite from itself": Command(from_itself),
        "overwrite from a view": Command(
            sql("INSERT OVERWRITE {t} SELECT * FROM own_rows WHERE id > 1"), begin=view_of_it
        ),
        "replaceWhere": Command(saved("overwrite", replaceWhere="id > 3")),
        "replaceWhere of a feed": Command(saved("overwrite", replaceWhere="id > 3"), options=_FED),
        "replaceUsing": Command(saved("overwrite", replaceUsing="id")),
        "INSERT OVERWRITE": Command(sql("INSERT OVERWRITE {t} SELECT id, 7 FROM {rows}")),
        "overwriteSchema": Command(
            lambda spark, at: write(
                spark.range(0, 3, 1, 1), f"{at}/t", mode="overwrite", overwriteSchema="true"
            )
        ),
    },
    "changes": {
        "DELETE": Command(sql(f"DELETE FROM {{t}} WHERE {HASHED}")),
        "DELETE by vectors": Command(sql(f"DELETE FROM {{t}} WHERE {HASHED}"), options=_VECTORS),
        "DELETE of a feed": Command(table(lambda t: t.delete(HASHED)), options=_FED),
        "DELETE of few rows": Command(table(lambda t: t.delete("id = 1"))),
        "UPDATE": Command(sql(f"UPDATE {{t}} SET v = hash(id) WHERE {HASHED}")),
        "UPDATE by vectors": Command(
            table(lambda t: t.update(HASHED, {"v": "v + 10"})), options={**_VECTORS, **_FED}
        ),
    },
    "merges": {
        "merge": Command(merged),
        "merge by vectors": Command(merged, options={**_VECTORS, **_FED}),
        "MERGE": Command(
            sql(
                "MERGE INTO {t} USING (SELECT * FROM {rows}) s ON {t}.id = s.id WHEN MATCHED "
                "THEN UPDATE SET v = 9 WHEN NOT MATCHED THEN INSERT (id, v) VALUES (s.id, 0)"
            )
        ),
        "a block": Command(block),
    },
    "care": {
        "OPTIMIZE": Command(sql("OPTIMIZE {t}")),
        "ZORDER": Command(sql("OPTIMIZE {t} ZORDER BY (id)")),
        "REORG": Command(sql("REORG TABLE {t} APPLY (PURGE)"), partly_deleted, _VECTORS),
        "VACUUM": Command(sql("VACUUM {t} RETAIN 0 HOURS"), removed),
        "RESTORE": Command(sql("RESTORE {t} TO VERSION AS OF 0")),
        "restore": Command(table(lambda t: t.restoreToVersion(0))),
        "compact": Command(table(lambda t: t.optimize().executeCompaction())),
        "GENERATE": Command(sql("GENERATE symlink_format_manifest FOR TABLE {t}")),
        "ANALYZE": Command(sql("ANALYZE TABLE {t} COMPUTE DELTA STATISTICS")),
    },
    "definitions": {
        "properties": Command(sql("ALTER TABLE {t} SET TBLPROPERTIES ('a' = 'b')")),
        "ADD COLUMN": Command(sql("ALTER TABLE {t} ADD COLUMN w INT")),
        "ADD CONSTRAINT": Command(sql("ALTER TABLE {t} ADD CONSTRAINT c CHECK (hash(id) <> 9)")),
        "SET NOT NULL": Command(sql("ALTER TABLE {t} ALTER COLUMN id SET NOT NULL")),
        "RENAME COLUMN": Command(sql("ALTER TABLE {t} RENAME COLUMN v TO w"), options=_MAPPED),
        "DROP FEATURE": Command(sql("ALTER TABLE {t} DROP FEATURE deletionVectors"), kept_features),
        "CREATE": Command(sql("CREATE TABLE {u} (id INT)")),
        "CTAS": Command(sql("CREATE TABLE {u} AS SELECT * FROM {t}")),
        "CREATE OR REPLACE": Command(sql("CREATE OR REPLACE TABLE {t} AS SELECT * FROM {rows}")),
        "createOrReplace": Command(
            lambda spark, at: rows(spark).writeTo(f"delta.`{at}/t`").createOrReplace()
        ),
        "builder": Command(
            lambda spark, at: DeltaTable.create(spark).location(f"{at}/u").addColumn("id", "INT")
            .execute()
        ),
        "TRUNCATE": Command(sql("TRUNCATE TABLE {t}")),
        "shallow CLONE": Command(sql("CREATE TABLE {u} SHALLOW CLONE {t}")),
        "deep CLONE": Command(sql("CREATE TABLE {u} DEEP CLONE {t}"), keeps_copies=True),
        "CONVERT": Command(sql("CONVERT TO DELTA parquet.`{folder}/u`"), parquet),
    },
    "streams": {"a batch": Command(streamed, is_query=True)},
}  # fmt: skip
COMMANDS = {name: command for group in GROUPS.values() for name, command in group.items()}
