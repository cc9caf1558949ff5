"""A column `a.b` beside a struct `a` with a field `b`: one path in Parquet's words, two columns."""

from __future__ import annotations

import pyarrow as pa
import pytest

from hand_made_tables import data_file, field, inline_vector, make_table, mapped, struct_of
from optimist.spark import read

ROWS = pa.table(
    {
        "a.b": pa.array([number % 5 for number in range(20)]),
        "a": pa.array([{"b": number % 5 + 100} for number in range(20)]),
    }
)
FILTERS = {"`a.b` = 1": 4, "a.b = 101": 4, "`a.b` = 101": 0, "a.b = 1": 0, "`a.b` IN (2, 3)": 8}


def counts(spark, root, filters):
    return {text: read(spark, str(root)).where(text).count() for text in filters}


@pytest.mark.again
def test_filters_do_not_mix_up_what_they_prune_by(spark, tmp_path, plane):
    fields = [field("a.b", "long"), field("a", struct_of(field("b", "long")))]
    adds = [data_file(tmp_path / "t", "one.parquet", ROWS)]
    root = make_table(tmp_path / "t", fields, adds, features=["appendOnly"])
    assert counts(spark, root, FILTERS) == FILTERS
    adds = [data_file(tmp_path / "v", "one.parquet", ROWS, vector=inline_vector([1]))]
    root = make_table(tmp_path / "v", fields, adds, features=["deletionVectors"])
    one_less = {**FILTERS, "`a.b` = 1": 3, "a.b = 101": 3}
    assert counts(spark, root, one_less) == one_less


def test_filters_do_not_prune_by_a_column_that_was_dropped(spark, tmp_path, plane):
    struct = mapped("a", struct_of(mapped("b", "long", 3, "b")), 2, "a")
    adds = [data_file(tmp_path / "t", "one.parquet", ROWS.select(["a", "a.b"]))]
    root = make_table(
        tmp_path / "t",
        [struct],
        adds,
        configuration={"delta.columnMapping.mode": "name", "delta.columnMapping.maxColumnId": "3"},
        features=["columnMapping"],
    )
    filters = {"a.b = 101": 4, "a.b = 1": 0}
    assert counts(spark, root, filters) == filters
