"""The files of a version as the native plane lists them for Spark."""

from __future__ import annotations

import datetime as dt
import re
from pathlib import Path

import deltalake
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from optimist.core import DeltaLog
from optimist.spark import read
from optimist.spark.native import listing as listing_module
from optimist.spark.native.file_statuses import encode_statuses, file_statuses
from optimist.spark.native.listing import FileListing, digest_of
from optimist.spark.session.jvm import Jvm, iterate

SIZES = st.integers(0, 2**56 - 1)
NAMES = st.text(st.characters(exclude_categories=("Cs",), exclude_characters="\0/:"), min_size=1)


def statuses_of(spark, files):
    paths, sizes, times = zip(*files, strict=True)
    arrays = (
        pa.array(paths, pa.string()),
        pa.array(sizes, pa.int64()),
        pa.array(times, pa.int64()),
    )
    return [
        (status.getPath().toString(), status.getLen(), status.getModificationTime())
        for status in iterate(file_statuses(Jvm.of(spark), *arrays))
    ]


@pytest.mark.again
@settings(max_examples=25, deadline=None)
@given(st.lists(st.tuples(NAMES, SIZES, SIZES), min_size=1, max_size=5))
def test_file_statuses_arrive_as_they_were_sent(spark, files):
    files = [(f"/t/x{name.strip()}", size, time) for name, size, time in files]
    assert statuses_of(spark, files) == files


def test_no_files_are_an_empty_buffer():
    empty = pa.array([], pa.int64())
    assert encode_statuses(pa.array([], pa.string()), empty, empty) == b"\0\0\0\0"


def test_columns_cut_out_of_larger_ones_are_encoded_alone(spark):
    paths = pa.array([f"/t/{i}" for i in range(10)])
    numbers = pa.array(range(10), pa.int64())
    cut = [array.slice(3, 2) for array in (paths, numbers, numbers)]
    whole = encode_statuses(*(pa.array(array.to_pylist(), array.type) for array in cut))
    assert encode_statuses(*cut) == whole


def test_listing_groups_files_by_typed_values(table_path, log_of):
    data = pa.table({"d": [dt.date(2024, 1, 1 + i % 2) for i in range(6)], "id": list(range(6))})
    for part in (data.slice(0, 3), data.slice(3)):
        deltalake.write_deltalake(table_path, part, mode="append", partition_by=["d"])
    snapshot = log_of(table_path).snapshot()
    listing = FileListing.of(
        snapshot.data_paths, snapshot.files, snapshot.partition_schema, zone="UTC"
    )
    assert sorted(listing.partitions["d"].to_pylist()) == [dt.date(2024, 1, 1), dt.date(2024, 1, 2)]
    assert sorted(listing.ordinals.to_pylist()) == [0, 0, 1, 1]
    assert all(path.startswith(f"file:{table_path}/d=") for path in listing.paths.to_pylist())


@pytest.fixture
def hours(table_path):
    """Three files, each a partition of one instant, which the log has without a zone."""
    times = [dt.datetime(2024, 1, day) for day in (1, 2, 3)]
    kind = pa.timestamp("us", "UTC")
    rows = pa.table({"t": pa.array(times, kind), "i": [1, 2, 3]})
    DeltaLog.for_path(table_path).append(rows, partition_by=["t"])
    commit = Path(table_path, "_delta_log", f"{0:020}.json")
    text = re.sub(r'"t":"(2024-01-0.)T00:00:00.000000Z"', r'"t":"\1 00:00:00"', commit.read_text())
    assert text.count(" 00:00:00") == 3
    commit.write_text(text)
    return table_path


@pytest.mark.again
def test_a_version_is_listed_once_for_each_zone_and_only_kept_files_get_full_paths(
    spark, hours, conf, monkeypatch
):
    listed, numbers_of_paths = [], []
    of, full_paths = FileListing.of, listing_module._full_paths

    def counted(*args, **options):
        listed.append(options["zone"])
        return of(*args, **options)

    def counted_paths(data_paths, references):
        numbers_of_paths.append(len(references))
        return full_paths(data_paths, references)

    monkeypatch.setattr(FileListing, "of", counted)
    monkeypatch.setattr(listing_module, "_full_paths", counted_paths)
    for zone, hour in [("UTC", 0), ("America/New_York", 5), ("UTC", 0)]:
        conf("spark.sql.session.timeZone", zone)
        for day in (1, 2):
            frame = read(spark, hours).where(f"t = TIMESTAMP '2024-01-0{day} 00:00:00'")
            (found,) = frame.selectExpr("i", "unix_seconds(t)").collect()
            midnight = dt.datetime(2024, 1, day, hour, tzinfo=dt.timezone.utc)
            assert tuple(found) == (day, midnight.timestamp())
    assert listed == ["UTC", "America/New_York"]
    assert set(numbers_of_paths) == {1}
    DeltaLog.for_path(hours).append(
        pa.table({"t": pa.array([dt.datetime(2024, 1, 4)], pa.timestamp("us", "UTC")), "i": [4]})
    )
    assert sorted(row.i for row in read(spark, hours).collect()) == [1, 2, 3, 4]


def test_digests_tell_choices_of_files_apart_however_they_lie_in_memory():
    files = pa.table({"path": ["a", "b", "c"]})
    chunked = pa.concat_tables([files.slice(0, 1), files.slice(1)])
    assert digest_of(files) == digest_of(chunked)
    assert digest_of(files.slice(1)) == digest_of(pa.table({"path": ["b", "c"]}))
    assert digest_of(files.slice(0, 2)) != digest_of(files.slice(1))
    assert digest_of(pa.table({"path": ["ab"]})) != digest_of(pa.table({"path": ["a", "b"]}))
