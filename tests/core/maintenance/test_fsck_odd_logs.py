"""The check of tables whose logs are odd, but whole; and of damage beside which other hides."""

from __future__ import annotations

import datetime as dt
import json
import os
import shutil
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from checked_tables import (
    LONG_AGO,
    HastyClock,
    LateClock,
    data_file,
    found,
    log_file,
    opened,
)
from optimist.core import DeltaLog
from optimist.core.errors import TableError
from optimist.core.log.names import checksum_name, classic_checkpoint_name, commit_name
from optimist.core.log_upkeep.compaction import write_compaction
from optimist.core.options.engine import EngineOptions
from optimist.core.plugins.logstore import PutOutcome
from optimist.logstores import LocalLogStore

ADD = {
    "path": "p=30/other.parquet",
    "partitionValues": {"p": "30"},
    "size": 1,
    "modificationTime": 1,
    "dataChange": True,
}
SUMS = '{"tableSizeBytes":1,"numFiles":1,"numMetadata":1,"numProtocol":1,"numTransactions":0}'


def commit(path: Path, version: int, *actions: dict) -> None:
    lines = "".join(f"{json.dumps(action)}\n" for action in actions)
    log_file(path, commit_name(version)).write_text(lines)


def orphan(path: Path, name: str = "p=30/left.parquet") -> tuple[str, str]:
    file = path / name
    file.parent.mkdir(exist_ok=True)
    file.write_bytes(b"left")
    os.utime(file, LONG_AGO)
    return "orphan", file.name


@pytest.mark.parametrize("version", [3, 9])
def test_a_checksum_that_old_engines_wrote_without_the_state_is_no_damage(table, version):
    log_file(table, checksum_name(version)).write_text(SUMS)
    assert found(table, deep=False) == []
    log_file(table, checksum_name(version)).write_text(SUMS.replace("1,", "-1,"))
    assert found(table, deep=False) == [("bad-checksum", checksum_name(version))]


def test_the_same_bytes_without_commit_info_are_no_second_commit_of_a_transaction(table):
    remove = {"path": ADD["path"], "deletionTimestamp": 1, "dataChange": True}
    for version in range(10, 14, 2):
        commit(table, version, {"add": ADD})
        commit(table, version + 1, {"remove": remove})
    assert found(table, deep=False) == []


def test_the_metadata_of_iceberg_is_no_orphan_where_the_table_is_kept_in_its_format_too(table):
    expected = orphan(table, "metadata/v1.metadata.json")
    assert found(table, deep=False) == [expected]
    lines = log_file(table, commit_name(0)).read_text().splitlines()
    (metadata,) = (json.loads(line) for line in lines if '"metaData"' in line)
    metadata["metaData"]["configuration"]["delta.universalFormat.enabledFormats"] = "iceberg"
    commit(table, 10, metadata)
    assert found(table, deep=False) == []
    assert found_kinds(table, orphan(table, "p=30/metadata/left.parquet")) == ["orphan"]


def found_kinds(path: Path, _: object) -> list[str]:
    return [kind for kind, _ in found(path, deep=False)]


VECTOR = {"storageType": "x", "pathOrInlineDv": "?", "sizeInBytes": 9, "cardinality": 1}


@pytest.mark.parametrize(
    ("change", "kind"),
    [
        ({"path": "s3://elsewhere/x.parquet"}, "foreign-path"),
        ({"path": "a%00b.parquet"}, "foreign-path"),
        ({"deletionVector": VECTOR}, "damaged-vector"),
        (
            {"deletionVector": {**VECTOR, "storageType": "p", "pathOrInlineDv": "s3://e/v.bin"}},
            "damaged-vector",
        ),
    ],
    ids=["path", "nul", "kind of vector", "path of a vector"],
)
@pytest.mark.sample(1)
def test_a_path_that_may_not_be_opened_is_told_and_hides_no_other_damage(table, change, kind):
    commit(table, 10, {"add": {**ADD, **change}})
    if "path" not in change:
        shutil.copy(data_file(table), table / ADD["path"])
    expected = orphan(table)
    told = found(table)
    assert [each for each, _ in told if each not in ("swapped-file", "truncated-file")] == [
        kind,
        "orphan",
    ]
    assert expected in told
    remove = {**ADD, **change, "deletionTimestamp": 1}
    commit(table, 11, {"remove": remove})
    assert [each for each in found(table) if each[1] != Path(ADD["path"]).name] == [expected]


