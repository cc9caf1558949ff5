"""Data files without Spark: writing in batches, reading parts, and how files are reached."""

from __future__ import annotations

import errno
import json
import os
import pickle
import traceback
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyarrow import fs

from optimist.core import DeltaLog
from optimist.core.data.file_parts import balanced_groups, file_parts, parts_of
from optimist.core.data.parquet import parquet_writer
from optimist.core.data.parquet.parquet_format import ensure_codec
from optimist.core.data.parquet.parquet_reader import RowLayout, read_batches
from optimist.core.data.parquet.parquet_writer import FileSpec, TaskFiles
from optimist.core.data.storage import filesystem as filesystem_module
from optimist.core.data.storage.filesystem import filesystem_for, make_directories
from optimist.core.data.storage.storage_errors import storage_errors
from optimist.core.data.storage.stored_files import remove_directory
from optimist.core.errors import (
    ConfigError,
    SchemaError,
    StorageError,
    TableError,
    UsageError,
)
from optimist.core.options.engine import EngineOptions
from optimist.core.plugins.data_access import DataAccess
from optimist.core.plugins.data_origin import DataOrigin
from optimist.core.protocol.actions import DomainMetadata, Metadata, Protocol
from optimist.core.runtime.clock import SystemClock
from optimist.core.schema.arrow_types import from_arrow_schema
from optimist.core.schema.types import schema_to_json
from optimist.core.transaction.conflicts.operations import Operation

SECRET = "hush"
ROWS = pa.table({"id": pa.array(range(100), pa.int64()), "p": [f"p{i // 25}" for i in range(100)]})


def spec(path, rows=ROWS, **changes):
    values = {
        "table_path": str(path),
        "schema": from_arrow_schema(rows.schema),
        "partition_columns": (),
        "stats_columns": (("id",),),
    }
    return FileSpec(**{**values, **changes})


def written(given, *batches):
    files = TaskFiles(given, SystemClock(), task=7)
    for batch in batches:
        files.write(batch)
    return files.close()


def test_batches_of_one_partition_go_to_one_file(tmp_path):
    batches = [ROWS.slice(start, 10) for start in range(0, 100, 10)]
    adds = written(spec(tmp_path, partition_columns=("p",)), *batches)
    assert [add.partition_values for add in adds] == [{"p": f"p{i}"} for i in range(4)]
    assert [json.loads(add.stats)["numRecords"] for add in adds] == [25] * 4
    assert all(add.size == (tmp_path / add.path).stat().st_size for add in adds)
    assert all(Path(add.path).name.startswith("part-00007-") for add in adds)


def test_a_partition_that_comes_back_gets_another_file(tmp_path):
    batches = [ROWS.slice(0, 5), ROWS.slice(30, 5), ROWS.slice(5, 5)]
    adds = written(spec(tmp_path, partition_columns=("p",)), *batches)
    assert [add.partition_values["p"] for add in adds] == ["p0", "p1", "p0"]


def test_files_are_split_at_the_most_rows_wanted(tmp_path):
    adds = written(spec(tmp_path, max_rows_per_file=30), ROWS.slice(0, 50), ROWS.slice(50))
    assert [json.loads(add.stats)["numRecords"] for add in adds] == [30, 30, 30, 10]
    assert [json.loads(add.stats)["minValues"]["id"] for add in adds] == [0, 30, 60, 90]


def test_row_groups_fill_up_before_the_next_begins(tmp_path, monkeypatch):
    monkeypatch.setattr(parquet_writer, "ROW_GROUP_ROWS", 40)
    (add,) = written(spec(tmp_path), *(ROWS.slice(start, 7) for start in range(0, 100, 7)))
    footer = pq.read_metadata(tmp_path / add.path)
    assert [footer.row_group(i).num_rows for i in range(footer.num_row_groups)] == [40, 40, 20]


