"""The progress of RESTORE, CLONE, CONVERT and fsck."""

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from optimist.core import DeltaLog
from optimist.core.data.storage import missing_files


class StoppedError(Exception):
    pass


def stop(_):
    raise StoppedError


@pytest.fixture
def log(tmp_path):
    log = DeltaLog.for_path(str(tmp_path / "t"))
    for number in range(3):
        log.append(pa.table({"x": [number]}))
    return log


def told(seen):
    return [(each.step, each.files_done, each.num_files) for each in seen]


def steps(name, number):
    return [(name, done, number) for done in range(1, number + 1)]


def test_a_deep_clone_tells_of_each_copy_and_a_shallow_one_of_none(log, tmp_path):
    seen = []
    log.clone(str(tmp_path / "deep"), progress=seen.append)
    assert told(seen) == steps("copy", 3)
    log.clone(str(tmp_path / "shallow"), is_shallow=True, progress=stop)


def test_a_clone_that_is_stopped_commits_nothing_and_goes_on_from_its_copies(log, tmp_path):
    target = str(tmp_path / "deep")
    with pytest.raises(StoppedError):
        log.clone(target, progress=stop)
    assert not DeltaLog.for_path(target).table_exists()
    seen = []
    log.clone(target, progress=seen.append)
    assert len(seen) < 3
    assert DeltaLog.for_path(target).snapshot().num_files == 3


def test_a_conversion_tells_of_each_footer(tmp_path):
    for number in range(12):
        pq.write_table(pa.table({"x": [number]}), tmp_path / f"f{number:02}.parquet")
    with pytest.raises(StoppedError):
        DeltaLog.for_path(str(tmp_path)).convert(progress=stop)
    assert not (tmp_path / "_delta_log").exists()
    seen = []
    DeltaLog.for_path(str(tmp_path)).convert(progress=seen.append)
    assert told(seen) == steps("footers", 12)


def test_a_clone_of_files_tells_of_their_footers(tmp_path):
    (tmp_path / "files").mkdir()
    pq.write_table(pa.table({"x": [1]}), tmp_path / "files" / "f.parquet")
    seen = []
    source = DeltaLog.for_path(str(tmp_path / "files"))
    source.clone(str(tmp_path / "clone"), source_format="parquet", progress=seen.append)
    assert told(seen) == [*steps("footers", 1), *steps("copy", 1)]


def test_a_check_tells_of_commits_and_a_deep_one_of_files(log):
    seen = []
    assert not log.fsck(progress=seen.append).findings.num_rows
    assert told(seen) == steps("log", 3)
    seen.clear()
    log.fsck(deep=True, progress=seen.append)
    assert told(seen) == [*steps("log", 3), *steps("data", 3)]
    with pytest.raises(StoppedError):
        log.fsck(repair=True, progress=stop)


@pytest.mark.parametrize("is_stored", [False, True])
def test_a_restore_tells_of_the_files_that_it_looks_for(is_stored, log, monkeypatch):
    if is_stored:  # files are then found by a listing
        monkeypatch.setattr(missing_files, "store_of", lambda path, access: path)
    log.delete("x < 2")
    with pytest.raises(StoppedError):
        log.restore(2, progress=stop)
    assert log.snapshot().version == 3
    seen = []
    log.restore(2, progress=seen.append)
    assert told(seen) == ([("check", 2, 2)] if is_stored else steps("check", 2))
