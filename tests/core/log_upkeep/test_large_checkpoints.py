"""Checkpoints of more than one row group: sorted, typed, and continued from the one before."""

import io
import json
from dataclasses import replace
from random import Random  # noqa: TID251 - a table is its seed

import deltalake
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

import checkpoint_tables
from checkpoint_tables import NOW_MS, V2, Table, add, stats
from optimist.core import DeltaLog
from optimist.core.errors import LogFileNotFoundError, StorageError
from optimist.core.errors.kinds import PREDECESSOR_MISSING
from optimist.core.log.file_table import add_files, file_keys
from optimist.core.log.names import commit_path
from optimist.core.log_upkeep import checkpoint, external_sort
from optimist.core.log_upkeep.checkpoint import write_checkpoint, write_compatibility_checkpoint
from optimist.core.log_upkeep.checkpoint_layout import LAYOUT_KEY
from optimist.core.log_upkeep.cleanup import LogCleaner
from optimist.core.log_upkeep.later_commits import commits_after
from optimist.core.log_upkeep.struct_columns import StructColumns
from optimist.core.options.engine import EngineOptions
from optimist.core.protocol.actions import AddFile, DeletionVectorDescriptor

SMALL = {"optimist.checkpoint.rowGroupRows": "8"}
DEFAULTS = "spark.databricks.delta.properties.defaults."
DAY_MS = 24 * 60 * 60 * 1000
DATES = ["2026-11-20", "2026-11-21", "0001-01-01", "9999-12-31", None, ""]


@pytest.fixture(autouse=True)
def tiny_runs(monkeypatch):
    """Even few rows are sorted on disk."""
    monkeypatch.setattr(external_sort, "_RUN_ROWS", 16)
    monkeypatch.setattr(external_sort, "_BLOCK_ROWS", 3)
    monkeypatch.setattr(external_sort, "_POOL_BLOCKS", 2)


def table_of(configuration=None, **arguments):
    return Table(configuration, options=SMALL, **arguments)


def some_adds(count, seed=1, prefix="f"):
    chance = Random(seed)
    for number in range(count):
        low = chance.randint(0, 1000)
        text = chance.choice([stats(low, low + 9), None, "no JSON", '{"numRecords":1}'])
        yield AddFile(
            f"{prefix}{number}",
            {"p": chance.choice(DATES)},
            chance.randint(1, 99),
            1,
            True,
            stats=text,
        )


def state_of(snapshot):
    live = sorted(add_files(snapshot.files), key=lambda item: item.path)
    gone = snapshot.tombstones.select(["path", "deletionTimestamp", "size"]).sort_by("path")
    return live, gone.to_pylist()


def check_checkpoint_alone(table):
    """The state from the checkpoint alone is the state of the commits."""
    version = table.version
    expected = state_of(table.load())
    last = table.checkpoint()
    assert last.version == version
    assert last.num_of_add_files == len(expected[0])
    saved = {}
    for number in range(version):
        path = commit_path(table.path, number)
        saved[path] = table.store.read_bytes(path)
        table.store.delete(path)
    after = table.load()
    assert after.segment.commits == ()
    assert state_of(after) == expected
    assert last.size == sum(1 for _ in table.actions_of(table.checkpoints()[-1]))
    for path, data in saved.items():
        table.store.put_if_absent(path, data)


def groups_of(table):
    """The file of each row group of adds, and its column chunks by path."""
    found = []
    folder = "_sidecars/" if table.metadata.configuration.get("delta.checkpointPolicy") else ""
    names = table.names(folder) if folder else table.checkpoints()[-1:]
    for name in names:
        file = pq.ParquetFile(io.BytesIO(table.store.read_bytes(f"{table.path}/{folder}{name}")))
        for number in range(file.num_row_groups):
            group = file.metadata.row_group(number)
            chunks = {
                group.column(i).path_in_schema: group.column(i) for i in range(group.num_columns)
            }
            if chunks["add.path"].statistics.null_count < group.num_rows:
                found.append((file.read_row_group(number, columns=["add"]).column("add"), chunks))
    return found


def test_columns_whose_values_repeat_have_a_dictionary_and_no_others():
    table = table_of().commit(*some_adds(20))
    table.checkpoint()
    _, chunks = groups_of(table)[0]
    packed = {path for path, chunk in chunks.items() if chunk.has_dictionary_page}
    assert {"add.stats_parsed.nullCount.n.y", "add.partitionValues_parsed.p"} <= packed
    unique = {"path", "size", "stats", "stats_parsed.minValues.x", "stats_parsed.numRecords"}
    assert not packed & {f"add.{name}" for name in unique}


