"""CONVERT TO DELTA without Spark: files, partitions, schemas, statistics, and what is refused."""

from __future__ import annotations

import datetime as dt
import json
import os
import threading
import time
from decimal import Decimal
from pathlib import Path

import deltalake
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from optimist.core import Column, DeltaLog
from optimist.core.data.partition_values import partition_directory
from optimist.core.errors import OptimistError, UsageError
from optimist.core.maintenance.convert import convert as converting
from optimist.core.maintenance.convert.conversion_commit import ConvertRequest
from optimist.core.maintenance.convert.convert import convert
from optimist.core.runtime.clock import SystemClock
from optimist.core.statements.conversions import format_of_files

ODD = ["a b", "50%", "x=y/z", "ünï", "", None]


def at(path: Path) -> DeltaLog:
    return DeltaLog.for_path(str(path))


def put(path: Path, table: pa.Table, **options: object) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(table, path, **options)


def adds(path: Path) -> list[dict[str, object]]:
    lines = (path / "_delta_log" / f"{0:020}.json").read_text("utf-8").splitlines()
    return [each["add"] for each in map(json.loads, lines) if "add" in each]


def kind_of(path: Path, *columns: Column, **given: object) -> str:
    before = sorted(path.rglob("*"))
    with pytest.raises(OptimistError) as caught:
        at(path).convert(columns, **given)
    assert not at(path).table_exists()
    assert sorted(path.rglob("*")) == before
    return caught.value.kind


def test_a_directory_becomes_a_table_over_the_same_files(tmp_path):
    put(tmp_path / "a.parquet", pa.table({"id": [1, 2], "x": ["p", None]}))
    put(tmp_path / "deep" / "b.parquet", pa.table({"id": [3], "x": ["q"]}))
    put(tmp_path / "_hidden" / "c.parquet", pa.table({"id": [9]}))
    put(tmp_path / ".hidden.parquet", pa.table({"id": [9]}))
    (tmp_path / "_SUCCESS").touch()
    done = at(tmp_path).convert()
    assert done is not None
    assert done.version == 0
    assert sorted(at(tmp_path).to_arrow()["id"].to_pylist()) == [1, 2, 3]
    assert [add["path"] for add in adds(tmp_path)] == ["a.parquet", "deep/b.parquet"]
    assert json.loads(str(adds(tmp_path)[0]["stats"])) == {
        "numRecords": 2,
        "minValues": {"id": 1, "x": "p"},
        "maxValues": {"id": 2, "x": "p"},
        "nullCount": {"id": 0, "x": 1},
    }
    record = at(tmp_path).history()[0].info
    assert record is not None
    assert record.operation == "CONVERT"
    assert record.operation_parameters == {
        "numFiles": 2,
        "partitionedBy": "[]",
        "collectStats": True,
        "sourceFormat": "parquet",
    }
    assert record.operation_metrics == {"numConvertedFiles": "2"}
    assert deltalake.DeltaTable(str(tmp_path)).to_pyarrow_table().num_rows == 3
    assert at(tmp_path).convert() is None
    at(tmp_path).delete("id = 2")
    at(tmp_path).append(pa.table({"id": [4], "x": ["r"]}))
    assert sorted(at(tmp_path).to_arrow()["id"].to_pylist()) == [1, 3, 4]


def test_partitions_are_read_from_odd_directories(tmp_path):
    for i in range(12):
        directory = partition_directory({"p": ODD[i % 6], "q": "1"})
        put(tmp_path / directory / f"{i}.parquet", pa.table({"id": [i]}))
    put(tmp_path / "p=__HIVE_DEFAULT_PARTITION__" / "q=007" / "n.parquet", pa.table({"id": [99]}))
    at(tmp_path).convert([Column("P", "string"), Column("q", "int")])
    table = at(tmp_path).to_arrow().sort_by("id")
    assert table.column_names == ["id", "P", "q"]
    found = dict(zip(table["id"].to_pylist(), table["P"].to_pylist(), strict=True))
    assert found == {**{i: ODD[i % 6] or None for i in range(12)}, 99: None}
    assert table["q"].to_pylist()[-1] == 7
    assert sorted(at(tmp_path).to_arrow("P = '50%'")["id"].to_pylist()) == [1, 7]
    assert at(tmp_path).to_arrow("q = 7")["id"].to_pylist() == [99]
    assert deltalake.DeltaTable(str(tmp_path)).to_pyarrow_table().num_rows == len(found)


