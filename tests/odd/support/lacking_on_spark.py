"""The commands of `lacking_fields` on Spark: each plane, and what the driver does itself."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import Row, VariantVal

from lacking_fields import Lacking, Rows, Step, arrow, breaks_not_null, differs, kind_of, values_of
from optimist.core.errors import OptimistError
from optimist.core.maintenance.optimize.arrangements import Rearrangement
from optimist.core.statements.maintenance import rearrange
from optimist.spark import DeltaTable, read, write
from optimist.spark.commands.statement_context import SparkStatements

ON_SPARK = ("native", "driver", "arrow")
LOW = "id % 20 < 2"


def use_plane(name: str, conf: Callable[[str, str], None]) -> None:
    """Let a plane of `ON_SPARK` do the work; the driver stands before the native plane."""
    conf("spark.optimist.spark.plane", "native" if name == "driver" else name)
    conf("spark.optimist.spark.driverShortcut.maxBytes", str(1 << 30) if name == "driver" else "0")


def steps_on_spark(table: Lacking, spark: SparkSession) -> dict[str, Callable[[], Step]]:
    """The commands by name; each is made when it is called."""
    rows, kind = table.rows, table.kind
    target = DeltaTable.forPath(spark, table.path)
    values = values_of(kind)
    low = {number for number in rows if number % 20 < 2}
    new = dict(zip(range(-len(values), 0), values, strict=True))
    kept = {key: item for key, item in new.items() if not breaks_not_null(kind, item)}
    turned = dict(zip(sorted(table.files[0]), reversed(values), strict=True)) | new

    def frame(own: Mapping[int, Any]) -> DataFrame:
        place = Path(table.path).with_name(f"source-{len(own)}.parquet")
        ids = pa.array(list(own), pa.int64())
        pq.write_table(pa.table({"id": ids, "n": arrow(own.values(), kind)}), place)
        schema = read(spark, table.path).schema
        return spark.read.schema(schema).parquet(str(place))

    def numbers(own: Iterable[int]) -> DataFrame:
        return spark.createDataFrame([(at,) for at in sorted(own)], "id long")

    def judged(own: Rows, run: Callable[[], object], after: Rows | None = None) -> Step:
        return Step(run, rows | own if after is None else after, rows | own, own)

    def copied(run: Callable[[], object], after: Rows) -> Step:
        return Step(run, after, {}, {})

    def merge(source: DataFrame) -> Any:
        return target.alias("t").merge(source.alias("s"), "t.id = s.id")

    def purge() -> None:
        target.delete("id = 0")
        rearrange(SparkStatements(spark), table.log, Rearrangement(purges=True))

    nulled = dict.fromkeys(low)
    without_low = {at: item for at, item in rows.items() if at not in low}
    moved = {at + 10_000 * (at in low): item for at, item in rows.items()}
    lows = {at + 10_000: rows[at] for at in low}
    found: dict[str, Callable[[], Step]] = {
        "append": lambda: Step(
            lambda: write(frame(kept), table.path, mode="append"), rows | kept, kept, kept
        ),
        "append without the column": lambda: Step(
            lambda: write(numbers([-1]), table.path, mode="append"),
            rows | {-1: None},
            {-1: None},
            {-1: None},
        ),
        "update to null": lambda: judged(nulled, lambda: target.update(LOW, {"n": "NULL"})),
        "update another column": lambda: judged(
            lows, lambda: target.update(LOW, {"id": "id + 10000"}), moved
        ),
        "delete rows": lambda: copied(lambda: target.delete(LOW), without_low),
        "optimize": lambda: copied(target.optimize().executeCompaction, rows),
        "purge": lambda: copied(purge, {at: item for at, item in rows.items() if at != 0}),
        "z-order": lambda: copied(lambda: target.optimize().executeZOrderBy("id"), rows),
        "merge without the column": lambda: judged(
            {-1: None},
            lambda: merge(numbers([-1, 0])).whenNotMatchedInsert(values={"id": "s.id"}).execute(),
        ),
        "merge to null": lambda: judged(
            nulled, lambda: merge(numbers(low)).whenMatchedUpdate(set={"n": "NULL"}).execute()
        ),
        "merge values": lambda: judged(
            turned,
            lambda: (
                merge(frame(turned))
                .whenMatchedUpdate(set={"n": "s.n"})
                .whenNotMatchedInsertAll()
                .execute()
            ),
        ),
    }
    if kind_of(kind) == "struct":
        found["update a field"] = lambda: judged(
            {at: {**(rows[at] or {"x": None}), "b": 9} for at in low},
            lambda: target.update(LOW, {"n.b": "9L"}),
        )
    return found


def problem_on_spark(table: Lacking, spark: SparkSession, name: str) -> str | None:
    """What is wrong after the command of that name, for readers with and without Spark."""
    step = steps_on_spark(table, spark)[name]()
    after = step.after
    try:
        step.run()
    except OptimistError as error:
        broken = [item for item in step.written.values() if breaks_not_null(table.kind, item)]
        if error.kind != "DELTA_NOT_NULL_CONSTRAINT_VIOLATED" or not broken:
            return f"{name}: {error.kind}: {error}"
        after = table.rows
    except Exception as error:  # noqa: BLE001 - what must never be seen
        return f"{name}: {type(error).__name__}: {error}"
    else:
        if any(breaks_not_null(table.kind, item) for item in step.must_be_judged.values()):
            return f"{name}: a NOT NULL was broken"
    return differs(table, name, after) or _differs_on_spark(table, spark, name, after)


def _differs_on_spark(table: Lacking, spark: SparkSession, name: str, after: Rows) -> str | None:
    found = {row["id"]: _plain(row["n"], table.kind) for row in read(spark, table.path).collect()}
    return None if found == after else f"{name}: Spark reads {found} instead of {after}"


def _plain(value: Any, kind: Any) -> Any:
    """A value as the model has it."""
    if isinstance(value, VariantVal):
        return {"value": bytes(value.value), "metadata": bytes(value.metadata)}
    if isinstance(value, Row):
        own = {item["name"]: item["type"] for item in kind["fields"]}
        return {key: _plain(item, own[key]) for key, item in value.asDict().items()}
    if isinstance(value, list):
        return [_plain(item, kind["elementType"]) for item in value]
    if isinstance(value, dict):
        return [(key, _plain(item, kind["valueType"])) for key, item in sorted(value.items())]
    return value
