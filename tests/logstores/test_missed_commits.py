"""Listings of a local log that have missed a commit, as those of a busy directory do."""

import datetime
import os
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pytest

from optimist.core import DeltaLog
from optimist.core.log.names import commit_name
from optimist.logstores import LocalLogStore, S3LogStore
from optimist.logstores.s3.bucket import S3Bucket
from optimist.logstores.shared.missed_commits import commits_after_gap, missed_commits


@pytest.fixture
def misses(monkeypatch):
    """Let listings of directories leave out the names that the test puts in."""
    names, scan = set(), os.scandir

    @contextmanager
    def scandir(directory):
        with scan(directory) as entries:
            yield (entry for entry in entries if entry.name not in names)

    monkeypatch.setattr(os, "scandir", scandir)
    return names


def names_of(tmp_path, first=""):
    return [status.name for status in LocalLogStore().list_from(f"{tmp_path}/{first}")]


def test_commit_that_the_system_has_missed_is_listed(tmp_path, misses):
    names = [commit_name(version) for version in range(6)]
    for name in (*names, "_last_checkpoint", f"{2:020}.crc"):
        (tmp_path / name).write_text(name)
    misses.update(names[2:4])
    everything = sorted([*names, "_last_checkpoint", f"{2:020}.crc"])
    assert names_of(tmp_path) == everything
    assert names_of(tmp_path, names[1]) == everything[1:]
    found = {status.name: status for status in LocalLogStore().list_from(f"{tmp_path}/{names[0]}")}
    assert found[names[2]] == LocalLogStore().find(f"{tmp_path}/{names[2]}")


def test_commit_that_is_gone_is_not_listed(tmp_path):
    for version in (0, 1, 3):
        (tmp_path / commit_name(version)).write_text("x")
    assert names_of(tmp_path) == [commit_name(version) for version in (0, 1, 3)]


def test_table_is_opened_though_a_listing_has_missed_a_commit(tmp_path, misses):
    """It was told that commits had been deleted, and to restore them."""
    log = DeltaLog.for_path(str(tmp_path / "t"))
    for number in range(4):
        log.append(pa.table({"a": [number]}))
    misses.add(commit_name(2))
    fresh = DeltaLog(str(tmp_path / "t"), LocalLogStore())
    assert sorted(fresh.to_arrow()["a"].to_pylist()) == [0, 1, 2, 3]
    assert [entry.version for entry in fresh.history()] == [3, 2, 1, 0]
    assert (Path(fresh.log_path) / commit_name(2)).exists()


@pytest.mark.parametrize(
    ("versions", "missed"),
    [
        ([], []),
        ([7], []),
        ([7, 8, 9], []),
        ([7, 9], [8]),
        ([0, 2, 3, 6], [1, 4, 5]),
        ([0, 10**15], list(range(10**15 - 100, 10**15))),
    ],
)
def test_versions_between_others_are_missed(versions, missed):
    others = ["_last_checkpoint", f"{1:020}.crc", "1.json", "٣" * 20 + ".json", "x" * 20 + ".json"]
    names = sorted([*map(commit_name, versions), *others])
    assert missed_commits(names) == [commit_name(version) for version in missed]


@pytest.mark.parametrize(
    ("first", "both", "late"),
    [
        ([0, 2], [0, 1, 2], []),
        ([0, 2], [0, 1, 2, 3, 4], []),
        ([0, 2], [0, 1, 2, 4, 5], [4, 5]),
        ([0, 2], [0, 1, 2, 3, 5], [5]),
        ([0, 3], [0, 1, 3, 4], []),
    ],
)
def test_commits_after_a_gap_of_a_second_listing_are_too_new(first, both, late):
    names = commits_after_gap([*map(commit_name, both)], [*map(commit_name, first)])
    assert names == frozenset(map(commit_name, late))


@pytest.mark.parametrize(
    ("listings", "shown"),
    [
        ([[0, 1, 2]], [0, 1, 2]),
        ([[0, 2], [0, 1, 2]], [0, 1, 2]),
        ([[0, 2], [0, 1, 2, 4]], [0, 1, 2]),
        ([[0, 2], [0, 2]], [0, 2]),
    ],
)
def test_bucket_without_order_is_listed_again_where_commits_are_missing(
    monkeypatch, listings, shown
):
    """Directory buckets list a log in thousands of keys a page, in no order."""
    time = datetime.datetime(2026, 11, 20, tzinfo=datetime.timezone.utc)
    left = list(listings)

    def page(_bucket, _path, **request):
        keys = [request["Prefix"] + commit_name(version) for version in left.pop(0)]
        found = [{"Key": k, "Size": 1, "ETag": k, "LastModified": time} for k in reversed(keys)]
        return {"Contents": found, "IsTruncated": False}

    monkeypatch.setattr(S3Bucket, "_page", page)
    store = S3LogStore({"optimist.store.s3.sortedListing": "false"})
    found = [status.name for status in store.list_from("s3://b/t/_delta_log/0")]
    assert found == [commit_name(version) for version in shown]
    assert not left
