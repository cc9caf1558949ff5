"""CONVERT TO DELTA of tables of Iceberg: columns by their ids, partitions, and what is refused."""

from __future__ import annotations

import datetime as dt
import json
import shutil
import sys
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyiceberg import manifest as manifests
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.transforms import BucketTransform, IdentityTransform
from pyiceberg.types import (
    FixedType,
    IntegerType,
    LongType,
    NestedField,
    StringType,
    StructType,
    TimeType,
    UUIDType,
)

from iceberg_tables import IcebergFolder
from optimist.core import Column, DeltaLog, NewColumn
from optimist.core.errors import OptimistError
from optimist.core.maintenance.convert import iceberg_files

PLAIN = pa.schema([("id", pa.int64()), ("x", pa.string())])


@pytest.fixture
def iceberg(tmp_path):
    folder = IcebergFolder(tmp_path)
    yield folder
    folder.close()


def place(table) -> Path:
    return Path(table.location().removeprefix("file://"))


def log_of(table) -> DeltaLog:
    return DeltaLog.for_path(str(place(table)))


def converted(table) -> DeltaLog:
    log = log_of(table)
    done = log.convert(source_format="iceberg")
    assert done is not None
    assert done.version == 0
    return log


def sorted_rows(rows: pa.Table) -> list[dict[str, object]]:
    return rows.sort_by("id").to_pylist()


def rows_of(table) -> list[dict[str, object]]:
    return sorted_rows(table.scan().to_arrow())


def adds(table) -> list[dict[str, object]]:
    text = (place(table) / "_delta_log" / f"{0:020}.json").read_text("utf-8")
    return [each["add"] for each in map(json.loads, text.splitlines()) if "add" in each]


def refusal(table, **given: object) -> OptimistError:
    log = log_of(table)
    with pytest.raises(OptimistError) as caught:
        log.convert(**{"source_format": "iceberg", **given})
    assert not log.table_exists()
    return caught.value


def metadata_files(table) -> list[Path]:
    return sorted((place(table) / "metadata").glob("*.metadata.json"))


def test_a_table_keeps_its_rows_and_goes_on_as_one_of_delta(iceberg):
    table = iceberg.create("t", PLAIN)
    table.append(pa.table({"id": [1, 2], "x": ["a", None]}, schema=PLAIN))
    table.append(pa.table({"id": [3], "x": ["c"]}, schema=PLAIN))
    before = rows_of(table)
    log = converted(table)
    assert sorted_rows(log.to_arrow()) == before
    record = log.history()[0].info
    assert record is not None
    assert record.operation_parameters == {
        "numFiles": 2,
        "partitionedBy": "[]",
        "collectStats": True,
        "sourceFormat": "iceberg",
    }
    assert log.convert(source_format="iceberg") is None
    log.append(pa.table({"id": [4], "x": ["d"]}))
    log.delete("id = 1")
    log.optimize()
    assert [row["id"] for row in sorted_rows(log.to_arrow())] == [2, 3, 4]


def test_columns_are_found_by_their_ids_however_they_are_called(iceberg):
    schema = pa.schema([*PLAIN, ("s", pa.struct([("a", pa.int32()), ("b", pa.int32())]))])
    table = iceberg.create("t", schema)
    old = {"id": [1, 2], "x": ["a", "b"], "s": [{"a": 1, "b": 2}, None]}
    table.append(pa.table(old, schema=schema))
    with table.update_schema() as change:
        change.rename_column("x", "y")
        change.rename_column("s.a", "c")
        change.delete_column("s.b")
    with table.update_schema() as change:
        change.add_column("x", IntegerType())
        change.add_column(("s", "b"), StringType())
    new = pa.table(
        {"id": [3], "y": ["c"], "s": [{"c": 3, "b": "new"}], "x": [7]},
        schema=table.schema().as_arrow(),
    )
    table.append(new)
    before = rows_of(table)
    log = converted(table)
    assert sorted_rows(log.to_arrow()) == before
    assert log.to_arrow("y = 'b'")["id"].to_pylist() == [2]
    assert log.to_arrow("x IS NULL").num_rows == 2
    assert log.to_arrow("s.c = 1")["id"].to_pylist() == [1]
    assert log.to_arrow("s.b = 'new'")["id"].to_pylist() == [3]
    physical = {item.name: item.physical_name for item in log.snapshot().schema}
    stats = [json.loads(str(add["stats"])) for add in adds(table)]
    assert sorted(each["nullCount"][physical["x"]] for each in stats) == [0, 2]
    assert sorted(each["minValues"][physical["y"]] for each in stats) == ["a", "c"]


