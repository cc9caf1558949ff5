"""Errors of ours that PySpark's classes catch, too."""

from __future__ import annotations

import pickle

import pytest
from pyspark.errors import (
    AnalysisException,
    IllegalArgumentException,
    ParseException,
    PySparkException,
    UnsupportedOperationException,
)

from optimist.core import errors
from optimist.core.errors import TableNotFoundError, UsageError
from optimist.core.errors.kinds import CLASS_OF_KIND
from optimist.spark import DeltaTable, read, write
from optimist.spark.session import spark_errors
from optimist.spark.session.spark_errors import as_spark_error, class_of_spark

OF_SPARK = {
    "DELTA_TABLE_NOT_FOUND": AnalysisException,
    "PATH_NOT_FOUND": AnalysisException,
    "DELTA_METADATA_MISMATCH": AnalysisException,
    "DELTA_VERSION_NOT_FOUND": AnalysisException,
    "DELTA_UNKNOWN_CONFIGURATION": AnalysisException,
    "DELTA_UNSUPPORTED_SUBQUERY": AnalysisException,
    "PARSE_SYNTAX_ERROR": ParseException,
    "DELTA_ILLEGAL_OPTION": IllegalArgumentException,
    "DELTA_ONEOF_IN_TIMETRAVEL": IllegalArgumentException,
    "OPTIMIST_UNKNOWN_OPTION": IllegalArgumentException,
    "DELTA_CANNOT_MODIFY_APPEND_ONLY": UnsupportedOperationException,
    "OPTIMIST_NOT_BUILT_YET": UnsupportedOperationException,
    "OPTIMIST_NO_CREDENTIALS": IllegalArgumentException,
    "DELTA_NOT_NULL_CONSTRAINT_VIOLATED": None,
    "DELTA_VIOLATE_CONSTRAINT_WITH_VALUES": None,
    "OPTIMIST_INVALID_ARGUMENT_TYPE": None,
    "OPTIMIST_PERMISSION_DENIED": None,
    "DELTA_CONCURRENT_APPEND": None,
    "OPTIMIST_MALFORMED_COMMIT": None,
}
"""What Delta's jar raises, as PySpark knows it."""


def error_of(kind):
    return CLASS_OF_KIND[kind]("It is so.", kind=kind, path="/p", number=3)


@pytest.mark.parametrize("kind", OF_SPARK)
def test_a_kind_is_of_the_class_that_pyspark_has_for_delta_s(kind):
    assert class_of_spark(error_of(kind)) is OF_SPARK[kind]


@pytest.mark.parametrize("kind", CLASS_OF_KIND)
def test_an_error_stays_what_it_is(kind):
    error = error_of(kind)
    made = as_spark_error(error)
    assert isinstance(made, CLASS_OF_KIND[kind])
    assert type(made).__name__ == CLASS_OF_KIND[kind].__name__
    assert (made.kind, dict(made.fields), str(made)) == (kind, dict(error.fields), str(error))
    again = pickle.loads(pickle.dumps(made))
    assert type(again) is type(made) and str(again) == str(made) and again.fields == made.fields
    assert as_spark_error(made) is made


def test_it_answers_what_pyspark_s_errors_are_asked():
    made = as_spark_error(error_of("DELTA_TABLE_NOT_FOUND"))
    assert isinstance(made, FileNotFoundError) and isinstance(made, PySparkException)
    assert made.getCondition() == "DELTA_TABLE_NOT_FOUND"
    assert made.getMessage() == "[DELTA_TABLE_NOT_FOUND] It is so."
    assert made.getMessageParameters() == {"path": "/p", "number": "3"}
    assert made.getSqlState() is None and made.getQueryContext() == []


def test_every_kind_is_named_in_one_group_only():
    listed = [kind for kinds in spark_errors._LISTED.values() for kind in kinds]
    listed += spark_errors._JVM_ONLY_KINDS
    assert len(listed) == len(set(listed))
    assert set(listed) <= set(CLASS_OF_KIND)


def test_our_own_calls_raise_them(spark, table_path):
    with pytest.raises(AnalysisException) as caught:
        read(spark, table_path)
    assert isinstance(caught.value, TableNotFoundError)
    with pytest.raises(AnalysisException):
        DeltaTable.forPath(spark, table_path)
    write(spark.range(1), table_path)
    with pytest.raises(AnalysisException) as caught:
        write(spark.range(1), table_path)
    assert isinstance(caught.value, UsageError)
    with pytest.raises(IllegalArgumentException):
        read(spark, table_path, versionAsOf=0, timestampAsOf="2026-01-01")
    with pytest.raises(IllegalArgumentException):
        DeltaTable.forPath(spark, table_path).generate("other")
    assert not isinstance(errors.StorageError("x", kind="OPTIMIST_NO_SPACE"), PySparkException)