@pytest.mark.parametrize("configuration", [{}, V2], ids=["classic", "v2"])
def test_rows_are_sorted_by_partition_and_then_by_the_least_value(configuration):
    table = table_of(configuration).commit(*some_adds(60))
    check_checkpoint_alone(table)
    groups = groups_of(table)
    assert all(1 <= len(rows) <= 8 for rows, _ in groups)
    if not configuration:
        found = [row for rows, _ in groups for row in rows.to_pylist()]
        keys = [
            (
                (
                    row["partitionValues_parsed"]["p"] is None,
                    str(row["partitionValues_parsed"]["p"]),
                ),
                low is None,
                low or 0,
            )
            for row in found
            for low in [((row["stats_parsed"] or {}).get("minValues") or {}).get("x")]
        ]
        assert keys == sorted(keys)


def bounds_hold(values, chunk):
    """Whether a row group's statistics hold for the values of a leaf in it."""
    statistics = chunk.statistics
    if statistics is None or not statistics.has_min_max:
        return True
    known = values.drop_null()
    low, high = (pa.scalar(each, known.type) for each in (statistics.min, statistics.max))
    inside = pc.and_(pc.greater_equal(known, low), pc.less_equal(known, high))
    return statistics.null_count == values.null_count and pc.all(inside, min_count=0).as_py()


ODD = {"p": "double", "x": "double", "s": "string", "b": "boolean"}


def odd_stats(value, text):
    bounds = {"x": value, "s": text}
    return json.dumps(
        {"numRecords": 3, "minValues": bounds, "maxValues": bounds, "nullCount": {"x": 0}}
    )


def test_the_statistics_of_a_row_group_hold_for_every_row_in_it(monkeypatch):
    values = ["NaN", -0.0, 0.0, "-Infinity", "Infinity", 1.5, None]
    texts = ["", "\x7f", "é" * 5000, "z" * 32 + "\U0010ffff", None, "a"]
    partitions = ["NaN", "0.0", "-0.0", None, "1e300"]
    chance = Random(5)
    monkeypatch.setattr(checkpoint_tables.schema_text, "__defaults__", (ODD,))
    table = table_of()
    table.commit(
        *(
            AddFile(f"f{n}", {"p": chance.choice(partitions)}, 1, 1, True,
                    stats=odd_stats(chance.choice(values), chance.choice(texts)))
            for n in range(80)
        )
    )  # fmt: skip
    check_checkpoint_alone(table)
    seen = 0
    for rows, chunks in groups_of(table):
        array = rows.combine_chunks()
        for kind in ("minValues", "maxValues"):
            for name in ("x", "s"):
                leaf = pc.struct_field(array, ["stats_parsed", kind, name])
                assert bounds_hold(leaf, chunks[f"add.stats_parsed.{kind}.{name}"])
                assert not any(value != value for value in leaf.to_pylist())
                seen += 1
        assert chunks["add.partitionValues_parsed.p"].statistics is None  # it may be NaN
    assert seen > 20


@pytest.mark.sample(3)
@pytest.mark.parametrize("as_struct", [None, "true", "false"])
@pytest.mark.parametrize("as_json", ["true", "false"])
def test_the_next_checkpoint_is_the_state_whatever_happened_since(as_struct, as_json):
    configuration = {"delta.checkpoint.writeStatsAsJson": as_json}
    if as_struct:
        configuration["delta.checkpoint.writeStatsAsStruct"] = as_struct
    table = table_of(configuration).commit(*some_adds(50))
    table.checkpoint()
    chance = Random(3)
    for step in range(6):
        live = add_files(table.load().files)
        gone = chance.sample(live, chance.randint(0, 6))
        again = [item for item in gone if chance.random() < 0.3]
        removes = [item.remove(NOW_MS - step) for item in gone]
        table.commit(*removes, *some_adds(chance.randint(0, 12), step, f"n{step}-"))
        table.commit(*again)
        live = sorted(item.path for item in add_files(table.load().files))
        last = table.checkpoint()
        assert last.num_of_add_files == len(live)
        for number in range(table.version):
            table.store.delete(commit_path(table.path, number))
        assert sorted(item.path for item in add_files(table.load().files)) == live