def test_the_reason_why_no_version_can_be_read_is_told_beside_other_damage(tmp_path):
    log = opened(tmp_path / "t")
    log.append(pa.table({"x": [1]}))
    commit(tmp_path / "t", 0, {"add": {**ADD, "partitionValues": {}}})
    log_file(tmp_path / "t", checksum_name(0)).unlink()
    log_file(tmp_path / "t", "_last_checkpoint").write_text("{")
    told = found(tmp_path / "t")
    assert told == [("stale-hint", "_last_checkpoint"), ("unreadable", "_delta_log")]


def test_a_log_that_is_larger_than_allowed_is_not_called_damaged(table):
    options = EngineOptions.from_options({"spark.optimist.log.maxFiles": "2"})
    checked = DeltaLog(str(table), LocalLogStore(), options, clock=LateClock()).fsck()
    told = {(each["kind"], Path(each["path"]).name) for each in checked.findings.to_pylist()}
    assert told == {("unreadable", classic_checkpoint_name(6))}
    options = EngineOptions.from_options({"spark.optimist.log.maxFileBytes": "2000"})
    checked = DeltaLog(str(table), LocalLogStore(), options, clock=LateClock()).fsck()
    assert set(checked.findings["kind"].to_pylist()) == {"unreadable"}


@pytest.mark.parametrize(
    "name",
    [
        checksum_name(9),
        classic_checkpoint_name(6),
        f"{7:020}.{8:020}.compacted.json",
        "_last_checkpoint",
    ],
)
@pytest.mark.sample(1)
def test_what_may_be_half_written_is_told_only_when_it_is_old(table, name):
    log_file(table, name).write_text('{"add":')
    kinds = found_kinds(table, None)
    assert len(kinds) == 1
    hasty = DeltaLog(str(table), LocalLogStore(), clock=HastyClock())
    assert hasty.fsck().findings.num_rows == 0


def test_variants_that_only_spark_can_reassemble_are_no_damage(tmp_path):
    log = tmp_path / "t" / "_delta_log"
    log.mkdir(parents=True)
    kind = pa.struct([("metadata", pa.binary()), ("value", pa.binary()), ("typed_value", "int64")])
    rows = pa.table(
        {"v": pa.array([{"metadata": b"\1\0\0", "value": None, "typed_value": 7}], kind)}
    )
    pq.write_table(rows, tmp_path / "t" / "f.parquet")
    size = (tmp_path / "t" / "f.parquet").stat().st_size
    field = {"name": "v", "type": "variant", "nullable": True, "metadata": {}}
    metadata = {
        "id": "1",
        "format": {"provider": "parquet", "options": {}},
        "schemaString": json.dumps({"type": "struct", "fields": [field]}),
        "partitionColumns": [],
        "configuration": {},
    }
    features = {"readerFeatures": ["variantType"], "writerFeatures": ["variantType"]}
    add = {**ADD, "path": "f.parquet", "partitionValues": {}, "size": size}
    commit(
        tmp_path / "t",
        0,
        {"protocol": {"minReaderVersion": 3, "minWriterVersion": 7, **features}},
        {"metaData": metadata},
        {"add": {**add, "stats": json.dumps({"numRecords": 1, "nullCount": {"v": 0}})}},
    )
    with pytest.raises(TableError, match="Only Spark's own reader"):
        opened(tmp_path / "t").to_arrow()
    assert found(tmp_path / "t") == []


