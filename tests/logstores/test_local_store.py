import errno
import os
import stat
from pathlib import Path

import pytest

from optimist.core.errors import ConfigError, LogFileNotFoundError, StorageError
from optimist.core.plugins.logstore import PutOutcome
from optimist.core.testing import LogStoreSuite
from optimist.logstores import LocalLogStore
from optimist.logstores.local import store as local


class TestLocalLogStore(LogStoreSuite):
    store_factory = LocalLogStore

    @pytest.fixture
    def directory(self, tmp_path):
        return str(tmp_path)

    def peek(self, path):
        return Path(path).read_bytes() if Path(path).exists() else None

    def poke(self, path, data):
        Path(path).write_bytes(data)


class TestLocalLogStoreByUrl(LogStoreSuite):
    store_factory = LocalLogStore

    @pytest.fixture
    def directory(self, tmp_path):
        return f"file://{tmp_path}"

    def peek(self, path):
        plain = Path(path.removeprefix("file://"))
        return plain.read_bytes() if plain.exists() else None

    def poke(self, path, data):
        Path(path.removeprefix("file://")).write_bytes(data)


def fail_with(code):
    def fail(*args, **kwargs):
        raise OSError(code, os.strerror(code))

    return fail


@pytest.fixture
def store():
    return LocalLogStore()


@pytest.fixture
def path(tmp_path):
    return str(tmp_path / "00000000000000000000.json")


def names_in(directory):
    return sorted(each.name for each in directory.iterdir())


# File systems without hard links


@pytest.mark.parametrize(
    "code", [errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK]
)
def test_without_hard_links_the_exclusive_rename_creates(store, path, monkeypatch, code):
    monkeypatch.setattr(os, "link", fail_with(code))
    assert store.put_if_absent(path, b"first") is PutOutcome.CREATED
    assert store.put_if_absent(path, b"second") is PutOutcome.EXISTS
    assert Path(path).read_bytes() == b"first"
    assert names_in(Path(path).parent) == [Path(path).name]


def test_exclusive_rename_loses_to_a_file_that_came_after_the_first_look(store, path, monkeypatch):
    exists = os.path.lexists
    monkeypatch.setattr(os, "link", fail_with(errno.EPERM))
    monkeypatch.setattr(os.path, "lexists", lambda name: name != path and exists(name))
    Path(path).write_bytes(b"winner")
    assert store.put_if_absent(path, b"loser") is PutOutcome.EXISTS
    assert Path(path).read_bytes() == b"winner"
    assert names_in(Path(path).parent) == [Path(path).name]


def test_without_hard_links_and_exclusive_rename_nothing_is_written(store, path, monkeypatch):
    monkeypatch.setattr(os, "link", fail_with(errno.EPERM))
    monkeypatch.setattr(local, "is_exclusive", lambda first, second: False)
    with pytest.raises(ConfigError) as caught:
        store.put_if_absent(path, b"x")
    assert caught.value.kind == "OPTIMIST_NO_ATOMIC_CREATE"
    assert names_in(Path(path).parent) == []


def test_rename_is_probed_once_per_device(store, tmp_path, monkeypatch):
    probes = []
    monkeypatch.setattr(os, "link", fail_with(errno.EPERM))
    monkeypatch.setattr(local, "is_exclusive", lambda *names: probes.append(names) or True)
    for version in range(3):
        assert store.put_if_absent(f"{tmp_path}/{version}", b"x") is PutOutcome.CREATED
    assert len(probes) == 1


# What happens when the system fails


def test_link_that_succeeded_although_it_reported_failure_is_created(store, path, monkeypatch):
    link = os.link

    def link_and_lose_the_answer(source, target):
        link(source, target)
        raise FileExistsError(errno.EEXIST, "repeated request")

    monkeypatch.setattr(os, "link", link_and_lose_the_answer)
    assert store.put_if_absent(path, b"ours") is PutOutcome.CREATED


def test_loser_of_the_link_sees_exists(store, path, monkeypatch):
    monkeypatch.setattr(os.path, "lexists", lambda _: False)
    Path(path).write_bytes(b"winner")
    assert store.put_if_absent(path, b"loser") is PutOutcome.EXISTS
    assert Path(path).read_bytes() == b"winner"
    assert names_in(Path(path).parent) == [Path(path).name]


def test_link_that_fails_without_saying_what_happened_is_unknown(store, path, monkeypatch):
    monkeypatch.setattr(os, "link", fail_with(errno.EIO))
    assert store.put_if_absent(path, b"x") is PutOutcome.UNKNOWN


def test_link_that_was_refused_is_an_error_and_leaves_nothing(store, path, monkeypatch):
    monkeypatch.setattr(os, "link", fail_with(errno.ENOSPC))
    with pytest.raises(StorageError) as caught:
        store.put_if_absent(path, b"x")
    assert caught.value.kind == "OPTIMIST_NO_SPACE"
    assert caught.value.fields["path"] == path
    assert names_in(Path(path).parent) == []