def test_nan_in_any_batch_leaves_the_bounds_out(tmp_path):
    rows = [pa.table({"id": [1.0, 2.0]}), pa.table({"id": [float("nan"), 0.5]})]
    (add,) = written(spec(tmp_path, rows[0]), *rows)
    assert json.loads(add.stats)["minValues"] == {}
    (add,) = written(spec(tmp_path, rows[0]), rows[0])
    assert json.loads(add.stats)["minValues"] == {"id": 1.0}


def test_statistics_are_left_out_where_nobody_wants_them(tmp_path):
    (add,) = written(spec(tmp_path, stats_columns=None), ROWS)
    assert add.stats is None


def test_aborting_removes_finished_and_unfinished_files(tmp_path):
    files = TaskFiles(spec(tmp_path, max_rows_per_file=30), SystemClock())
    files.write(ROWS)
    assert len(list(tmp_path.rglob("*.parquet"))) == 4
    files.abort()
    assert not list(tmp_path.rglob("*.parquet"))


def test_a_write_without_rows_makes_no_file(tmp_path):
    assert written(spec(tmp_path), ROWS.slice(0, 0)) == ()
    assert not list(tmp_path.rglob("*"))


@pytest.mark.parametrize(("name", "codec"), [("ZSTD", "ZSTD"), ("none", "UNCOMPRESSED")])
def test_the_codec_is_honoured(tmp_path, name, codec):
    (add,) = written(spec(tmp_path, compression=ensure_codec(name)), ROWS)
    footer = pq.read_metadata(tmp_path / add.path)
    assert footer.row_group(0).column(0).compression == codec


def test_an_unknown_codec_is_refused():
    with pytest.raises(UsageError) as caught:
        ensure_codec("lzo")
    assert caught.value.kind == "DELTA_ILLEGAL_OPTION"


def test_an_append_that_fails_half_way_leaves_no_file(tmp_path, monkeypatch):
    rows = pa.table({"id": range(10), "p": ["a"] * 5 + ["b"] * 5})
    log = DeltaLog.for_path(str(tmp_path / "t"), {})
    log.append(rows, partition_by=["p"])
    before = sorted((tmp_path / "t").rglob("*.parquet"))
    real = parquet_writer.stats_from_footer
    calls = []

    def fail_second(*arguments, **options):
        calls.append(arguments)
        if len(calls) == 2:
            raise OSError("disk full")
        return real(*arguments, **options)

    monkeypatch.setattr(parquet_writer, "stats_from_footer", fail_second)
    with pytest.raises(StorageError, match="disk full") as caught:
        log.append(rows)
    assert caught.value.kind == "OPTIMIST_STORAGE_FAILED"
    assert sorted((tmp_path / "t").rglob("*.parquet")) == before
    assert log.snapshot().version == 0


# Reading in parts


@settings(max_examples=25, deadline=None)
@given(
    sizes=st.lists(st.integers(1, 400), min_size=1, max_size=6),
    share=st.integers(200, 20_000),
    groups=st.integers(1, 9),
)
def test_each_row_is_in_exactly_one_part(tmp_path_factory, sizes, share, groups):
    folder = tmp_path_factory.mktemp("parts")
    log = DeltaLog.for_path(str(folder), {})
    start = 0
    for size in sizes:
        log.append(pa.table({"id": range(start, start + size)}))
        start += size
    files = log.snapshot().files
    for item in folder.glob("*.parquet"):
        pq.write_table(pq.read_table(item), item, row_group_size=50)  # longer than the log says
    layout = RowLayout(log.snapshot().schema)
    cut = balanced_groups(
        file_parts(log.table.data_paths, files), max_bytes=share, num_groups=groups, open_cost=100
    )
    found = [
        value
        for group in cut
        for part in parts_of(group)
        for batch in read_batches(part, layout)
        for value in batch.column(0).to_pylist()
    ]
    assert sorted(found) == list(range(start))