def test_a_column_that_was_dropped_does_not_come_back_in_a_new_one(iceberg):
    table = iceberg.create("t", PLAIN)
    table.append(pa.table({"id": [1], "x": ["a"]}, schema=PLAIN))
    with table.update_schema() as change:
        change.delete_column("x")
    log = converted(table)
    log.alter.add_columns([NewColumn("x", "string"), NewColumn("z", "string")])
    assert log.to_arrow().to_pylist() == [{"id": 1, "x": None, "z": None}]


def test_partitions_by_values_of_every_type_are_carried_over(iceberg):
    values = {
        "s": (pa.string(), ["a b/c", None]),
        "i": (pa.int32(), [-7, None]),
        "d": (pa.date32(), [dt.date(1960, 2, 29), None]),
        "n": (pa.decimal128(9, 2), [Decimal("-0.50"), None]),
        "b": (pa.bool_(), [True, None]),
        "w": (pa.timestamp("us"), [dt.datetime(1969, 12, 31, 23, 59, 59, 7), None]),
        "z": (
            pa.timestamp("us", tz="UTC"),
            [dt.datetime(2020, 1, 1, 12, tzinfo=dt.timezone.utc), None],
        ),
        "f": (pa.float64(), [-0.25, None]),
    }
    schema = pa.schema([("id", pa.int64()), *((name, kind) for name, (kind, _) in values.items())])
    table = iceberg.create("t", schema)
    with table.update_spec() as change:
        for name in values:
            change.add_identity(name)
    rows = {"id": [1, 2], **{name: each for name, (_, each) in values.items()}}
    table.append(pa.table(rows, schema=schema))
    before = rows_of(table)
    log = converted(table)
    assert log.snapshot().partition_columns == tuple(values)
    assert sorted_rows(log.to_arrow()) == before
    for predicate in ("s = 'a b/c'", "i < 0", "d < DATE'1970-01-01'", "n = -0.5", "b", "f < 0"):
        assert log.to_arrow(predicate)["id"].to_pylist() == [1], predicate


def test_a_renamed_partition_column_keeps_its_values(iceberg):
    table = iceberg.create("t", PLAIN)
    with table.update_spec() as change:
        change.add_identity("x")
    table.append(pa.table({"id": [1, 2], "x": ["a", "b"]}, schema=PLAIN))
    with table.update_schema() as change:
        change.rename_column("x", "renamed")
    log = converted(table)
    assert log.snapshot().partition_columns == ("renamed",)
    assert log.to_arrow("renamed = 'b'").to_pylist() == [{"id": 2, "renamed": "b"}]


def test_a_table_without_rows_becomes_one_without_files(iceberg):
    log = converted(iceberg.create("t", PLAIN, properties={"comment": "says"}))
    assert log.to_arrow().num_rows == 0
    assert log.snapshot().metadata.description == "says"
    log.append(pa.table({"id": [1], "x": ["a"]}))
    assert log.count() == 1


def test_required_columns_stay_required(iceberg):
    schema = Schema(
        NestedField(1, "id", LongType(), required=True), NestedField(2, "x", LongType())
    )
    log = converted(iceberg.create("t", schema))
    assert [item.nullable for item in log.snapshot().schema] == [False, True]


def test_the_version_of_a_metadata_file_is_converted(iceberg):
    table = iceberg.create("t", PLAIN)
    table.append(pa.table({"id": [1], "x": ["a"]}, schema=PLAIN))
    name = metadata_files(table)[-1].name
    table.append(pa.table({"id": [2], "x": ["b"]}, schema=PLAIN))
    log = log_of(table)
    assert log.convert(source_format="iceberg", metadata_file=name) is not None
    assert log.to_arrow()["id"].to_pylist() == [1]


def test_of_two_newest_versions_none_is_taken(iceberg):
    table = iceberg.create("t", PLAIN)
    newest = metadata_files(table)[-1]
    shutil.copy(newest, newest.with_name("00000-lost.metadata.json"))
    assert refusal(table).kind == "OPTIMIST_AMBIGUOUS_ICEBERG_TABLE"


def test_statistics_can_be_left_out(iceberg):
    table = iceberg.create("t", PLAIN)
    table.append(pa.table({"id": [1], "x": ["a"]}, schema=PLAIN))
    assert log_of(table).convert(source_format="iceberg", collect_statistics=False) is not None
    assert "stats" not in adds(table)[0]
    assert log_of(table).count() == 1


@pytest.mark.parametrize("kind", [TimeType(), UUIDType(), FixedType(4)], ids=str)
def test_a_type_that_delta_lacks_is_refused_by_its_column(iceberg, kind):
    inner = StructType(NestedField(3, "odd", kind))
    schema = Schema(NestedField(1, "id", LongType()), NestedField(2, "s", inner))
    error = refusal(iceberg.create("t", schema))
    assert error.kind == "OPTIMIST_INCOMPATIBLE_ICEBERG_TABLE"
    assert "s.odd" in str(error.fields["feature"])