def test_the_one_before_is_continued_without_reading_statistics_again(monkeypatch):
    table = table_of().commit(*some_adds(50))
    table.checkpoint()
    first = groups_of(table)
    new = add("new", "2026-11-20")
    table.commit(new, next(some_adds(1)).remove(NOW_MS))
    parsed = []
    real = StructColumns.columns
    monkeypatch.setattr(
        StructColumns,
        "columns",
        lambda self, files: (parsed.append(files.num_rows), real(self, files))[1],
    )
    check_checkpoint_alone(table)
    assert sum(parsed) == 1
    assert sum(len(rows) for rows, _ in groups_of(table)) == sum(len(r) for r, _ in first)


def test_a_checkpoint_of_another_schema_is_not_continued(monkeypatch):
    table = table_of().commit(*some_adds(50))
    table.checkpoint()
    wide = json.loads(table.metadata.schema_string)
    wide["fields"][2]["type"] = "integer"  # s is text no more
    table.metadata = replace(table.metadata, schema_string=json.dumps(wide))
    table.commit(table.metadata)
    check_checkpoint_alone(table)
    kind = groups_of(table)[0][0].type.field("stats_parsed").type.field("minValues").type
    assert kind.field("s").type == pa.int32()


def sidecars(table):
    name = table.checkpoints()[-1]
    rows = [json.loads(row) for row in table.store.read_bytes(f"{table.path}/{name}").splitlines()]
    return {row["sidecar"]["path"]: row["sidecar"] for row in rows if "sidecar" in row}


def test_sidecars_that_hold_are_named_again():
    table = table_of(V2).commit(*(add(f"f{number:03d}") for number in range(80)))
    table.checkpoint()
    before = sidecars(table)
    assert len(before) == 10
    table.commit(add("f003").remove(NOW_MS), add("g"))
    check_checkpoint_alone(table)
    after = sidecars(table)
    kept = before.keys() & after.keys()
    assert len(kept) == 9
    assert all(after[name] == before[name] for name in kept)
    assert set(table.names("_sidecars/")) >= after.keys()


def test_cleanup_keeps_an_old_sidecar_that_a_kept_checkpoint_names_again():
    configuration = {**V2, "delta.logRetentionDuration": "interval 5 days"}
    table = table_of(configuration).commit(*(add(f"f{number:03d}") for number in range(80)))
    table.checkpoint()
    first = sidecars(table)
    table.clock.advance(3 * DAY_MS / 1000)
    table.commit(add("f003").remove(table.clock.now_ms()), add("g"))
    table.checkpoint()
    second = sidecars(table)
    assert len(first.keys() & second.keys()) == 9
    table.clock.advance(4 * DAY_MS / 1000)
    table.commit(add("h"))
    table.checkpoint()
    deleted = LogCleaner().clean_up(
        table.store, table.load(), options=table.options, clock=table.clock
    )
    gone = {path.rpartition("/")[2] for path in deleted}
    assert first.keys() - second.keys() <= gone
    assert not gone & second.keys()
    assert table.load().num_files == 81
    assert sorted(body["path"][-4:] for body in table.bodies("add")) == sorted(
        item.path[-4:] for item in add_files(table.load().files)
    )


@pytest.mark.parametrize("policy", ["classic", "v2"])
def test_another_engine_reads_a_sorted_checkpoint_alone(tmp_path, policy):
    log = DeltaLog.for_path(
        str(tmp_path),
        {**SMALL, "optimist.checkpoint.rowGroupRows": "3", f"{DEFAULTS}checkpointInterval": "1000"},
    )
    schema = {"p": pa.string(), "x": pa.int64()}
    log.create(pa.schema(schema), partition_by=["p"], properties={"delta.checkpointPolicy": policy})
    expected = []
    for number in range(12):
        rows = {"p": ["a", "b", None][number % 3], "x": number}
        log.append(pa.table({name: [value] for name, value in rows.items()}, pa.schema(schema)))
        expected.append(rows)
        if number == 8:
            log.checkpoint()
    log.delete("x = 4")
    log.checkpoint()
    names = sorted(path.name for path in (tmp_path / "_delta_log").glob("*.json"))
    for name in names:
        version = int(name.partition(".")[0])
        if version < log.snapshot().version and name.count(".") == 1:
            (tmp_path / "_delta_log" / name).unlink()
    theirs = deltalake.DeltaTable(str(tmp_path))
    assert len(theirs.file_uris()) == 11
    if policy == "classic":  # it does not read rows of the other
        rows = theirs.to_pyarrow_table().sort_by("x").to_pylist()
        assert rows == [row for row in expected if row["x"] != 4]
    ours = DeltaLog.for_path(str(tmp_path)).to_arrow("p = 'b'")
    assert sorted(ours["x"].to_pylist()) == [1, 7, 10]