def test_file_that_cannot_be_synced_is_an_error_and_leaves_nothing(store, path, monkeypatch):
    monkeypatch.setattr(os, "fsync", fail_with(errno.EIO))
    with pytest.raises(StorageError):
        store.put_if_absent(path, b"x")
    assert names_in(Path(path).parent) == []


def fail_on_directory(fsync, code):
    def sync(descriptor):
        if stat.S_ISDIR(os.fstat(descriptor).st_mode):
            raise OSError(code, os.strerror(code))
        fsync(descriptor)

    return sync


def test_directory_that_cannot_be_synced_leaves_the_outcome_to_be_read_back(
    store, path, monkeypatch
):
    monkeypatch.setattr(os, "fsync", fail_on_directory(os.fsync, errno.EIO))
    assert store.put_if_absent(path, b"x") is PutOutcome.UNKNOWN
    assert store.read_bytes(path) == b"x"


def test_directory_sync_that_the_file_system_does_not_know_is_no_failure(store, path, monkeypatch):
    monkeypatch.setattr(os, "fsync", fail_on_directory(os.fsync, errno.EINVAL))
    assert store.put_if_absent(path, b"x") is PutOutcome.CREATED


def test_temporary_file_that_cannot_be_removed_changes_nothing(store, path, monkeypatch):
    monkeypatch.setattr(os, "unlink", fail_with(errno.EIO))
    assert store.put_if_absent(path, b"x") is PutOutcome.CREATED
    assert store.read_bytes(path) == b"x"


def test_interrupt_while_writing_leaves_nothing(store, path, monkeypatch):
    def interrupt(descriptor):
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "fsync", interrupt)
    with pytest.raises(KeyboardInterrupt):
        store.put_if_absent(path, b"x")
    assert names_in(Path(path).parent) == []


def test_failed_overwrite_leaves_the_old_file(store, path, monkeypatch):
    store.put_overwrite(path, b"old")
    monkeypatch.setattr(os, "fsync", fail_with(errno.EIO))
    with pytest.raises(StorageError):
        store.put_overwrite(path, b"new")
    assert store.read_bytes(path) == b"old"
    assert names_in(Path(path).parent) == [Path(path).name]


# What a commit costs


def test_commit_costs_one_file_and_two_syncs(store, path, monkeypatch):
    synced = []
    fsync = os.fsync
    monkeypatch.setattr(os, "fsync", lambda fd: synced.append(os.fstat(fd).st_mode) or fsync(fd))
    store.put_if_absent(path, b"x")
    assert [stat.S_ISDIR(mode) for mode in synced] == [False, True]


def test_lost_race_that_can_be_seen_costs_no_sync(store, path, monkeypatch):
    store.put_if_absent(path, b"x")
    monkeypatch.setattr(os, "fsync", fail_with(errno.EIO))
    assert store.put_if_absent(path, b"y") is PutOutcome.EXISTS


def test_listing_looks_only_at_files_from_the_name_on_and_as_they_are_taken(store, tmp_path):
    for version in range(5):
        store.put_if_absent(f"{tmp_path}/{version}", b"x")
    listing = store.list_from(f"{tmp_path}/2")
    assert next(listing).name == "2"
    (tmp_path / "3").unlink()
    assert [status.name for status in listing] == ["4"]


# Bad paths


def test_file_in_place_of_the_directory_is_told(store, tmp_path):
    (tmp_path / "_delta_log").write_bytes(b"")
    inside = f"{tmp_path}/_delta_log/0.json"
    for call in (
        lambda: list(store.list_from(inside)),
        lambda: store.put_if_absent(inside, b"x"),
        lambda: store.put_overwrite(inside, b"x"),
        lambda: store.read_bytes(inside),
        lambda: store.ensure_directory(f"{tmp_path}/_delta_log"),
        lambda: store.ensure_directory(f"{tmp_path}/_delta_log/below"),
    ):
        with pytest.raises(StorageError) as caught:
            call()
        assert caught.value.kind == "OPTIMIST_NOT_A_DIRECTORY"
        assert not isinstance(caught.value, LogFileNotFoundError)


def test_an_opened_file_says_by_which_tag_listings_know_it(store, tmp_path):
    path = str(tmp_path / "f")
    for data in (b"one", b"two"):
        store.put_overwrite(path, data)
        listed = next(store.list_from(path))
        with store.open_read(path) as file:
            assert file.raw.identity == listed.etag == store.find(path).etag


