"""What the fuzzer of hostile tables found (tests/hostile), each as small as it can be told."""

import io
import json
from dataclasses import replace

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyroaring import BitMap64

from optimist.core.data.column_shape import conform_column
from optimist.core.data.vectors.deletion_vectors import inline_vector
from optimist.core.errors import TableError
from optimist.core.log.checkpoint_reader import CheckpointReader
from optimist.core.log.names import classic_checkpoint_name, commit_path, v2_checkpoint_name
from optimist.core.protocol.actions import CommitInfo, DomainMetadata, Protocol
from optimist.core.schema.types import ArrayType, PrimitiveType
from refusals import kind_of

BODIES = {
    "protocol": {"minReaderVersion": 1, "minWriterVersion": 2},
    "metaData": {"id": "i", "schemaString": '{"type":"struct","fields":[]}'},
}


@pytest.mark.parametrize(
    ("key", "body"),
    [
        ("sidecar", "a text"),
        ("sidecar", 7),
        ("sidecar", ["path"]),
        ("sidecar", {"path": {"path": {}}}),
        ("sidecar", {"path": "x/", "sizeInBytes": 1}),
        ("sidecar", {"path": "x", "sizeInBytes": "1e999999"}),
        ("sidecar", {"path": "x", "sizeInBytes": float("inf")}),
        ("sidecar", {"path": "x", "sizeInBytes": 1 << 70}),
        ("sidecar", {"path": "x", "modificationTime": [1]}),
        ("checkpointMetadata", {"version": 1, "tags": "numOfAddFiles"}),
        ("checkpointMetadata", {"version": 1, "tags": {"numOfAddFiles": float("inf")}}),
        ("checkpointMetadata", {"version": 1, "tags": {"numOfAddFiles": "9" * 5000}}),
        ("checkpointMetadata", {"version": 1, "tags": {"numOfAddFiles": {}}}),
    ],
)
def test_a_v2_checkpoint_of_wrong_types_is_passed_over(make_table, key, body):
    table = make_table().create()
    table.poke(1, [table.add("a")])
    actions = {**BODIES, "checkpointMetadata": {"version": 1}, key: body}
    data = "\n".join(json.dumps({name: value}) for name, value in actions.items()).encode()
    name = v2_checkpoint_name(1, "u", "json")
    table.store.put_if_absent(f"{table.log.log_path}/{name}", data)
    assert table.live() == ["a"]


HALVES = {
    "add": {"path": "\ud800.parquet", "partitionValues": {"p": "1"}, "size": 1},
    "txn": {"appId": "a\udfff", "version": 1},
    "domainMetadata": {"domain": "d", "configuration": "\ud83d", "removed": False},
    "metaData": {**BODIES["metaData"], "configuration": {"a": "\ud800"}},
    "protocol": {**BODIES["protocol"], "writerFeatures": ["\ud800"]},
    "protocol ": {**BODIES["protocol"], "unknown": {"\ud800": 1}},
    "remove": {"path": "x", "partitionValues": {"\ud800": None}},
}


@pytest.mark.parametrize("key", HALVES)
def test_half_a_character_in_a_field_is_refused_as_it_is_read(make_table, key):
    table = make_table().create()
    table.store.put_if_absent(commit_path(table.log.log_path, 1), line_of(key.strip(), HALVES[key]))
    assert kind_of(table.log.snapshot) == "OPTIMIST_MALFORMED_COMMIT"


def test_half_a_character_in_what_a_writer_says_of_itself_harms_nobody(make_table):
    table = make_table().create()
    said = {"operation": "\udfff", "unknown": {"\ud800": 1}}
    data = line_of("commitInfo", said) + line_of("add", HALVES["add"] | {"path": "a"})
    table.store.put_if_absent(commit_path(table.log.log_path, 1), data)
    table.log.checkpoint()
    assert len(table.handle().history()) == 2
    assert table.live() == ["a"]


def line_of(key, body):
    return f"{json.dumps({key: body})}\n".encode()


def test_a_file_of_ten_thousand_columns_is_named_in_a_short_error():
    odd = pa.struct([(f"field {number}", pa.int8()) for number in range(10_000)])
    with pytest.raises(TableError) as caught:
        conform_column(pa.nulls(1, odd).take([0]), PrimitiveType("long"), column="x" * 5000)
    assert caught.value.kind == "OPTIMIST_DATA_FILE_TYPE_MISMATCH"
    assert len(str(caught.value)) < 2000


@pytest.mark.parametrize("time_ms", [(1 << 63) - 1, -(1 << 63), 253_402_300_800_000])
def test_a_time_that_no_column_can_hold_is_refused_by_the_change_feed(feed_table, time_ms):
    on = {"delta.enableChangeDataFeed": "true", "delta.enableInCommitTimestamps": "true"}
    table = feed_table(configuration=on)
    feature = Protocol(1, 7, None, ("changeDataFeed", "inCommitTimestamp"))
    table.commit(CommitInfo(in_commit_timestamp=time_ms), feature, table.file([1]))
    assert kind_of(lambda: table.log.changes(starting_version=1)) == "OPTIMIST_MALFORMED_COMMIT"
    assert table.log.count() == 1


