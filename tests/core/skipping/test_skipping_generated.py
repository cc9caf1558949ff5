"""A filter on a column prunes the partitions that are generated from it (spec 9.4)."""

import datetime as dt
import json
from zoneinfo import ZoneInfo

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from optimist.core import DeltaLog
from optimist.core.errors import ConcurrentAppendException
from optimist.core.predicates import Predicate
from optimist.core.predicates.tree import Column, Comparison, Literal
from optimist.core.protocol.actions import AddFile
from optimist.core.schema.generated_rules import generation_rule
from optimist.core.schema.types import PrimitiveType, StructField, StructType
from optimist.core.skipping.pruner import FilePruner
from optimist.core.transaction.conflicts.operations import Operation

UTC = dt.timezone.utc


def generated(name, kind, sql):
    return StructField(name, PrimitiveType(kind), metadata={"delta.generationExpression": sql})


def table_of(*columns, source="timestamp"):
    inner = StructType((StructField("c", PrimitiveType("string")),))
    return StructType(
        (
            StructField("ts", PrimitiveType(source)),
            StructField("s", PrimitiveType("string")),
            StructField("st", inner),
            *columns,
        )
    )


def files_of(partitions):
    """One file per partition, without statistics."""
    values = [list(partition.items()) for partition in partitions]
    return pa.table(
        {
            "path": [f"f{i}" for i in range(len(values))],
            "stats": pa.nulls(len(values), pa.string()),
            "partitionValues": pa.array(values, pa.map_(pa.string(), pa.string())),
        }
    )


def kept(sql, schema, partitions):
    names = list(partitions[0])
    pruner = FilePruner(files_of(partitions), schema, names)
    mask = pruner.keep_mask(Predicate.parse(sql)).to_pylist()
    return [partition for partition, keeps in zip(partitions, mask, strict=True) if keeps]


def days(name="p"):
    return [{name: f"2024-01-{day:02d}"} for day in range(1, 11)] + [{name: None}]


@pytest.mark.parametrize("sql", ["CAST(ts AS DATE)", "to_date(ts)", "date(TS)"])
@pytest.mark.parametrize(
    ("condition", "numbers"),
    [
        ("ts = '2024-01-05 10:00:00'", "5"),
        ("ts > '2024-01-05 10:00:00'", "5678910"),
        ("ts <= '2024-01-02'", "12"),
        ("ts BETWEEN '2024-01-03' AND '2024-01-04 12:00:00'", "34"),
        ("ts IN (TIMESTAMP_NTZ '2024-01-01 00:00:00', TIMESTAMP_NTZ '2024-01-09 01:00:00')", "19"),
        ("NOT (ts < '2024-01-09')", "910"),
        ("to_date(ts) = '2024-01-07'", "78"),
        ("ts <=> '2024-01-05'", "5"),
        ("ts < '2024-01-02' OR ts > '2024-01-10'", "1210"),
        ("ts <> '2024-01-05'", "12345678910"),
        ("s = 'x'", "12345678910"),
    ],
)
def test_days_are_pruned_by_the_time_they_come_from(sql, condition, numbers):
    schema = table_of(generated("p", "date", sql), source="timestamp_ntz")
    found = kept(condition, schema, days())
    assert "".join(str(int(item["p"][-2:])) for item in found if item["p"]) == numbers
    assert {"p": None} in found


def test_null_is_generated_from_null_alone():
    schema = table_of(generated("p", "date", "CAST(ts AS DATE)"))
    assert kept("ts IS NULL", schema, days()) == [{"p": None}]
    assert len(kept("ts IS NOT NULL", schema, days())) == 11


def test_an_instant_may_have_been_given_the_day_of_any_zone():
    schema = table_of(generated("p", "date", "CAST(ts AS DATE)"))
    found = kept("ts = TIMESTAMP '2024-01-05 10:00:00Z'", schema, days())
    assert [item["p"] for item in found] == ["2024-01-04", "2024-01-05", "2024-01-06", None]