def test_rows_are_read_back_without_spark_by_predicate_and_column(tmp_path):
    log = DeltaLog.for_path(str(tmp_path), {})
    log.append(ROWS, partition_by=["p"])
    assert sorted(log.to_arrow("p = 'p2' AND id < 60")["id"].to_pylist()) == list(range(50, 60))
    assert log.to_arrow(columns=["P"]).column_names == ["p"]
    with pytest.raises(UsageError) as caught:
        log.to_arrow("soundex(p) = 'P200'")
    assert caught.value.kind == "OPTIMIST_NEEDS_SPARK"
    with pytest.raises(SchemaError):
        log.to_arrow(columns=["nope"])


def test_a_file_that_is_gone_or_damaged_is_told(tmp_path):
    log = DeltaLog.for_path(str(tmp_path), {})
    log.append(ROWS)
    (file,) = tmp_path.glob("*.parquet")
    file.write_bytes(b"PAR1PAR1")
    with pytest.raises(TableError) as caught:
        log.to_arrow()
    assert caught.value.kind == "OPTIMIST_UNREADABLE_DATA_FILE"
    file.unlink()
    with pytest.raises(TableError) as caught:
        log.to_arrow()
    assert caught.value.kind == "DELTA_FILE_NOT_FOUND_DETAILED"


# Reaching files


def access(**settings):
    given = {"access_key": "a", "secret_key": SECRET, "region": "us-east-1", **settings}
    return DataAccess.of("s3", DataOrigin(("s3", "s3a"), "bucket"), given)


def test_access_shows_no_settings_and_survives_pickling():
    assert SECRET not in repr(access()) + str(access())
    assert pickle.loads(pickle.dumps(access())) == access()
    assert access(session_token=None) == access()


def test_a_layout_and_a_spec_with_access_show_no_settings(tmp_path):
    given = spec(tmp_path, access=access())
    layout = RowLayout(given.schema, access=access())
    assert SECRET not in repr(given) + repr(layout)
    assert pickle.loads(pickle.dumps(given)) == given


def test_object_paths_are_bucket_and_key_as_they_stand():
    filesystem, path = filesystem_for("s3a://bucket//t/p=a%20b/x.parquet", access())
    assert isinstance(filesystem, fs.S3FileSystem)
    assert path == "bucket/t/p=a%20b/x.parquet"
    assert filesystem_for("s3://bucket/t", access())[0] is filesystem


def test_other_schemes_than_those_served_go_to_their_own_file_system(tmp_path):
    assert isinstance(filesystem_for(str(tmp_path), access())[0], fs.LocalFileSystem)
    filesystem, path = filesystem_for("memory://t/x", access())
    assert isinstance(filesystem, fs.PyFileSystem)
    assert path == "/t/x"


def test_a_file_in_another_bucket_is_reached_without_the_tables_credentials(monkeypatch):
    made_with = []

    class Noted(fs.SubTreeFileSystem):
        def __init__(self, **settings):
            made_with.append(settings)
            super().__init__("", fs.LocalFileSystem())

    monkeypatch.setattr(filesystem_module.fs, "S3FileSystem", Noted)
    settings = {"secret_key": SECRET, "endpoint_override": "noted"}
    own = DataAccess.of("s3", DataOrigin(("s3", "s3a"), "noted"), settings)
    _, path = filesystem_for("s3://other/x", own)
    filesystem_for("s3://noted@other/x", own)
    assert path == "other/x"
    assert SECRET not in repr(made_with)
    assert not any("secret_key" in settings for settings in made_with)
    # The machine's own keys may be this server's, which no other server should see.
    assert all(settings["endpoint_override"] == "noted" for settings in made_with)
    filesystem_for("s3a://noted/x", own)
    assert made_with[-1]["secret_key"] == SECRET


