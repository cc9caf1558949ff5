"""V2 checkpoints, as written (spec 5.8)."""

import io
import json

import deltalake
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import checkpoint_tables
from checkpoint_tables import NOW_MS, V2, Table, add, full_table, schema_text
from optimist.core import DeltaLog
from optimist.core.errors import StorageError, TableError
from optimist.core.log.checkpoint_kinds import written_checkpoint
from optimist.core.log.checkpoint_reader import CheckpointReader
from optimist.core.log.file_table import add_files
from optimist.core.log.last_checkpoint import read_last_checkpoint
from optimist.core.log.names import classic_checkpoint_name, commit_path
from optimist.core.log_upkeep.checkpoint import write_compatibility_checkpoint
from optimist.core.plugins.logstore import FileStatus, PutOutcome
from optimist.core.protocol.actions import Protocol
from optimist.core.schema.arrow_types import from_arrow_schema
from optimist.core.schema.types import schema_from_json
from optimist.logstores import MemoryLogStore


@pytest.mark.parametrize("top_level", ["json", "parquet"])
def test_the_state_stands_in_sidecars_and_a_small_top_level_file(top_level):
    options = {
        "spark.databricks.delta.checkpointV2.topLevelFileFormat": top_level,
        "spark.databricks.delta.checkpoint.partSize": "10",
    }
    table = full_table(options=options)
    before = table.load()
    last = table.checkpoint()
    (name,) = table.checkpoints()
    assert name.startswith(f"{2:020d}.checkpoint.")
    assert name.endswith(f".{top_level}")
    assert len(name.split(".")) == 4
    rows = [len(table.actions_of(f"_sidecars/{each}")) for each in table.names("_sidecars/")]
    assert rows == [10, 10, 4, 1]  # adds and tombstones apart
    live = sorted(item.path for item in add_files(before.files))
    assert sorted(body["path"] for body in table.bodies("add")) == live
    assert [body["path"] for body in table.bodies("remove")] == ["p=2026-11-20/f0"]
    assert table.bodies("protocol") == [
        {
            "minReaderVersion": 3,
            "minWriterVersion": 7,
            "readerFeatures": ["v2Checkpoint"],
            "writerFeatures": ["v2Checkpoint"],
        }
    ]
    assert [body["version"] for body in table.bodies("checkpointMetadata")] == [2]
    assert [body["appId"] for body in table.bodies("txn")] == ["app"]
    assert (last.num_of_add_files, last.size) == (24, len(table.actions_of(name)))


@pytest.mark.parametrize("top_level", ["json", "parquet"])
def test_the_table_opens_from_the_v2_checkpoint_alone(top_level):
    options = {
        "spark.databricks.delta.checkpointV2.topLevelFileFormat": top_level,
        "spark.databricks.delta.checkpoint.partSize": "7",
    }
    table = full_table(options=options)
    before = table.load()
    table.checkpoint()
    for version in range(2):
        table.store.delete(commit_path(table.path, version))
    after = table.load()
    assert after.segment.commits == ()
    assert (after.protocol, after.metadata) == (before.protocol, before.metadata)
    assert dict(after.set_transactions) == dict(before.set_transactions)
    assert dict(after.domain_metadata) == dict(before.domain_metadata)
    by_path = sorted(add_files(after.files), key=lambda item: item.path)
    assert by_path == sorted(add_files(before.files), key=lambda item: item.path)
    assert after.tombstones == before.tombstones


def test_the_hint_says_what_the_checkpoint_is_made_of():
    table = full_table()
    table.checkpoint()
    hint = read_last_checkpoint(table.store, table.path, clock=table.clock)
    body = hint.extra["v2Checkpoint"]
    assert [body["path"]] == table.checkpoints()
    assert body["sizeInBytes"] == len(table.store.read_bytes(f"{table.path}/{body['path']}"))
    assert [item["path"] for item in body["sidecarFiles"]] == table.names("_sidecars/")
    kinds = [next(iter(action)) for action in body["nonFileActions"]]
    assert kinds == ["checkpointMetadata", "protocol", "metaData", "txn", "domainMetadata"]


