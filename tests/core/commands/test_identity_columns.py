"""Identity columns without Spark: no number is given out twice, and none beyond 64 bits."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor

import pyarrow as pa
import pytest
from deltalake import DeltaTable as OtherTable
from hypothesis import given
from hypothesis import strategies as st

from optimist.core import DeltaLog
from optimist.core.errors import MetadataChangedException, SchemaError, UsageError
from optimist.core.protocol.actions import AddFile, Metadata
from optimist.core.protocol.gates import supports
from optimist.core.schema.identity_columns import identity_columns
from optimist.core.schema.types import schema_from_json
from optimist.core.transaction.conflicts.operations import Operation

LARGEST = 2**63 - 1
MARK = "delta.identity.highWaterMark"


def identity_field(start=1, step=1, *, by_default=False, nullable=True, **more):
    keys = {"start": start, "step": step, "allowExplicitInsert": by_default, **more}
    metadata = {f"delta.identity.{key}": value for key, value in keys.items()}
    return {"name": "n", "type": "long", "nullable": nullable, "metadata": metadata}


def make_table(path, *args, conf=None, **options):
    log = DeltaLog.for_path(str(path), conf or {})
    fields = [
        identity_field(*args, **options),
        {"name": "x", "type": "string", "nullable": True, "metadata": {}},
    ]
    schema = json.dumps({"type": "struct", "fields": fields})
    txn = log.start_transaction()
    txn.update_metadata(Metadata(id="", schema_string=schema))
    txn.commit((), Operation("CREATE TABLE"))
    return log


def rows(*texts, **more):
    return pa.table({"x": pa.array(texts, pa.string()), **more})


def numbers(log):
    return log.to_arrow(columns=["n"])["n"].to_pylist()


def mark(log):
    return log.snapshot().schema.find("n").metadata.get(MARK)


@pytest.mark.parametrize(
    ("start", "step", "wanted"), [(1, 1, [1, 2, 3]), (10, -5, [10, 5, 0]), (-2, 7, [-2, 5, 12])]
)
def test_numbers_go_on_where_the_last_write_ended(tmp_path, start, step, wanted):
    log = make_table(tmp_path / "t", start, step)
    assert supports(log.snapshot().protocol, "identityColumns")
    log.append(rows("a"))
    log.append(rows())
    assert mark(log) == start
    log.append(rows("b", "c"))
    assert sorted(numbers(log)) == sorted(wanted)
    assert mark(log) == wanted[-1]
    info = log.history(1)[0].info
    assert (info.tags, info.is_blind_append) == ({"delta.identity.schemaUpdate": "true"}, True)
    assert sorted(OtherTable(log.table_path).to_pyarrow_table()["n"].to_pylist()) == sorted(wanted)


def test_numbers_can_be_inserted_only_by_default_and_do_not_move_the_mark(tmp_path):
    log = make_table(tmp_path / "t", nullable=False)
    with pytest.raises(UsageError) as caught:
        log.append(rows("a", N=pa.array([7], pa.int64())))
    assert caught.value.kind == "DELTA_IDENTITY_COLUMNS_EXPLICIT_INSERT_NOT_SUPPORTED"
    assert log.snapshot().version == 0
    log = make_table(tmp_path / "u", 1, 2, by_default=True)
    log.append(rows("a", n=pa.array([8], pa.int64())))
    assert (mark(log), log.history(1)[0].info.tags) == (None, None)
    log.append(rows("b", "c"))
    assert (sorted(numbers(log)), mark(log)) == ([1, 3, 8], 3)


@pytest.mark.parametrize(("start", "step"), [(LARGEST - 4, 2), (-LARGEST + 3, -2)])
def test_a_column_without_numbers_left_takes_no_more_rows(tmp_path, start, step):
    log = make_table(tmp_path / "t", start, step)
    with pytest.raises(SchemaError) as caught:
        log.append(rows("a", "b", "c", "d"))
    assert caught.value.kind == "OPTIMIST_IDENTITY_COLUMN_EXHAUSTED"
    log.append(rows("a", "b", "c"))
    assert numbers(log) == [start, start + step, start + 2 * step]
    with pytest.raises(SchemaError):
        log.append(rows("d"))
    log.append(rows())
    assert len(list((tmp_path / "t").glob("*.parquet"))) == 1


def test_of_two_writes_that_give_out_one_number_the_later_fails(tmp_path):
    log = make_table(tmp_path / "t")
    early = log.start_transaction()
    log.append(rows("a"))
    early.advance_identity_columns(["n"], [with_number(1)])
    with pytest.raises(MetadataChangedException) as caught:
        early.commit([with_number(1)], Operation.write("Append"))
    assert caught.value.conflict.winning_version == 1
    assert numbers(log) == [1]


def test_writers_at_the_same_time_never_give_out_a_number_twice(tmp_path):
    path = make_table(tmp_path / "t", 5, 3).table_path

    def write(name):
        log = DeltaLog.for_path(path, {"spark.optimist.engineInfo": name})
        for _ in range(4):
            while True:
                try:
                    log.append(rows(name, name))
                    break
                except MetadataChangedException:
                    pass

    with ThreadPoolExecutor(3) as pool:
        list(pool.map(write, "abc"))
    log = DeltaLog.for_path(path, {})
    assert sorted(numbers(log)) == list(range(5, 5 + 3 * 24, 3))
    assert log.snapshot().version == 12


def test_a_commit_that_gives_out_none_passes_one_that_does(tmp_path):
    log = make_table(tmp_path / "t")
    early = log.start_transaction()
    log.append(rows("a"))
    early.commit((), Operation("SET TBLPROPERTIES"))
    assert (log.snapshot().version, mark(log)) == (2, 1)


def with_number(number):
    stats = json.dumps({"numRecords": 1, "maxValues": {"n": number}})
    return AddFile("f.parquet", {}, 1, 1, True, stats=stats)


def test_without_statistics_the_mark_moves_all_the_same(tmp_path):
    conf = {"spark.databricks.delta.stats.collect": "false"}
    log = make_table(tmp_path / "t", conf=conf)
    log.append(rows("a", "b"))
    assert mark(log) == 2


def test_damaged_metadata_is_refused(tmp_path):
    log = make_table(tmp_path / "t", start="1")
    with pytest.raises(SchemaError) as caught:
        log.append(rows("a"))
    assert caught.value.kind == "OPTIMIST_MALFORMED_IDENTITY_COLUMN"


STARTS = st.integers(-(2**63), LARGEST) | st.integers(-5, 5)
STEPS = st.integers(-(2**62), 2**62).filter(bool) | st.integers(1, 3)


@given(start=STARTS, step=STEPS, mark=st.none() | STARTS, written=STARTS)
def test_after_a_mark_no_number_up_to_what_was_written_is_given_out_again(
    start, step, mark, written
):
    field = identity_field(start, step, **({} if mark is None else {"highWaterMark": mark}))
    (column,) = identity_columns(
        schema_from_json(json.dumps({"type": "struct", "fields": [field]}))
    )
    after = column.advanced(written)
    if after is None:
        assert mark is None
        assert (written - start) * step < 0
        return
    assert -(2**63) <= after <= LARGEST
    assert mark is None or (after - mark) * step >= 0
    following = after + step
    assert (following - written) * step > 0 or not -(2**63) <= following <= LARGEST
    assert (after - start) % step == 0 or after == mark


@given(start=st.integers(-30, 30), step=st.integers(-7, 7).filter(bool), mark=st.integers(-60, 60))
def test_the_next_number_is_the_first_of_the_sequence_beyond_a_mark_of_any_engine(
    start, step, mark
):
    fields = [identity_field(start, step, highWaterMark=mark)]
    (column,) = identity_columns(schema_from_json(json.dumps({"type": "struct", "fields": fields})))
    sequence = (start + place * step for place in range(200))
    assert column.first == next(number for number in sequence if (number - mark) * step > 0)


def test_numbers_stay_as_they_are_in_updates_without_spark(tmp_path):
    log = make_table(tmp_path / "t")
    log.append(rows("a", "b"))
    with pytest.raises(UsageError) as caught:
        log.update(set={"N": 7}, predicate="x = 'a'")
    assert caught.value.kind == "DELTA_IDENTITY_COLUMNS_UPDATE_NOT_SUPPORTED"
    log.update(set={"x": "'c'"}, predicate="x = 'a'")
    log.delete("x = 'b'")
    assert (numbers(log), mark(log)) == ([1], 2)