@pytest.mark.parametrize(
    ("proxy", "expected"),
    [
        ("gate.example", ("http", "gate.example", 80, "", "")),
        ("https://gate.example:3128/", ("https", "gate.example", 3128, "", "")),
        ("http://me:a%2Fb%40@gate.example:1", ("http", "gate.example", 1, "me", "a/b@")),
    ],
)
def test_amazons_sdk_is_told_the_proxy_of_the_environment(monkeypatch, proxy, expected):
    asked = []
    monkeypatch.setattr(filesystem_module.fs, "S3FileSystem", lambda **given: asked.append(given))
    monkeypatch.setenv("https_proxy", proxy)
    monkeypatch.setenv("no_proxy", "direct.example")
    filesystem_for("s3://bucket/t", access(endpoint_override=f"https://s3.{len(proxy)}.example"))
    filesystem_for(
        "s3://bucket/t", access(endpoint_override=f"https://{len(proxy)}.direct.example")
    )
    filesystem_for("s3://bucket/t", access(endpoint_override=f"http://s3.{len(proxy)}.example"))
    assert tuple(asked[0]["proxy_options"].values()) == expected
    assert ["proxy_options" in given for given in asked] == [True, False, False]


def test_a_proxy_that_is_no_url_is_told_without_its_password(monkeypatch):
    monkeypatch.setenv("https_proxy", f"http://me:{SECRET}/x@gate.example")
    with pytest.raises(ConfigError, match="HTTPS_PROXY") as caught:
        filesystem_for("s3://bucket/t", access(endpoint_override="https://odd.example"))
    shown = "".join(traceback.format_exception(caught.value))
    assert SECRET not in shown


def test_a_file_in_another_account_is_refused():
    ours = DataOrigin(("abfss",), "ours.dfs.core.windows.net", is_account=True)
    azure = DataAccess.of("azure", ours, {"account_name": "ours"})
    with pytest.raises(ConfigError) as caught:
        filesystem_for("abfss://c@theirs.dfs.core.windows.net/t/x.parquet", azure)
    assert caught.value.kind == "OPTIMIST_NO_DATA_FILESYSTEM"


@pytest.mark.parametrize("path", ["nosuchscheme://t/x", "dropbox://t/x"])
def test_a_scheme_without_a_driver_is_told(path):
    with pytest.raises(ConfigError, match="driver") as caught:
        filesystem_for(path)
    assert caught.value.kind == "OPTIMIST_NO_DATA_FILESYSTEM"


def test_settings_that_pyarrow_does_not_know_are_told_without_their_values():
    odd = DataAccess.of("s3", DataOrigin(("s3",), "b"), {"no_such_setting": SECRET})
    with pytest.raises(ConfigError, match="Upgrade") as caught:
        filesystem_for("s3://b/t", odd)
    assert SECRET not in str(caught.value)


def test_settings_of_a_driver_reach_it_and_do_not_show():
    given = DataAccess.of("fsspec", DataOrigin.of("memory://t"), {"some_option": SECRET})
    assert isinstance(filesystem_for("memory://t", given)[0], fs.PyFileSystem)
    assert SECRET not in repr(given)


@pytest.mark.parametrize(
    "text",
    [
        "GetProperties failed for 'https://a.blob.core.windows.net/c/t?sv=1&sig=aGk/hush%3D&sp=r'",
        "PUT http://h/b/k?X-Amz-Signature=hush&X-Amz-Date=1 failed",
        "https://h/?token=hush 403",
    ],
)
def test_signatures_in_the_texts_of_file_systems_are_masked(text):
    with pytest.raises(StorageError) as caught, storage_errors("read", "/t"):
        raise OSError(text)
    assert SECRET not in str(caught.value)
    assert caught.value.__cause__ is None


def test_directories_are_made_where_there_are_any(tmp_path):
    make_directories(fs.LocalFileSystem(), [str(tmp_path / "a" / "b" / "x")])
    assert (tmp_path / "a" / "b").is_dir()
    remove_directory(str(tmp_path / "a"))
    remove_directory(str(tmp_path / "a"))
    assert not (tmp_path / "a").exists()