@pytest.mark.parametrize(
    ("pattern", "texts"),
    [
        ("yyyy-MM", ["2023-12", "2024-01"]),
        ("yyyy-MM-dd", ["2023-12-31", "2024-01-01", "2024-01-02"]),
        ("yyyy-MM-dd-HH", ["2024-01-01-09", "2024-01-01-10", "2024-01-01-11"]),
    ],
)
def test_formatted_times_are_pruned_as_texts(pattern, texts):
    schema = table_of(
        generated("p", "string", f"date_format(ts, '{pattern}')"), source="timestamp_ntz"
    )
    partitions = [{"p": text} for text in texts]
    at = "2024-01-01 10:30:00"
    wanted = dt.datetime.fromisoformat(at).strftime(
        pattern.replace("yyyy", "%Y").replace("MM", "%m").replace("dd", "%d").replace("HH", "%H")
    )
    assert kept(f"ts = '{at}'", schema, partitions) == [{"p": wanted}]
    later = [item for item in partitions if item["p"] >= wanted]
    assert kept(f"ts > '{at}'", schema, partitions) == later


@pytest.mark.parametrize("late", ["+10000-01-01", "10000-01-01", "+294247-01-10"])
def test_years_past_9999_sort_before_others_as_text_and_are_kept_all_the_same(late):
    texts = ["0000-12-31", "2023-12-01", "2024-02-02", late]
    partitions = [{"p": text} for text in texts]
    for source in ("timestamp", "timestamp_ntz", "date"):
        schema = table_of(generated("p", "string", "date_format(ts, 'yyyy-MM-dd')"), source=source)
        assert kept("ts > DATE '2024-01-01'", schema, partitions) == partitions[2:]
        assert kept("ts >= DATE '9999-12-31'", schema, partitions) == partitions[3:]
        assert kept("ts <= DATE '2023-11-01'", schema, partitions)[0] == partitions[0]
        assert partitions[2] not in kept("ts <= DATE '2023-11-01'", schema, partitions)
    schema = table_of(generated("p", "string", "date_format(ts, 'yyyy-MM-dd')"))
    # East of Greenwich the last evening of 9999 is a day of the next year already.
    of_the_last_evening = "ts = TIMESTAMP '9999-12-31 23:00:00Z'"
    assert kept(of_the_last_evening, schema, partitions) == partitions[3:]
    assert kept("ts = TIMESTAMP '2024-01-01 23:00:00Z'", schema, partitions) == []


def test_year_month_and_day_are_compared_as_one_date():
    schema = table_of(
        generated("y", "integer", "year(ts)"),
        generated("m", "integer", "MONTH(CAST(ts AS DATE))"),
        generated("d", "integer", "dayofmonth(ts)"),
        generated("h", "integer", "hour(ts)"),
        source="timestamp_ntz",
    )
    hours = [dt.datetime(2023, 12, 30) + dt.timedelta(hours=i) for i in range(24 * 5)]
    partitions = [
        {"y": str(at.year), "m": str(at.month), "d": str(at.day), "h": str(at.hour)} for at in hours
    ]
    low, high = dt.datetime(2023, 12, 31, 22), dt.datetime(2024, 1, 2, 3)
    found = kept(f"ts >= '{low}' AND ts <= '{high}'", schema, partitions)
    assert found == [item for at, item in zip(hours, partitions, strict=True) if low <= at <= high]
    by_month = [{"m": str(month)} for month in range(1, 13)]
    assert kept(f"ts >= '{low}'", schema, by_month) == by_month


def test_truncated_times_are_pruned_by_their_unit():
    months = [{"p": f"2024-{month:02d}-01"} for month in range(1, 13)]
    schema = table_of(generated("p", "date", "trunc(ts, 'MM')"), source="date")
    found = kept("ts = DATE '2024-05-20'", schema, months)
    assert {"p": "2024-05-01"} in found
    assert len(found) <= 2
    instants = [{"p": f"2024-{month:02d}-01T00:00:00.000Z"} for month in range(1, 13)]
    schema = table_of(generated("p", "timestamp", "date_trunc('MONTH', ts)"))
    found = kept("ts > TIMESTAMP '2024-09-20 00:00:00Z'", schema, instants)
    assert [item["p"][5:7] for item in found] == ["09", "10", "11", "12"]