def test_times_and_dates_are_partition_values(tmp_path):
    name = "t=2020-01-01 10%3A00%3A00.5"
    put(tmp_path / name / "d=2020-02-03" / "a.parquet", pa.table({"id": [1]}))
    at(tmp_path).convert([Column("t", "timestamp"), Column("d", "date")])
    (row,) = at(tmp_path).to_arrow().to_pylist()
    assert row["d"] == dt.date(2020, 2, 3)
    assert row["t"] == dt.datetime(2020, 1, 1, 10, 0, 0, 500_000, tzinfo=dt.timezone.utc)


def test_wrong_partition_columns_are_refused_by_name(tmp_path):
    put(tmp_path / "p=a" / "q=1" / "a.parquet", pa.table({"id": [1]}))
    p, q = Column("p", "string"), Column("q", "int")
    number = "DELTA_UNEXPECTED_NUM_PARTITION_COLUMNS_FROM_FILE_NAME"
    assert kind_of(tmp_path) == number
    assert kind_of(tmp_path, p) == number
    assert kind_of(tmp_path, q, p) == "DELTA_UNEXPECTED_PARTITION_COLUMN_FROM_FILE_NAME"
    wrong = (Column("p", "int"), q)
    assert kind_of(tmp_path, *wrong) == "DELTA_FAILED_CAST_PARTITION_VALUE"
    put(tmp_path / "p=__HIVE_DEFAULT_PARTITION__" / "q=1" / "b.parquet", pa.table({"id": [2]}))
    never_null = (Column("p", "string", nullable=False), q)
    assert kind_of(tmp_path, *never_null) == "DELTA_NOT_NULL_CONSTRAINT_VIOLATED"


def test_a_partition_column_in_the_files_too_has_the_directorys_value(tmp_path):
    put(tmp_path / "x=1" / "a.parquet", pa.table({"x": pa.array([7, 7], pa.int64()), "id": [1, 2]}))
    at(tmp_path).convert([Column("x", "int")])
    assert at(tmp_path).to_arrow().sort_by("id").to_pydict() == {"x": [1, 1], "id": [1, 2]}
    assert "x" not in json.loads(str(adds(tmp_path)[0]["stats"]))["nullCount"]


def test_columns_of_all_files_are_merged(tmp_path):
    put(tmp_path / "a.parquet", pa.table({"id": pa.array([1], pa.int8()), "s": [{"a": 1}]}))
    put(tmp_path / "b.parquet", pa.table({"s": [{"b": "x"}], "id": pa.array([300], pa.int32())}))
    put(tmp_path / "c.parquet", pa.table({"ID": pa.array([7], pa.int32()), "new": [1.5]}))
    at(tmp_path).convert()
    log = at(tmp_path)
    assert str(log.snapshot().schema) == "struct<id:integer,s:struct<a:long,b:string>,new:double>"
    found = sorted(log.to_arrow().to_pylist(), key=lambda row: row["id"])
    assert found == [
        {"id": 1, "s": {"a": 1, "b": None}, "new": None},
        {"id": 7, "s": None, "new": 1.5},
        {"id": 300, "s": {"a": None, "b": "x"}, "new": None},
    ]
    first, _, third = (json.loads(str(add["stats"])) for add in adds(tmp_path))
    assert first["nullCount"] == {"id": 0, "s": {"a": 0, "b": 1}, "new": 1}
    # Its column has another spelling.
    assert third == {"numRecords": 1, "minValues": {}, "maxValues": {}, "nullCount": {}}
    assert log.to_arrow("id = 7").num_rows == 1
    assert log.to_arrow("new IS NOT NULL").num_rows == 1


