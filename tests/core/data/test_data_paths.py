"""`DataPaths`: what a text in the log means, and whether it may be opened; no file is there."""

from __future__ import annotations

import os

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from optimist.core.data.storage.data_paths import ANY, NEVER, SAME_STORE, DataPaths
from optimist.core.errors import StorageError, TableError
from optimist.core.plugins.data_origin import DataOrigin
from refusals import kind_if_refused

FOREIGN, OUTSIDE = "OPTIMIST_FOREIGN_DATA_PATH", "OPTIMIST_PATH_OUTSIDE_TABLE"
S3 = DataOrigin(("s3", "s3a", "s3n"), "b")
AZURE = DataOrigin(("abfs", "abfss", "az", "wasb", "wasbs"), "a.dfs.core.windows.net", True)
TABLES = {
    "local": DataPaths("/data/t", DataOrigin.of("/data/t")),
    "s3": DataPaths("s3a://b/t", S3),
    "azure": DataPaths("abfss://c@a.dfs.core.windows.net/t", AZURE),
    "hdfs": DataPaths.of("hdfs://nn:8020/t"),
    "memory": DataPaths.of("memory://x/t"),
}


def with_rule(paths, rule):
    return DataPaths(paths.table_path, paths.origin, rule)


@pytest.mark.parametrize(
    ("table", "reference", "path"),
    [
        ("s3", "part-0.parquet", "s3a://b/t/part-0.parquet"),
        ("s3", "month=1/part%200.parquet", "s3a://b/t/month=1/part 0.parquet"),
        ("s3", "a=x%2520y/p.parquet", "s3a://b/t/a=x%20y/p.parquet"),
        ("s3", "time=10%3A30/p.parquet", "s3a://b/t/time=10:30/p.parquet"),
        ("s3", "time:10/p::q.parquet", "s3a://b/t/time:10/p::q.parquet"),
        ("s3", "S3://b/u/p%20q.parquet", "S3://b/u/p q.parquet"),
        ("s3", "s3n://b/t/x/../p.parquet", "s3n://b/t/p.parquet"),
        ("s3", "../u/./p.parquet", "s3a://b/u/p.parquet"),
        ("local", "/elsewhere/p.parquet", "/elsewhere/p.parquet"),
        ("local", "file:///elsewhere/p%20q.parquet", "/elsewhere/p q.parquet"),
        ("local", "FILE:/elsewhere/p.parquet", "/elsewhere/p.parquet"),
        ("local", "%2Felsewhere/p.parquet", "/elsewhere/p.parquet"),
        ("local", "..%2Fu/p.parquet", "/data/u/p.parquet"),
        ("local", "%2e%2e/u/p.parquet", "/data/u/p.parquet"),
        ("local", "...parquet", "/data/t/...parquet"),
        ("local", "a::b/x::y", "/data/t/a::b/x::y"),
        ("azure", "wasbs://d@A.blob.core.windows.net/x", "wasbs://d@A.blob.core.windows.net/x"),
        ("hdfs", "hdfs://nn:8020/u/x", "hdfs://nn:8020/u/x"),
        ("memory", "memory:/u/x", "memory:/u/x"),
    ],
)
def test_a_reference_is_decoded_once_and_its_dots_are_followed(table, reference, path):
    assert TABLES[table].full_path(reference) == path


@pytest.mark.parametrize("rule", [SAME_STORE, ANY, NEVER])
@pytest.mark.parametrize(
    ("table", "reference"),
    [
        *[(table, "reference://k::file:///refs.json") for table in TABLES],
        *[(table, "http://h/x") for table in TABLES],
        *[(table, "jar:file:///a.jar!/x") for table in TABLES],
        *[(table, "../" * 9 + "x") for table in TABLES],
        *[(table, "a%00b") for table in TABLES],
        *[(table, local) for table in ("s3", "azure", "hdfs", "memory")
          for local in ("/etc/passwd", "file:/etc/passwd", "%66ile:///etc/passwd", "FILE:///x",
                        "//b/x", "%2Fetc/passwd", "local:///etc/passwd")],
        *[(table, chain) for table in ("hdfs", "memory")
          for chain in ("x::reference", "a/b::file:///etc/passwd", "x%3A%3Amemory")],
        ("local", "s3://b/x"),
        ("local", "memory://x"),
        ("s3", "s3://b/../other/x"),
        ("s3", "abfss://c@a.dfs.core.windows.net/x"),
    ],
)  # fmt: skip
def test_no_option_opens_another_scheme_a_chain_or_a_local_path(table, reference, rule):
    assert kind_if_refused(with_rule(TABLES[table], rule).full_path, reference) == FOREIGN


@pytest.mark.parametrize(
    ("table", "reference"),
    [
        ("s3", "s3://other/x"),
        ("s3", "s3://B/x"),
        ("s3", "s3://key@b/x"),
        ("s3", "s3:/b/x"),
        ("s3", "s3:///b/x"),
        ("s3", "s3://b:80/x"),
        ("azure", "abfss://c@evil.dfs.core.windows.net/x"),
        ("azure", "abfss://c@a.dfs.evil.net/x"),
        ("azure", "abfss://c@a.evil/x"),
        ("azure", "abfss://c/x"),
        ("azure", "abfss://@a.dfs.core.windows.net/x"),
        ("hdfs", "hdfs://nn:8021/x"),
        ("hdfs", "hdfs://nn/x"),
        ("hdfs", "hdfs:///x"),
        ("hdfs", "hdfs://u@nn:8020/x"),
        ("hdfs", "hdfs://nn:8020@evil/x"),
    ],
)
def test_another_bucket_account_or_host_needs_the_option_any(table, reference):
    assert kind_if_refused(TABLES[table].full_path, reference) == OUTSIDE
    assert kind_if_refused(with_rule(TABLES[table], NEVER).full_path, reference) == OUTSIDE
    assert kind_if_refused(with_rule(TABLES[table], ANY).full_path, reference) is None


