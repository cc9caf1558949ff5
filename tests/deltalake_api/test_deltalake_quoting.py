"""SQL of deltalake means the same rows here, whatever its quotes hold."""

from __future__ import annotations

from pathlib import Path

import deltalake as real
import pyarrow as pa
import pytest

import optimist.deltalake as ours
from optimist.deltalake.quoting import in_spark_sql

TEXTS = ["a", "it's", 'say "hi"', "back\\slash", "new\\nline", "`tick`", "%", "", "x''y"]


@pytest.mark.parametrize("text", TEXTS)
def test_a_text_in_single_quotes_keeps_each_of_its_characters(tmp_path: Path, text: str) -> None:
    rows = pa.table({"x": TEXTS, "n": range(len(TEXTS))})
    real.write_deltalake(tmp_path, rows)
    sql = "x = '" + text.replace("'", "''") + "'"
    found = ours.DeltaTable(tmp_path).scan(predicate=sql).read_all()
    assert found["x"].to_pylist() == [text]
    assert pa.table(real.DeltaTable(tmp_path).scan(predicate=sql).read_all())["n"].to_pylist() == (
        found["n"].to_pylist()
    )


@pytest.mark.parametrize("name", ["a b", "a.b", "a`b", "select", "it's"])
def test_a_name_in_double_quotes_is_the_column_and_never_a_text(tmp_path: Path, name: str) -> None:
    rows = pa.table({name: [1, 2, 3], "y": ["p", "q", name]})
    log = ours.DeltaTable.create(
        tmp_path, rows.schema, configuration={"delta.columnMapping.mode": "name"}
    )
    ours.write_deltalake(log, rows, mode="append")
    told = ours.DeltaTable(tmp_path).delete(f'"{name}" = 2')
    assert told["num_deleted_rows"] == 1
    assert sorted(ours.DeltaTable(tmp_path).to_pyarrow_table()[name].to_pylist()) == [1, 3]


@pytest.mark.parametrize(
    ("sql", "translated"),
    [
        ("x = 1", "x = 1"),
        ("x = 'open", "x = 'open"),
        ('`q"z` = 1', '`q"z` = 1'),
        ("x = 'a\"b'", "x = 'a\"b'"),
        ('x = 1 -- it\'s\n and "y" = 2', "x = 1 -- it's\n and `y` = 2"),
        ("x /* ' \" */ = '\"'", "x /* ' \" */ = '\"'"),
    ],
)
def test_other_parts_of_the_text_stay(sql: str, translated: str) -> None:
    assert in_spark_sql(sql) == translated


def test_a_text_among_new_values_is_no_sql(tmp_path: Path) -> None:
    ours.write_deltalake(tmp_path, pa.table({"t": ["a"]}))
    ours.DeltaTable(tmp_path).update(new_values={"t": "it's 'SQL' \\ upper(t)"})
    assert ours.DeltaTable(tmp_path).to_pyarrow_table()["t"].to_pylist() == [
        "it's 'SQL' \\ upper(t)"
    ]


def test_the_values_of_update_and_merge_have_the_same_quotes(tmp_path: Path) -> None:
    rows = pa.table({"k": [1, 2], "t": ["a", "b"]})
    for module, path in ((real, tmp_path / "real"), (ours, tmp_path / "ours")):
        module.write_deltalake(path, rows)
        table = module.DeltaTable(path)
        table.update({"t": "'it''s \\n'"}, predicate='"k" = 1')
        merge = table.merge(rows, 't."k" = s.k', source_alias="s", target_alias="t")
        merge.when_matched_update({"t": "'\"'"}, predicate='t."k" = 2').execute()
    found = ours.DeltaTable(tmp_path / "ours").to_pyarrow_table().sort_by("k")
    assert found["t"].to_pylist() == ["it's \\n", '"']
    assert found.equals(real.DeltaTable(tmp_path / "real").to_pyarrow_table().sort_by("k"))
