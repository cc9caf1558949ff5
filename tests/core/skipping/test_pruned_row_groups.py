"""Scans that read a checkpoint in part find what scans of all files find, on odd data too."""

import datetime as dt
import io
import json
import tempfile
from decimal import Decimal
from pathlib import Path
from types import SimpleNamespace

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from optimist.core import DeltaLog
from optimist.core.data.partition_values import parse_partition_value
from optimist.core.errors import TableError
from optimist.core.log.checkpoint_file import CheckpointFile
from optimist.core.log.file_table import FILES_SCHEMA, table_keys
from optimist.core.log.group_bounds import GroupBounds
from optimist.core.log.parquet_actions import AddReader
from optimist.core.predicates.resolution import resolve_column
from optimist.core.predicates.tree import Column, Comparison, In, IsNull, Literal, Not, StartsWith
from optimist.core.schema.types import DecimalType, PrimitiveType, StructField, StructType
from optimist.core.skipping.wide_bounds import widened_over_files
from optimist.logstores import LocalLogStore

PARTITIONS = {"pi": "integer", "ps": "string", "pd": "date", "pn": "decimal(9,2)"}
COLUMNS = {
    "i": "long",
    "s": "string",
    "n": "decimal(9,2)",
    "w": "decimal(38,10)",
    "x": "double",
    "d": "date",
    "t": "timestamp",
    "c": "timestamp_ntz",
}
ARROW = {
    "integer": pa.int32(),
    "long": pa.int64(),
    "string": pa.string(),
    "date": pa.date32(),
    "decimal(9,2)": pa.decimal128(9, 2),
    "decimal(38,10)": pa.decimal128(38, 10),
    "double": pa.float64(),
    "timestamp": pa.timestamp("us", "UTC"),
    "timestamp_ntz": pa.timestamp("us"),
}
TEXTS = ("", "a", "ab", "a\ufffdz", "ab\ufffd", "b", "\ufffd", "a😀", "\U0010ffff")
TEXTS_OF_PARTITIONS = {
    "pi": ("1", "01", "-3", "7", "", None),
    "ps": ("", "a", "b", "ab", "a\ufffd", "__HIVE_DEFAULT_PARTITION__", None),
    "pd": ("2026-01-02", "1969-12-31", "", None),
    "pn": ("1.5", "1.50", "-2", "", None),
}
VALUES = {
    "i": (-5, 0, 3, 2**63 - 1),
    "s": TEXTS,
    "n": (Decimal("-1.00"), Decimal("0.50"), Decimal("9999999.99")),
    "w": (Decimal("1E+20"), Decimal("9223372036854775807"), Decimal("-1.0000000001")),
    "x": (-0.0, 0.0, float("nan"), float("inf"), 1.5, -2.0),
    "d": (dt.date(1, 1, 1), dt.date(1970, 1, 1), dt.date(9999, 12, 31)),
    "t": tuple(
        dt.datetime(year, 1, day, 0, 0, second, tzinfo=dt.timezone.utc)
        for year, day, second in ((1900, 1, 0), (1972, 7, 59), (1972, 8, 0), (2026, 1, 1))
    ),
    "c": (dt.datetime(1900, 1, 1), dt.datetime(2026, 1, 1, 0, 0, 0, 1000)),
}
OPERATORS = ("=", "<>", "<", "<=", ">", ">=")
PROTOCOL = {"minReaderVersion": 3, "minWriterVersion": 7,
            "readerFeatures": ["deletionVectors", "timestampNtz"],
            "writerFeatures": ["deletionVectors", "timestampNtz"]}  # fmt: skip
VECTOR = {"storageType": "u", "pathOrInlineDv": "ab^-aqEH.-t@S}K{vb[*k^", "offset": 4,
          "sizeInBytes": 40, "cardinality": 1}  # fmt: skip


def _json_of(value):
    if isinstance(value, float):
        return {"nan": "NaN", "inf": "Infinity"}.get(str(value), value)
    if isinstance(value, dt.datetime):
        text = value.strftime("%Y-%m-%dT%H:%M:%S.") + f"{value.microsecond // 1000:03d}"
        return text.rjust(23, "0") + ("Z" if value.tzinfo else "")
    return str(value) if isinstance(value, dt.date | Decimal) else value


def _json_text(item):
    """Return JSON in which decimals are numbers with all their digits."""
    if isinstance(item, dict):
        return "{" + ",".join(f"{json.dumps(k)}:{_json_text(v)}" for k, v in item.items()) + "}"
    return f"{item:f}" if isinstance(item, Decimal) else json.dumps(_json_of(item))