@pytest.mark.parametrize("sql", ["substring(s, 1, 2)", "substr(s, 0, 2)", "left(s, 2)"])
def test_beginnings_of_texts_are_pruned_by_the_text(sql):
    schema = table_of(generated("p", "string", sql))
    partitions = [{"p": text} for text in ("aa", "ab", "b", "ba", "é😀", None)]

    def texts(condition):
        return [item["p"] for item in kept(condition, schema, partitions)][:-1]

    assert texts("s = 'abc'") == ["ab"]
    assert texts("s = 'b'") == ["b"]
    assert texts("s > 'ab'") == ["ab", "b", "ba", "é😀"]
    assert texts("s <= 'ab'") == ["aa", "ab"]
    assert texts("s LIKE 'abc%'") == ["ab"]
    assert texts("startswith(s, 'a')") == ["aa", "ab"]
    assert texts("s = 'é😀z'") == ["é😀"]
    assert texts("s LIKE '%c'") == ["aa", "ab", "b", "ba", "é😀"]


def test_a_copy_of_a_column_is_pruned_like_the_column():
    schema = table_of(generated("p", "string", "st.c"))
    partitions = [{"p": text} for text in ("a", "b", None)]
    assert kept("st.c = 'a'", schema, partitions) == [{"p": "a"}, {"p": None}]
    assert kept("st.c NOT IN ('a')", schema, partitions) == [{"p": "b"}, {"p": None}]
    assert kept("s = 'a'", schema, partitions) == partitions


@pytest.mark.parametrize(
    "sql",
    [
        "CAST(ts AS INT)",
        "ts + 1",
        "year(ts) + 1",
        "date_format(ts, 'dd-MM-yyyy')",
        "date_format(ts, 'MMM')",
        "substring(s, 2, 3)",
        "substring(s, 1)",
        "upper(s)",
        "date_trunc('MONTH', ts) + INTERVAL 1 DAY",
        "hour(CAST(ts AS DATE))",
        "((",
    ],
)
def test_what_does_not_keep_the_order_prunes_nothing(sql):
    assert generation_rule(sql) is None


def test_a_rule_whose_result_has_another_type_prunes_nothing():
    schema = table_of(generated("p", "string", "CAST(ts AS DATE)"))
    assert len(kept("ts = '2024-01-05'", schema, days())) == 11


ZONES = st.sampled_from(
    ["UTC", "Pacific/Kiritimati", "Etc/GMT+12", "Asia/Kathmandu", "Europe/Berlin"]
)
INSTANTS = st.datetimes(dt.datetime(1900, 1, 1), dt.datetime(2100, 1, 1)).map(
    lambda value: value.replace(tzinfo=UTC)
)
GENERATED = {
    "d": ("date", "CAST(ts AS DATE)", lambda at: at.date().isoformat()),
    "f": ("string", "date_format(ts, 'yyyy-MM-dd-HH')", lambda at: at.strftime("%Y-%m-%d-%H")),
    "t": (
        "timestamp",
        "date_trunc('DAY', ts)",
        lambda at: at.replace(hour=0, minute=0, second=0, microsecond=0).isoformat(sep=" ")[:19],
    ),
    "y": ("integer", "year(ts)", lambda at: str(at.year)),
    "m": ("integer", "month(ts)", lambda at: str(at.month)),
    "dd": ("integer", "day(ts)", lambda at: str(at.day)),
    "h": ("integer", "hour(ts)", lambda at: str(at.hour)),
}


@settings(deadline=None)
@given(ZONES, INSTANTS, st.timedeltas(dt.timedelta(0), dt.timedelta(days=2)), st.data())
def test_no_partition_of_any_writers_zone_is_pruned_wrongly(zone, at, distance, data):
    chosen = data.draw(st.lists(st.sampled_from(sorted(GENERATED)), min_size=1, unique=True))
    schema = table_of(*(generated(name, *GENERATED[name][:2]) for name in chosen))
    local = at.astimezone(ZoneInfo(zone))
    partition = {name: GENERATED[name][2](local) for name in chosen}
    column = Column(("ts",))
    for op, value in (
        ("=", at),
        ("<=", at + distance),
        (">=", at - distance),
        ("<", at + distance + dt.timedelta(microseconds=1)),
        (">", at - distance - dt.timedelta(microseconds=1)),
    ):
        predicate = Comparison(op, column, Literal(value, "timestamp"))
        assert FilePruner(files_of([partition]), schema, chosen).keep_mask(
            predicate
        ).to_pylist() == [True]


