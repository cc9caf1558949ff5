"""`DeltaLog.write` stores a value of another type as Spark casts it, or refuses it."""

from __future__ import annotations

import math

import pytest
from pyspark.errors import AnalysisException

from optimist.core import DeltaLog
from optimist.core.errors import SchemaError

VALUES = {
    "tinyint": ["0", "-128", "127"],
    "int": ["NULL", "7", "-2147483648", "2147483647"],
    "bigint": ["0", "9007199254740993", "9223372036854775807"],
    "float": ["1.5", "'NaN'", "'-Infinity'", "3.4e38", "16777217", "-0.0"],
    "double": ["0.1", "'NaN'", "1e300", "1.0", "9007199254740993", "-0.0"],
    "decimal(20,0)": ["5", "18446744073709551615"],
    "decimal(38,18)": ["0.1", "0.000000000000000001", "12345678901234567890.123456789012345678"],
    "boolean": ["true", "false", "NULL"],
    "string": ["'2026-11-28'", "'0001-01-01'", "'9999-12-31'", "'2026-02-30'", "'x'"],
    "date": ["'2026-11-28'", "'0001-01-01'"],
    "timestamp": ["'2026-11-28 10:11:12.123456'", "'1960-01-01 00:00:00'"],
    "timestamp_ntz": ["'2026-11-28 10:11:12.123456'", "'1500-01-01 00:00:00'"],
}
TARGETS = (
    "tinyint", "smallint", "int", "bigint", "float", "double", "decimal(10,2)", "decimal(38,18)",
    "string", "boolean", "date", "timestamp", "timestamp_ntz",
)  # fmt: skip
REFUSED = ("OPTIMIST_VALUE_DOES_NOT_FIT", "DELTA_FAILED_TO_MERGE_FIELDS")


def same(one, other):
    if isinstance(one, float) and isinstance(other, float):
        both_nan = math.isnan(one) and math.isnan(other)
        return both_nan or (one == other and math.copysign(1, one) == math.copysign(1, other))
    return one == other and type(one) is type(other)


@pytest.mark.sample(9)
@pytest.mark.parametrize("source", list(VALUES))
def test_a_value_is_stored_as_spark_casts_it_or_refused(spark, tmp_path, source):
    values = {f"c{n}": f"CAST({value} AS {source})" for n, value in enumerate(VALUES[source])}
    frame = spark.sql(f"SELECT {', '.join(f'{sql} AS {name}' for name, sql in values.items())}")
    given, num_stored = frame.toArrow(), 0
    for target in TARGETS:
        wanted = cast_by_spark(frame, target)
        for name, sql in values.items():
            log = DeltaLog.for_path(str(tmp_path / f"{target}-{name}"))
            log.create({"c": target})
            try:
                log.write(given.select([name]).rename_columns(["c"]))
            except SchemaError as error:
                assert error.kind in REFUSED
                continue
            (found,) = log.to_arrow()["c"].to_pylist()
            assert same(found, wanted[name]), (target, sql, found, wanted[name])
            num_stored += 1
    assert num_stored > len(values)


def cast_by_spark(frame, target):
    """The values in another type, null where they do not fit; empty if there is no such cast."""
    try:
        casts = [f"try_cast({name} AS {target}) AS {name}" for name in frame.columns]
        return frame.selectExpr(*casts).toArrow().to_pylist()[0]
    except (AnalysisException, OverflowError):  # the latter: a time that Python has not
        return {}
