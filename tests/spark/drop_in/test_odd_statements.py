"""Odd statements answer what they answer under delta-spark, and leave the same rows.

`python benchmarks/record_delta_spark.py` makes the record, with Delta's jar. What differs, and why,
is listed below; anything else fails.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from odd_statements import CASES, DATABASE, OddStatements
from optimist.spark import disable, enable

_RECORD = Path(__file__).parents[1] / "delta_spark_answers.json"
TOLD = json.loads(_RECORD.read_text("utf-8"))["told"]
OTHER_NAMES = [
    # Delta has one name for whatever a MERGE does not find.
    ("DELTA_MERGE_UNRESOLVED_EXPRESSION", "UNRESOLVED_COLUMN.WITH_SUGGESTION"),
    ("DELTA_MERGE_UNRESOLVED_EXPRESSION", "DELTA_COLUMN_NOT_FOUND"),
    ("FIELD_NOT_FOUND", "DELTA_COLUMN_NOT_FOUND"),
    # A condition is analysed as one of a query is, which has no `_metadata`.
    ("DELTA_AGGREGATION_NOT_SUPPORTED", "INVALID_WHERE_CONDITION"),
    ("JOIN_CONDITION_IS_NOT_BOOLEAN_TYPE", "DATATYPE_MISMATCH.FILTER_NOT_BOOLEAN"),
    ("CAST_INVALID_INPUT", "DATATYPE_MISMATCH.FILTER_NOT_BOOLEAN"),
    ("DELTA_CANNOT_RESOLVE_COLUMN", "UNRESOLVED_COLUMN.WITH_SUGGESTION"),
    ("AMBIGUOUS_REFERENCE", "UNRESOLVED_COLUMN.WITH_SUGGESTION"),
    ("UNSUPPORTED_EXPR_FOR_OPERATOR", "INVALID_WHERE_CONDITION"),
    ("UNSUPPORTED_EXPR_FOR_OPERATOR", "WINDOW_FUNCTION_NOT_ALLOWED_IN_CLAUSE"),
    # Rows of another shape are refused in one place.
    ("DELTA_INSERT_COLUMN_ARITY_MISMATCH", "DELTA_METADATA_MISMATCH"),
    ("DELTA_COLUMN_STRUCT_TYPE_MISMATCH", "DATATYPE_MISMATCH.CAST_WITHOUT_SUGGESTION"),
    ("DATATYPE_MISMATCH.CAST_WITHOUT_SUGGESTION", "DELTA_INSERT_COLUMN_ARITY_MISMATCH"),
    ("DATATYPE_MISMATCH.CAST_WITHOUT_SUGGESTION", "AMBIGUOUS_REFERENCE"),
    ("DELTA_MISSING_COLUMN", "DELTA_METADATA_MISMATCH"),
    ("DELTA_INSERT_COLUMN_MISMATCH", "DELTA_NOT_NULL_COLUMN_NOT_FOUND_IN_STRUCT"),
    ("DELTA_DUPLICATE_COLUMNS_FOUND.READ_SCHEMA", "AMBIGUOUS_REFERENCE"),
    # An expression of the log must be one that is known to be safe.
    ("UNRESOLVED_COLUMN.WITH_SUGGESTION", "OPTIMIST_INVALID_EXPRESSION"),
    ("DELTA_NEW_CHECK_CONSTRAINT_VIOLATION", "OPTIMIST_UNSAFE_EXPRESSION"),
    # Delta says nothing of its own.
    ("Py4JJavaError", "OPTIMIST_INVALID_TABLE_PROPERTY"),
    ("IllegalArgumentException", "OPTIMIST_INVALID_TABLE_PROPERTY"),
    ("UnsupportedOperationException", "OPTIMIST_INVALID_TABLE_PROPERTY"),
    # One name for any value that a property can't have.
    ("DELTA_INVALID_INTERVAL", "OPTIMIST_INVALID_TABLE_PROPERTY"),
    ("TASK_WRITE_FAILED", "OPTIMIST_VALUE_DOES_NOT_FIT"),
    # Spark's check of a layout comes after ours.
    ("ALL_PARTITION_COLUMNS_NOT_ALLOWED", "DELTA_NON_PARTITION_COLUMN_ABSENT"),
    ("INVALID_PARTITION_COLUMN_DATA_TYPE", "DELTA_INVALID_PARTITION_COLUMN_TYPE"),
    # Another version of Spark.
    ("_LEGACY_ERROR_TEMP_0006", "MERGE_INSERT_VALUE_COUNT_MISMATCH"),
    (
        "UNSUPPORTED_FEATURE.PARTITION_WITH_NESTED_COLUMN_IS_UNSUPPORTED",
        "_LEGACY_ERROR_TEMP_3060",
    ),
    ("UNRESOLVED_COLUMN.WITHOUT_SUGGESTION", "UNRESOLVED_COLUMN.WITH_SUGGESTION"),
]
"""What delta-spark calls an error, and what we call it."""
DIFFERENT = {
    "SET f = rand() WHERE id = 99": "both passes see the same value, so it is taken",
    "BY NAME SELECT 1 AS id, named_struct('b'": "fields are taken by name, too",
    "BY NAME SELECT 1L AS id, named_struct('b'": "also where a column is cast, as not under Delta",
    "UPDATE SET t.n.new": "what is new may be qualified, too",
    "UPDATE SET t.nn": "the same of a column",
    "{t}@v": "names may have a version, as paths may",
    "VARCHAR(3)": "blanks beyond the length are cut off",
    "SELECT 1L id, 1.5D p": "only ALTER TABLE makes an integer a double",
    "k STRING) USING delta PARTITIONED": "Hive's text for a null is a text like others",
    "c STRING DEFAULT 'dd'": "a MERGE may set DEFAULT",
    "g STRING GENERATED": "the type of an expression is not known",
    "'delta.columnMapping.mode' = 'none'": "no command writes the files of a mapped table anew",
    "'delta.minWriterVersion' = '1'": "a smaller version than the table has asks for nothing",
    "i BIGINT GENERATED ALWAYS AS IDENTITY": "INSERT * numbers rows whose source has no numbers",
    "id IN (SELECT max(id)": "conditions may hold subqueries",
    "EXISTS (SELECT 1 FROM {t} x": "the same of EXISTS",
    "t.id IN (SELECT 1) THEN DELETE": "the same of the clauses of a MERGE",
    "id IN (1, 2) AND id IN (SELECT 1)": "the same of an UPDATE",
    "x.k = 1 THEN UPDATE SET s = 'one'": "of several matches at most one changes the row",
    "CHECK (pos(id))": "a function of the session is none that all writers of a table could call",
}
"""What stands in cases that end otherwise, and why they do."""


@pytest.fixture(scope="module")
def odd(spark, tmp_path_factory):
    enable(spark)
    yield OddStatements(spark, str(tmp_path_factory.mktemp("odd")))
    spark.sql(f"DROP DATABASE {DATABASE} CASCADE")
    disable(spark)


def differences(ours, theirs):
    """The answers that differ, but for errors that are known to have two names."""
    pairs = zip(theirs, ours, strict=True)
    return [pair for pair in pairs if pair[0] != pair[1] and pair not in OTHER_NAMES]


def test_the_record_is_of_these_statements():
    assert list(TOLD) == ["; ".join(case) for case in CASES]
    for part in DIFFERENT:
        assert any(part in name for name in TOLD), part


@pytest.mark.again
@pytest.mark.parametrize("case", CASES, ids=lambda case: "; ".join(case)[:80])
def test_odd_statements_answer_as_under_delta_spark(odd, case):
    name = "; ".join(case)
    found = differences(odd.answers(case), TOLD[name])
    assert bool(found) == any(part in name for part in DIFFERENT), found


def test_a_difference_is_noticed():
    theirs, ours = OTHER_NAMES[0]
    assert not differences([ours, None], [theirs, None])
    assert differences([theirs, ["['1']"]], [ours, ["['1']"]])
    assert differences([theirs, ["['1']"]], [theirs, ["['2']"]])
    assert differences([None], [theirs])
