"""Table features on the native plane: deletion vectors, mapped columns, wider types, row ids."""

from __future__ import annotations

import base64
import json
import struct
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pyspark
import pytest
from pyroaring import BitMap64
from pyspark.sql import functions as sf

from optimist.core import DeltaLog
from optimist.core.data.data_paths import DataPaths
from optimist.core.data.deletion_vectors import read_deletion_vector
from optimist.core.errors import TableError
from optimist.core.log.file_table import add_files, files_table
from optimist.core.protocol.actions import DeletionVectorDescriptor
from optimist.spark import DeltaTable, read, write
from optimist.spark.native.file_selection import file_selections
from optimist.spark.native.frame import scan_frame
from optimist.spark.native.row_sets import is_sparse

_MIN_FILES = 100  # below this, no files are told apart
_B85 = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;<=>?@^_`{|}~"
_Z85 = b"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"


class Handmade:
    """A table written action by action, with whatever features its properties say."""

    def __init__(self, root, fields, *, partitions=(), features=(), **configuration):
        self.root = root
        self.version = 0
        (root / "_delta_log").mkdir(parents=True)
        readers = ["deletionVectors", *features]
        writers = [*readers, "rowTracking", "domainMetadata"]
        protocol = {"minReaderVersion": 3, "minWriterVersion": 7}
        metadata = {
            "id": root.name,
            "format": {"provider": "parquet", "options": {}},
            "schemaString": json.dumps({"type": "struct", "fields": fields}),
            "partitionColumns": list(partitions),
            "configuration": {
                f"delta.{key.replace('__', '.')}": value for key, value in configuration.items()
            },
        }
        self.commit(
            {"protocol": {**protocol, "readerFeatures": readers, "writerFeatures": writers}},
            {"metaData": metadata},
        )

    @property
    def path(self):
        return str(self.root)

    def commit(self, *actions):
        name = f"{self.version:020d}.json"
        text = "\n".join(json.dumps(action) for action in actions)
        (self.root / "_delta_log" / name).write_text(text)
        self.version += 1

    def add(self, name, rows, *, deleted=None, vector=None, values=None, stats=None, **more):
        """Write a file and commit it; `deleted` rows become an inline vector."""
        file = self.root / f"{name}.parquet"
        pq.write_table(rows, file, row_group_size=1000)
        vector = vector if deleted is None else inline(deleted)
        action = {
            "path": file.name,
            "partitionValues": values or {},
            "size": file.stat().st_size,
            "modificationTime": 1,
            "dataChange": True,
            "stats": json.dumps({"numRecords": rows.num_rows, **(stats or {})}),
            **({"deletionVector": vector} if vector else {}),
            **more,
        }
        self.commit({"add": action})


def serialized(deleted):
    return struct.pack("<i", 1681511377) + BitMap64(deleted).serialize()


def inline(deleted):
    data = serialized(deleted)
    padded = data + b"\0" * (-len(data) % 4)
    text = base64.b85encode(padded).translate(bytes.maketrans(_B85, _Z85)).decode()
    return {
        "storageType": "i",
        "pathOrInlineDv": text,
        "sizeInBytes": len(data),
        "cardinality": len(deleted),
    }


def field(name, data_type, **metadata):
    return {"name": name, "type": data_type, "nullable": True, "metadata": metadata}


def mapped(name, physical, number, data_type):
    keys = {"delta.columnMapping.physicalName": physical, "delta.columnMapping.id": number}
    return field(name, data_type, **keys)


def struct_of(*fields):
    return {"type": "struct", "fields": list(fields)}


def numbers(start, count):
    ids = pa.array(range(start, start + count), pa.int64())
    return pa.table({"id": ids, "name": [f"n{i}" for i in range(start, start + count)]})


ID, NAME = field("id", "long"), field("name", "string")


def ids(frame):
    return sorted(row.id for row in frame.select("id").collect())


# Deletion vectors

DELETED = {0, 1, 63, 64, 999, 1000, 2500, 4999}


@pytest.fixture
def holes(tmp_path):
    """Five row groups with deleted rows, a file without, and one whose last rows are gone."""
    table = Handmade(tmp_path / "holes", [ID, NAME], enableDeletionVectors="true")
    table.add("a", numbers(0, 5000), deleted=DELETED)
    table.add("b", numbers(5000, 100))
    table.add("c", numbers(6000, 100), deleted=set(range(90, 100)))
    return table


LIVE = sorted((set(range(5000)) - DELETED) | set(range(5000, 5100)) | set(range(6000, 6090)))


def test_deleted_rows_are_gone_and_all_others_are_there(spark, holes):
    assert ids(read(spark, holes.path)) == LIVE


@pytest.mark.parametrize("condition", ["id >= 999", "id % 64 = 0", "name = 'n64'", "id IN (63, 5)"])
def test_filters_over_files_with_vectors_leave_the_right_rows(spark, holes, condition):
    plain = spark.range(7000).withColumn("name", sf.concat(sf.lit("n"), "id"))
    wanted = sorted(set(ids(plain.where(condition))) & set(LIVE))
    assert ids(read(spark, holes.path).where(condition)) == wanted


def test_files_with_vectors_are_split_and_read_by_rows_alike(spark, holes, conf):
    conf("spark.sql.files.maxPartitionBytes", "8000")
    conf("spark.sql.files.openCostInBytes", "1")
    assert read(spark, holes.path).rdd.getNumPartitions() > 5
    assert ids(read(spark, holes.path)) == LIVE
    conf("spark.sql.parquet.enableVectorizedReader", "false")
    conf("spark.sql.codegen.wholeStage", "false")
    assert ids(read(spark, holes.path)) == LIVE


def test_one_frame_serves_query_after_query_with_the_vectors_it_needs(spark, holes):
    frame = read(spark, holes.path)
    assert frame.where("id >= 6000").count() == 90
    assert frame.where("id < 100").count() == 96
    assert frame.count() == len(LIVE)
    assert frame.alias("x").join(frame.alias("y"), "id").count() == len(LIVE)
    assert frame.where("id = 0").unionAll(frame.where("id = 2")).count() == 1


def test_only_files_with_a_vector_pay_for_it(spark, holes, capsys):
    frame = read(spark, holes.path)
    assert sorted(each.num_files for each in file_selections(frame)) == [1, 2]
    frame.explain()
    assert capsys.readouterr().out.count("BitSet@") == 1


def test_a_cached_frame_with_vectors_serves_another_of_the_same_version(spark, holes):
    cached = read(spark, holes.path).cache()
    assert cached.count() == len(LIVE)
    again = read(spark, holes.path).where("id < 10")
    assert "InMemoryTableScan" in again._jdf.queryExecution().executedPlan().toString()
    assert again.count() == 8
    cached.unpersist(blocking=True)


def test_columns_and_metadata_stay_as_they_are_without_vectors(spark, holes):
    frame = read(spark, holes.path)
    assert frame.columns == ["id", "name"]
    found = frame.select("id", "_metadata.file_name", "_metadata.row_index").where("id = 6002")
    assert [tuple(row) for row in found.collect()] == [(6002, "c.parquet", 2)]
    assert frame.groupBy("_metadata.file_name").count().count() == 3


def test_partitions_are_pruned_below_vectors(spark, tmp_path):
    table = Handmade(
        tmp_path / "parts",
        [ID, NAME, field("p", "date")],
        partitions=["p"],
        enableDeletionVectors="true",
    )
    for day in (1, 2, 3):
        table.add(f"f{day}", numbers(10 * day, 10), deleted={day}, values={"p": f"1500-01-0{day}"})
    table.add("g", numbers(90, 10), values={"p": None})
    frame = read(spark, table.path).where("p = '1500-01-02'")
    assert sum(each.num_files for each in file_selections(frame)) == 1
    assert ids(frame) == [20, 21, 23, 24, 25, 26, 27, 28, 29]
    assert ids(read(spark, table.path).where("p IS NULL")) == list(range(90, 100))


def test_a_vector_is_read_only_when_its_file_is(spark, holes):
    gone = {**inline({1}), "storageType": "u", "pathOrInlineDv": "ab^-aqEH.-t@S}K{vb[*k^"}
    holes.add(
        "d",
        numbers(9000, 10),
        vector={**gone, "offset": 1},
        stats={"minValues": {"id": 9000}, "maxValues": {"id": 9009}, "nullCount": {"id": 0}},
    )
    frame = read(spark, holes.path)
    assert frame.where("id = 50").count() == 1
    with pytest.raises(Exception, match="deletion_vector_"):
        frame.count()
    with pytest.raises(TableError) as caught:
        write(frame, holes.path + "-copy")
    assert caught.value.kind == "DELTA_FILE_NOT_FOUND_DETAILED"


def test_a_damaged_vector_is_an_error_and_never_a_wrong_answer(spark, holes):
    holes.add("d", numbers(9000, 10), vector={**inline({1}), "cardinality": 2})
    with pytest.raises(Exception, match="DELTA_DELETION_VECTOR_CARDINALITY_MISMATCH"):
        read(spark, holes.path).collect()


def test_a_vector_that_names_rows_past_the_end_of_its_file_is_refused(spark, holes, every_plane):
    holes.add("d", numbers(9000, 10), vector=inline({1, 10}))
    with pytest.raises(Exception, match="OPTIMIST_MALFORMED_DELETION_VECTOR"):
        read(spark, holes.path).collect()
    table, before = DeltaTable.forPath(spark, holes.path), DeltaLog.for_path(holes.path).update()
    with pytest.raises(Exception, match="OPTIMIST_MALFORMED_DELETION_VECTOR"):
        table.delete("id = 9003")
    assert DeltaLog.for_path(holes.path).update().version == before.version


def metrics_of(table):
    return DeltaLog.for_path(table.path).history(1)[0].info.operation_metrics


def last_actions(table, key):
    name = f"{table.version:020d}.json"
    lines = (table.root / "_delta_log" / name).read_text().splitlines()
    return [action[key] for action in map(json.loads, lines) if key in action]


@pytest.mark.parametrize("by_vectors", ["true", "false"])
def test_delete_takes_the_rows_of_a_file_that_has_a_vector(spark, holes, conf, by_vectors):
    conf("spark.databricks.delta.delete.deletionVectors.persistent", by_vectors)
    DeltaTable.forPath(spark, holes.path).delete("id BETWEEN 2 AND 10")
    wanted = [number for number in LIVE if not 2 <= number <= 10]
    assert ids(read(spark, holes.path)) == wanted
    (removed,), (added,) = last_actions(holes, "remove"), last_actions(holes, "add")
    assert removed["path"] == "a.parquet"
    assert removed["deletionVector"]["cardinality"] == len(DELETED)
    assert metrics_of(holes)["numDeletionVectorsRemoved"] == "1"
    if by_vectors == "true":
        assert added["path"] == "a.parquet"
        assert added["deletionVector"]["cardinality"] == len(DELETED) + 9
    else:
        assert "deletionVector" not in added


def test_delete_of_rows_that_are_gone_already_changes_nothing(spark, holes):
    DeltaTable.forPath(spark, holes.path).delete("id = 0")
    assert DeltaLog.for_path(holes.path).update().version == holes.version - 1


def test_update_does_not_bring_deleted_rows_back(spark, holes):
    DeltaTable.forPath(spark, holes.path).update("id % 2 = 0", {"name": "'even'"})
    frame = read(spark, holes.path)
    assert ids(frame) == LIVE
    assert frame.where("name = 'even'").count() == sum(1 for i in LIVE if i % 2 == 0)
    assert metrics_of(holes)["numDeletionVectorsRemoved"] == "2"


# Mapped columns

ADDRESS = struct_of(
    mapped("street", "c-s", 4, "string"),
    mapped("zip", "c-z", 5, "integer"),
)
MAPPED = [
    mapped("b", "a", 1, "long"),  # the names of two columns were swapped
    mapped("a", "b", 2, "long"),
    mapped("address", "c-a", 3, ADDRESS),
    mapped("list", "c-l", 6, {"type": "array", "elementType": ADDRESS, "containsNull": True}),
    mapped(
        "map",
        "c-m",
        7,
        {"type": "map", "keyType": "string", "valueType": ADDRESS, "valueContainsNull": True},
    ),
    mapped("day", "c-d", 8, "string"),
]


IDS = {"a": 1, "b": 2, "c-a": 3, "c-s": 4, "c-z": 5, "c-l": 6, "c-m": 7}


def stored_rows(names):
    """Three rows as a file has them, with field ids, under what `names` makes of each name."""

    def column(name, kind):
        return pa.field(names(name), kind, metadata={"PARQUET:field_id": str(IDS[name])})

    home = [{names("c-s"): "x", names("c-z"): 1}, {names("c-s"): "y", names("c-z"): 2}, None]
    inner = pa.struct([column("c-s", pa.string()), column("c-z", pa.int32())])
    fields = [
        column("a", pa.int64()),
        column("b", pa.int64()),
        column("c-a", inner),
        column("c-l", pa.list_(inner)),
        column("c-m", pa.map_(pa.string(), inner)),
    ]
    values = [[1, 2, 3], [10, 20, 30], home, [[home[0]], [], None], [[("k", home[1])], None, []]]
    arrays = [pa.array(value, each.type) for value, each in zip(values, fields, strict=True)]
    return pa.table(arrays, schema=pa.schema(fields))


@pytest.fixture(params=["name", "id"])
def renamed(request, tmp_path):
    """A table whose columns were renamed; by id, the names in its files say nothing at all."""
    table = Handmade(
        tmp_path / "renamed",
        MAPPED,
        partitions=["day"],
        features=["columnMapping"],
        columnMapping__mode=request.param,
        columnMapping__maxColumnId="8",
    )
    names = str if request.param == "name" else lambda name: f"other-{IDS[name]}"
    stats = {
        "minValues": {"a": 1, "b": 10},
        "maxValues": {"a": 3, "b": 30},
        "nullCount": {"a": 0, "b": 0},
    }
    table.add("f", stored_rows(names), values={"c-d": "mon"}, stats=stats)
    table.add("g", stored_rows(names), values={"c-d": "tue"}, deleted={0}, stats=stats)
    return table


def test_renamed_columns_have_the_values_of_their_files(spark, renamed):
    frame = read(spark, renamed.path)
    assert frame.columns == ["b", "a", "address", "list", "map", "day"]
    first = frame.where("day = 'mon' AND b = 1").first()
    assert first.asDict(recursive=True) == {
        "b": 1,
        "a": 10,
        "address": {"street": "x", "zip": 1},
        "list": [{"street": "x", "zip": 1}],
        "map": {"k": {"street": "y", "zip": 2}},
        "day": "mon",
    }
    assert frame.where("day = 'mon' AND b = 3").first().address is None


def test_physical_names_mean_nothing_without_column_mapping(spark, tmp_path):
    columns = [mapped("id", "col-1", 1, "long"), mapped("name", "col-2", 2, "string")]
    table = Handmade(tmp_path / "copied", columns)
    table.add("a", numbers(0, 10))
    log = DeltaLog.for_path(table.path)
    log.append(numbers(10, 5))
    assert ids(read(spark, table.path).where("id > 7")) == list(range(8, 15))
    assert sorted(log.to_arrow("id > 7")["id"].to_pylist()) == list(range(8, 15))
    assert log.update().scan("id > 7").files.num_rows == 2


@pytest.mark.parametrize(
    ("condition", "count"),
    [
        ("b = 1", 1),
        ("a = 10", 1),
        ("a = 1", 0),
        ("b >= 2", 4),
        ("address.street = 'y'", 2),
        ("address.zip = 1", 1),
        ("address IS NULL", 2),
        ("address.street IS NULL", 2),
        ("get(list, 0).zip = 1", 1),
        ("map['k'].street = 'y'", 1),
        ("day = 'tue'", 2),
        ("day = 'mon' AND address.zip > 1", 1),
        ("day = 'tue' OR a = 30", 3),
    ],
)
def test_filters_name_renamed_columns_by_their_new_names(spark, renamed, condition, count):
    assert read(spark, renamed.path).where(condition).count() == count


def test_renamed_columns_prune_partitions_and_skip_files(spark, renamed):
    frame = read(spark, renamed.path)
    assert _num_files(frame.where("day = 'mon'")) == 1
    assert _num_files(frame.where("a > 5")) == 2
    assert _num_files(frame.where("b > 5")) == 0


def _num_files(frame):
    return sum(each.num_files for each in file_selections(frame))


def test_each_field_of_a_renamed_struct_can_be_read_alone(spark, renamed):
    frame = read(spark, renamed.path).where("day = 'mon'")
    assert [row.street for row in frame.orderBy("b").select("address.street").collect()] == [
        "x",
        "y",
        None,
    ]
    assert [row.zip for row in frame.orderBy("b").select("address.zip").collect()] == [1, 2, None]


@pytest.mark.parametrize("renamed", ["name"], indirect=True)
def test_filters_on_renamed_columns_reach_parquet_and_structs_are_pruned(spark, renamed, capsys):
    frame = read(spark, renamed.path).where("day = 'mon' AND b > 1").select("address.zip")
    frame.explain()
    shown = capsys.readouterr().out
    assert "GreaterThan(a,1)" in shown
    assert "c-s" not in shown


# Older files of a table that has changed


WIDENED = [
    ("byte", pa.int8(), "long", [1, None], [1, None]),
    ("integer", pa.int32(), "double", [3, None], [3.0, None]),
    ("integer", pa.int32(), "decimal(12,2)", [7, None], ["7.00", None]),
    ("float", pa.float32(), "double", [0.5, None], [0.5, None]),
    ("decimal", pa.decimal128(5, 1), "decimal(12,4)", ["1.5", None], ["1.5000", None]),
    ("date", pa.date32(), "timestamp_ntz", [19_000, None], ["2022-01-08 00:00:00", None]),
]


@pytest.mark.parametrize("case", WIDENED, ids=lambda case: f"{case[0]}-{case[2]}")
def test_files_from_before_a_type_was_widened_are_read_in_the_wider_type(spark, tmp_path, case):
    _, stored, wider, values, wanted = case
    nested = struct_of(field("v", wider))
    table = Handmade(
        tmp_path / "wide",
        [field("v", wider), field("s", nested)],
        features=["typeWidening", "timestampNtz"],
        enableTypeWidening="true",
    )
    texts = pa.array(values).cast(stored) if stored != pa.date32() else pa.array(values, stored)
    nested_values = pa.StructArray.from_arrays([texts], ["v"])
    table.add("old", pa.table({"v": texts, "s": nested_values}))
    frame = read(spark, table.path)
    shown = frame.select(sf.col("v").cast("string"), sf.col("s.v").cast("string").alias("n"))
    assert sorted(map(tuple, shown.collect()), key=str) == sorted(
        [(None if w is None else str(w),) * 2 for w in wanted], key=str
    )
    assert frame.where("v IS NOT NULL AND s.v = v").count() == 1


def test_variants_are_read(spark, tmp_path):
    table = Handmade(tmp_path / "variant", [ID, field("v", "variant")], features=["variantType"])
    source = spark.sql("SELECT 1L AS id, parse_json('{\"k\": [1, 2]}') AS v")
    source.coalesce(1).write.parquet(str(tmp_path / "source"))
    (file,) = (tmp_path / "source").glob("*.parquet")
    table.add("v", pa.table({"id": [0]}))
    target = table.root / "v.parquet"
    target.write_bytes(file.read_bytes())
    found = read(spark, table.path).select(sf.expr("variant_get(v, '$.k[1]', 'int')")).first()
    assert found[0] == 2


def test_declared_lengths_are_strings_to_readers(spark, tmp_path):
    declared = field("c", "string", __CHAR_VARCHAR_TYPE_STRING="varchar(3)")
    table = Handmade(tmp_path / "chars", [declared])
    table.add("c", pa.table({"c": ["ab", "abc"]}))
    frame = read(spark, table.path)
    assert frame.schema["c"].dataType.simpleString() == "string"
    assert frame.where("c = 'ab'").count() == 1


def test_columns_that_spark_pads_are_read_from_files_with_vectors(spark, tmp_path):
    declared = field("c", "string", __CHAR_VARCHAR_TYPE_STRING="char(4)")
    table = Handmade(tmp_path / "padded", [ID, declared])
    table.add("a", pa.table({"id": [0, 1, 2], "c": ["ab", "abc", "ab"]}), deleted={0})
    frame = read(spark, table.path)
    assert frame.columns == ["id", "c"]
    found = frame.where("c = 'ab'").select("id", "c", "_metadata.row_index").collect()
    assert [tuple(row) for row in found] == [(2, "ab  ", 2)]


# Row tracking


ROW_ID = "_row-id-${env:HOME}"  # not to be replaced by a variable of the session


@pytest.fixture
def tracked(tmp_path):
    """Ids 100-109 by position; in the second file the ids of moved rows are stored."""
    table = Handmade(
        tmp_path / "tracked",
        [ID],
        enableRowTracking="true",
        rowTracking__materializedRowIdColumnName=ROW_ID,
        rowTracking__materializedRowCommitVersionColumnName="_row-version",
    )
    first = numbers(0, 10).select(["id"])
    table.add("a", first, deleted={0}, baseRowId=100, defaultRowCommitVersion=1)
    moved = pa.table({"id": [90, 91], ROW_ID: [7, None], "_row-version": [1, None]})
    table.add("b", moved, baseRowId=200, defaultRowCommitVersion=2)
    return table


def test_rows_are_known_by_id_and_version_where_the_table_tracks_them(spark, tracked):
    frame = read(spark, tracked.path)
    found = frame.select("id", "_metadata.row_id", "_metadata.row_commit_version")
    assert sorted(map(tuple, found.collect())) == [
        *((i, 100 + i, 1) for i in range(1, 10)),
        (90, 7, 1),
        (91, 201, 2),
    ]


def test_row_ids_are_hidden_until_they_are_named(spark, tracked):
    frame = read(spark, tracked.path)
    assert frame.columns == ["id"]
    assert frame.select("*").columns == ["id"]
    assert ids(frame.where("_metadata.row_id = 201")) == [91]
    assert ids(frame.where("_metadata.row_commit_version = 2")) == [91]


@pytest.mark.skipif(pyspark.__version__ < "4.2", reason="an alias hides it for good before")
def test_row_ids_can_be_named_under_an_alias(spark, tracked):
    frame = read(spark, tracked.path)
    assert frame.alias("t").where("t._metadata.row_id < 103").count() == 3


def test_commands_find_rows_of_an_aliased_table_with_vectors(spark, holes):
    table = DeltaTable.forPath(spark, holes.path).alias("t")
    table.delete("t.id >= 5000")
    assert ids(read(spark, holes.path)) == [i for i in LIVE if i < 5000]


def test_the_id_of_a_row_joins_a_table_with_itself(spark, tracked):
    left = read(spark, tracked.path).select("id", sf.col("_metadata.row_id").alias("key"))
    right = read(spark, tracked.path).select("id", sf.col("_metadata.row_id").alias("key"))
    assert left.join(right, "key").count() == 11


# Missing files


def test_a_data_file_that_is_gone_is_one_clear_error_of_a_command(spark, holes):
    (holes.root / "b.parquet").unlink()
    with pytest.raises(TableError) as caught:
        DeltaTable.forPath(spark, holes.path).delete("id = 5001")
    assert caught.value.kind == "DELTA_FILE_NOT_FOUND_DETAILED"
    assert caught.value.fields["path"].endswith("/b.parquet")


def test_a_command_loses_no_rows_of_a_file_that_a_session_would_ignore(spark, tmp_path, conf):
    path = str(tmp_path / "damaged")
    write(spark.range(10).coalesce(1).selectExpr("id", "concat('v', id) AS v"), path)
    (file,) = Path(path).rglob("*.parquet")
    chunk = pq.read_metadata(file).row_group(0).column(1)
    start = chunk.dictionary_page_offset or chunk.data_page_offset
    content = bytearray(file.read_bytes())
    content[start : start + chunk.total_compressed_size] = bytes(chunk.total_compressed_size)
    file.write_bytes(content)
    conf("spark.sql.files.ignoreCorruptFiles", "true")
    conf("spark.optimist.spark.localPlane.maxBytes", "0")
    table = DeltaTable.forPath(spark, path)
    with pytest.raises(Exception, match=r"[Pp]arquet"):
        table.delete("id = 3")
    assert table.history(1).first().version == 0


# The set of deleted rows itself


def test_a_few_deleted_rows_in_very_many_files_are_gone(spark, tmp_path, log_of):
    table = Handmade(tmp_path / "many", [ID])
    table.add("a", numbers(0, 70_000).select(["id"]), deleted={5, 69_999})
    snapshot = log_of(table.path).update()
    (add,) = add_files(snapshot.files)
    copies = []
    for number in range(_MIN_FILES):
        copy = table.root / f"copy-{number}.parquet"
        copy.hardlink_to(table.root / "a.parquet")
        copies.append(replace(add, path=copy.name))
    frame = scan_frame(spark, snapshot, files_table(copies))
    assert " as int)" not in frame._jdf.queryExecution().analyzed().toString()
    counted = frame.agg(sf.count("*"), sf.count_if(sf.expr("id IN (5, 69999)"))).first()
    assert tuple(counted) == (_MIN_FILES * 69_998, 0)


@pytest.mark.parametrize(
    ("rows", "expected"),
    [({5, 69_999}, True), (set(range(0, 70_000, 100)), False), (set(range(60_000)), False)],
    ids=["two", "one in a hundred", "a long run"],
)
def test_vectors_of_few_rows_are_told_from_others_by_their_description(rows, expected):
    value = inline(rows)
    row = {"sizeInBytes": value["sizeInBytes"], "cardinality": value["cardinality"]}
    assert is_sparse(pa.array([row] * _MIN_FILES)).to_pylist() == [expected] * _MIN_FILES
    assert not any(is_sparse(pa.array([row] * (_MIN_FILES - 1))).to_pylist())


def test_rows_from_far_beyond_what_fits_are_refused_and_not_forgotten(spark, holes):
    holes.add("d", numbers(9000, 10), deleted={2**40}, stats={"numRecords": 2**41})
    with pytest.raises(Exception, match="OPTIMIST_TOO_MANY_ROWS_WITH_VECTORS"):
        read(spark, holes.path).collect()


def test_vectors_that_are_inline_here_are_what_the_reader_takes_them_for():
    value = inline({3, 2**33})
    vector = DeletionVectorDescriptor("i", value["pathOrInlineDv"], value["sizeInBytes"], 2)
    assert set(read_deletion_vector(vector, DataPaths.of("/nowhere"))) == {3, 2**33}
