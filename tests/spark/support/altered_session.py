"""ALTER TABLE in a session of Spark Connect."""

from __future__ import annotations

from pyspark.sql import types as st

from connect_process import kind_of, tell
from optimist.core import ColumnChange, NewColumn
from optimist.spark import DeltaTable, write

__all__ = ["ALTERED_TOLD", "tell_altered"]

ALTERED_TOLD = {
    "violated": "SchemaError DELTA_NEW_CHECK_CONSTRAINT_VIOLATION",
    "violated here": "SchemaError DELTA_NEW_CHECK_CONSTRAINT_VIOLATION",
    "not boolean": "SchemaError DELTA_NON_BOOLEAN_CHECK_CONSTRAINT",
    "unsafe": "SchemaError OPTIMIST_UNSAFE_EXPRESSION",
    "kept": "SchemaError DELTA_VIOLATE_CONSTRAINT_WITH_VALUES",
    "nulls": "SchemaError DELTA_NEW_NOT_NULL_VIOLATION",
    "no constant": "SchemaError INVALID_DEFAULT_VALUE",
    "altered columns": ["id", "gate", "title"],
    "altered rows": [[0, None, None], [1, None, "n1"], [9, None, "none"]],
    "altered operations": [
        "CHANGE COLUMN",
        "SET TBLPROPERTIES",
        "RENAME COLUMN",
        "ADD COLUMNS",
        "SET TBLPROPERTIES",
        "ADD CONSTRAINT",
        "SET TBLPROPERTIES",
        "WRITE",
    ],
}


def tell_altered(spark, path: str) -> None:
    """Tell what `ALTERED_TOLD` expects."""
    frame = spark.range(2).selectExpr("id", "nullif(concat('n', id), 'n0') AS name")
    write(frame, path)
    table = DeltaTable.forPath(spark, path)
    alter = table.alter
    table.upgradeTableProtocol(2, 5)
    tell("violated", kind_of(lambda: alter.add_constraint("c", "length(name) > 9 OR id = 0")))
    tell("violated here", kind_of(lambda: alter.add_constraint("c", "id < 1")))
    tell("not boolean", kind_of(lambda: alter.add_constraint("c", "id + 1")))
    tell("unsafe", kind_of(lambda: alter.add_constraint("c", "rand() < id")))
    alter.add_constraint("even", "id % 2 < 2 AND id < 10")
    tell("kept", kind_of(lambda: write(spark.range(10, 11), path, mode="append")))
    tell("nulls", kind_of(lambda: alter.change_columns([ColumnChange("name", nullable=False)])))
    alter.set_properties({"delta.columnMapping.mode": "name"})
    alter.add_columns([NewColumn("gate", st.VarcharType(4), comment="where it leaves", after="id")])
    alter.rename_column("name", "title")
    table.addFeatureSupport("allowColumnDefaults")
    tell(
        "no constant", kind_of(lambda: alter.change_columns([ColumnChange("title", default="id")]))
    )
    alter.change_columns([ColumnChange("title", default="concat('no', 'ne')")])
    tell("altered operations", [row.operation for row in table.history().collect()])
    write(spark.sql("SELECT 9L AS id, CAST(NULL AS STRING) AS gate"), path, mode="append")
    tell("altered columns", table.toDF().columns)
    rows = table.toDF().orderBy("id").collect()
    tell("altered rows", [[row.id, row.gate, row.title] for row in rows])