def test_a_hint_stays_short():
    options = {
        "spark.databricks.delta.checkpoint.partSize": "5",
        "spark.databricks.delta.lastCheckpoint.sidecars.threshold": "4",
        "spark.databricks.delta.lastCheckpoint.nonFileActions.threshold": "4",
    }
    table = full_table(options=options)
    hint = table.checkpoint()
    assert len(table.names("_sidecars/")) == 6
    assert set(hint.extra["v2Checkpoint"]) == {"path", "sizeInBytes", "modificationTime"}


def test_a_table_without_files_needs_no_sidecar():
    table = Table(V2)
    assert table.checkpoint().num_of_add_files == 0
    assert table.bodies("sidecar") == []
    assert table.load().num_files == 0


def test_the_policy_without_the_feature_makes_a_classic_checkpoint():
    protocol = Protocol(3, 7, (), ("appendOnly",))
    table = Table({"delta.checkpointPolicy": "classic"}, protocol=protocol).commit(add("a"))
    table.checkpoint()
    assert table.checkpoints() == [classic_checkpoint_name(1)]


def test_part_size_never_makes_a_classic_checkpoint_a_multi_part_one():
    options = {"spark.databricks.delta.checkpoint.partSize": "2"}
    table = full_table({}, options=options)
    table.checkpoint()
    assert table.checkpoints() == [classic_checkpoint_name(2)]


class Failing(MemoryLogStore):
    """Fails, or answers UNKNOWN, for paths that contain a text."""

    def __init__(self, *, text, after=0, answers=()):
        super().__init__()
        self.text, self.after, self.answers = text, after, list(answers)

    def put_if_absent(self, path, data):
        if self.text not in path:
            return super().put_if_absent(path, data)
        self.after -= 1
        if self.after >= 0:
            return super().put_if_absent(path, data)
        if not self.answers:
            raise StorageError("broken", kind="OPTIMIST_STORAGE", retryable=False)
        super().put_if_absent(path, data)
        return self.answers.pop(0)


@pytest.mark.parametrize("after", [0, 1, 2])
def test_a_failure_among_the_sidecars_publishes_nothing_and_takes_them_back(after):
    store = Failing(text="/_sidecars/", after=after)
    table = full_table(store=store, options={"spark.databricks.delta.checkpoint.partSize": "10"})
    with pytest.raises(StorageError, match="broken"):
        table.checkpoint()
    assert table.checkpoints() == []
    assert not [name for name in table.names() if name == "_last_checkpoint"]
    with pytest.raises(FileNotFoundError):
        table.names("_sidecars/")
    assert table.load().num_files == 24


def test_a_crash_between_sidecars_and_top_level_leaves_the_table_as_it_was():
    store = Failing(text=".checkpoint.")
    store.after = 1  # the sidecar lands, the top-level file does not
    table = full_table(store=store)
    with pytest.raises(StorageError, match="broken"):
        table.checkpoint()
    assert (len(table.names("_sidecars/")), table.checkpoints()) == (1, [])
    assert table.load().num_files == 24


def test_sidecars_stay_while_it_is_unknown_whether_the_top_level_names_them():
    store = Failing(text=".checkpoint.", after=1, answers=[PutOutcome.UNKNOWN] * 2)
    table = full_table(store=store)
    with pytest.raises(StorageError) as caught:
        table.checkpoint()
    assert caught.value.kind == "OPTIMIST_WRITE_OUTCOME_UNKNOWN"
    assert len(table.names("_sidecars/")) == 1


@pytest.mark.parametrize("top_level", ["json", "parquet"])
def test_a_lost_answer_for_the_top_level_is_settled_by_asking_again(top_level):
    answers = [PutOutcome.UNKNOWN, PutOutcome.EXISTS]
    store = Failing(text=".checkpoint.", after=1, answers=answers)
    options = {"spark.databricks.delta.checkpointV2.topLevelFileFormat": top_level}
    table = full_table(store=store, options=options)
    table.checkpoint()
    (name,) = table.checkpoints()
    assert name.endswith(f".{top_level}")
    assert table.load().num_files == 24