def test_a_file_with_a_vector_or_another_spelling_is_found_in_its_sidecar():
    vector = DeletionVectorDescriptor("u", "ab^-aqEH.-t@S}K{vb[*k^", 40, 2, offset=4)
    plain = [add(f"f{number:03d}") for number in range(60)]
    spelled = AddFile("p=2026-11-20/a%20b", {"p": "2026-11-20"}, 5, 1, True)
    with_vector = AddFile("p=2026-11-20/v", {"p": "2026-11-20"}, 5, 1, True, deletion_vector=vector)
    table = table_of(V2).commit(*plain, spelled, with_vector)
    table.checkpoint()
    table.commit(
        AddFile("p=2026-11-20/a b", {"p": "2026-11-20"}, 5, 1, True).remove(NOW_MS),
        with_vector.remove(NOW_MS),
        AddFile("p=2026-11-20/v", {"p": "2026-11-20"}, 5, 1, True),
    )
    check_checkpoint_alone(table)
    keys = file_keys(table.load().files.combine_chunks().to_batches()[0]).to_pylist()
    assert "p=2026-11-20/a b" not in keys
    assert keys.count("p=2026-11-20/v") == 1


def test_sidecars_that_are_too_large_by_now_are_written_anew():
    table = table_of(V2).commit(*(add(f"f{number:03d}") for number in range(80)))
    table.checkpoint()
    part_size = {**SMALL, "spark.databricks.delta.checkpoint.partSize": "5"}
    table.options = EngineOptions.from_options(part_size)
    table.commit(add("g"))
    check_checkpoint_alone(table)
    tags = [item["tags"] for item in sidecars(table).values()]
    assert max(int(item["optimist.rows"]) for item in tags) == 5


def still_there_until(calls):
    """Raise, from this call on, as if the table had been dropped."""
    left = [calls]

    def look(store, snapshot):
        left[0] -= 1
        if left[0] < 0:
            raise StorageError("gone", kind=PREDECESSOR_MISSING, retryable=False)
        return commits_after(store, snapshot)

    return look


@pytest.mark.parametrize(("configuration", "calls"), [({}, 0), ({}, 1), (V2, 0), (V2, 1), (V2, 2)])
def test_nothing_of_a_table_that_is_gone_stays(configuration, calls, monkeypatch):
    table = table_of(configuration).commit(*(add(f"f{number:03d}") for number in range(80)))
    table.checkpoint()
    table.commit(add("g"))
    before = table.names()
    kept = table.names("_sidecars/") if configuration else []
    monkeypatch.setattr(checkpoint, "commits_after", still_there_until(calls))
    with pytest.raises(StorageError, match="gone"):
        table.checkpoint()
    assert table.names() == before
    assert (table.names("_sidecars/") if configuration else []) == kept


@pytest.mark.parametrize("write", [write_checkpoint, write_compatibility_checkpoint])
def test_every_caller_looks_whether_the_table_was_made_anew(write):
    table = table_of(V2).commit(*(add(f"f{number:03d}") for number in range(20)))
    snapshot = table.load()
    for name in table.names():
        table.store.delete(f"{table.path}/{name}")
    anew = table_of(V2, store=table.store)
    anew.path = table.path
    anew.version = -1
    for _ in range(3):
        anew.commit(table.metadata)
    before = anew.names()
    with pytest.raises(StorageError) as raised:
        write(table.store, snapshot, options=table.options, clock=table.clock)
    assert raised.value.kind == PREDECESSOR_MISSING
    assert anew.names() == before
    with pytest.raises(LogFileNotFoundError):
        table.names("_sidecars/")