@pytest.mark.parametrize("other", [pa.array(["x"]), pa.array([1], pa.int64()), pa.array([[1]])])
def test_columns_that_do_not_go_together_are_named_with_their_file(tmp_path, other):
    put(tmp_path / "a.parquet", pa.table({"id": pa.array([1], pa.int32())}))
    put(tmp_path / "b.parquet", pa.table({"id": other}))
    with pytest.raises(OptimistError) as caught:
        at(tmp_path).convert()
    assert caught.value.kind == "DELTA_FAILED_TO_MERGE_FIELDS"
    assert caught.value.fields["columns"] == ("id",)
    assert str(caught.value.fields["path"]).endswith("b.parquet")
    assert not at(tmp_path).table_exists()


def test_types_are_those_that_the_files_store(tmp_path):
    moment = dt.datetime(2020, 1, 1, 12)
    columns = {
        "small": pa.array([1], pa.int16()),
        "unsigned": pa.array([1], pa.uint32()),
        "money": pa.array([Decimal("1.50")], pa.decimal128(5, 2)),
        "wall": pa.array([moment], pa.timestamp("us")),
        "zoned": pa.array([moment], pa.timestamp("us", tz="UTC")),
        "many": pa.array([[1]], pa.list_(pa.int32())),
        "map": pa.array([[("a", 1)]], pa.map_(pa.string(), pa.int32())),
        "bytes": pa.array([b"x"]),
    }
    put(tmp_path / "a.parquet", pa.table(columns))
    at(tmp_path).convert()
    assert str(at(tmp_path).snapshot().schema) == (
        "struct<small:short,unsigned:long,money:decimal(5,2),wall:timestamp_ntz,zoned:timestamp,"
        "many:array<integer>,map:map<string,integer>,bytes:binary>"
    )
    assert at(tmp_path).to_arrow().num_rows == 1
    assert at(tmp_path).to_arrow()["wall"].to_pylist() == [moment]


def test_old_timestamps_are_points_in_time(tmp_path):
    moment = dt.datetime(2020, 1, 1, 12)
    inner = pa.array([{"t": moment, "n": 1}], pa.struct([("t", pa.timestamp("ns")), ("n", "int8")]))
    rows = pa.table({"a": [1], "s": inner, "t": pa.array([moment], pa.timestamp("ns"))})
    put(tmp_path / "a.parquet", rows, use_deprecated_int96_timestamps=True, store_schema=False)
    at(tmp_path).convert()
    schema = str(at(tmp_path).snapshot().schema)
    assert schema == "struct<a:long,s:struct<t:timestamp,n:byte>,t:timestamp>"
    found = at(tmp_path).to_arrow()["t"].to_pylist()
    assert found == [moment.replace(tzinfo=dt.timezone.utc)]


@pytest.mark.parametrize(
    ("column", "path"),
    [
        (pa.array([1], pa.timestamp("ns")), "x"),
        (pa.array([[{"t": 1}]], pa.list_(pa.struct([("t", pa.timestamp("ns", "UTC"))]))), "x.list"),
        (pa.array([1.5], pa.float16()), "x"),
    ],
    ids=["ns", "nested ns", "float16"],
)
def test_a_column_that_spark_cannot_read_is_named(tmp_path, column, path):
    put(tmp_path / "a.parquet", pa.table({"id": [1], "x": column}))
    with pytest.raises(
        OptimistError, match=rf"column {path}.* which Spark does not read"
    ) as caught:
        at(tmp_path).convert()
    assert caught.value.kind == "DELTA_UNSUPPORTED_DATA_TYPES"
    assert not at(tmp_path).table_exists()


def test_files_that_arrow_shows_alike_are_told_apart(tmp_path):
    rows = pa.table({"t": pa.array([dt.datetime(2020, 1, 1)], pa.timestamp("ns"))})
    put(tmp_path / "a.parquet", rows, use_deprecated_int96_timestamps=True)
    put(tmp_path / "b.parquet", rows)
    read = [pq.read_metadata(tmp_path / name).schema for name in ("a.parquet", "b.parquet")]
    assert read[0].to_arrow_schema() == read[1].to_arrow_schema()
    assert kind_of(tmp_path) == "DELTA_UNSUPPORTED_DATA_TYPES"


