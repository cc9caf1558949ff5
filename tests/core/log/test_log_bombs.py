"""A log of a few bytes that stands for gigabytes ends in an error of ours, not in the memory."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from bounded import run_bounded
from hostile_log import PROTOCOL, HostileTable, add, metadata
from optimist.core import DeltaLog
from optimist.core.errors import TableError
from optimist.core.log.file_table import FILES_SCHEMA, file_actions_batch
from optimist.core.log.limits import LogLimits, distinct, unpacked
from optimist.core.options.engine import EngineOptions
from optimist.core.protocol.actions import Protocol
from optimist.logstores import LocalLogStore

_MAP = pa.map_(pa.string(), pa.string())
_ADD = pa.struct(
    [
        ("path", pa.string()),
        ("partitionValues", _MAP),
        ("size", pa.int64()),
        ("modificationTime", pa.int64()),
        ("dataChange", pa.bool_()),
        ("stats", pa.string()),
    ]
)
_READ = """
import sys
from optimist.core import DeltaLog
from optimist.core.errors import TableError
from optimist.logstores import LocalLogStore

try:
    print(DeltaLog(sys.argv[1], LocalLogStore()).snapshot().files.num_rows)
except TableError as error:
    print(error.kind, error)
"""


def _state() -> list[dict[str, object]]:
    body = metadata()["metaData"] | {"format": {"provider": "parquet"}}
    body.pop("configuration")
    return [{"protocol": PROTOCOL}, {"metaData": body}]


def _checkpoint(
    table: HostileTable,
    *adds: pa.StructArray,
    hide_commits: bool = True,
    codec: str = "zstd",
    store_schema: bool = True,
) -> None:
    """Writes the checkpoint of the newest version; of each array a row group."""
    state = pa.Table.from_pylist([{"protocol": None, "metaData": None, **row} for row in _state()])
    add_type = adds[0].type
    schema = pa.schema([("add", add_type), *state.schema])
    path = table.log / f"{table.version:020}.checkpoint.parquet"
    with pq.ParquetWriter(path, schema, compression=codec, store_schema=store_schema) as writer:
        nulls = pa.nulls(len(state), add_type)
        writer.write_table(pa.table([nulls, *state.columns], schema=schema))
        for array in adds:
            others = [pa.nulls(len(array), field.type) for field in state.schema]
            writer.write_table(pa.table([array, *others], schema=schema))
    if hide_commits:
        for commit in table.log.glob("*.json"):
            commit.unlink()
        table.commit()
        (table.log / f"{table.version:020}.json").write_text('{"commitInfo":{}}\n')


def _adds(paths: pa.Array, stats: pa.Array | None = None) -> pa.StructArray:
    count = len(paths)
    values = pa.MapArray.from_arrays(pa.array([0] * (count + 1), pa.int32()), [], [])
    columns = [
        paths,
        values.cast(_MAP),
        pa.repeat(pa.scalar(1, pa.int64()), count),
        pa.repeat(pa.scalar(0, pa.int64()), count),
        pa.repeat(pa.scalar(True), count),
        pa.nulls(count, pa.string()) if stats is None else stats,
    ]
    return pa.StructArray.from_arrays(columns, fields=list(_ADD))


def _names(count: int, start: int = 0) -> pa.Array:
    return pa.array([f"part-{number}.parquet" for number in range(start, start + count)])


@pytest.fixture
def table(tmp_path: Path) -> HostileTable:
    return HostileTable(tmp_path / "t")


def test_a_sound_checkpoint_is_read_whatever_its_row_groups(table: HostileTable) -> None:
    _checkpoint(table, _adds(_names(40_000)), _adds(_names(40_000, 40_000)))
    assert DeltaLog(table.path, LocalLogStore()).snapshot().num_files == 80_000


@pytest.mark.again
def test_millions_of_adds_of_one_path_are_no_checkpoint(table: HostileTable) -> None:
    one = _adds(pa.repeat(pa.scalar("f"), 2_000_000))
    _checkpoint(table, one, one, one, one)
    said = run_bounded(_READ, table.path, timeout_s=60)
    assert said.startswith("OPTIMIST_MALFORMED_CHECKPOINT")
    assert "names a file more than once" in said


def test_row_groups_that_repeat_each_other_are_no_checkpoint(table: HostileTable) -> None:
    names = _adds(_names(32_768))
    _checkpoint(table, *[names] * 3)
    with pytest.raises(TableError) as caught:
        assert DeltaLog(table.path, LocalLogStore()).snapshot().files
    assert caught.value.kind == "OPTIMIST_MALFORMED_CHECKPOINT"


def test_a_checkpoint_that_names_a_file_twice_gives_way_to_the_commits(
    table: HostileTable,
) -> None:
    table.commit(add("f"))
    _checkpoint(table, _adds(pa.array(["f", "f"])), hide_commits=False)
    assert DeltaLog(table.path, LocalLogStore()).snapshot().num_files == 1


@pytest.mark.again
def test_statistics_that_unpack_to_gigabytes_are_no_checkpoint(table: HostileTable) -> None:
    text = json.dumps({"numRecords": 1, "x": "y" * 10_000})
    group = 8_000
    arrays = [
        _adds(_names(group, start), pa.repeat(pa.scalar(text), group))
        for start in range(0, 20 * group, group)
    ]
    _checkpoint(table, *arrays)
    said = run_bounded(_READ, table.path, timeout_s=60)
    assert said.startswith("OPTIMIST_MALFORMED_CHECKPOINT")
    assert "unpacks to more than" in said


@pytest.mark.parametrize("kept_as", ["texts", "dictionaries"])
def test_a_long_text_of_every_row_is_unpacked_for_few_rows_at_once(
    table: HostileTable, kept_as: str
) -> None:
    count = 33_000
    text = pa.array([json.dumps({"x": "y" * 120_000})])
    stats = pa.DictionaryArray.from_arrays(pa.array([0] * count, pa.int32()), text)
    fields = [field.with_type(stats.type) if field.name == "stats" else field for field in _ADD]
    array = pa.StructArray.from_arrays([*_adds(_names(count)).flatten()[:-1], stats], fields=fields)
    _checkpoint(table, array, store_schema=kept_as == "dictionaries")
    assert (table.log / f"{table.version - 1:020}.checkpoint.parquet").stat().st_size < 300_000
    said = run_bounded(_READ, table.path, timeout_s=60)
    assert said.startswith("OPTIMIST_MALFORMED_CHECKPOINT")
    assert "unpacks to more than" in said


def test_a_long_text_of_every_transaction_is_no_checkpoint(table: HostileTable) -> None:
    count = 33_000
    identifiers = pa.DictionaryArray.from_arrays(
        pa.array([0] * count, pa.int32()), pa.array(["y" * 120_000])
    )
    transactions = pa.StructArray.from_arrays([identifiers], names=["appId"])
    state = pa.Table.from_pylist([{"protocol": None, "metaData": None, **row} for row in _state()])
    columns = [
        pa.concat_arrays([pa.nulls(count, item.type), *item.chunks]) for item in state.columns
    ]
    none = pa.nulls(len(state), transactions.type)
    with_transactions = [*columns, pa.concat_arrays([transactions, none])]
    content = pa.table(with_transactions, names=[*state.column_names, "txn"])
    table.commit()
    pq.write_table(
        content, table.log / f"{table.version:020}.checkpoint.parquet", compression="zstd"
    )
    (table.log / f"{table.version - 1:020}.json").unlink()
    said = run_bounded(_READ, table.path, timeout_s=60)
    assert said.startswith("OPTIMIST_MALFORMED_CHECKPOINT")


@pytest.mark.parametrize("codec", ["snappy", "zstd"])
def test_texts_in_dictionaries_are_read_as_they_are(table: HostileTable, codec: str) -> None:
    count = 10_000
    texts = pa.array([json.dumps({"numRecords": n, "x": "y" * 1_000}) for n in range(800)])
    stats = texts.take(pa.array([number % 800 for number in range(count)]))
    _checkpoint(table, _adds(_names(count), stats), codec=codec)
    files = DeltaLog(table.path, LocalLogStore()).snapshot().files
    assert files.column("path").to_pylist() == _names(count).to_pylist()
    assert files.column("stats").combine_chunks().equals(stats)


def test_more_files_than_the_option_allows_are_refused(table: HostileTable) -> None:
    _checkpoint(table, _adds(_names(50)), _adds(_names(50, 50)))
    for limit, is_read in (("100", True), ("99", False), ("1", False)):
        options = EngineOptions.from_options({"optimist.log.maxFiles": limit})
        log = DeltaLog(table.path, LocalLogStore(), options)
        if is_read:
            assert log.snapshot().num_files == 100
            continue
        with pytest.raises(TableError) as caught:
            assert log.snapshot().files
        assert caught.value.kind == "OPTIMIST_LOG_TOO_LARGE"
        with pytest.raises(TableError):
            list(log.snapshot().iter_files(10))


def test_more_removed_files_than_the_option_allows_are_refused(make_table) -> None:
    options = {"spark.databricks.delta.checkpoint.partSize": "30"}
    features = ("appendOnly", "invariants", "v2Checkpoint")
    table = make_table(
        configuration={"delta.checkpointPolicy": "v2"},
        options=options,
        protocol=Protocol(3, 7, ("v2Checkpoint",), features),
    ).create()
    now_ms = table.clock.now_ms()
    table.poke(1, [table.add(f"f{number}").remove(now_ms) for number in range(100)])
    table.log.snapshot()
    table.log.checkpoint()
    sidecars = table.store.list_from(f"{table.log.log_path}/_sidecars/")
    assert len(list(sidecars)) == 4
    for limit, is_read in (("100", True), ("99", False), ("30", False)):
        snapshot = table.handle({"optimist.log.maxFiles": limit}).snapshot()
        assert snapshot.num_files == 0
        if is_read:
            assert len(snapshot.tombstones) == 100
            continue
        with pytest.raises(TableError) as caught:
            assert snapshot.tombstones
        assert caught.value.kind == "OPTIMIST_LOG_TOO_LARGE"


def test_files_of_all_sidecars_count_where_a_scan_reads_a_part(make_table) -> None:
    features = ("appendOnly", "invariants", "v2Checkpoint")
    table = make_table(
        configuration={"delta.checkpointPolicy": "v2"},
        options={"spark.databricks.delta.checkpoint.partSize": "30"},
        protocol=Protocol(3, 7, ("v2Checkpoint",), features),
    ).create()
    table.poke(1, [table.add(f"f{number}") for number in range(100)])
    table.log.snapshot()
    table.log.checkpoint()
    sidecars = table.store.list_from(f"{table.log.log_path}/_sidecars/")
    assert len(list(sidecars)) == 4
    for limit in ("100", "99", "30"):
        limits = {"optimist.log.maxFiles": limit, "optimist.log.cacheBytes": "1"}
        snapshot = table.handle(limits).snapshot()
        if limit == "100":
            assert snapshot.files_at(pa.array(["f7", "f99"])).num_rows == 2
            continue
        with pytest.raises(TableError) as caught:
            snapshot.files_at(pa.array(["f7"]))
        assert caught.value.kind == "OPTIMIST_LOG_TOO_LARGE"


def test_a_commit_larger_than_the_option_allows_is_not_read(table: HostileTable) -> None:
    table.commit({"commitInfo": {"x": "y" * 10_000}})
    options = EngineOptions.from_options({"optimist.log.maxFileBytes": "5000"})
    with pytest.raises(TableError) as caught:
        DeltaLog(table.path, LocalLogStore(), options).snapshot()
    assert caught.value.kind == "OPTIMIST_LOG_TOO_LARGE"
    assert DeltaLog(table.path, LocalLogStore()).snapshot().version == 1


def test_what_unpacks_to_thousands_of_times_its_size_is_refused_on_the_way() -> None:
    rows = [{"isAdd": True, "path": f"f{n}", "size": 1, "stats": "x" * 100_000} for n in range(100)]
    batch = file_actions_batch(rows).select(FILES_SCHEMA.names)
    seen = 0
    with pytest.raises(ValueError, match="unpacks"):
        for _ in unpacked([batch] * 1_000, 1_000, LogLimits()):
            seen += 1
    assert seen < 10
    assert len(list(unpacked([batch] * 1_000, 1 << 30, LogLimits()))) == 1_000


def test_samples_find_a_batch_that_comes_again() -> None:
    batches = [
        file_actions_batch(
            {"isAdd": True, "path": f"f{number}", "size": 1} for number in range(start, start + 40)
        ).select(FILES_SCHEMA.names)
        for start in range(0, 400, 40)
    ]
    assert sum(1 for _ in distinct(batches, LogLimits())) == 10
    with pytest.raises(ValueError, match="more than once"):
        list(distinct([*batches, batches[3]], LogLimits()))