@pytest.mark.parametrize("what", ["pipe", "device", "pipe behind a link"])
def test_what_is_no_file_is_an_error_at_once_and_not_waited_for(store, tmp_path, what):
    place = tmp_path / "00000000000000000001.json"
    if what == "device":
        place.symlink_to("/dev/zero")
    elif what == "pipe":
        os.mkfifo(place)
    else:
        os.mkfifo(tmp_path / "pipe")
        place.symlink_to("pipe")
    for read in (store.read_bytes, store.open_read):
        with pytest.raises(StorageError) as caught:
            read(str(place))
        assert (caught.value.kind, caught.value.retryable) == ("OPTIMIST_NOT_A_FILE", False)


def test_directory_in_place_of_the_file_is_told(store, tmp_path):
    (tmp_path / "0.json").mkdir()
    with pytest.raises(StorageError) as caught:
        store.read_bytes(f"{tmp_path}/0.json")
    assert caught.value.kind == "OPTIMIST_NOT_A_FILE"
    with pytest.raises(StorageError) as caught:
        store.put_if_absent(f"{tmp_path}/0.json", b"x")
    assert caught.value.kind == "OPTIMIST_NOT_A_FILE"


def test_dangling_link_in_place_of_the_file_is_not_followed(store, tmp_path):
    (tmp_path / "0.json").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(StorageError) as caught:
        store.put_if_absent(f"{tmp_path}/0.json", b"x")
    assert caught.value.kind == "OPTIMIST_NOT_A_FILE"
    assert not (tmp_path / "elsewhere").exists()


def test_link_to_a_file_is_read_as_the_file(store, tmp_path):
    (tmp_path / "file").write_bytes(b"x")
    (tmp_path / "0.json").symlink_to(tmp_path / "file")
    assert store.read_bytes(f"{tmp_path}/0.json") == b"x"
    assert [each.name for each in store.list_from(f"{tmp_path}/0")] == ["0.json", "file"]
    assert store.put_if_absent(f"{tmp_path}/0.json", b"y") is PutOutcome.EXISTS


def test_path_with_nul_is_refused_by_every_method(store, tmp_path):
    path = f"{tmp_path}/\0/0.json"
    for call in (
        lambda: store.put_if_absent(path, b"x"),
        lambda: store.put_overwrite(path, b"x"),
        lambda: store.read_bytes(path),
        lambda: store.find(path),
        lambda: list(store.list_from(path)),
        lambda: store.delete(path),
        lambda: store.ensure_directory(path),
        lambda: store.resolve_path(path),
    ):
        with pytest.raises(StorageError) as caught:
            call()
        assert caught.value.kind == "OPTIMIST_INVALID_PATH"


@pytest.mark.parametrize("path", ["s3://bucket/t/0.json", "hdfs:///t/0.json", "memory://t/0"])
def test_path_of_another_scheme_is_refused_and_makes_no_directory(
    store, tmp_path, monkeypatch, path
):
    monkeypatch.chdir(tmp_path)
    for call in (store.ensure_directory, store.resolve_path, store.read_bytes, store.list_from):
        with pytest.raises(ConfigError) as caught:
            call(path)
        assert caught.value.kind == "DELTA_INCORRECT_LOG_STORE_IMPLEMENTATION"
    assert names_in(tmp_path) == []


def test_option_is_refused():
    with pytest.raises(ConfigError) as caught:
        LocalLogStore({"optimist.store.local.fsync": "false"})
    assert caught.value.kind == "OPTIMIST_UNKNOWN_OPTION"


# Spellings


def test_all_spellings_of_a_place_resolve_to_one(store, tmp_path, monkeypatch):
    (tmp_path / "table").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "table")
    monkeypatch.chdir(tmp_path)
    real = os.path.realpath(tmp_path / "table")
    for spelling in (
        f"{tmp_path}/table",
        f"{tmp_path}/table/",
        f"file:{tmp_path}/table",
        f"file://{tmp_path}/table",
        f"{tmp_path}/./other/../table",
        f"{tmp_path}/link",
        "table",
        "./table",
    ):
        assert store.resolve_path(spelling) == real


def test_relative_path_is_relative_to_the_working_directory(store, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    store.ensure_directory("table/_delta_log")
    assert store.put_if_absent("table/_delta_log/0.json", b"x") is PutOutcome.CREATED
    assert store.put_if_absent("bare", b"x") is PutOutcome.CREATED
    assert (tmp_path / "table/_delta_log/0.json").read_bytes() == b"x"
    listed = list(store.list_from("table/_delta_log/0"))
    assert [status.path for status in listed] == ["table/_delta_log/0.json"]
    assert [status.path for status in store.list_from("bar")] == ["bare"]


def test_tilde_is_an_ordinary_character(store, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    store.ensure_directory("~")
    assert (tmp_path / "~").is_dir()


def test_file_gets_the_permissions_of_any_new_file(store, path):
    before = os.umask(0o027)
    try:
        store.put_if_absent(path, b"x")
    finally:
        os.umask(before)
    assert stat.S_IMODE(Path(path).stat().st_mode) == 0o640
