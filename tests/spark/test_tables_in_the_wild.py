"""Tables of other engines, read alike without Spark, by pyarrow in Spark, and by Spark itself."""

from __future__ import annotations

import json
import os
from pathlib import Path

import deltalake
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from table_contents import rows, values

ROOT = os.environ.get("OPTIMIST_DAT")
DAT = sorted(Path(ROOT).iterdir()) if ROOT else []


def _versions(table):
    """The expected versions of a table; the newest only as the one that is read by no number."""
    facts = {item: _facts(item)["version"] for item in sorted((table / "expected").iterdir())}
    latest = facts[table / "expected" / "latest"]
    return [item for item, version in facts.items() if item.name == "latest" or version != latest]


def _facts(expected):
    return json.loads((expected / "table_version_metadata.json").read_text())


VERSIONS = [
    pytest.param(table, expected, id=f"{table.name}-{expected.name}")
    for table in DAT
    for expected in _versions(table)
]
needs_dat = pytest.mark.skipif(
    not ROOT, reason="set OPTIMIST_DAT to the folder of the Delta Acceptance Tests"
)
AWKWARD = ["a b", "50%", "a%20b", "x=y", "ä/ö", "a:b", "#?&+", "it's", "{[^]}", "", None]


# The Delta Acceptance Tests, written by delta-spark


def content(expected):
    files = (expected / "table_content").glob("*.parquet")
    return pa.concat_tables([pq.read_table(file) for file in files], promote_options="default")


@needs_dat
@pytest.mark.sample(3)
@pytest.mark.parametrize(("table", "expected"), VERSIONS)
def test_every_version_of_an_acceptance_table_has_the_expected_rows(rows_at, table, expected):
    version = None if expected.name == "latest" else _facts(expected)["version"]
    found, wanted = rows_at(table / "delta", version), content(expected)
    assert sorted(found.column_names) == sorted(wanted.column_names)
    assert values(found) == values(wanted)


# Tables of deltalake

DELTALAKE = ("checkpoint", "awkward", "vacuumed", "restored", "mapped by name", "mapped by id")
READER_OF_MAPPED = {"delta.minReaderVersion": "2", "delta.minWriterVersion": "5"}


@pytest.fixture(scope="module")
def deltalake_tables(tmp_path_factory):
    """Paths by what was done to the table."""
    root = tmp_path_factory.mktemp("deltalake")
    paths = {name: str(root / name) for name in DELTALAKE}
    for start in range(0, 40, 5):
        deltalake.write_deltalake(paths["checkpoint"], rows(start, 5), mode="append")
    table = deltalake.DeltaTable(paths["checkpoint"])
    table.create_checkpoint()
    table.delete("id % 5 = 2")
    deltalake.write_deltalake(
        paths["awkward"], rows(0, len(AWKWARD), p=AWKWARD), partition_by=["p"]
    )
    for name in ("vacuumed", "restored"):
        deltalake.write_deltalake(paths[name], rows(0, 10))
        deltalake.write_deltalake(paths[name], rows(10, 10), mode="append")
        deltalake.DeltaTable(paths[name]).delete("id < 15")
    deltalake.DeltaTable(paths["vacuumed"]).vacuum(
        retention_hours=0, enforce_retention_duration=False, dry_run=False
    )
    deltalake.DeltaTable(paths["restored"]).restore(1)
    structs = pa.array([{"x y": number} for number in range(10)])
    mapped = rows(0, 10, **{"a b": structs, "p q": ["u v"] * 4 + ["w"] * 6})
    for mode in ("name", "id"):
        path = paths[f"mapped by {mode}"]
        configuration = {"delta.columnMapping.mode": mode, **READER_OF_MAPPED}
        deltalake.write_deltalake(path, mapped, partition_by=["p q"], configuration=configuration)
        deltalake.write_deltalake(path, mapped, mode="append")
        deltalake.DeltaTable(path).create_checkpoint()
        deltalake.write_deltalake(path, mapped.slice(3, 2), mode="append")
    return paths


def rows_of_deltalake(path):
    table = deltalake.DeltaTable(path)
    if table.metadata().configuration.get("delta.columnMapping.mode") is None:
        return table.to_pyarrow_table()
    # The one above reads mapped columns as null; this one, empty partition values as empty text.
    query = deltalake.QueryBuilder().register("t", table)
    return pa.table(query.execute("SELECT * FROM t").read_all())


@pytest.mark.again
@pytest.mark.parametrize("name", DELTALAKE)
def test_a_table_of_deltalake_has_the_rows_that_deltalake_reads(rows_at, deltalake_tables, name):
    path = deltalake_tables[name]
    wanted = rows_of_deltalake(path)
    assert wanted.num_rows
    assert values(rows_at(path)) == values(wanted)


@pytest.mark.parametrize("name", ["mapped by name", "mapped by id"])
def test_mapped_columns_of_deltalake_are_filtered_by_their_own_names(
    rows_at, deltalake_tables, name
):
    found = rows_at(deltalake_tables[name], predicate="id >= 8 AND `p q` = 'w' AND `a b`.`x y` < 9")
    assert found["id"].to_pylist() == [8, 8]


def test_awkward_partitions_are_found_by_their_values(rows_at, deltalake_tables):
    wanted = ["50%", "a b", "a%20b", "x=y", "ä/ö"]
    listed = ", ".join(f"'{value}'" for value in wanted)
    found = rows_at(deltalake_tables["awkward"], predicate=f"p IN ({listed})")
    assert sorted(found["p"].to_pylist()) == wanted
