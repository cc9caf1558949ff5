"""Which table a path means: settled once, when its handle is made."""

from __future__ import annotations

import os
from pathlib import Path

import pyarrow as pa
import pytest

from optimist.core import DeltaLog
from optimist.core.errors import UsageError
from optimist.core.plugins.logstore import LogStore
from optimist.logstores import LocalLogStore, MemoryLogStore


def rows(*ids: int) -> pa.Table:
    return pa.table({"id": pa.array(ids, pa.int64())})


def ids(path: object) -> list[int]:
    return sorted(DeltaLog(str(path), LocalLogStore()).to_arrow().column("id").to_pylist())


@pytest.fixture
def folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, Path]:
    """Two directories; the first is the working directory."""
    here, there = tmp_path / "here", tmp_path / "there"
    here.mkdir()
    there.mkdir()
    monkeypatch.chdir(here)
    return here, there


@pytest.mark.parametrize("make", [DeltaLog.for_path, lambda path: DeltaLog(path, LocalLogStore())])
def test_a_handle_stays_with_its_table_when_the_working_directory_changes(
    folders, monkeypatch, make
):
    here, there = folders
    log = make("t")
    log.append(rows(1))
    monkeypatch.chdir(there)
    log.append(rows(2))
    assert log.to_arrow().num_rows == 2
    assert ids(here / "t") == [1, 2]
    assert list(there.iterdir()) == []


def test_a_cached_handle_of_a_relative_path_is_not_given_out_for_another_directory(
    folders, monkeypatch
):
    here, there = folders
    DeltaLog.for_path("t").append(rows(1))
    monkeypatch.chdir(there)
    DeltaLog.for_path(str(here / "t")).append(rows(2))
    DeltaLog.for_path("t").append(rows(3))
    assert ids(here / "t") == [1, 2]
    assert ids(there / "t") == [3]


def test_a_symbolic_link_that_is_pointed_elsewhere_moves_no_handle(folders):
    here, there = folders
    link, old, new = here / "link", there / "old", there / "new"
    old.mkdir()
    new.mkdir()
    link.symlink_to(old)
    held = DeltaLog.for_path(str(link))
    held.append(rows(1))
    link.unlink()
    link.symlink_to(new)
    DeltaLog.for_path(str(old)).append(rows(2))
    held.append(rows(3))
    DeltaLog.for_path(str(link)).append(rows(4))
    assert ids(old) == [1, 2, 3]
    assert ids(new) == [4]


@pytest.mark.parametrize(
    "spelling",
    [
        "t",
        "./t/",
        "{here}//t",
        "{here}/./t",
        "{here}/x/../t",
        "file:{here}//t",
        "file://{here}/t/",
        "{here}/link",
    ],
)
def test_every_spelling_of_a_local_path_is_one_handle_with_one_path(folders, spelling):
    here, _ = folders
    (here / "link").symlink_to(here / "t")
    (here / "x").mkdir()
    log = DeltaLog.for_path(spelling.format(here=here))
    assert log is DeltaLog.for_path(str(here / "t"))
    assert log.table_path == os.path.realpath(here / "t")
    assert log.log_path == f"{log.table_path}/_delta_log"


def test_a_tilde_is_a_character_like_any_other(folders):
    here, _ = folders
    DeltaLog.for_path("~/t").append(rows(1))
    assert ids(here / "~" / "t") == [1]


class PlainStore(LocalLogStore):
    """As a store of one's own: it says nothing about spellings."""

    resolve_path = LogStore.resolve_path


def test_a_store_of_ones_own_need_not_resolve_local_paths(folders, monkeypatch):
    here, there = folders
    log = DeltaLog("./t", PlainStore())
    log.append(rows(1))
    monkeypatch.chdir(there)
    log.append(rows(2))
    assert ids(here / "t") == [1, 2]


def test_a_path_that_is_not_local_stays_as_it_was_given():
    assert DeltaLog("memory:/a//t/", MemoryLogStore()).table_path == "memory:/a//t"


@pytest.mark.parametrize("path", ["", " ", "file:", "file://", "\n", "file: ", "/t\0x"])
def test_an_empty_path_is_refused_and_makes_no_table(folders, path):
    for make in (DeltaLog.for_path, lambda path: DeltaLog(path, LocalLogStore())):
        with pytest.raises(UsageError) as caught:
            make(path)
        assert caught.value.kind == "OPTIMIST_NO_TABLE_PATH"
    assert list(folders[0].iterdir()) == []


def test_paths_of_pathlib_are_taken_and_what_is_no_path_is_refused(tmp_path):
    assert DeltaLog.for_path(tmp_path / "t") is DeltaLog.for_path(str(tmp_path / "t"))
    for nothing in (None, 5, b"/t"):
        with pytest.raises(TypeError, match=r"must be text or a pathlib\.Path") as caught:
            DeltaLog.for_path(nothing)
        assert caught.value.kind == "OPTIMIST_INVALID_ARGUMENT_TYPE"