def test_compacted_commits_are_held_against_the_commits(table):
    log = opened(table)
    log.delete("p = 1000")
    assert write_compaction(log.store, log.log_path, 7, 10) is PutOutcome.CREATED
    file = log_file(table, f"{7:020}.{10:020}.compacted.json")
    assert found(table, deep=False) == []
    whole = file.read_text().splitlines()
    removes = [line for line in whole if '"remove"' in line]
    adds = [line for line in whole if '"add"' in line]
    came = [line for line in removes if "p=1000" in line]
    for lines, proof in (
        ([line for line in whole if line not in came], None),
        ([line for line in whole if line != adds[0]], "does not add 1 files"),
        ([line for line in whole if line not in removes or line in came], "does not remove"),
        ([*whole, json.dumps({"add": ADD})], "adds, and the commits do not, 1 files"),
        ([*whole, json.dumps({"remove": {**ADD, "deletionTimestamp": 1}})], "removes, and the"),
    ):
        file.write_text("".join(f"{line}\n" for line in lines))
        checked = DeltaLog(str(table), LocalLogStore(), clock=LateClock()).fsck()
        told = checked.findings.to_pylist()
        assert [each["kind"] for each in told] == ([] if proof is None else ["bad-compacted"])
        assert proof is None or proof in told[0]["proof"]


def test_dates_that_only_spark_can_convert_are_no_damage(tmp_path):
    log = opened(tmp_path / "t")
    log.append(pa.table({"d": [dt.date(1400, 1, 1), dt.date(2020, 1, 1)]}))
    (file,) = (tmp_path / "t").glob("**/*.parquet")
    rows = pa.table({"d": [dt.date(1400, 1, 1), dt.date(2020, 1, 1)]})
    pq.write_table(rows.replace_schema_metadata({"org.apache.spark.version": "2.4.0"}), file)
    text = log_file(tmp_path / "t", commit_name(0)).read_text()
    lines = list(map(json.loads, text.splitlines()))
    for line in lines:
        line.get("add", {}).update(size=file.stat().st_size)
    commit(tmp_path / "t", 0, *lines)
    log_file(tmp_path / "t", checksum_name(0)).unlink()
    assert found(tmp_path / "t") == []


@pytest.mark.parametrize("name", ["n" * 300, "p=30/" + "a/" * 3000 + "n"], ids=["name", "path"])
def test_a_path_that_is_too_long_for_a_file_is_that_of_a_missing_one(table, name):
    commit(table, 10, {"add": {**ADD, "path": name}})
    assert found(table) == [("missing-file", Path(name).name)]
    assert found_kinds(table, data_file(table).unlink()) == ["missing-file"] * 2


def test_the_path_of_a_file_that_may_not_be_opened_shows_no_secret(table):
    commit(table, 10, {"add": {**ADD, "path": "s3://user:hush@elsewhere/x.parquet?sig=hush"}})
    (row,) = DeltaLog(str(table), LocalLogStore(), clock=LateClock()).fsck().findings.to_pylist()
    assert row["kind"] == "foreign-path"
    assert "hush" not in str(row)


def test_bounds_of_the_rows_that_a_vector_leaves_are_true(tmp_path):
    log = opened(tmp_path / "t", enableDeletionVectors="true")
    log.append(pa.table({"x": [1, 2, 3, None]}))
    log.delete("x = 1 OR x IS NULL")
    log_file(tmp_path / "t", checksum_name(1)).unlink()
    file = log_file(tmp_path / "t", commit_name(1))
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    (add,) = (line["add"] for line in lines if "add" in line)
    for low, kinds in ((2, []), (3, ["untrue-statistics"])):
        stats = {"numRecords": 4, "minValues": {"x": low}, "maxValues": {"x": 3}}
        add["stats"] = json.dumps({**stats, "nullCount": {"x": 0}, "tightBounds": True})
        file.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
        assert [kind for kind, _ in found(tmp_path / "t")] == kinds