def _bounds():
    pairs = {
        name: st.none() | st.tuples(st.sampled_from(values), st.sampled_from(values))
        for name, values in VALUES.items()
    }
    return st.fixed_dictionaries(pairs)


FILES = st.lists(
    st.fixed_dictionaries(
        {
            "partitions": st.fixed_dictionaries(
                {name: st.sampled_from(texts) for name, texts in TEXTS_OF_PARTITIONS.items()}
            ),
            "bounds": st.none() | _bounds(),
            "nulls": st.none() | st.integers(0, 2),
            "is_typed": st.sampled_from([True, True, True, False]),
        }
    ),
    min_size=1,
    max_size=12,
)


@st.composite
def predicates(draw):
    """Draw one or two leaves, joined."""
    leaves = [draw(_leaf(draw(st.sampled_from([*PARTITIONS, *COLUMNS])))) for _ in range(2)]
    how = draw(st.sampled_from(["one", "and", "or"]))
    return {"one": leaves[0], "and": leaves[0] & leaves[1], "or": leaves[0] | leaves[1]}[how]


def _leaf(name):
    column, kind = Column((name,)), {**PARTITIONS, **COLUMNS}[name]
    if name in PARTITIONS:
        texts = [text for text in TEXTS_OF_PARTITIONS[name] if text]
        values = [parse_partition_value(text, _type(kind)) for text in texts]
    else:
        values = list(VALUES[name])
    literal_kind = {"long": "integer"}.get(kind, kind.partition("(")[0])
    value = st.sampled_from(values).map(lambda each: Literal(each, literal_kind))
    choices = [
        st.tuples(st.sampled_from(OPERATORS), value).map(
            lambda pair: Comparison(pair[0], column, pair[1])
        ),
        st.lists(value, min_size=1, max_size=2).map(lambda found: In(column, tuple(found))),
        st.just(IsNull(column)),
        st.just(Not(IsNull(column))),
    ]
    if kind == "string":
        choices.append(st.sampled_from(["a", "ab", "\ufffd"]).map(lambda t: StartsWith(column, t)))
    return st.one_of(choices)


def _type(kind):
    return DecimalType(9, 2) if kind.startswith("decimal") else PrimitiveType(kind)


def _stats(file):
    """Return the text and the struct of a file's statistics."""
    if file["bounds"] is None:
        return None, None
    found = {"numRecords": 2, "minValues": {}, "maxValues": {}, "nullCount": {}}
    for name, pair in file["bounds"].items():
        if pair is not None:
            low, high = sorted(pair, key=lambda value: (value != value, value))
            found["minValues"][name], found["maxValues"][name] = low, high
        if file["nulls"] is not None:
            found["nullCount"][name] = file["nulls"]
    return _json_text(found), found if file["is_typed"] else None


def _add(number, file):
    text, struct = _stats(file)
    typed = {}
    for name, kind in PARTITIONS.items():
        value = file["partitions"][name]
        typed[name] = value if name == "ps" else parse_partition_value(value, _type(kind))
    add = {
        "path": f"part-{number}.parquet",
        "partitionValues": file["partitions"],
        "size": 10 + number,
        "modificationTime": 1,
        "dataChange": True,
        "stats": text,
    }
    return add, {
        **add,
        "partitionValues_parsed": typed if file["is_typed"] else None,
        "stats_parsed": struct,
    }


def _write_commit(log, version, actions):
    text = "".join(json.dumps(action) + "\n" for action in actions)
    (log / f"{version:020d}.json").write_text(text)


def _checkpoint_schema(metadata):
    columns = [(name, ARROW[kind]) for name, kind in COLUMNS.items()]
    texts = pa.map_(pa.string(), pa.string())
    add = pa.struct({
        "path": pa.string(), "partitionValues": texts, "size": pa.int64(),
        "modificationTime": pa.int64(), "dataChange": pa.bool_(), "stats": pa.string(),
        "partitionValues_parsed": pa.struct([(n, ARROW[k]) for n, k in PARTITIONS.items()]),
        "stats_parsed": pa.struct({
            "numRecords": pa.int64(), "minValues": pa.struct(columns),
            "maxValues": pa.struct(columns),
            "nullCount": pa.struct([(name, pa.int64()) for name in COLUMNS]),
        }),
    })  # fmt: skip
    shape = pa.Table.from_pylist([{"protocol": PROTOCOL, "metaData": metadata}]).schema
    metadata_type = pa.struct(
        [
            field if field.name not in ("configuration", "format") else pa.field(field.name, kind)
            for field in shape.field("metaData").type
            for kind in [texts if field.name == "configuration" else pa.struct({
                "provider": pa.string(), "options": texts})]
        ]
    )  # fmt: skip
    protocol = shape.field("protocol").type
    return pa.schema({"protocol": protocol, "metaData": metadata_type, "add": add})