def test_the_compatibility_checkpoint_shares_the_sidecars_and_leaves_the_hint_alone():
    table = full_table()
    table.checkpoint()
    (v2,) = table.checkpoints()
    hint = table.store.read_bytes(f"{table.path}/_last_checkpoint")
    path = write_compatibility_checkpoint(
        table.store, table.load(), options=table.options, clock=table.clock
    )
    name = path.rpartition("/")[2]
    assert name == classic_checkpoint_name(2)
    assert table.store.read_bytes(f"{table.path}/_last_checkpoint") == hint
    shared, own = (
        CheckpointReader(table.store, 2, [FileStatus(found, 1, 0)]).sidecars()
        for found in (path, f"{table.path}/{v2}")
    )
    assert shared == own
    assert len(table.bodies("add", name)) == 24
    assert len(table.bodies("protocol", name)) == 1


def test_the_compatibility_checkpoint_of_a_version_without_one_brings_its_own_sidecars():
    table = full_table()
    write_compatibility_checkpoint(
        table.store, table.load(), options=table.options, clock=table.clock
    )
    assert table.checkpoints() == [classic_checkpoint_name(2)]
    assert len(table.bodies("add")) == 24


def in_one_file(table):
    """A V2 checkpoint whose files stand in its top level, as other writers may have it."""
    table.checkpoint()
    (name,) = table.checkpoints()
    rows = [row for row in table.actions_of(name) if "sidecar" not in row]
    for body in (row["add"] for row in rows if "add" in row):
        for typed in ("stats_parsed", "partitionValues_parsed"):  # JSON has no times
            body.pop(typed, None)
    rows[0] = {"checkpointMetadata": {"version": 2}}
    data = "".join(f"{json.dumps(row)}\n" for row in rows).encode()
    table.store.put_overwrite(f"{table.path}/{name}", data)


def with_odd_tags(table):
    """The sums of the sidecars are missing, or are others than the usual ones."""
    table.checkpoint()
    (name,) = table.checkpoints()
    rows = [json.loads(row) for row in table.store.read_bytes(f"{table.path}/{name}").splitlines()]
    rows[0]["checkpointMetadata"]["tags"] = {"odd": 1}
    data = "".join(f"{json.dumps(row)}\n" for row in rows).encode()
    table.store.put_overwrite(f"{table.path}/{name}", data)


@pytest.mark.parametrize("part_size", ["7", "1000"])
@pytest.mark.parametrize(
    "prepare", [None, Table.checkpoint, in_one_file, with_odd_tags], ids=["a", "b", "c", "d"]
)
def test_the_table_opens_from_the_compatibility_checkpoint_alone(prepare, part_size):
    options = {"spark.databricks.delta.checkpoint.partSize": part_size}
    table = full_table(options=options)
    before = table.load()
    if prepare is not None:
        prepare(table)
    write_compatibility_checkpoint(
        table.store, table.load(), options=table.options, clock=table.clock
    )
    for name in (*table.checkpoints(), "_last_checkpoint"):
        if name != classic_checkpoint_name(2):
            table.store.delete(f"{table.path}/{name}")
    for version in range(2):
        table.store.delete(commit_path(table.path, version))
    after = table.load()
    assert after.files.sort_by("path") == before.files.sort_by("path")
    assert after.tombstones == before.tombstones
    assert dict(after.set_transactions) == dict(before.set_transactions)


def test_tags_that_contradict_the_sidecars_beside_them_are_passed_over():
    table = full_table()
    before = table.load().files.sort_by("path")
    table.checkpoint()
    (name,) = table.checkpoints()
    text = table.store.read_bytes(f"{table.path}/{name}").decode()
    rows = [json.loads(row) for row in text.splitlines()]
    rows[0]["checkpointMetadata"]["tags"] |= {"numOfAddFiles": "0", "sidecarNumActions": "0"}
    data = "".join(f"{json.dumps(row)}\n" for row in rows).encode()
    table.store.put_overwrite(f"{table.path}/{name}", data)
    for version in range(2):
        table.store.delete(commit_path(table.path, version))
    assert table.load().files.sort_by("path") == before


@pytest.mark.parametrize("structs", [{}, {"delta.checkpoint.writeStatsAsStruct": "true"}])
def test_the_tags_are_right_and_say_the_schema_of_the_sidecars(structs):
    table = full_table({**V2, **structs})
    table.checkpoint()
    (tags,) = (body["tags"] for body in table.bodies("checkpointMetadata"))
    (sidecar,) = table.names("_sidecars/")
    data = table.store.read_bytes(f"{table.path}/_sidecars/{sidecar}")
    assert tags["sidecarNumActions"] == "25"
    assert tags["numOfAddFiles"] == "24"
    assert tags["sidecarSizeInBytes"] == str(len(data))
    said = schema_from_json(tags["sidecarFileSchema"])
    assert said == from_arrow_schema(pq.read_schema(io.BytesIO(data)))