def test_the_look_after_the_newest_version_is_published_is_the_last_listing(monkeypatch):
    table = table_of({}).commit(*(add(f"f{number:03d}") for number in range(20)))
    older = table.load()

    def listings(snapshot):
        found = []
        list_from = table.store.list_from
        with monkeypatch.context() as patched:
            patched.setattr(
                table.store, "list_from", lambda path: found.append(path) or list_from(path)
            )
            write_checkpoint(table.store, snapshot, options=table.options, clock=table.clock)
        return len(found)

    assert listings(older) == 2
    assert listings(table.commit(add("g")).load()) == 2
    assert listings(older) == 3


@pytest.mark.parametrize("configuration", [{}, V2], ids=["classic", "v2"])
def test_a_checkpoint_from_which_a_cleanup_let_the_log_begin_stays(configuration, monkeypatch):
    table = table_of(configuration).commit(*(add(f"f{number:03d}") for number in range(20)))
    snapshot = table.load()
    files = sorted(snapshot.files["path"].to_pylist())
    table.commit(add("later").remove(NOW_MS))
    looks = []

    def look(store, snapshot):
        looks.append(table.checkpoints())
        if looks[-1]:
            for version in range(snapshot.version + 1):
                table.store.delete(commit_path(table.path, version))
        return commits_after(store, snapshot)

    monkeypatch.setattr(checkpoint, "commits_after", look)
    write_checkpoint(table.store, snapshot, options=table.options, clock=table.clock)
    assert not looks[0]
    assert looks[-1] == table.checkpoints()
    assert sorted(table.load().files["path"].to_pylist()) == files


@pytest.mark.parametrize("configuration", [{}, V2], ids=["classic", "v2"])
def test_a_checkpoint_that_ends_after_a_newer_one_leaves_the_hint_alone(configuration):
    table = table_of(configuration).commit(*(add(f"f{number:03d}") for number in range(20)))
    older = table.load()
    table.commit(add("g")).checkpoint()
    hint = table.store.read_bytes(f"{table.path}/_last_checkpoint")
    last = write_checkpoint(table.store, older, options=table.options, clock=table.clock)
    assert last.version == 1
    assert len(table.checkpoints()) == 2
    assert table.store.read_bytes(f"{table.path}/_last_checkpoint") == hint
    assert table.commit(add("h")).checkpoint().version == 3
    assert table.store.read_bytes(f"{table.path}/_last_checkpoint") != hint


def test_wide_rows_are_sorted_in_as_little_memory_as_narrow_ones(monkeypatch):
    monkeypatch.undo()
    monkeypatch.setattr(external_sort, "_RUN_BYTES", 1 << 20)
    monkeypatch.setattr(external_sort, "_BLOCK_BYTES", 16 << 10)
    monkeypatch.setattr(external_sort, "_POOL_BLOCKS", 4)
    chance = Random(1)
    given = [(chance.random(), f"{number:020000d}") for number in range(1000)]
    batch = pa.RecordBatch.from_pylist([{"key": key, "text": text} for key, text in given])
    with external_sort.ExternalSort(lambda rows: [rows.column("key")]) as sort:
        sort.add(batch)
        sort.add(batch.slice(0, 0))
        found = list(sort.batches())
    assert max(part.nbytes for part in found) < 3 << 20
    rows = pa.Table.from_batches(found)
    assert list(zip(*rows.to_pydict().values(), strict=True)) == sorted(given)


def test_all_is_written_anew_while_a_cleanup_might_delete_the_one_before():
    table = table_of(V2).commit(*(add(f"f{number:03d}") for number in range(80)))
    table.checkpoint()
    before = sidecars(table)
    table.clock.advance(29.5 * DAY_MS / 1000)
    table.commit(add("g"))
    check_checkpoint_alone(table)
    assert not before.keys() & sidecars(table).keys()


def test_expired_tombstones_leave_their_sidecar():
    table = table_of(V2).commit(*(add(f"f{number:03d}") for number in range(80)))
    old = [add(f"f{n:03d}").remove(NOW_MS - 6 * DAY_MS) for n in range(10)]
    new = [add(f"f{n:03d}").remove(NOW_MS) for n in range(10, 20)]
    table.commit(*old, *new)
    table.checkpoint()
    assert len(table.bodies("remove")) == 20
    table.clock.advance(2 * DAY_MS / 1000)
    table.commit(add("g"))
    check_checkpoint_alone(table)
    assert sorted(body["path"][-4:] for body in table.bodies("remove")) == [
        f"f{n:03d}" for n in range(10, 20)
    ]