def test_statistics_of_many_files_alike_are_each_its_own(tmp_path):
    for place in range(300):
        odd = {"y": [place, 1]} if place % 100 == 50 else {}
        put(tmp_path / f"{place:03}.parquet", pa.table({"x": [place, None]} | odd))
    at(tmp_path).convert()
    stats = [json.loads(str(add["stats"])) for add in adds(tmp_path)]
    assert [each["minValues"]["x"] for each in stats] == list(range(300))
    assert {each["nullCount"]["y"] for each in stats} == {0, 2}


def test_without_statistics_the_log_has_none(tmp_path):
    put(tmp_path / "a.parquet", pa.table({"id": [1]}))
    at(tmp_path).convert(collect_statistics=False)
    assert "stats" not in adds(tmp_path)[0]
    assert at(tmp_path).to_arrow()["id"].to_pylist() == [1]


def test_what_a_footer_notes_of_another_table_does_not_become_this_tables(tmp_path):
    """Files of Delta tables and of Spark carry schemas, with rules that mean nothing here."""
    noted = {"delta.generationExpression": "1", "delta.identity.start": "1", "comment": "x"}
    field = pa.field("id", pa.int64(), nullable=False, metadata=noted)
    schema = pa.schema([field], metadata={
        "org.apache.spark.sql.parquet.row.metadata": '{"type":"struct","fields":[{"name":"id",'
        '"type":"string","nullable":false,"metadata":{}}]}'
    })  # fmt: skip
    put(tmp_path / "a.parquet", pa.table({"id": pa.array([1])}, schema=schema))
    at(tmp_path).convert()
    (column,) = at(tmp_path).snapshot().schema
    assert (str(column.data_type), column.nullable, dict(column.metadata)) == ("long", True, {})
    assert at(tmp_path).snapshot().protocol.min_writer_version == 2


@pytest.mark.parametrize(
    "content", [b"", b"x", b"PAR1xxxxPAR1", b"PAR1\xff\xff\xff\xff\xff\xff\xff\x7fPAR1"]
)
def test_what_is_no_parquet_is_named(tmp_path, content):
    put(tmp_path / "a.parquet", pa.table({"id": [1]}))
    (tmp_path / "b.txt").write_bytes(content)
    assert kind_of(tmp_path) == "OPTIMIST_UNREADABLE_DATA_FILE"


def test_a_truncated_file_and_an_odd_type_are_named(tmp_path):
    put(tmp_path / "a.parquet", pa.table({"id": list(range(1000))}))
    whole = (tmp_path / "a.parquet").read_bytes()
    (tmp_path / "a.parquet").write_bytes(whole[:-20])
    assert kind_of(tmp_path) == "OPTIMIST_UNREADABLE_DATA_FILE"
    put(tmp_path / "a.parquet", pa.table({"t": pa.array([dt.time(1)])}))
    assert kind_of(tmp_path) == "DELTA_UNSUPPORTED_DATA_TYPES"
    put(tmp_path / "a.parquet", pa.table({"b c": [1]}))
    assert kind_of(tmp_path) == "DELTA_INVALID_CHARACTERS_IN_COLUMN_NAMES"
    put(tmp_path / "a.parquet", pa.table({"a": [1], "A": [1]}))
    assert kind_of(tmp_path).startswith("DELTA_DUPLICATE_COLUMNS_FOUND")


def test_directories_that_are_no_one_table_are_refused(tmp_path):
    assert kind_of(tmp_path / "nothing") == "DELTA_EMPTY_DIRECTORY"
    (tmp_path / "empty").mkdir()
    assert kind_of(tmp_path / "empty") == "DELTA_EMPTY_DIRECTORY"
    full = tmp_path / "full"
    put(full / "a.parquet", pa.table({"id": [1]}))
    (full / "_temporary" / "0").mkdir(parents=True)
    (full / "_temporary" / "0" / "x").touch()
    assert kind_of(full) == "OPTIMIST_DIRECTORY_BEING_WRITTEN"
    linked = tmp_path / "linked"
    put(linked / "a.parquet", pa.table({"id": [1]}))
    (linked / "b.parquet").symlink_to(full / "a.parquet")
    assert kind_of(linked) == "OPTIMIST_LINK_WITHIN_DIRECTORY"
    (linked / "b.parquet").unlink()
    (linked / "sub").symlink_to(full)
    assert kind_of(linked) == "OPTIMIST_LINK_WITHIN_DIRECTORY"
    (linked / "sub").unlink()
    Path(os.fsdecode(os.fsencode(linked / "sub") + b"\xff.parquet")).touch()
    assert kind_of(linked) == "OPTIMIST_INVALID_TEXT"
    outer = tmp_path / "outer"
    at(outer / "inner").append(pa.table({"id": [1]}))
    put(outer / "a.parquet", pa.table({"id": [1]}))
    assert kind_of(outer) == "OPTIMIST_TABLE_WITHIN_DIRECTORY"