def test_partitions_by_a_transform_are_refused(iceberg):
    schema = Schema(NestedField(1, "id", LongType()))
    spec = PartitionSpec(PartitionField(1, 1000, BucketTransform(4), "id_bucket"))
    error = refusal(iceberg.create("t", schema, partition_spec=spec))
    assert error.kind == "OPTIMIST_INCOMPATIBLE_ICEBERG_TABLE"
    assert "bucket[4]" in str(error.fields["feature"])


@pytest.mark.parametrize("kind", [pa.string(), pa.binary()])
def test_an_empty_text_as_a_partition_is_refused(iceberg, kind):
    """A log has it as null."""
    schema = pa.schema([("id", pa.int64()), ("x", kind)])
    table = iceberg.create("t", schema)
    with table.update_spec() as change:
        change.add_identity("x")
    table.append(pa.table({"id": [1, 2], "x": [b"", b"a"]}, schema=schema))
    error = refusal(table)
    assert error.kind == "OPTIMIST_INCOMPATIBLE_ICEBERG_TABLE"
    assert "column x" in str(error.fields["feature"])


def test_partitions_by_a_field_of_a_struct_are_refused(iceberg):
    inner = StructType(NestedField(2, "a", LongType()))
    schema = Schema(NestedField(1, "s", inner))
    spec = PartitionSpec(PartitionField(2, 1000, IdentityTransform(), "a"))
    assert "s.a" in str(refusal(iceberg.create("t", schema, partition_spec=spec)).fields["feature"])


def test_files_of_an_older_partitioning_are_refused(iceberg):
    table = iceberg.create("t", PLAIN)
    table.append(pa.table({"id": [1], "x": ["a"]}, schema=PLAIN))
    with table.update_spec() as change:
        change.add_identity("x")
    table.append(pa.table({"id": [2], "x": ["b"]}, schema=PLAIN))
    assert "older partitioning" in str(refusal(table).fields["feature"])


def test_a_partitioning_that_was_changed_before_there_were_files_is_carried_over(iceberg):
    table = iceberg.create("t", PLAIN)
    with table.update_spec() as change:
        change.add_identity("x")
    with table.update_spec() as change:
        change.remove_field("x")
    table.append(pa.table({"id": [1], "x": ["a"]}, schema=PLAIN))
    assert converted(table).to_arrow().to_pylist() == [{"id": 1, "x": "a"}]


def test_deleted_rows_are_refused(iceberg):
    table = iceberg.create("t", PLAIN)
    table.append(pa.table({"id": [1], "x": ["a"]}, schema=PLAIN))
    with_deletes(table)
    assert "deleted rows" in str(refusal(table).fields["feature"])


def with_deletes(table) -> None:
    """Add a manifest of position deletes, which pyiceberg itself does not write."""

    class Deletes(manifests.ManifestWriterV2):
        def content(self):
            return manifests.ManifestContent.DELETES

        @property
        def _meta(self):
            return {**super()._meta, "content": "deletes"}

    snapshot = table.current_snapshot()
    number = snapshot.snapshot_id
    found = snapshot.manifests(table.io)
    (entry,) = found[0].fetch_manifest_entry(table.io)
    output = table.io.new_output(f"{table.location()}/metadata/deletes.avro")
    with Deletes(table.spec(), table.schema(), output, number, "null") as writer:
        file = manifests.DataFile.from_args(
            content=manifests.DataFileContent.POSITION_DELETES,
            file_path=entry.data_file.file_path,
            file_format=manifests.FileFormat.PARQUET,
            partition=entry.data_file.partition,
            record_count=1,
            file_size_in_bytes=1,
        )
        added = manifests.ManifestEntryStatus.ADDED
        writer.add_entry(
            manifests.ManifestEntry.from_args(status=added, snapshot_id=number, data_file=file)
        )
    output = table.io.new_output(snapshot.manifest_list)
    sequence = snapshot.sequence_number
    with manifests.write_manifest_list(2, output, number, None, sequence, "null") as every:
        every.add_manifests([*found, writer.to_manifest_file()])


def test_files_outside_the_directory_are_refused(iceberg, tmp_path):
    table = iceberg.create("t", PLAIN, properties={"write.data.path": f"file://{tmp_path}/other"})
    table.append(pa.table({"id": [1], "x": ["a"]}, schema=PLAIN))
    assert "outside its directory" in str(refusal(table).fields["feature"])


def test_a_table_that_was_moved_is_refused(iceberg, tmp_path):
    table = iceberg.create("t", PLAIN)
    table.append(pa.table({"id": [1], "x": ["a"]}, schema=PLAIN))
    shutil.move(place(table), tmp_path / "moved")
    with pytest.raises(OptimistError) as caught:
        DeltaLog.for_path(str(tmp_path / "moved")).convert(source_format="iceberg")
    assert "outside its directory" in str(caught.value.fields["feature"])


