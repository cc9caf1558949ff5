"""CLONE, CONVERT and DROP FEATURE of tables on S3."""

from __future__ import annotations

import io

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from optimist.core import Column, DeltaLog
from optimist.core.errors import OptimistError
from optimist.core.maintenance.copies import copied_files


@pytest.fixture
def options(s3_server, fresh_name):
    for name in (fresh_name, f"{fresh_name}-2"):
        s3_server.client("s3").create_bucket(Bucket=name)
    return {**s3_server.s3a_options, "delta.logStore.s3a.impl": "s3"}


@pytest.fixture
def table(options, fresh_name):
    """Two files with rows of odd partitions, and deletion vectors."""
    log = DeltaLog.for_path(f"s3a://{fresh_name}/ta ble", options)
    log.create(
        [Column("id", "bigint"), Column("p", "string")],
        partition_by=["p"],
        properties={"delta.enableDeletionVectors": "true"},
    )
    log.append(pa.table({"id": range(10), "p": ["a b"] * 5 + ["x%y/z"] * 5}))
    log.delete("id = 3")
    return log


def ids(log: DeltaLog) -> list[int]:
    return sorted(log.to_arrow()["id"].to_pylist())


EXPECTED = [0, 1, 2, 4, 5, 6, 7, 8, 9]


def test_clones_within_a_bucket_and_to_another_place(table, options, fresh_name, tmp_path):
    places = [f"s3a://{fresh_name}/copy", f"s3a://{fresh_name}-2/copy", str(tmp_path / "copy")]
    for place in places:
        assert table.clone(place) is not None
        assert ids(DeltaLog.for_path(place, options)) == EXPECTED
    shallow = f"s3a://{fresh_name}/shallow"
    assert table.clone(shallow, is_shallow=True) is not None
    log = DeltaLog.for_path(shallow, options)
    log.delete("id = 4")
    log.update(set={"p": "'new'"}, predicate="id = 9")
    assert ids(log) == [i for i in EXPECTED if i != 4]
    assert ids(table) == EXPECTED
    for place in (f"s3a://{fresh_name}-2/shallow", str(tmp_path / "shallow")):
        with pytest.raises(OptimistError) as caught:
            table.clone(place, is_shallow=True)
        assert caught.value.kind in ("OPTIMIST_PATH_OUTSIDE_TABLE", "OPTIMIST_FOREIGN_DATA_PATH")
        assert not DeltaLog.for_path(place, options).table_exists()


def test_a_deep_clone_that_was_stopped_goes_on(table, options, fresh_name, monkeypatch):
    place, real, made = f"s3a://{fresh_name}/copy", copied_files.copy_file, []

    def stopping(copy, rule, clock):
        if made:
            raise KeyboardInterrupt
        made.append(copy.target)
        real(copy, rule, clock)

    monkeypatch.setattr(copied_files, "_COPIERS", 1)
    with monkeypatch.context() as patched:
        patched.setattr(copied_files, "copy_file", stopping)
        with pytest.raises(KeyboardInterrupt):
            table.clone(place)

    def noting(copy, rule, clock):
        made.append(copy.target)
        real(copy, rule, clock)

    monkeypatch.setattr(copied_files, "copy_file", noting)
    assert table.clone(place) is not None
    assert len(made) == len(set(made)) == table.snapshot().num_files
    assert ids(DeltaLog.for_path(place, options)) == EXPECTED


def test_objects_are_converted_and_a_writer_is_noticed(s3_server, options, fresh_name):
    client = s3_server.client("s3")

    def put(key: str, *numbers: int) -> None:
        content = io.BytesIO()
        pq.write_table(pa.table({"id": list(numbers)}), content)
        client.put_object(Bucket=fresh_name, Key=key, Body=content.getvalue())

    put("files/p=a b/x%y.parquet", 1, 2)
    put("files/p=__HIVE_DEFAULT_PARTITION__/ü.parquet", 3)
    put("files/_temporary/0/part.parquet", 9)
    log = DeltaLog.for_path(f"s3a://{fresh_name}/files", options)
    with pytest.raises(OptimistError) as caught:
        log.convert([Column("p", "string")])
    assert caught.value.kind == "OPTIMIST_DIRECTORY_BEING_WRITTEN"
    client.delete_object(Bucket=fresh_name, Key="files/_temporary/0/part.parquet")
    client.put_object(Bucket=fresh_name, Key="files/_SUCCESS", Body=b"")
    assert log.convert([Column("p", "string")]) is not None
    found = {row["id"]: row["p"] for row in log.to_arrow().to_pylist()}
    assert found == {1: "a b", 2: "a b", 3: None}
    assert log.to_arrow("id > 2")["id"].to_pylist() == [3]


def test_a_feature_is_dropped(table):
    table.drop_feature("deletionVectors")
    assert ids(table) == EXPECTED
    assert table.snapshot().protocol.min_reader_version == 1
