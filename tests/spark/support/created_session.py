"""Tables made by the builder in a session of Spark Connect."""

from __future__ import annotations

from pyspark.sql import types as st

from connect_process import kind_of, tell
from optimist.core import DeltaLog
from optimist.spark import DeltaTable, write
from optimist.spark.commands.table_builder import IdentityGenerator

__all__ = ["CREATED_TOLD", "tell_created"]

CREATED_TOLD = {
    "made": [["n", "long"], ["born", "date"], ["year", "integer"], ["name", "string"]],
    "made rows": [[7, 1999, "ann"]],
    "made again": "UsageError DELTA_TABLE_ALREADY_EXISTS",
    "made by name": "nothing",
    "made operations": ["CREATE OR REPLACE TABLE", "WRITE", "CREATE TABLE"],
    "cloned": [1, 1, "CLONE", "CLONE"],
    "cloned by name": "AnalysisException",  # the name is taken
    "converted": [3, "CONVERT"],
    "dropped": ["appendOnly", "generatedColumns", "identityColumns", "invariants"],
}


def tell_created(spark, path: str) -> None:
    """Tell what `CREATED_TOLD` expects."""

    def columns(builder):
        return (
            builder.addColumn("n", "bigint", generatedAlwaysAs=IdentityGenerator(7))
            .addColumn("born", st.DateType())
            .addColumn("year", "int", generatedAlwaysAs="year(born)")
            .addColumns(st.StructType([st.StructField("name", st.VarcharType(4))]))
        )

    made = columns(DeltaTable.create()).location(path).execute()
    log = DeltaLog.for_path(path, {})
    tell("made", [[item.name, str(item.data_type)] for item in log.snapshot().schema])
    write(spark.sql("SELECT DATE '1999-01-02' AS born, 'ann' AS name"), path, mode="append")
    tell("made rows", [[row.n, row.year, row.name] for row in made.toDF().collect()])
    tell("made again", kind_of(columns(DeltaTable.create(spark)).location(path).execute))
    tell("made by name", kind_of(columns(DeltaTable.create(spark)).tableName("t").execute))
    columns(DeltaTable.createOrReplace(spark)).tableName(f"delta.`{path}`").execute()
    tell("made operations", [row.operation for row in made.history().collect()])
    _tell_of_care(spark, made, path)


def _tell_of_care(spark, made, path: str) -> None:
    """Clones, a conversion, and a feature that is dropped."""
    write(spark.sql("SELECT DATE '1999-01-02' AS born, 'ann' AS name"), path, mode="append")
    clones = [made.clone(f"{path}-shallow", isShallow=True), made.clone(f"{path}-deep")]
    told = [clone.history().collect()[0].operation for clone in clones]
    tell("cloned", [*(clone.toDF().count() for clone in clones), *told])
    tell("cloned by name", kind_of(lambda: made.clone("t")))
    spark.range(3).selectExpr("id", "id AS p").write.partitionBy("p").parquet(f"{path}-files")
    converted = DeltaTable.convertToDelta(spark, f"parquet.`{path}-files`", "p INT")
    told = converted.history().collect()[0].operation
    tell("converted", [converted.toDF().count(), told])
    made.addFeatureSupport("domainMetadata")
    made.dropFeatureSupport("domainMetadata")
    tell("dropped", made.detail().collect()[0].tableFeatures)