def test_the_table_says_how_files_are_packed_and_how_long_texts_in_statistics_are(tmp_path):
    configuration = {
        "delta.parquet.compression.codec": "zstd",
        "delta.dataSkippingStringPrefixLength": "3",
    }
    schema = from_arrow_schema(pa.schema([("t", pa.string())]))
    metadata = Metadata("id", schema_to_json(schema), configuration=configuration)
    wanted = FileSpec.of(str(tmp_path), metadata, EngineOptions(), codec="gzip")
    (add,) = written(wanted, pa.table({"t": ["abcdef"]}))
    assert add.path.endswith(".zstd.parquet")
    assert json.loads(add.stats)["minValues"] == {"t": "abc"}
    plain = FileSpec.of(str(tmp_path), replace(metadata, configuration={}), EngineOptions())
    assert (plain.compression, plain.string_prefix_length) == ("zstd", 32)


# How data pages begin, in Thrift's compact form: the field 1 holds the kind, DATA_PAGE (0) or
# DATA_PAGE_V2 (3), as a zigzag number.
PAGES = {"1.0.0": b"\x15\x00", "2.12.0": b"\x15\x06", "3.0.0": b"\x15\x00", None: b"\x15\x00"}


@pytest.mark.parametrize("version", PAGES)
def test_the_table_says_which_data_pages_its_files_have(tmp_path, version):
    configuration = {} if version is None else {"delta.parquet.format.version": version}
    schema = from_arrow_schema(pa.schema([("t", pa.int64())]))
    metadata = Metadata("id", schema_to_json(schema), configuration=configuration)
    given = FileSpec.of(str(tmp_path), metadata, EngineOptions())
    rows = pa.table({"t": [1, 2]})
    (add,) = written(given, rows)
    column = pq.read_metadata(tmp_path / add.path).row_group(0).column(0)
    start = (tmp_path / add.path).read_bytes()[column.data_page_offset :][:2]
    assert start == PAGES[version]
    assert pq.read_table(tmp_path / add.path).equals(rows)


def test_a_codec_that_nobody_knows_is_refused_by_name(tmp_path):
    configuration = {"delta.parquet.compression.codec": "zip"}
    metadata = Metadata("id", '{"type":"struct","fields":[]}', configuration=configuration)
    given = FileSpec.of(str(tmp_path), metadata, EngineOptions())
    with pytest.raises(UsageError, match="codec 'zip' is unknown"):
        TaskFiles(given, SystemClock())


def table_of(path, fields, **metadata):
    """An empty table with these fields, each a name, a type and what its field holds besides."""
    log = DeltaLog.for_path(str(path), {})
    txn = log.start_transaction()
    schema = {
        "type": "struct",
        "fields": [
            {"name": name, "type": kind, "nullable": True, "metadata": {}} | more
            for name, kind, more in fields
        ],
    }
    txn.update_metadata(Metadata("", json.dumps(schema), **metadata))
    txn.commit([], Operation("CREATE TABLE"))
    return log


def refused_append(log, rows, error):
    """What `append` says of rows that it must not take, and leaves nothing of."""
    with pytest.raises(error) as caught:
        log.append(rows)
    assert log.snapshot().version == 0
    assert not list(Path(log.table_path).rglob("*.parquet"))
    return caught.value


def test_an_empty_text_is_null_to_a_partition_column_that_is_not_null(tmp_path):
    fields = [("id", "long", {}), ("p", "string", {"nullable": False})]
    log = table_of(tmp_path, fields, partition_columns=("p",))
    error = refused_append(log, pa.table({"id": [1], "p": [""]}), UsageError)
    assert (error.kind, error.fields["column"]) == ("DELTA_NOT_NULL_CONSTRAINT_VIOLATED", "p")


@pytest.mark.parametrize("value", [None, {"a": None}])
def test_null_in_a_not_null_field_or_its_parent_is_refused_by_name(tmp_path, value):
    inner = {"name": "a", "type": "long", "nullable": False, "metadata": {}}
    log = table_of(tmp_path, [("s", {"type": "struct", "fields": [inner]}, {})])
    rows = pa.table({"s": pa.array([value], pa.struct([("a", pa.int64())]))})
    error = refused_append(log, rows, UsageError)
    assert (error.kind, error.fields["column"]) == ("DELTA_NOT_NULL_CONSTRAINT_VIOLATED", "s.a")