@pytest.mark.parametrize("nested", [False, True])
def test_a_column_that_is_there_twice_is_refused_as_it_is_read(make_table, nested):
    field = {"name": "b", "type": "long", "nullable": True, "metadata": {}}
    schema = {"type": "struct", "fields": [field, field]}
    if nested:
        schema = {"type": "struct", "fields": [field | {"name": "s", "type": schema}]}
    table = make_table(partitioned=False)
    table.metadata = replace(table.metadata, schema_string=json.dumps(schema))
    table.create(table.add("a"))
    for call in (table.log.snapshot, table.log.to_arrow):
        assert kind_of(call) == "OPTIMIST_MALFORMED_SCHEMA"


def test_a_map_in_place_of_a_list_is_a_misfit_and_nothing_worse():
    values = pa.array([[("a", 1)]], pa.map_(pa.string(), pa.int8()))
    wanted = ArrayType(PrimitiveType("long"))
    with pytest.raises(TableError) as caught:
        conform_column(values, wanted, column="l")
    assert caught.value.kind == "OPTIMIST_DATA_FILE_TYPE_MISMATCH"


@pytest.mark.parametrize("lacking", ["storageType", "pathOrInlineDv", "sizeInBytes", "cardinality"])
def test_a_checkpoint_whose_vector_lacks_a_part_is_passed_over(make_table, lacking):
    table = make_table(protocol=Protocol(3, 7, ("deletionVectors",), ("deletionVectors",)))
    vector = inline_vector(BitMap64([1]))
    table.create(replace(table.add("a"), deletion_vector=vector))
    table.log.checkpoint()
    path = f"{table.log.log_path}/{classic_checkpoint_name(0)}"
    rows = pq.read_table(io.BytesIO(table.store.read_bytes(path)))
    bodies = rows.to_pylist(maps_as_pydicts="strict")
    for body in bodies:
        if body["add"] is not None:
            body["add"]["deletionVector"][lacking] = None
    sink = io.BytesIO()
    pq.write_table(pa.Table.from_pylist(bodies, schema=rows.schema), sink)
    table.store.put_overwrite(path, sink.getvalue())
    (file,) = table.handle().files().to_pylist()
    assert file["deletionVector"][lacking] is not None


@pytest.mark.parametrize("lacking", ["storageType", "pathOrInlineDv", "sizeInBytes", "cardinality"])
def test_a_commit_whose_vector_lacks_a_part_is_malformed(make_table, lacking):
    table = make_table(protocol=Protocol(3, 7, ("deletionVectors",), ("deletionVectors",)))
    table.create(replace(table.add("a"), deletion_vector=inline_vector(BitMap64([1]))))
    path = commit_path(table.log.log_path, 0)
    lines = [json.loads(line) for line in table.store.read_bytes(path).splitlines()]
    for line in lines:
        line.get("add", {}).get("deletionVector", {}).pop(lacking, None)
    table.store.put_overwrite(path, b"\n".join(json.dumps(line).encode() for line in lines))
    for call in (table.handle().snapshot, lambda: table.handle().files()):
        assert kind_of(call) == "OPTIMIST_MALFORMED_COMMIT"


@pytest.mark.parametrize("columns", [5, True, "text", {"a": 1}, [5], [[[]]], [{"a": 1}]])
def test_clustering_columns_of_any_type_leave_the_detail_readable(make_table, columns):
    table = make_table().create()
    text = json.dumps({"clusteringColumns": columns})
    table.poke(1, [DomainMetadata("delta.clustering", text)])
    assert all(type(name) is str for name in table.log.detail().clustering_columns)


@pytest.mark.parametrize("text", [b"7777", b"seven"])
@pytest.mark.parametrize("in_part", [False, True])
def test_a_checkpoint_with_a_text_that_is_no_utf8_is_passed_over(
    make_table, monkeypatch, text, in_part
):
    if in_part:
        monkeypatch.setattr(CheckpointReader, "is_small", lambda _: False)
    table = make_table().create(make_table().add("seven", 7777))
    table.log.checkpoint()
    path = f"{table.log.log_path}/{classic_checkpoint_name(0)}"
    rows = pq.read_table(io.BytesIO(table.store.read_bytes(path)))
    sink = io.BytesIO()
    pq.write_table(rows, sink, compression="none", use_dictionary=False, write_statistics=False)
    assert text in sink.getvalue()
    data = sink.getvalue().replace(text, b"\xff" + text[1:])
    table.store.put_overwrite(path, data)
    found = table.handle().snapshot().in_partitions([{"p": "7777"}])
    assert found["path"].to_pylist() == ["seven"]  # from the commit
    table.store.delete(commit_path(table.log.log_path, 0))
    table.poke(1, [table.add("next")])
    for ask in (
        lambda: table.handle().snapshot().in_partitions([{"p": "7777"}]),
        lambda: table.handle().files(),
        lambda: table.handle().snapshot().scan("p = 7777").files,
    ):
        assert kind_of(ask) == "OPTIMIST_MALFORMED_CHECKPOINT"


def test_a_data_file_whose_names_are_no_utf8_is_unreadable_and_nothing_worse(feed_table):
    table = feed_table()
    file = table.file([1], qqqq=pa.array([1]))
    table.commit(file)
    path = table.path / file.path
    path.write_bytes(path.read_bytes().replace(b"qqqq", b"\xffqqq"))
    for call in (table.log.to_arrow, lambda: table.log.changes(starting_version=0)):
        assert kind_of(call) == "OPTIMIST_UNREADABLE_DATA_FILE"