def test_a_failure_takes_back_the_new_sidecars_and_none_that_were_named_before(monkeypatch):
    table = table_of(V2).commit(*(add(f"f{number:03d}") for number in range(80)))
    table.checkpoint()
    before = set(table.names("_sidecars/"))
    table.commit(add("g"))

    def interrupt(_):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        table.checkpoint(progress=interrupt)
    assert set(table.names("_sidecars/")) == before
    assert table.load().num_files == 81


def test_a_sidecar_that_is_gone_is_not_named_again():
    table = table_of(V2).commit(*(add(f"f{number:03d}") for number in range(80)))
    table.checkpoint()
    lost = next(iter(sidecars(table)))
    table.commit(add("g"))
    snapshot = table.load()
    table.store.delete(f"{table.path}/_sidecars/{lost}")
    last = write_checkpoint(table.store, snapshot, options=table.options, clock=table.clock)
    assert last.num_of_add_files == 81
    assert lost not in sidecars(table)


@pytest.mark.again
def test_many_checkpoints_of_a_growing_table_keep_sidecars_few_and_large():
    table = table_of(V2)
    chance = Random(9)
    for step in range(40):
        live = add_files(table.load().files)
        gone = chance.sample(live, min(len(live), chance.randint(0, 2)))
        removes = [item.remove(NOW_MS) for item in gone]
        table.commit(*removes, *some_adds(chance.randint(0, 9), step, f"n{step}-"))
        table.checkpoint()
        tags = [item["tags"] for item in sidecars(table).values() if "tags" in item]
        sizes = [int(item["optimist.rows"]) for item in tags if item["optimist.kind"] == "add"]
        assert sum(2 * size < 8 for size in sizes) <= 1
    check_checkpoint_alone(table)


def test_the_next_is_written_though_a_row_group_of_the_one_before_is_damaged():
    table = table_of().commit(*some_adds(50))
    table.checkpoint()
    table.commit(add("new"))
    snapshot = table.load()
    path = f"{table.path}/{table.checkpoints()[-1]}"
    data = table.store.read_bytes(path)
    middle = len(data) // 3
    table.store.put_overwrite(path, data[:middle] + b"\xff" * 500 + data[middle + 500 :])
    last = write_checkpoint(table.store, snapshot, options=table.options, clock=table.clock)
    assert last.num_of_add_files == 51
    table.store.delete(path)
    check_checkpoint_alone(table)


def test_a_base_that_names_a_file_twice_is_not_continued():
    table = table_of().commit(*some_adds(50))
    table.checkpoint()
    table.commit(add("new"))
    snapshot = table.load()
    path = f"{table.path}/{table.checkpoints()[-1]}"
    file = pq.ParquetFile(io.BytesIO(table.store.read_bytes(path)))
    key = LAYOUT_KEY.encode()
    rows = pa.concat_tables([file.read(), file.read_row_group(1)])
    sink = io.BytesIO()
    pq.write_table(
        rows.replace_schema_metadata({key: file.metadata.metadata[key]}), sink, row_group_size=8
    )
    table.store.put_overwrite(path, sink.getvalue())
    last = write_checkpoint(table.store, snapshot, options=table.options, clock=table.clock)
    assert last.num_of_add_files == 51


def test_a_forged_file_that_claims_our_layout_is_read_in_the_usual_way():
    table = table_of().commit(*some_adds(50))
    table.checkpoint()
    path = f"{table.path}/{table.checkpoints()[-1]}"
    whole = pq.read_table(io.BytesIO(table.store.read_bytes(path)))
    digest = pq.ParquetFile(io.BytesIO(table.store.read_bytes(path))).metadata.metadata
    kind = whole.schema.field("add").type
    fields = [field for field in kind if field.name != "stats_parsed"]
    adds = whole.column("add").combine_chunks()
    other = pa.StructArray.from_arrays(
        [pc.struct_field(adds, [field.name]) for field in fields],
        fields=fields,
        mask=adds.is_null(),
    )
    index = whole.schema.get_field_index("add")
    sink = io.BytesIO()
    forged = whole.set_column(index, "add", other)
    key = LAYOUT_KEY.encode()
    pq.write_table(forged.replace_schema_metadata({key: digest[key]}), sink)
    table.store.put_overwrite(path, sink.getvalue())
    table.commit(add("new"))
    check_checkpoint_alone(table)