def test_a_file_that_comes_meanwhile_is_noticed(tmp_path, monkeypatch):
    put(tmp_path / "a.parquet", pa.table({"id": [1]}))
    real = converting.read_footers

    def interrupted(paths, wish):
        found = list(real(paths, wish))
        put(tmp_path / "b.parquet", pa.table({"id": [2]}))
        return found

    with pytest.raises(OptimistError) as caught:
        converting.convert(
            at(tmp_path).start_transaction(), converting.ConvertRequest(), interrupted
        )
    assert caught.value.kind == "OPTIMIST_DIRECTORY_BEING_WRITTEN"
    assert at(tmp_path).convert() is not None
    assert sorted(at(tmp_path).to_arrow()["id"].to_pylist()) == [1, 2]


def test_a_table_has_its_properties_of_the_catalog_but_not_those_of_hive(tmp_path):
    put(tmp_path / "a.parquet", pa.table({"id": [1]}))
    known = {"mine": "1", "option.mine": "2", "transient_lastDdlTime": "1795986842"}
    request = converting.ConvertRequest(properties=known)
    converting.convert(at(tmp_path).start_transaction(), request)
    configuration = at(tmp_path).snapshot().metadata.configuration
    assert configuration == {"mine": "1", "option.mine": "2"}


@pytest.mark.parametrize(
    ("provider", "serde", "found"),
    [
        ("hive", "org.apache.hadoop.hive.ql.io.parquet.serde.ParquetHiveSerDe", "parquet"),
        ("HIVE", "org.apache.hadoop.hive.ql.io.parquet.serde.ParquetHiveSerDe", "parquet"),
        ("hive", "org.apache.hadoop.hive.serde2.lazy.LazySimpleSerDe", "hive"),
        ("hive", None, "hive"),
        ("csv", "org.apache.hadoop.hive.ql.io.parquet.serde.ParquetHiveSerDe", "csv"),
        ("Parquet", None, "Parquet"),
    ],
)
def test_a_table_of_hive_can_be_one_of_parquet(provider, serde, found):
    assert format_of_files(provider, serde) == found


def test_of_two_that_convert_one_wins(tmp_path):
    put(tmp_path / "a.parquet", pa.table({"id": [1]}))
    first, second = (at(tmp_path).start_transaction() for _ in range(2))
    assert converting.convert(first, converting.ConvertRequest()) is not None
    with pytest.raises(OptimistError) as caught:
        converting.convert(second, converting.ConvertRequest())
    assert caught.value.kind == "DELTA_CONCURRENT_WRITE"


def test_the_sessions_defaults_count_but_for_column_mapping(tmp_path):
    defaults = "spark.databricks.delta.properties.defaults."
    put(tmp_path / "a.parquet", pa.table({"id": [1]}))
    mapped = DeltaLog.for_path(str(tmp_path), {f"{defaults}columnMapping.mode": "name"})
    with pytest.raises(OptimistError) as caught:
        mapped.convert()
    assert caught.value.kind == "DELTA_CONVERSION_UNSUPPORTED_COLUMN_MAPPING"
    tracked = DeltaLog.for_path(str(tmp_path), {f"{defaults}enableRowTracking": "true"})
    with pytest.raises(OptimistError) as caught:
        tracked.convert(collect_statistics=False)
    assert caught.value.kind == "DELTA_CONVERT_TO_DELTA_ROW_TRACKING_WITHOUT_STATS"
    assert tracked.convert() is not None
    assert adds(tmp_path)[0]["baseRowId"] == 0