def test_null_is_refused_in_a_field_whose_name_pyarrow_would_take_for_a_path(tmp_path):
    kinds = {".a": False, "a": True}
    fields = [
        {"name": name, "type": "long", "nullable": nullable, "metadata": {}}
        for name, nullable in kinds.items()
    ]
    log = table_of(tmp_path, [("s", {"type": "struct", "fields": fields}, {})])
    kind = pa.struct([(name, pa.int64()) for name in kinds])
    rows = pa.table({"s": pa.array([{".a": None, "a": 1}], kind)})
    assert refused_append(log, rows, UsageError).fields["column"] == "s..a"


@pytest.mark.parametrize(
    "metadata",
    [{"delta.invariants": '{"expression":{"expression":"s.a > 3"}}'}, {"CURRENT_DEFAULT": "5"}],
)
def test_rules_of_a_field_in_a_struct_need_spark_too(tmp_path, metadata):
    inner = {"name": "a", "type": "long", "nullable": True, "metadata": metadata}
    other = {**inner, "name": "z", "metadata": {}}
    log = table_of(
        tmp_path,
        [("s", {"type": "struct", "fields": [inner, other]}, {})],
        configuration={"delta.feature.allowColumnDefaults": "supported"},
    )
    error = refused_append(log, pa.table({"s": [{"z": 1}]}), UsageError)
    assert error.kind == "OPTIMIST_NEEDS_SPARK"


DECLARED = "__CHAR_VARCHAR_TYPE_STRING"


def test_declared_lengths_are_kept_without_spark(tmp_path):
    fields = [
        ("c", "string", {"metadata": {DECLARED: "char(4)"}}),
        ("v", "string", {"metadata": {DECLARED: "varchar(3)"}}),
    ]
    log = table_of(tmp_path, fields)
    log.append(pa.table({"c": ["ab", None, "äö    "], "v": ["abc  ", None, "ä"]}))
    rows = log.to_arrow()
    assert rows["c"].to_pylist() == ["ab  ", None, "äö  "]
    assert rows["v"].to_pylist() == ["abc", None, "ä"]


@pytest.mark.parametrize("declared", ["char(3)", "varchar(3)"])
def test_texts_longer_than_declared_are_refused_without_spark(tmp_path, declared):
    log = table_of(tmp_path, [("v", "string", {"metadata": {DECLARED: declared}})])
    error = refused_append(log, pa.table({"v": ["abc", "abcd"]}), SchemaError)
    assert (error.kind, error.fields["column"]) == ("DELTA_EXCEED_CHAR_VARCHAR_LIMIT", "v")


def nested_texts():
    """A column of every nested type, and how it was declared."""
    parts = [("a b", "string"), ("n", "long"), ("l", {"type": "array", "elementType": "string"})]
    struct = {
        "type": "struct",
        "fields": [{"name": name, "type": kind, "metadata": {}} for name, kind in parts],
    }
    outer = {"type": "map", "keyType": "string", "valueType": struct}
    return outer, "map<char(2),struct<`a b`:varchar(3),n:bigint,l:array<char(2)>>>"


def test_declared_lengths_inside_nested_types_are_kept_without_spark(tmp_path):
    kind, declared = nested_texts()
    mapping = {"delta.columnMapping.mode": "name"}
    log = table_of(
        tmp_path, [("m", kind, {"metadata": {DECLARED: declared}})], configuration=mapping
    )
    inner = pa.struct([("a b", pa.string()), ("n", pa.int64()), ("l", pa.list_(pa.string()))])
    one = {"a b": "abc  ", "n": 1, "l": ["x", None]}
    maps = [[("k", one), ("l", None)], None, [], [("k2  ", {"a b": None, "n": None, "l": None})]]
    log.append(pa.table({"m": pa.array([None, *maps], pa.map_(pa.string(), inner)).slice(1)}))
    assert log.to_arrow()["m"].to_pylist() == [
        [("k ", {"a b": "abc", "n": 1, "l": ["x ", None]}), ("l ", None)],
        None,
        [],
        [("k2", {"a b": None, "n": None, "l": None})],
    ]
    long = {"a b": "abcd", "n": 1, "l": []}
    with pytest.raises(SchemaError) as caught:
        log.append(pa.table({"m": pa.array([[("k", long)]], pa.map_(pa.string(), inner))}))
    assert caught.value.fields == {"column": "m.value.a b", "type": "varchar(3)"}
    assert log.snapshot().version == 1


