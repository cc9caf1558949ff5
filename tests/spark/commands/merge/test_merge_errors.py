"""What a MERGE refuses."""

from __future__ import annotations

import pytest
from pyspark.errors import AnalysisException

from optimist.core import DeltaLog
from optimist.core.errors import (
    SchemaError,
    UsageError,
)
from optimist.spark import DeltaMergeBuilder
from small_merges import target


def unconditional(builder):
    return builder.whenMatchedUpdateAll().whenMatchedDelete()


MISUSES = [
    (lambda b: b, "DELTA_MERGE_MISSING_WHEN"),
    (unconditional, "DELTA_NON_LAST_MATCHED_CLAUSE_OMIT_CONDITION"),
    (
        lambda b: b.whenNotMatchedInsertAll().whenNotMatchedInsertAll("id = 1"),
        "DELTA_NON_LAST_NOT_MATCHED_CLAUSE_OMIT_CONDITION",
    ),
    (
        lambda b: b.whenNotMatchedBySourceDelete().whenNotMatchedBySourceDelete(),
        "DELTA_NON_LAST_NOT_MATCHED_BY_SOURCE_CLAUSE_OMIT_CONDITION",
    ),
    (
        lambda b: b.whenMatchedDelete("rand() > 0.5"),
        "DELTA_NON_DETERMINISTIC_FUNCTION_NOT_SUPPORTED",
    ),
    (lambda b: b.whenMatchedUpdate(set={}), "OPTIMIST_EMPTY_UPDATE"),
    (lambda b: b.whenMatchedUpdate(set={"nope": "1"}), "DELTA_COLUMN_NOT_FOUND"),
    (lambda b: b.whenMatchedUpdate(set={"v": "1", "V": "2"}), "DELTA_CONFLICT_SET_COLUMN"),
    (
        lambda b: b.whenNotMatchedInsert(values={"v": "1", "V": "2"}),
        "DELTA_DUPLICATE_COLUMNS_ON_INSERT",
    ),
    (
        lambda b: b.whenNotMatchedInsert(values={"v.x": "1"}),
        "DELTA_UNSUPPORTED_NESTED_FIELD_IN_OPERATION",
    ),
]


@pytest.mark.parametrize(("clauses", "kind"), MISUSES, ids=[kind for _, kind in MISUSES])
def test_misuses_are_refused_by_deltas_names(spark, table, source, clauses, kind):
    with pytest.raises(UsageError) as caught:
        clauses(target(spark, table).merge(source, "t.id = s.id")).execute()
    assert caught.value.kind == kind
    assert DeltaLog.for_path(table, {}).snapshot().version == 2


def test_what_spark_can_not_resolve_is_refused(spark, table, source):
    rows = target(spark, table)
    for condition in ("t.id = s.nope", "id = 1", "t.id + s.id"):
        with pytest.raises(AnalysisException):
            rows.merge(source, condition).whenMatchedDelete().execute()
    builder = rows.merge(source, "t.id = s.id")
    for wrong in (
        builder.whenNotMatchedInsertAll("t.id = 1"),
        builder.whenNotMatchedBySourceDelete("s.id = 1"),
        builder.whenMatchedUpdate(set={"v": "v"}),
    ):
        with pytest.raises(AnalysisException):
            wrong.execute()
    with pytest.raises(UsageError) as caught:
        rows.merge(source, "t.id = s.id AND rand() > 0").whenMatchedDelete().execute()
    assert caught.value.kind == "DELTA_NON_DETERMINISTIC_FUNCTION_NOT_SUPPORTED"


def test_a_source_without_a_column_of_the_table_can_not_give_all(spark, table, source):
    builder = target(spark, table).merge(source.drop("v"), "t.id = s.id")
    for wrong in (builder.whenMatchedUpdateAll(), builder.whenNotMatchedInsertAll()):
        with pytest.raises(SchemaError) as caught:
            wrong.execute()
        assert caught.value.kind == "DELTA_MERGE_UNRESOLVED_EXPRESSION"


def test_arguments_are_refused_in_the_words_of_delta(spark, table, source):
    rows = target(spark, table)
    builder = rows.merge(source, "t.id = s.id")
    assert isinstance(builder, DeltaMergeBuilder)
    for call, error, words in (
        (lambda: rows.merge(None, "true"), ValueError, "'source' in merge cannot be None"),
        (lambda: rows.merge("s", "true"), TypeError, "Type of 'source' in merge must be DataFrame"),
        (lambda: rows.merge(source, None), ValueError, "'condition' in merge cannot be None"),
        (lambda: rows.merge(source, 3), TypeError, "must be a Spark SQL Column or a string"),
        (builder.whenMatchedUpdate, ValueError, "'set' in whenMatchedUpdate cannot be None"),
        (
            builder.whenNotMatchedInsert,
            ValueError,
            "'values' in whenNotMatchedInsert cannot be None",
        ),
        (
            lambda: builder.whenNotMatchedBySourceUpdate(set=["v"]),
            TypeError,
            "'set' in whenNotMatchedBySourceUpdate must be a dict",
        ),
        (lambda: builder.whenMatchedDelete(1), TypeError, "'condition' must be a Spark SQL Column"),
    ):
        with pytest.raises(error, match=words):
            call()
