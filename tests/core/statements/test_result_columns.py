"""The columns of each statement are those that delta-spark has, by its record."""

from __future__ import annotations

import json
from pathlib import Path
from typing import get_args

import pyarrow as pa
import pytest

from optimist.core import DeltaLog
from optimist.core.sql.statement_texts import Statement
from optimist.core.sql.statements import Clone, Merge
from optimist.core.statements import result_columns as columns
from optimist.core.statements.run import MAKERS, RUNNERS
from optimist.core.statements.statement_columns import columns_of

RECORD = Path(__file__).resolve().parents[2] / "spark" / "delta_spark_care.json"
TOLD = json.loads(RECORD.read_text(encoding="utf-8"))["told"]
BY_STATEMENT = {
    "OPTIMIZE": columns.OPTIMIZED,
    "PURGE": columns.OPTIMIZED,
    "RESTORE": columns.RESTORED,
    "VACUUM": columns.VACUUMED,
}


def fits(value: object, data_type: pa.DataType) -> bool:
    """Whether a recorded value has the fields and the kind of an Arrow type."""
    if value is None:
        return True
    if isinstance(value, dict):
        names = [field.name for field in data_type]
        return list(value) == names and all(fits(value[f.name], f.type) for f in data_type)
    kinds = {bool: pa.types.is_boolean, int: pa.types.is_integer, str: pa.types.is_string}
    return bool(kinds.get(type(value), pa.types.is_floating)(data_type))


RECORDED = [
    (name, schema)
    for name, answer in TOLD.items()
    for word, schema in BY_STATEMENT.items()
    if name.startswith(word) and isinstance(answer.get("answer"), list) and answer["answer"]
]


@pytest.mark.parametrize(("name", "schema"), RECORDED, ids=[name for name, _ in RECORDED])
def test_recorded_rows_have_these_columns(name, schema):
    for row in TOLD[name]["answer"]:
        assert fits(row, pa.struct(list(schema)))


def test_every_kind_is_in_the_record():
    found = {id(schema) for _, schema in RECORDED}
    assert found == {id(schema) for schema in BY_STATEMENT.values()}


@pytest.mark.parametrize(
    ("text", "schema"),
    [
        ("DESCRIBE HISTORY this", columns.HISTORY),
        ("DESCRIBE DETAIL this", columns.DETAIL),
        ("OPTIMIZE this", columns.OPTIMIZED),
        ("REORG TABLE this APPLY (PURGE)", columns.OPTIMIZED),
        ("VACUUM this", columns.VACUUMED),
        ("VACUUM this DRY RUN", columns.VACUUMED),
        ("RESTORE this TO VERSION AS OF 0", columns.RESTORED),
        ("DELETE FROM this WHERE id = 1", columns.ROWS_AFFECTED),
        ("UPDATE this SET id = 2", columns.ROWS_AFFECTED),
        ("MERGE INTO this USING s ON this.id = s.id WHEN MATCHED THEN DELETE", columns.MERGED),
        ("CREATE TABLE IF NOT EXISTS this SHALLOW CLONE delta.`{path}`", columns.CLONED),
        ("TRUNCATE TABLE this", columns.NO_COLUMNS),
        ("SHOW TBLPROPERTIES this", pa.schema([("key", pa.string()), ("value", pa.string())])),
    ],
)
def test_results_have_these_columns_to_the_letter(tmp_path, text, schema):
    log = DeltaLog.for_path(tmp_path)
    log.append(pa.table({"id": [1, 2]}))
    told = log.sql(text.format(path=tmp_path), sources={"s": pa.table({"id": [2]})})
    assert told.rows.schema == schema


def test_each_statement_has_one_function():
    assert not RUNNERS.keys() & MAKERS.keys()
    assert RUNNERS.keys() | MAKERS.keys() == set(get_args(Statement))


def test_most_statements_answer_nothing():
    answers = {kind for kind in get_args(Statement) if columns_of(object.__new__(kind)).names}
    assert {kind.__name__ for kind in answers} == {
        *("Clone", "Delete", "DescribeDetail", "DescribeHistory", "Merge"),
        *("Optimize", "Reorg", "Restore", "Update", "Vacuum"),
    }
    assert columns_of(object.__new__(Clone)).names == columns.CLONED.names
    assert columns_of(object.__new__(Merge)).names[0] == "num_affected_rows"