@pytest.mark.parametrize(
    "declared",
    ["array<varchar(3)", "array<varchar(3)>>", "array<int>", "varchar(3)", "map<int,char(2)>", "x"],
)
def test_a_declared_type_that_is_not_the_columns_is_refused_without_spark(tmp_path, declared):
    texts = {"type": "array", "elementType": "string", "containsNull": True}
    log = table_of(tmp_path, [("v", texts, {"metadata": {DECLARED: declared}})])
    error = refused_append(log, pa.table({"v": [["a"]]}), SchemaError)
    assert error.kind == "OPTIMIST_NESTED_CHAR_VARCHAR"


def clustered(path, columns):
    """An empty table of 40 columns that is clustered."""
    fields = [(f"c{number}", "long", {}) for number in range(40)]
    log = table_of(path, fields)
    domain = DomainMetadata("delta.clustering", json.dumps({"clusteringColumns": columns}))
    features = ("appendOnly", "clustering", "domainMetadata", "invariants")
    protocol = Protocol(1, 7, None, features)
    log.start_transaction().commit([protocol, domain], Operation("CLUSTER BY"))
    return log


@pytest.mark.parametrize("columns", [[["c35"]], ["c35"]])
def test_clustering_columns_always_have_statistics(tmp_path, columns):
    log = clustered(tmp_path, columns)
    log.append(pa.table({f"c{number}": [number] for number in range(40)}))
    minimums = json.loads(log.snapshot().files["stats"][0].as_py())["minValues"]
    assert [*minimums] == [*(f"c{number}" for number in range(32)), "c35"]


def test_files_of_tables_that_may_have_deletion_vectors_say_that_their_bounds_are_tight(tmp_path):
    log = table_of(
        tmp_path, [("x", "long", {})], configuration={"delta.enableDeletionVectors": "true"}
    )
    log.append(pa.table({"x": [1]}))
    assert json.loads(log.snapshot().files["stats"][0].as_py())["tightBounds"] is True


def test_partitions_by_timestamps_in_the_zone_of_the_session_are_refused(tmp_path):
    key = "spark.databricks.delta.write.utcTimestampPartitionValues"
    log = DeltaLog.for_path(str(tmp_path), {key: "false"})
    rows = pa.table({"x": [1], "t": pa.array([0], pa.timestamp("us", "UTC"))})
    with pytest.raises(ConfigError) as caught:
        log.append(rows, partition_by=["t"])
    assert (caught.value.kind, caught.value.fields["key"]) == ("OPTIMIST_UNSUPPORTED_OPTION", key)
    assert log.append(rows).version == 0


@pytest.mark.parametrize(
    ("number", "kind"),
    [
        (errno.ENOSPC, "OPTIMIST_NO_SPACE"),
        (errno.EDQUOT, "OPTIMIST_NO_SPACE"),
        (errno.EROFS, "OPTIMIST_PERMISSION_DENIED"),
        (errno.EACCES, "OPTIMIST_PERMISSION_DENIED"),
        (errno.EIO, "OPTIMIST_STORAGE_FAILED"),
    ],
)
def test_what_a_disk_lacks_is_told_by_its_kind(number, kind):
    with pytest.raises(StorageError) as caught, storage_errors("written", "/t"):
        raise OSError(number, os.strerror(number))
    assert caught.value.kind == kind
