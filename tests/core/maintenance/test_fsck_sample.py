"""A deep check of a sample: which files it reads, that it says so, and that a seed repeats it."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pytest

from optimist.core import DeltaLog
from optimist.core.errors import UsageError
from optimist.core.maintenance.fsck.sample import Sample
from optimist.core.testing import ManualClock
from optimist.logstores import LocalLogStore

FILES = 12


@pytest.fixture
def log(tmp_path):
    log = DeltaLog(str(tmp_path / "t"), LocalLogStore(), clock=ManualClock())
    rows = pa.table({"p": range(FILES), "x": range(FILES)})
    log.append(rows, partition_by=("p",))
    return log


def data_files(log: DeltaLog) -> list[Path]:
    return sorted(Path(log.table_path).rglob("*.parquet"))


def spoil(files: list[Path]) -> None:
    """Give files other bytes of the same size: only reading shows it."""
    for each in files:
        each.write_bytes(b"\xff" * each.stat().st_size)


def damaged(log: DeltaLog, **how: object) -> set[str]:
    checked = log.fsck(deep=True, **how)
    assert checked.findings.num_rows <= checked.num_read
    return {each["path"] for each in checked.findings.to_pylist()}


@pytest.mark.parametrize(
    ("size", "read"),
    [(1, 1), ("5", 5), (12, 12), (99, 12), ("1%", 1), ("25 %", 3), ("26%", 4), ("100.0%", 12)],
)
def test_so_many_files_are_read_as_were_asked_for(log, size, read):
    spoil(data_files(log))
    checked = log.fsck(deep=True, sample=size, seed=3)
    assert (checked.num_read, checked.num_files, checked.seed) == (read, FILES, 3)
    assert checked.findings.num_rows == read


def test_all_files_are_read_without_a_sample(log):
    checked = log.fsck(deep=True)
    assert (checked.num_read, checked.seed) == (FILES, None)
    assert log.fsck().num_read == 0


def test_a_seed_chooses_the_same_files_again_and_others_choose_others(log):
    spoil(data_files(log))
    by_seed = {seed: damaged(log, sample=4, seed=seed) for seed in range(30)}
    assert by_seed == {seed: damaged(log, sample="30%", seed=seed) for seed in range(30)}
    assert len(set(map(frozenset, by_seed.values()))) > 10
    assert set().union(*by_seed.values()) == set(map(str, data_files(log)))
    told = log.fsck(deep=True, sample=4)
    again = log.fsck(deep=True, sample=4, seed=told.seed)
    assert told.findings.equals(again.findings)
    assert log.fsck(deep=True, sample=4).seed != told.seed


def test_a_seed_means_the_same_with_every_version_of_numpy():
    paths = pa.table({"path": [f"{number:02}" for number in range(20)]})
    chosen = Sample(4, 7).among(paths.take(list(range(19, -1, -1))))
    assert sorted(chosen.column("path").to_pylist()) == ["03", "06", "11", "12"]


def test_a_sample_of_no_files_is_empty(tmp_path):
    log = DeltaLog(str(tmp_path / "t"), LocalLogStore())
    log.append(pa.table({"x": pa.array([], pa.int64())}))
    checked = log.fsck(deep=True, sample="10%")
    assert (checked.num_read, checked.findings.num_rows) == (0, 0)


def test_a_repair_of_a_sample_tells_what_is_left_of_that_sample(log):
    commit = Path(log.log_path) / f"{0:020}.json"
    lines = [json.loads(line) for line in commit.read_text().splitlines()]
    for line in lines:
        if "add" in line:
            stats = json.loads(line["add"]["stats"])
            stats["minValues"]["x"] = stats["maxValues"]["x"] = -1
            line["add"]["stats"] = json.dumps(stats)
    commit.write_text("".join(json.dumps(line) + "\n" for line in lines))
    for each in Path(log.log_path).glob("*.crc"):
        each.unlink()
    log = DeltaLog(log.table_path, LocalLogStore())
    done = log.fsck(deep=True, sample=3, seed=1, repair=True)
    assert (done.num_read, done.steps.num_rows, done.findings.num_rows) == (3, 1, 0)
    assert log.fsck(deep=True).findings.num_rows == FILES - 3


@pytest.mark.parametrize(
    "how",
    [
        {"deep": False, "sample": 1},
        {"deep": True, "seed": 1},
        *({"deep": True, "sample": wrong} for wrong in (0, -1, "0", "0%", "101%", "x", "1e3", "")),
        *({"deep": True, "sample": wrong} for wrong in (0.5, True, b"1", "\u0661%", "9" * 30)),
        {"deep": True, "sample": 1, "seed": -1},
        {"deep": True, "sample": 1, "seed": "x"},
    ],
    ids=str,
)
def test_what_is_no_sample_is_refused(log, how):
    with pytest.raises(UsageError, match=r"Nothing was|must be"):
        log.fsck(**how)