def test_a_metadata_file_elsewhere_is_not_opened(iceberg, tmp_path):
    table = iceberg.create("t", PLAIN)
    other = iceberg.create("other", PLAIN)
    name = f"../../other/metadata/{metadata_files(other)[-1].name}"
    assert "outside its directory" in str(refusal(table, metadata_file=name).fields["feature"])


def test_files_without_ids_are_refused(iceberg, tmp_path):
    table = iceberg.create("t", PLAIN)
    path = place(table) / "data" / "theirs.parquet"
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table({"id": [1], "x": ["a"]}, schema=PLAIN), path)
    table.add_files([str(path)])
    error = refusal(table)
    assert error.kind == "OPTIMIST_DATA_FILE_WITHOUT_IDS"
    assert error.fields["path"] == str(path)


def test_files_of_a_type_that_was_widened_since_are_refused(iceberg):
    schema = pa.schema([("id", pa.int64()), ("s", pa.struct([("a", pa.int32())]))])
    table = iceberg.create("t", schema)
    table.append(pa.table({"id": [1], "s": [{"a": 1}]}, schema=schema))
    with table.update_schema() as change:
        change.update_column("s.a", LongType())
    error = refusal(table)
    assert error.kind == "DELTA_FAILED_TO_MERGE_FIELDS"
    assert "s.a" in str(error)


def test_a_newer_format_is_refused(iceberg):
    table = iceberg.create("t", PLAIN)
    newest = metadata_files(table)[-1]
    told = json.loads(newest.read_text("utf-8"))
    newest.write_text(json.dumps({**told, "format-version": 3, "next-row-id": 0}), "utf-8")
    assert "format version 3" in str(refusal(table).fields["feature"])


def test_the_partitioning_is_not_to_be_given(iceberg):
    error = refusal(iceberg.create("t", PLAIN), partition_columns=[Column("x", "string")])
    assert error.kind == "DELTA_PARTITION_SCHEMA_IN_ICEBERG_TABLES"


def test_a_table_that_is_written_to_meanwhile_is_refused(iceberg, monkeypatch):
    table = iceberg.create("t", PLAIN)
    found = iter(["00000-first.metadata.json", "00001-second.metadata.json"])
    newest = metadata_files(table)[-1]
    newest.rename(newest.with_name("00000-first.metadata.json"))
    monkeypatch.setattr(iceberg_files, "newest_metadata", lambda _: next(found))
    assert refusal(table).kind == "OPTIMIST_DIRECTORY_BEING_WRITTEN"


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"format-version": 2}', "\xff"])
def test_metadata_that_are_damaged_are_told(iceberg, text):
    table = iceberg.create("t", PLAIN)
    metadata_files(table)[-1].write_text(text, encoding="latin-1")
    assert refusal(table).kind == "OPTIMIST_DAMAGED_ICEBERG_TABLE"


def test_a_manifest_that_is_damaged_is_told(iceberg):
    table = iceberg.create("t", PLAIN)
    table.append(pa.table({"id": [1], "x": ["a"]}, schema=PLAIN))
    for path in (place(table) / "metadata").glob("*-m0.avro"):
        path.write_bytes(path.read_bytes()[:-30])
    assert refusal(table).kind == "OPTIMIST_DAMAGED_ICEBERG_TABLE"


def test_a_manifest_that_is_gone_is_told(iceberg):
    table = iceberg.create("t", PLAIN)
    table.append(pa.table({"id": [1], "x": ["a"]}, schema=PLAIN))
    for path in (place(table) / "metadata").glob("*-m0.avro"):
        path.unlink()
    assert refusal(table).kind == "OPTIMIST_STORAGE_FAILED"


def test_a_directory_that_is_no_table_of_iceberg_is_told(tmp_path):
    with pytest.raises(OptimistError) as caught:
        DeltaLog.for_path(str(tmp_path)).convert(source_format="iceberg")
    assert caught.value.kind == "DELTA_EMPTY_DIRECTORY"


def test_another_format_is_refused(tmp_path):
    with pytest.raises(OptimistError) as caught:
        DeltaLog.for_path(str(tmp_path)).convert(source_format="hudi")
    assert caught.value.kind == "DELTA_CONVERT_NON_PARQUET_TABLE"


def test_a_missing_package_is_named(iceberg, monkeypatch):
    table = iceberg.create("t", PLAIN)
    monkeypatch.delitem(
        sys.modules, "optimist.core.maintenance.convert.iceberg_metadata", raising=False
    )
    monkeypatch.setitem(sys.modules, "pyiceberg.manifest", None)
    error = refusal(table)
    assert error.kind == "OPTIMIST_MISSING_PACKAGE"
    assert "optimist[iceberg]" in str(error)