@pytest.mark.parametrize(
    ("table", "inside", "outside"),
    [
        ("local", ["x", "a/../x", "/data/t/x", "file:///data//t/x"], ["/data/tt/x", "../t2/x"]),
        ("s3", ["x", "s3://b//t/x", "s3n://b/t/x"], ["s3://b/tt/x", "../x"]),
        (
            "azure",
            ["x", "wasb://c@a.blob.core.windows.net/t/x"],
            ["abfss://d@a.dfs.core.windows.net/t/x", "../u/x"],
        ),
        ("memory", ["x", "memory:/x/t/y"], ["memory://y/x", "../x"]),
    ],
)
def test_a_file_is_outside_by_where_it_is_and_never_refuses_it(table, inside, outside):
    strict, paths = with_rule(TABLES[table], NEVER), TABLES[table]
    assert [kind_if_refused(strict.full_path, item) for item in inside] == [None] * len(inside)
    assert [kind_if_refused(strict.full_path, item) for item in outside] == [OUTSIDE] * len(outside)
    assert [kind_if_refused(paths.full_path, item) for item in outside] == [None] * len(outside)
    found = paths.are_outside(pa.array([*inside, *outside])).to_pylist()
    assert found == [False] * len(inside) + [True] * len(outside)


def test_urls_that_name_no_account_are_the_tables_where_the_store_says_so():
    origin = DataOrigin(AZURE.schemes, AZURE.host, is_account=True, is_default=True)
    assert origin.key_of("az://c/t/x") == "c/t/x"


@pytest.mark.parametrize("table", TABLES)
@given(data=st.data())
def test_many_references_are_judged_as_each_of_them_alone(table, data):
    pieces = ["a", "..", ".", "", "x::y", "p=1", "file:", "s3:", "b", "%2e%2e", "%2F", "é"]
    texts = st.lists(st.sampled_from(pieces), min_size=1, max_size=5).map("/".join)
    references = data.draw(st.lists(texts, min_size=1, max_size=6))
    paths = TABLES[table]
    alone = [kind_if_refused(paths.full_path, item) for item in references]
    try:
        found = paths.full_paths(pa.array(references)).to_pylist()
    except TableError as error:
        assert error.kind in alone
    else:
        assert found == [paths.full_path(item) for item in references]
        assert not any(alone)


def test_the_error_names_file_reason_and_option_and_quotes_little():
    text = "s3://other/" + "x" * 5000 + "\n\x1b[2J.parquet"
    with pytest.raises(TableError) as caught:
        TABLES["s3"].full_path(text)
    assert "optimist.paths.outsideTable=any" in str(caught.value)
    assert "another bucket" in str(caught.value)
    assert "s3://other/xxx" in str(caught.value)
    assert "\n" not in str(caught.value)
    assert "\x1b" not in str(caught.value)
    assert len(str(caught.value)) < 700
    assert caught.value.fields["option"] == "optimist.paths.outsideTable"
    assert len(caught.value.fields["path"]) <= 210


def test_a_link_that_leads_out_of_the_table_counts_as_outside(tmp_path):
    table = tmp_path / "t"
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "x").write_bytes(b"")
    (table / "in").mkdir(parents=True)
    (table / "in" / "x").write_bytes(b"")
    (table / "out").symlink_to(tmp_path / "elsewhere")
    (table / "y").symlink_to(tmp_path / "elsewhere" / "x")
    (table / "z").symlink_to(table / "in" / "x")
    paths = DataPaths.of(str(table))
    names = ["in/x", "z", "out/x", "y"]
    assert paths.are_outside(pa.array(names)).to_pylist() == [False, False, True, True]
    assert [kind_if_refused(paths.full_path, name) for name in names] == [None] * 4
    strict = with_rule(paths, NEVER).full_path
    assert [kind_if_refused(strict, name) for name in names] == [
        None,
        None,
        OUTSIDE,
        OUTSIDE,
    ]


@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir], ids=["pipe", "directory"])
def test_what_is_no_file_is_refused_before_it_is_waited_for_where_strangers_write(tmp_path, make):
    make(tmp_path / "odd")
    (tmp_path / "link").symlink_to(tmp_path / "odd")
    (tmp_path / "file").write_bytes(b"")
    strict = with_rule(DataPaths.of(str(tmp_path)), NEVER)
    assert strict.full_paths(pa.array(["file", "missing"])).to_pylist() == [
        str(tmp_path / "file"),
        str(tmp_path / "missing"),
    ]
    for name in ("odd", "link"):
        with pytest.raises(StorageError) as caught:
            strict.full_path(name)
        assert caught.value.kind == "OPTIMIST_NOT_A_FILE"
        assert str(tmp_path / name) in str(caught.value)
