"""SQL that both engines know, but understand in different ways, is translated or refused."""

from __future__ import annotations

from decimal import Decimal
from math import inf, nan
from pathlib import Path
from typing import Any

import deltalake as real
import pyarrow as pa
import pytest

import optimist.deltalake as ours
from optimist.deltalake.exceptions import NotSupportedError

ROWS = pa.table(
    {
        "i": pa.array([0, 1, 2, 3, -3, 7, 10, None], pa.int32()),
        "l": [1, 2, 3, 9, -7, 10, 100, None],
        "d": [0.5, 1.0, 3.0, 7.0, -3.0, 2.0, 5.0, None],
        "s": ["a", "b", "abc", None, "", "1", "x", "nul"],
        "u": ["x", None, "y", "z", None, "w", "", None],
        "dec": pa.array(
            [*map(Decimal, ("1.00", "1.50", "-1.50", "0.01", "2.49", "9.99", "3.00")), None],
            pa.decimal128(10, 2),
        ),
    }
)
FRACTIONS = pa.array([nan, None, 1.005, 4.2, 1.0, -0.5, inf, 0.0])
LISTS = pa.array([[1, 2], [None], [], None, [1, None], [3], [2, None], [1]], pa.list_(pa.int32()))


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("tables") / "t"
    rows = ROWS.append_column("f", FRACTIONS).append_column("a", LISTS)
    real.write_deltalake(path, rows)
    return path


def chosen(module: Any, place: Path, sql: str) -> list[Any]:
    found = pa.table(module.DeltaTable(place).scan(columns=["i", "l"], predicate=sql).read_all())
    return sorted(map(str, found.to_pylist()))


@pytest.mark.parametrize(
    "sql",
    [
        "i / 2 = 1",
        "i / 2 / 2.0 = 0.5",
        "(i+1)/2=1",
        "l / (i - 20) = 0",
        "-7 / 2 = -3 and l > 1",
        "l % 3 / 2 = 1",
        "coalesce(i, 5) / 2 = 2",
        "length(s) / 2 = 0 and i / 3 = 1",
        "d / 2 = 1.5",
        "i / 2.0 = 1.5",
        "dec / 2 = 0.75",
        "l = bigint '9' or i > INT'2'",
        "s = 'int' or s = 'a' or d = double '7'",
        "s = '/' or i /* half / */ > 9",
        "concat(s, u) = 'b'",
        "concat(u, s) is null",
        "CONCAT ( s , '' , u ) = 'ax'",
        "concat(s, concat(u, '/')) = 'b/'",
        "substr(s, 2) = 'bc' and left(s, 1) = 'a' and right(s, 0) = ''",
        "cast(dec as decimal(12, 4)) = 1.5",
        "cast(l as int) / 2 = 1",
        "cast(floor(d) as int) = 2",
        "not isnan(f)",
        "isnan(f) is null or isnan(f + 1)",
        "coalesce(array_contains(a, 1), false)",
        "not coalesce(array_contains(a, 1), false)",
        "ceil(dec) = 2 or floor(i) = 3 or round(f) = 4 or round(dec, 1) = 2.5",
    ],
)
def test_the_rows_are_those_of_deltalake(place: Path, sql: str) -> None:
    expected = chosen(real, place, sql)
    assert chosen(ours, place, sql) == expected


@pytest.mark.parametrize(
    "sql",
    [
        "i /* half */ / 2 = 1",
        "ceil(i) / 2 = 1",
        "s / 2 = 1",
        "(case when i > 1 then ceil(d) else 2 end) / 2 = 1",
        "substr(s, 0, 2) = 'a'",
        "substring(s, -1) = 'c'",
        "left(s, -1) = 'ab'",
        "right(s, - 1) = 'bc'",
        "cast(dec as int) = 1",
        "try_cast(dec as bigint) = 1",
        "cast(dec as decimal(10, 1)) = 0",
        "dec::int = 1",
        "regexp_replace(s, '[a-z]', 'q') = 'q'",
        "to_date(s, 'yyyy') is null",
        "cast(d as string) = '1.0'",
        "split(s, 'b')[1] = 'c'",
        "not array_contains(a, 1)",
        "coalesce(array_contains(a, 1), true)",
        "floor(f) = 0",
        "ceil(f) = 0",
        "round(f, 2) = 1.01",
        "initcap(s) = 'Abc'",
        "s = 'a' 'b'",
        "s = 'a' /* c */ 'b'",
        "s = 'a' -- c\n 'b'",
    ],
)
def test_what_is_not_translated_is_refused(place: Path, sql: str) -> None:
    for call in (
        lambda table: table.scan(predicate=sql).read_all(),
        lambda table: table.delete(sql),
        lambda table: table.update({"i": "1"}, predicate=sql),
        lambda table: table.file_uris(file_pruning_predicate=sql),
    ):
        with pytest.raises(NotSupportedError, match="Nothing was written"):
            call(ours.DeltaTable(place))
    assert ours.DeltaTable(place).version() == 0


def test_sql_in_the_log_is_read_by_both_in_the_same_way(tmp_path: Path) -> None:
    ours.write_deltalake(tmp_path, ROWS)
    table = ours.DeltaTable(tmp_path)
    for sql in ("i / 2 < 9", "concat(s, u) <> 'q'", "l < bigint '900'"):
        with pytest.raises(NotSupportedError, match="different ways"):
            table.alter.add_constraint({"few": sql})
    table.alter.add_constraint({"few": '"i" is null or i / 2.0 < 9'})
    assert table.metadata().configuration["delta.constraints.few"] == "`i` is null or i / 2.0 < 9"


def test_values_and_merges_divide_as_in_deltalake(tmp_path: Path) -> None:
    source = pa.table({"l": [1, 9], "n": [7, 9]})
    tables = []
    for module, path in ((real, tmp_path / "real"), (ours, tmp_path / "ours")):
        module.write_deltalake(path, ROWS)
        table = module.DeltaTable(path)
        table.update({"i": "l / 2", "s": "concat(s, u)"}, predicate="l / 4 = 2")
        merge = table.merge(source, "t.l / 2 = s.l / 2", source_alias="s", target_alias="t")
        merge = merge.when_matched_update({"i": "n / 2"}, predicate="s.n / t.l > 0")
        merge.when_not_matched_by_source_delete("t.l / 100 = 1").execute()
        module.write_deltalake(path, ROWS.slice(0, 1), mode="overwrite", predicate="l / 2 = 0")
        tables.append(real.DeltaTable(path).to_pyarrow_table().sort_by("l"))
    assert tables[0].to_pylist() == tables[1].to_pylist()
