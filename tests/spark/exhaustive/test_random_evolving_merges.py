"""Random MERGEs on Spark whose source has other columns and types than the table."""

from __future__ import annotations

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException

from evolving_merges import Case, ensure_as_expected, made
from evolving_types import DoesNotFitError
from exhaustive_cases import in_proportion
from optimist.core import DeltaLog
from optimist.core.errors import OptimistError
from optimist.spark import DeltaTable


@pytest.mark.parametrize("seed", range(in_proportion(100)))
@pytest.mark.parametrize("shortcut_bytes", ["0", "67108864"])
def test_a_merge_on_spark_gives_the_rows_and_columns_of_the_model(
    spark, conf, tmp_path, seed, shortcut_bytes
):
    conf("spark.optimist.spark.driverShortcut.maxBytes", shortcut_bytes)
    case = Case.of(seed)
    path = tmp_path / "t"
    before = made(path, case).snapshot().version
    source = spark.createDataFrame(
        pa.Table.from_pylist(case.rows, pa.schema(list(case.source)))
    ).alias("s")
    merge = DeltaTable.forPath(spark, str(path)).alias("t").merge(source, "t.id = s.id")
    for clause in case.clauses:
        name = "".join(["when", *clause.kind.title().split(), clause.action.title()])
        if clause.action == "delete":
            merge = getattr(merge, name)(clause.condition)
        elif clause.items is None:
            merge = getattr(merge, f"{name}All")(clause.condition)
        else:
            values = {item.name: item.sql for item in clause.items}
            merge = getattr(merge, name)(clause.condition, values)
    merge = merge.withSchemaEvolution() if case.evolves else merge
    log = DeltaLog.for_path(str(path))
    try:
        outcome = case.expected()
    except DoesNotFitError:
        with pytest.raises((OptimistError, PySparkException)):
            merge.execute()
        assert log.snapshot().version == before
    else:
        merge.execute()
        ensure_as_expected(log, case, before, outcome)