def make_table(root, files, *, group_rows, later=()):
    """Make two logs of the same version, one with a checkpoint of small row groups."""
    schema = {
        "type": "struct",
        "fields": [
            {"name": name, "type": kind, "nullable": True, "metadata": {}}
            for name, kind in {**PARTITIONS, **COLUMNS}.items()
        ],
    }
    metadata = {
        "id": "m",
        "format": {"provider": "parquet", "options": {}},
        "schemaString": json.dumps(schema),
        "partitionColumns": list(PARTITIONS),
        "configuration": {},
        "createdTime": 1,
    }
    adds = [_add(number, file) for number, file in enumerate(files)]
    logs = [Path(root) / name / "_delta_log" for name in ("plain", "pruned")]
    for log in logs:
        log.mkdir(parents=True)
        head = [{"protocol": PROTOCOL}, {"metaData": metadata}]
        _write_commit(log, 0, [*head, *({"add": add} for add, _ in adds)])
        for version, actions in enumerate(later, 1):
            _write_commit(log, version, actions)
    table = _checkpoint_schema(metadata)
    head = [{"protocol": PROTOCOL, "metaData": {**metadata, "configuration": [],
             "format": {"provider": "parquet", "options": []}}}]  # fmt: skip
    rows = [
        {"add": {**add, "partitionValues": list(add["partitionValues"].items())}} for _, add in adds
    ]
    path = logs[1] / f"{0:020d}.checkpoint.parquet"
    pq.write_table(
        pa.Table.from_pylist([*head, *rows], schema=table), path, row_group_size=group_rows
    )
    (logs[1] / "_last_checkpoint").write_text(json.dumps({"version": 0, "size": len(adds) + 2}))
    return [str(log.parent) for log in logs]


def _snapshots(paths):
    plain, pruned = paths
    options = {"optimist.log.cacheBytes": "1"}
    return DeltaLog.for_path(plain).snapshot(), DeltaLog.for_path(pruned, options).snapshot()


def _keys(files):
    return sorted(table_keys(files).to_pylist())


@given(FILES, st.lists(predicates(), min_size=1, max_size=4), st.integers(1, 4))
@settings(max_examples=12, deadline=None)
def test_pruned_row_groups_hide_no_file(files, wanted, group_rows):
    with tempfile.TemporaryDirectory() as root:
        plain, pruned = _snapshots(make_table(root, files, group_rows=group_rows))
        for predicate in wanted:
            expected = plain.scan(predicate).files
            assert _keys(pruned.scan(predicate).files) == _keys(expected), str(predicate)
            counted, other = plain.count(predicate), pruned.count(predicate)
            assert counted.rows == other.rows
            assert _keys(counted.undecided) == _keys(other.undecided)