def test_footers_that_are_waited_for_are_read_by_threads_and_come_in_order(tmp_path, monkeypatch):
    readers = set()
    real = converting.FooterReader.__call__

    def slow(self, path):
        readers.add(threading.get_ident())
        SystemClock().sleep(0.01)
        return real(self, path)

    for number in range(40):
        put(tmp_path / f"{number:02}.parquet", pa.table({"id": [number]}))
    with monkeypatch.context() as patched:
        patched.setattr(converting.FooterReader, "__call__", slow)
        assert at(tmp_path).convert() is not None
    assert len(readers) > 2
    found = {add["path"]: json.loads(add["stats"])["minValues"]["id"] for add in adds(tmp_path)}
    assert found == {f"{number:02}.parquet": number for number in range(40)}


def test_footers_that_are_near_are_read_in_one_thread(tmp_path, monkeypatch):
    readers = set()
    real = converting.FooterReader.__call__

    def noting(self, path):
        readers.add(threading.get_ident())
        until = time.thread_time() + 0.002  # work, however busy the machine
        while time.thread_time() < until:
            pass
        return real(self, path)

    monkeypatch.setattr(converting.FooterReader, "__call__", noting)
    monkeypatch.setattr(converting.time, "perf_counter", time.thread_time)  # nothing was waited for
    for number in range(20):
        put(tmp_path / f"{number}.parquet", pa.table({"id": [number]}))
    assert at(tmp_path).convert() is not None
    assert readers == {threading.get_ident()}


class Point(pa.ExtensionType):  # type: ignore[misc]
    """A type that programs register, as those of maps do. Arrow notes it in the files it writes."""

    def __init__(self) -> None:
        kind = pa.struct([("x", pa.int64()), ("y", pa.int64())])
        super().__init__(kind, "optimist.test.point")

    def __arrow_ext_serialize__(self) -> bytes:
        return b""

    @classmethod
    def __arrow_ext_deserialize__(cls, storage: pa.DataType, serialized: bytes) -> Point:
        del storage, serialized
        return cls()


def test_columns_behind_one_of_a_registered_type_have_their_own_statistics(tmp_path):
    kind = Point()
    pa.register_extension_type(kind)
    try:
        points = pa.array([{"x": 1, "y": 2}, {"x": 3, "y": 4}], kind.storage_type)
        rows = {"p": pa.ExtensionArray.from_storage(kind, points), "a": [10, 20], "b": [100, 200]}
        put(tmp_path / "a.parquet", pa.table(rows))
        at(tmp_path).convert()
        (stats,) = (json.loads(str(add["stats"])) for add in adds(tmp_path))
        assert stats["minValues"] == {"p": {"x": 1, "y": 2}, "a": 10, "b": 100}
        assert at(tmp_path).to_arrow("p.x = 3", columns=["b"]).to_pylist() == [{"b": 200}]
    finally:
        pa.unregister_extension_type(kind.extension_name)


def named(path: Path, **properties: str) -> int | None:
    """Convert as for a name of a catalog, which has these properties: the version committed."""
    known = {key.replace("__", "."): text for key, text in properties.items()}
    request = ConvertRequest(catalog_table="shop.files", properties=known)
    done = convert(at(path).start_transaction(), request)
    return None if done is None else done.version


def test_a_name_adds_its_properties_to_a_table_that_was_converted_by_its_path(tmp_path):
    put(tmp_path / "a.parquet", pa.table({"id": [1]}))
    assert at(tmp_path).convert() is not None
    assert named(tmp_path) is None
    assert named(tmp_path, mine="1", delta__appendOnly="true", transient_lastDdlTime="5") == 1
    table = at(tmp_path)
    assert dict(table.snapshot().metadata.configuration) == {
        "mine": "1",
        "delta.appendOnly": "true",
    }
    assert table.history()[0].info.operation_parameters == {
        "numFiles": 0,
        "partitionedBy": "[]",
        "collectStats": False,
        "sourceFormat": "parquet",
        "catalogTable": "shop.files",
    }
    assert named(tmp_path, mine="1", delta__minWriterVersion="2") is None
    with pytest.raises(UsageError) as caught:
        named(tmp_path, mine="2")
    assert caught.value.kind == "DELTA_CONVERT_METASTORE_METADATA_MISMATCH"
    assert table.snapshot().version == 1