def test_a_long_schema_of_sidecars_is_left_out():
    options = {"spark.databricks.delta.checkpointSchema.writeThresholdLength": "10"}
    table = full_table(options=options)
    table.checkpoint()
    (tags,) = (body["tags"] for body in table.bodies("checkpointMetadata"))
    assert "sidecarFileSchema" not in tags


# How they are packed


def packing(data):
    """The codec of the first column chunk, and how its first data page begins."""
    column = pq.read_metadata(io.BytesIO(data)).row_group(0).column(0)
    return column.compression, data[column.data_page_offset :][:2]


V1_PAGE, V2_PAGE = b"\x15\x00", b"\x15\x06"


@pytest.mark.parametrize("policy", [{}, V2])
@pytest.mark.parametrize(
    ("codec", "version", "expected"),
    [
        (None, None, ("ZSTD", V1_PAGE)),
        ("GZIP", "1.0.0", ("GZIP", V1_PAGE)),
        ("uncompressed", "2.0.0", ("UNCOMPRESSED", V2_PAGE)),
        ("lz4", "2.12.0", ("ZSTD", V2_PAGE)),
        ("nonsense", "nonsense", ("ZSTD", V1_PAGE)),
    ],
)
def test_a_checkpoint_is_packed_as_the_table_wants_its_files(policy, codec, version, expected):
    wanted = {"delta.parquet.compression.codec": codec, "delta.parquet.format.version": version}
    given = {key: value for key, value in wanted.items() if value is not None}
    options = {"spark.databricks.delta.checkpointV2.topLevelFileFormat": "parquet"}
    table = full_table({**policy, **given}, options=options)
    before = table.load().files.sort_by("path")
    table.checkpoint()
    folder = "_sidecars/" if policy else ""
    for name in [*table.checkpoints(), *(table.names(folder) if folder else [])]:
        place = "" if ".checkpoint." in name and name in table.checkpoints() else folder
        assert packing(table.store.read_bytes(f"{table.path}/{place}{name}")) == expected
    for number in range(2):
        table.store.delete(commit_path(table.path, number))
    assert table.load().files.sort_by("path") == before


# Progress


@pytest.mark.parametrize("configuration", [{}, V2])
def test_progress_counts_the_files_but_no_tombstones_and_ends_at_their_number(configuration):
    options = {"spark.databricks.delta.checkpoint.partSize": "10"}
    table = full_table(configuration, options=options)
    seen = []
    table.checkpoint(progress=seen.append)
    done = [item.files_done for item in seen]
    assert done == sorted(done)
    assert (done[-1], len(table.bodies("remove"))) == (24, 1)
    assert {item.version for item in seen} == {2}


@pytest.mark.parametrize("configuration", [{}, V2])
def test_progress_that_raises_ends_the_checkpoint_before_it_is_published(configuration):
    table = full_table(configuration)

    def interrupt(_):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        table.checkpoint(progress=interrupt)
    assert table.checkpoints() == []
    assert table.load().num_files == 24


def test_the_handle_of_a_table_checkpoints_on_demand_and_says_what_it_wrote(tmp_path):
    log = DeltaLog.for_path(str(tmp_path))
    log.append(pa.table({"x": [1, 2, 3]}))
    seen = []
    last = log.checkpoint(progress=seen.append)
    assert (last.version, last.num_of_add_files, last.size) == (0, 1, 3)
    assert [(item.files_done, item.num_files) for item in seen] == [(1, 1)]
    log.delete()
    log.checkpoint(progress=seen.append)
    assert {(item.files_done, item.num_files) for item in seen[1:]} == {(0, 0)}
    assert last.extra["checkpointSchema"]["type"] == "struct"


# Other engines