def with_features(*names):
    return {"minReaderVersion": 1, "minWriterVersion": 7, "writerFeatures": names}


PROTOCOLS = {
    "1,2": ({"minReaderVersion": 1, "minWriterVersion": 2}, False),
    "1,4": ({"minReaderVersion": 1, "minWriterVersion": 4}, True),
    "without": (with_features("changeDataFeed"), False),
    "with": (with_features("changeDataFeed", "generatedColumns"), True),
}


EXPRESSION = {"delta.generationExpression": "CAST(ts AS DATE)"}


def metadata_of(expression):
    own = {"name": "ts", "type": "timestamp", "nullable": True, "metadata": {}}
    day = {"name": "d", "type": "date", "nullable": True, "metadata": expression}
    metadata = {"id": "t", "format": {"provider": "parquet", "options": {}}}
    metadata["schemaString"] = json.dumps({"type": "struct", "fields": [own, day]})
    metadata["partitionColumns"] = ["d"]
    return {"metaData": {**metadata, "configuration": {"delta.enableChangeDataFeed": "true"}}}


def table_with_a_stray_row(path, protocol, expression=EXPRESSION):
    """A row of 1999 in the partition of 2020, as any writer may put it that owes nothing."""
    times = pa.array([dt.datetime(1999, 1, 1, tzinfo=UTC)], pa.timestamp("us", "UTC"))
    pq.write_table(pa.table({"ts": times}), path / "f.parquet")
    add = {"path": "f.parquet", "partitionValues": {"d": "2020-05-05"}, "size": 1}
    add |= {"modificationTime": 1, "dataChange": True}
    (path / "_delta_log").mkdir()
    put_commit(path, 0, {"protocol": protocol}, metadata_of(expression), {"add": add})
    return DeltaLog.for_path(str(path))


def put_commit(path, version, *lines):
    (path / "_delta_log" / f"{version:020}.json").write_text("\n".join(map(json.dumps, lines)))


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_generated_partitions_prune_only_where_the_protocol_asks_writers_to_keep_them(
    tmp_path, protocol
):
    given_protocol, prunes = PROTOCOLS[protocol]
    log = table_with_a_stray_row(tmp_path, given_protocol)
    of_1999 = "ts < TIMESTAMP '2000-01-01 00:00:00Z'"
    assert log.snapshot().scan(of_1999).files.num_rows == (0 if prunes else 1)
    if not prunes:
        assert log.to_arrow(of_1999).num_rows == log.count(of_1999) == 1
    if protocol == "1,2":
        log.delete(of_1999)
        assert log.count() == 0


@pytest.mark.parametrize("protocol", ["1,2", "1,4", "with"])
def test_conflicts_are_judged_by_generated_partitions_only_where_these_are_kept(tmp_path, protocol):
    given_protocol, prunes = PROTOCOLS[protocol]
    log = table_with_a_stray_row(tmp_path, given_protocol)
    txn = log.start_transaction()
    files = txn.filter_files("ts < TIMESTAMP '2000-01-01 00:00:00Z'")
    assert files.num_rows == (0 if prunes else 1)
    winner = AddFile("g.parquet", {"d": "2020-05-06"}, 1, 1, True)
    other = log.start_transaction()
    other.read_whole_table()  # else it would count as a blind append
    other.commit([winner], Operation("DELETE"))
    ours = AddFile("h.parquet", {"d": "1999-01-01"}, 1, 1, True)
    if prunes:
        txn.commit([ours], Operation("DELETE"))
        return
    with pytest.raises(ConcurrentAppendException):
        txn.commit([ours], Operation("DELETE"))


def test_changes_are_not_pruned_by_an_expression_that_is_younger_than_their_files(tmp_path):
    log = table_with_a_stray_row(tmp_path, PROTOCOLS["1,4"][0], expression={})
    put_commit(tmp_path, 1, metadata_of(EXPRESSION))
    of_1999 = "ts < TIMESTAMP '2000-01-01 00:00:00Z'"
    assert log.changes(of_1999, starting_version=0).num_rows == 1
