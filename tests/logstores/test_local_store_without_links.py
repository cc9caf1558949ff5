import errno
import os
from pathlib import Path

import pytest

from optimist.core.plugins.logstore import PutOutcome
from optimist.core.testing import LogStoreSuite
from optimist.logstores import LocalLogStore
from optimist.logstores.local.exclusive_rename import is_exclusive, rename_exclusively


def refuse(*args, **kwargs):
    raise OSError(errno.EPERM, os.strerror(errno.EPERM))


class TestLocalLogStoreWithoutHardLinks(LogStoreSuite):
    store_factory = LocalLogStore
    # The file system is made to look poor in this process only.
    supports_processes = False

    @pytest.fixture(autouse=True)
    def no_hard_links(self, monkeypatch):
        monkeypatch.setattr(os, "link", refuse)

    @pytest.fixture
    def directory(self, tmp_path):
        return str(tmp_path)

    def peek(self, path):
        return Path(path).read_bytes() if Path(path).exists() else None

    def poke(self, path, data):
        Path(path).write_bytes(data)


@pytest.mark.parametrize("code", [errno.ENOENT, errno.EEXIST, errno.EIO])
def test_rename_that_was_sent_twice_has_no_known_outcome(tmp_path, monkeypatch, code):
    """Clients of network disks repeat a request whose answer was lost, and tell the last answer."""

    def rename_twice(source, target):
        rename_exclusively(source, target)
        raise OSError(code, os.strerror(code), source)

    monkeypatch.setattr(os, "link", refuse)
    monkeypatch.setattr("optimist.logstores.local.store.rename_exclusively", rename_twice)
    path = tmp_path / "0.json"
    assert LocalLogStore().put_if_absent(str(path), b"ours") is PutOutcome.UNKNOWN
    assert path.read_bytes() == b"ours"
    assert [each.name for each in tmp_path.iterdir()] == ["0.json"]


def test_rename_into_a_directory_that_is_gone_may_have_been_done(tmp_path, monkeypatch):
    def rename(source, target):
        (tmp_path / "log").rename(tmp_path / "moved")
        rename_exclusively(source, target)

    monkeypatch.setattr(os, "link", refuse)
    monkeypatch.setattr("optimist.logstores.local.store.rename_exclusively", rename)
    (tmp_path / "log").mkdir()
    outcome = LocalLogStore().put_if_absent(str(tmp_path / "log" / "0.json"), b"ours")
    assert outcome is PutOutcome.UNKNOWN


def test_rename_moves_to_a_free_name(tmp_path):
    (tmp_path / "a").write_bytes(b"a")
    rename_exclusively(str(tmp_path / "a"), str(tmp_path / "b ä"))
    assert [each.name for each in tmp_path.iterdir()] == ["b ä"]


def test_rename_never_replaces(tmp_path):
    (tmp_path / "a").write_bytes(b"a")
    (tmp_path / "b").write_bytes(b"b")
    with pytest.raises(FileExistsError):
        rename_exclusively(str(tmp_path / "a"), str(tmp_path / "b"))
    assert (tmp_path / "a").read_bytes() == b"a"
    assert (tmp_path / "b").read_bytes() == b"b"


def test_rename_of_a_missing_file_is_not_found(tmp_path):
    with pytest.raises(FileNotFoundError):
        rename_exclusively(str(tmp_path / "a"), str(tmp_path / "b"))


def test_probe_believes_a_rename_that_refuses(tmp_path):
    for name in "ab":
        (tmp_path / name).write_bytes(b"")
    assert is_exclusive(str(tmp_path / "a"), str(tmp_path / "b"))


def test_probe_does_not_believe_a_rename_that_goes_through(tmp_path):
    (tmp_path / "a").write_bytes(b"")
    assert not is_exclusive(str(tmp_path / "a"), str(tmp_path / "b"))