@pytest.fixture
def sorted_files():
    return [
        {
            "partitions": {"pi": str(number // 4), "ps": "a", "pd": None, "pn": "1"},
            "bounds": {"i": (number, number), "s": (f"k{number:02d}", f"k{number:02d}")},
            "nulls": 0,
            "is_typed": True,
        }
        for number in range(16)
    ]


def _file(*, is_typed=True, ps="a", **bounds):
    return {
        "partitions": {"pi": "1", "ps": ps, "pd": None, "pn": "1"},
        "bounds": bounds,
        "nulls": 0,
        "is_typed": is_typed,
    }


def _instant(day, second):
    return dt.datetime(1972, 1, day, 23 if day == 7 else 0, 59 if day == 7 else 0, second,
                       tzinfo=dt.timezone.utc)  # fmt: skip


@pytest.mark.parametrize(
    ("hidden", "other", "predicate"),
    [
        (_file(s=("a\ufffdz", "b")), _file(s=("ab", "b")), "s < 'aa'"),
        (_file(s=("a", "ab\ufffd")), _file(s=("a", "ab😀")), "s > 'ab😀b'"),
        (
            _file(t=(_instant(7, 59), _instant(7, 59))),
            _file(t=(_instant(8, 0), _instant(8, 0))),
            "t > '1972-01-08 00:00:30Z'",
        ),
        (_file(x=(1.5, float("nan"))), _file(x=(0.0, 1.5)), "x = 2.0D"),
        (
            _file(w=(Decimal(1), Decimal("9223372036854775807"))),
            _file(w=(Decimal(1), Decimal(10) ** 20)),
            "w > 1000000000000000000000",
        ),
        (_file(i=(-5, -5), is_typed=False), _file(i=(3, 3)), "i = -5"),
        (_file(), _file(i=(3, 3)), "i = -5"),
        (_file(ps=""), _file(ps="b"), "ps IS NULL"),
        (_file(ps="a", is_typed=False), _file(ps="b"), "ps = 'a'"),
    ],
)
def test_no_row_group_hides_a_file_whose_bounds_mean_more_than_they_say(
    tmp_path, hidden, other, predicate
):
    plain, pruned = _snapshots(make_table(tmp_path, [other, hidden], group_rows=5))
    assert "part-1.parquet" in plain.scan(predicate).files["path"].to_pylist()
    assert "part-1.parquet" in pruned.scan(predicate).files["path"].to_pylist()


@pytest.mark.parametrize("has_texts", [True, False])
def test_days_in_the_calendar_of_spark_2_leave_out_no_file(tmp_path, has_texts):
    day = dt.date(1500, 1, 1)
    plain, pruned = make_table(tmp_path, [_file(d=(day, day), i=(1, 1))] * 2, group_rows=5)
    path = Path(pruned) / "_delta_log" / f"{0:020d}.checkpoint.parquet"
    stored = pq.read_table(path)
    rows = stored.to_pylist()
    for add in (row["add"] for row in rows if row["add"]):
        for bounds in ("minValues", "maxValues"):
            add["stats_parsed"][bounds]["d"] = dt.date(1500, 1, 10)  # as the Julian calendar counts
        add["stats"] = add["stats"] if has_texts else None
    entries = {"org.apache.spark.version": "3.5.0", "org.apache.spark.legacyDateTime": ""}
    changed = pa.Table.from_pylist(rows, stored.schema).replace_schema_metadata(entries)
    pq.write_table(changed, path)
    plain, pruned = _snapshots((plain, pruned))
    for predicate in ("d = DATE'1500-01-01'", "d < DATE'1500-01-05' AND i = 1", "i = 2"):
        assert _keys(pruned.scan(predicate).files) == _keys(plain.scan(predicate).files), predicate


@pytest.fixture
def groups_read(monkeypatch):
    """Note the row groups and columns that are read."""
    found = []
    read = AddReader.batches

    def note(self, schema=FILES_SCHEMA, groups=None):
        found.extend((group, tuple(schema.names)) for group in groups or self.groups)
        return read(self, schema, groups)

    monkeypatch.setattr(AddReader, "batches", note)
    return found


@pytest.mark.parametrize(
    ("predicate", "groups"),
    [
        ("pi = 2", {3, 4}),
        ("i = 3", {1}),
        ("i > 3 AND i < 5", {1}),
        ("s < 'k02'", {0, 3}),  # of k08 to k10 one may have been k0 and bytes that are not UTF-8
        ("pi = 9", set()),
    ],
)
def test_only_row_groups_that_may_hold_a_file_are_read(
    tmp_path, sorted_files, groups_read, predicate, groups
):
    plain, pruned = _snapshots(make_table(tmp_path, sorted_files, group_rows=3))
    found = pruned.scan(predicate).files
    assert {group for group, _ in groups_read} == groups
    assert _keys(found) == _keys(plain.scan(predicate).files)


def test_other_columns_are_read_only_where_a_file_is_left(tmp_path, sorted_files, groups_read):
    sorted_files[7]["partitions"]["ps"] = "z"  # so that the bounds of its row group prove nothing
    _, pruned = _snapshots(make_table(tmp_path, sorted_files, group_rows=3))
    assert pruned.scan("ps = 'b'").files.num_rows == 0
    assert groups_read == [(2, ("partitionValues",))]


def test_files_are_counted_without_their_other_columns(tmp_path, sorted_files, groups_read):
    plain, pruned = _snapshots(make_table(tmp_path, sorted_files, group_rows=3))
    found = pruned.num_files, pruned.size_in_bytes
    assert {columns for _, columns in groups_read} == {("path", "size", "deletionVector")}
    assert found == (plain.num_files, plain.size_in_bytes)


def test_a_limit_reads_no_further_than_it_must(tmp_path, sorted_files, groups_read):
    _, pruned = _snapshots(make_table(tmp_path, sorted_files, group_rows=3))
    assert pruned.scan(limit=3).files.num_rows == 2
    assert {group for group, _ in groups_read} == {0}


@pytest.mark.parametrize("is_first", [True, False])
def test_a_checkpoint_that_another_writer_replaces_is_read_anew(tmp_path, sorted_files, is_first):
    later = [[{"commitInfo": {"timestamp": 1}}]]
    paths = make_table(tmp_path, sorted_files, group_rows=3, later=later)
    log = Path(paths[1]) / "_delta_log"
    (log / f"{0:020d}.json").unlink()
    plain, pruned = _snapshots(paths)
    if not is_first:  # so that columns are kept
        assert pruned.scan("pi = 1").files.num_rows == 4
    path = log / f"{0:020d}.checkpoint.parquet"
    stored = pq.read_table(path)
    pq.write_table(stored.take([0, *range(16, 0, -1)]), path, row_group_size=4)
    for predicate in ("pi = 1", "i = 9", "s >= 'k00'"):
        assert _keys(pruned.scan(predicate).files) == _keys(plain.scan(predicate).files)


@pytest.mark.parametrize("names_itself", [True, False])
def test_a_checkpoint_that_one_of_equal_size_replaces_is_read_anew(
    tmp_path, sorted_files, monkeypatch, names_itself
):
    later = [[{"commitInfo": {"timestamp": 1}}]]
    paths = make_table(tmp_path, sorted_files, group_rows=3, later=later)
    log = Path(paths[1]) / "_delta_log"
    (log / f"{0:020d}.json").unlink()
    path = log / f"{0:020d}.checkpoint.parquet"
    stored = pq.read_table(path)
    plainly = {"row_group_size": 4, "compression": "none", "use_dictionary": False}
    pq.write_table(stored, path, **plainly)
    size = path.stat().st_size
    if not names_itself:  # as of a driver that tells nothing of a file
        opened = LocalLogStore.open_read
        monkeypatch.setattr(
            LocalLogStore, "open_read", lambda *given: io.BufferedReader(_Nameless(opened(*given)))
        )
    plain, pruned = _snapshots(paths)
    assert pruned.scan("pi = 1").files.num_rows == 4
    swapped = [0, *range(5, 9), *range(1, 5), *range(9, 17)]
    pq.write_table(stored.take(swapped), path.with_name("new"), **plainly)
    path.with_name("new").replace(path)
    assert path.stat().st_size == size
    streamed = list(pruned.iter_files(5))
    assert sum(batch.num_rows for batch in streamed) == plain.num_files
    for predicate in ("pi = 1", "i = 9", "s >= 'k00'"):
        assert _keys(pruned.scan(predicate).files) == _keys(plain.scan(predicate).files)


class _Nameless(io.RawIOBase):
    """An open file that has neither a number nor an identity."""

    def __init__(self, file):
        super().__init__()
        self.file = file

    def readable(self):
        return True

    def seekable(self):
        return True

    def seek(self, *given):
        return self.file.seek(*given)

    def tell(self):
        return self.file.tell()

    def readinto(self, buffer):
        return self.file.readinto(buffer)

    def close(self):
        self.file.close()
        super().close()


def test_other_rows_do_not_count_against_the_most_files(tmp_path, sorted_files):
    _, path = make_table(tmp_path, sorted_files, group_rows=3)
    limits = {"optimist.log.cacheBytes": "1", "optimist.log.maxFiles": "16"}
    assert DeltaLog.for_path(path, limits).snapshot().scan("i = 3").files.num_rows == 1
    limits["optimist.log.maxFiles"] = "15"
    with pytest.raises(TableError, match="more than 15 files"):
        DeltaLog.for_path(path, limits).snapshot().scan("i = 3")


def test_later_commits_decide_about_files_of_the_checkpoint(tmp_path, sorted_files):
    adds = [_add(number, file)[0] for number, file in enumerate(sorted_files)]

    def remove(add, **more):
        fields = {"path": add["path"], "deletionTimestamp": 1, "dataChange": True}
        return {"remove": {**fields, **more}}

    later = [
        [remove(adds[0])],
        [remove(adds[1]), {"add": {**adds[1], "deletionVector": VECTOR}}],
        [remove(adds[2])],
        [{"add": {**adds[2], "size": 99}}],
        [{"add": {**adds[3], "partitionValues": {**adds[3]["partitionValues"], "pi": "5"}}}],
        [remove(adds[4], deletionVector=VECTOR)],  # of another logical file
    ]
    plain, pruned = _snapshots(make_table(tmp_path, sorted_files, group_rows=3, later=later))
    assert pruned.num_files == plain.files.num_rows
    assert pruned.size_in_bytes == pc.sum(plain.files["size"]).as_py()
    for predicate in ("pi = 0", "pi = 5", "pi = 1", "i < 5", "s >= 'k00'"):
        expected = plain.scan(predicate).files
        found = pruned.scan(predicate).files
        assert _keys(found) == _keys(expected), predicate
        assert sorted(found["size"].to_pylist()) == sorted(expected["size"].to_pylist())
        assert plain.count(predicate).rows == pruned.count(predicate).rows
    wanted = pa.array(["part-1.parquet", "part-2.parquet"])
    by_path = [
        each.files_where("path", lambda paths: pc.is_in(paths, value_set=wanted))
        for each in (plain, pruned)
    ]
    assert _keys(by_path[0]) == _keys(by_path[1])
    assert by_path[1].num_rows == 2


def _damage(path, group):
    """Overwrite the pages of a row group's `stats` in the middle of the file."""
    metadata = pq.ParquetFile(path).metadata.row_group(group)
    chunk = next(
        metadata.column(index)
        for index in range(metadata.num_columns)
        if metadata.column(index).path_in_schema == "add.stats"
    )
    start = chunk.dictionary_page_offset or chunk.data_page_offset
    with path.open("r+b") as file:
        file.seek(start)
        file.write(b"\xff" * chunk.total_compressed_size)


def test_a_damaged_row_group_is_named_or_replaced_by_the_commits(tmp_path, sorted_files, caplog):
    later = [[{"commitInfo": {"timestamp": 1}}]]
    paths = make_table(tmp_path, sorted_files, group_rows=3, later=later)
    log = Path(paths[1]) / "_delta_log"
    checkpoint = log / f"{0:020d}.checkpoint.parquet"
    _damage(checkpoint, 4)
    plain, pruned = _snapshots(paths)
    assert _keys(pruned.scan("i >= 3").files) == _keys(plain.scan("i >= 3").files)
    assert "row group 4" in caplog.text
    (log / f"{0:020d}.json").unlink()
    fresh = DeltaLog.for_path(paths[1], {"optimist.log.cacheBytes": "2"}).snapshot()
    assert fresh.scan("i < 3").files.num_rows == 3  # the damaged row group is not needed
    with pytest.raises(TableError, match="row group 4") as caught:
        fresh.scan("i >= 3")
    assert caught.value.kind == "OPTIMIST_MALFORMED_CHECKPOINT"


def test_a_group_of_bounds_of_any_length_costs_no_more_than_its_texts():
    column = resolve_column(("s",), StructType((StructField("s", PrimitiveType("string")),)))
    low, top = (pa.array(["a" * 1_000_000 + end]) for end in ("b", "d"))
    (found,) = widened_over_files((low, top), (low, top), column)[0].to_pylist()
    assert found == low[0].as_py()


@given(st.text("ab\ufffd\U0010ffff", max_size=5), st.text("ab\ufffd\U0010ffff", max_size=5))
def test_a_lower_bound_over_files_is_below_whatever_is_between(one, other):
    low, top = sorted([one, other])
    column = resolve_column(("s",), StructType((StructField("s", PrimitiveType("string")),)))
    bounds = (pa.array([low]), pa.array([top]))
    (found,) = widened_over_files(bounds, bounds, column)[0].to_pylist()
    beginnings = (low[:length] for length in range(len(low)))
    assert found == next((each for each in beginnings if each + "\ufffd" <= top), low)


def test_bounds_of_columns_that_a_row_group_lacks_are_unknown():
    files = []
    for stats in ({"minValues": {"i": 1}}, {}):
        source = io.BytesIO()
        rows = [{"add": {"path": "f", **({"stats_parsed": stats} if stats else {})}}]
        pq.write_table(pa.Table.from_pylist(rows), source)
        files.append(CheckpointFile(source))
    whole, damaged = files
    forged = SimpleNamespace(
        metadata=damaged.metadata,
        chunks=damaged.chunks,
        schema=whole.schema,
        schema_arrow=whole.schema_arrow,
    )
    path = ("stats_parsed", "minValues", "i")
    found = [GroupBounds(each, [0]).leaf(path).low.to_pylist() for each in (whole, forged)]
    assert found == [[1], [None]]