@pytest.mark.parametrize("top_level", ["json", "parquet"])
def test_another_engine_reads_a_table_from_our_v2_checkpoint_alone(tmp_path, top_level):
    path = str(tmp_path)
    options = {
        "spark.databricks.delta.properties.defaults.checkpointPolicy": "v2",
        "spark.databricks.delta.checkpointV2.topLevelFileFormat": top_level,
        "spark.databricks.delta.checkpoint.partSize": "2",
    }
    log = DeltaLog.for_path(path, options)
    for number in range(5):
        log.append(pa.table({"p": ["a"], "x": [number]}), partition_by=["p"])
    log.checkpoint()
    assert len(list((tmp_path / "_delta_log" / "_sidecars").iterdir())) == 3
    for version in range(4):
        (tmp_path / "_delta_log" / f"{version:020d}.json").unlink()
    theirs = deltalake.DeltaTable(path)
    assert theirs.version() == 4
    assert len(theirs.file_uris()) == 5
    assert sorted(DeltaLog.for_path(path).to_arrow()["x"].to_pylist()) == [0, 1, 2, 3, 4]


def test_a_version_that_contradicts_its_checksum_leaves_no_sidecar_behind():
    table = full_table()
    table.store.put_if_absent(
        f"{table.path}/{2:020d}.crc",
        json.dumps(
            {
                "tableSizeBytes": 1,
                "numFiles": 1,
                "metadata": {"id": "id", "schemaString": schema_text()},
                "protocol": {"minReaderVersion": 1, "minWriterVersion": 2},
            }
        ).encode(),
    )
    with pytest.raises(TableError) as caught:
        table.checkpoint()
    assert caught.value.kind == "DELTA_TXN_LOG_FAILED_INTEGRITY"
    with pytest.raises(FileNotFoundError):
        table.names("_sidecars/")


@pytest.mark.parametrize("top_level", ["json", "parquet"])
def test_a_scan_of_sidecars_finds_what_the_whole_list_has(top_level):
    table = _table_read_in_part(top_level)
    after = table.load()
    found = [after.scan(f"p {op} '2026-11-20'").files for op in ("=", "<>")]
    assert [files.num_rows for files in found] == [24, 0]
    assert sorted(found[0]["path"].to_pylist()) == sorted(table.load().files["path"].to_pylist())


def test_a_scan_refuses_a_checkpoint_that_lacks_some_of_its_files():
    table = _table_read_in_part("json")
    path = f"{table.path}/_sidecars/{table.names('_sidecars/')[0]}"
    fewer = io.BytesIO()
    pq.write_table(pq.read_table(io.BytesIO(table.store.read_bytes(path))).slice(1), fewer)
    table.store.delete(path)
    table.store.put_if_absent(path, fewer.getvalue())
    with pytest.raises(TableError, match="claims to hold 24"):
        table.load().scan("p = '2026-11-20'")


def _table_read_in_part(top_level):
    """Return a table whose state is in a V2 checkpoint that is too large to be kept."""
    options = {
        "spark.databricks.delta.checkpointV2.topLevelFileFormat": top_level,
        "spark.databricks.delta.checkpoint.partSize": "7",
        "optimist.log.cacheBytes": "1",
    }
    table = full_table(options=options)
    table.checkpoint()
    for version in range(2):
        table.store.delete(commit_path(table.path, version))
    return table


@pytest.mark.parametrize("configuration", [{}, V2], ids=["classic", "v2"])
def test_a_checkpoint_just_written_has_the_size_of_its_own_file(configuration):
    table = full_table(configuration)
    (file,) = written_checkpoint(table.path, table.checkpoint(), NOW_MS).files
    assert file.size_bytes == len(table.store.read_bytes(file.path))


def test_a_hint_repeats_nothing_so_long_that_readers_would_refuse_it(monkeypatch):
    wide = {"p": "date", "x": "long", **{f"a column {number}": "string" for number in range(2000)}}
    monkeypatch.setattr(checkpoint_tables.schema_text, "__defaults__", (wide,))
    options = {"spark.databricks.delta.checkpoint.partSize": "1"}
    table = Table(V2, options=options).commit(*(add(f"{n}{'f' * 3000}", text="") for n in range(9)))
    table.checkpoint()
    hint = read_last_checkpoint(table.store, table.path, clock=table.clock)
    assert set(hint.extra["v2Checkpoint"]) == {"path", "sizeInBytes", "modificationTime"}
