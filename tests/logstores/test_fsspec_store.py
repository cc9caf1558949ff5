import datetime
from pathlib import Path

import pytest
from fsspec.implementations.memory import MemoryFileSystem

from optimist.core.errors import ConfigError, LogFileNotFoundError, StorageError
from optimist.core.plugins.logstore import PutOutcome
from optimist.core.testing import LogStoreSuite
from optimist.logstores import FsspecLogStore
from optimist.logstores.fsspec.store import FsspecOptions, _modified_ms


class TestFsspecLogStoreOnLocalPaths(LogStoreSuite):
    store_factory = FsspecLogStore

    @pytest.fixture
    def directory(self, tmp_path):
        return f"file://{tmp_path}"

    def peek(self, path):
        plain = Path(path.removeprefix("file://"))
        return plain.read_bytes() if plain.exists() else None

    def poke(self, path, data):
        Path(path.removeprefix("file://")).write_bytes(data)


@pytest.fixture
def store():
    return FsspecLogStore()


# Reading on a driver that may not be written


def test_unproven_driver_is_read_and_listed(store, memory):
    for name in ("1.json", "0.json", "10.json", "_last_checkpoint", "below/2.json"):
        memory.pipe_file(f"/t/_delta_log/{name}", b"x" * len(name))
    listed = list(store.list_from("memory://t/_delta_log/1"))
    assert [status.path for status in listed] == [
        "memory://t/_delta_log/1.json",
        "memory://t/_delta_log/10.json",
        "memory://t/_delta_log/_last_checkpoint",
    ]
    assert [status.size_bytes for status in listed] == [6, 7, 16]
    assert all(status.modified_ms > 1_600_000_000_000 for status in listed)
    assert store.read_bytes("memory://t/_delta_log/0.json") == b"xxxxxx"


def test_readers_of_one_file_have_each_their_own_position(store, memory):
    memory.pipe_file("/t/f", b"0123456789")
    first, second = store.open_read("memory://t/f"), store.open_read("memory://t/f")
    first.seek(5)
    assert second.read(2) == b"01"
    assert first.read(2) == b"56"


def test_missing_file_and_directory_are_not_found(store, memory):
    for call in (
        lambda: store.read_bytes("memory://t/0"),
        lambda: store.open_read("memory://t/0"),
        lambda: list(store.list_from("memory://t/0")),
    ):
        with pytest.raises(LogFileNotFoundError):
            call()


def test_file_in_place_of_the_directory_is_told(store, memory):
    memory.pipe_file("/t/_delta_log", b"x")
    with pytest.raises(StorageError) as caught:
        list(store.list_from("memory://t/_delta_log/0"))
    assert caught.value.kind == "OPTIMIST_NOT_A_DIRECTORY"


# Refusing to write


@pytest.mark.parametrize(
    "write",
    [
        lambda store, path: store.put_if_absent(path, b"x"),
        lambda store, path: store.put_overwrite(path, b"x"),
        lambda store, path: store.write(path, ["x"]),
        lambda store, path: store.delete(path),
        lambda store, path: store.ensure_directory(path),
    ],
)
def test_unproven_driver_is_not_written(store, memory, write):
    memory.pipe_file("/t/there", b"there")
    for name in ("new", "there"):
        with pytest.raises(ConfigError) as caught:
            write(store, f"memory://t/{name}")
        assert caught.value.kind == "OPTIMIST_NO_ATOMIC_CREATE"
        assert caught.value.fields["driver"].endswith(":MemoryFileSystem")
        assert "spark.delta.logStore.memory.impl" in str(caught.value)
    assert dict(memory.store).keys() == {"/t/there"}
    assert memory.cat_file("/t/there") == b"there"


def test_refused_memory_driver_does_let_two_writers_win(memory):
    """Why it is refused: it asks, and what it was told is old by the time it writes."""
    asked = []

    class Interleaved(MemoryFileSystem):
        cachable = False

        def exists(self, path, **kwargs):
            found = super().exists(path, **kwargs)
            asked.append(path)
            if len(asked) == 2:  # it asks twice, so the other writer comes after the second
                memory.pipe_file("/t/0", b"other", mode="create")
            return found

    Interleaved().pipe_file("/t/0", b"mine", mode="create")
    assert len(asked) == 2
    assert memory.cat_file("/t/0") == b"mine"


def test_wrapped_local_driver_is_not_taken_for_a_local_one(store, tmp_path):
    (tmp_path / "0").write_bytes(b"x")
    assert store.read_bytes(f"simplecache::file://{tmp_path}/0") == b"x"
    with pytest.raises(ConfigError) as caught:
        store.put_if_absent(f"simplecache::file://{tmp_path}/1", b"x")
    assert caught.value.kind == "OPTIMIST_NO_ATOMIC_CREATE"
    assert not (tmp_path / "1").exists()


@pytest.mark.parametrize("scheme", ["file", "local"])
def test_local_driver_is_written_by_either_scheme(store, tmp_path, scheme):
    path = f"{scheme}://{tmp_path}/0"
    assert store.put_if_absent(path, b"x") is PutOutcome.CREATED
    assert store.put_if_absent(path, b"y") is PutOutcome.EXISTS
    assert (tmp_path / "0").read_bytes() == b"x"


# Drivers that are not there


def test_driver_that_is_not_installed_names_the_package(store):
    with pytest.raises(ConfigError) as caught:
        store.read_bytes("s3://bucket/0")
    assert caught.value.kind == "OPTIMIST_MISSING_PACKAGE"
    assert "s3fs" in str(caught.value)


def test_unknown_scheme_names_the_key_that_helps(store):
    with pytest.raises(ConfigError) as caught:
        list(store.list_from("nosuch://bucket/0"))
    assert caught.value.kind == "OPTIMIST_UNKNOWN_SCHEME"
    assert "spark.delta.logStore.nosuch.impl" in str(caught.value)


# Options


def test_options_reach_the_driver_with_their_types():
    options = FsspecOptions.from_options(
        {
            "spark.optimist.store.fsspec.anon": "True",
            "optimist.store.fsspec.key": "0123",
            "optimist.store.fsspec.client_kwargs": '{"endpoint_url": "http://localhost:1"}',
            "spark.hadoop.fs.s3a.access.key": "not ours",
        }
    )
    assert options.revealed() == {
        "anon": True,
        "key": "0123",
        "client_kwargs": {"endpoint_url": "http://localhost:1"},
    }


def test_option_is_passed_to_the_driver(tmp_path):
    store = FsspecLogStore({"optimist.store.fsspec.auto_mkdir": "true"})
    driver, _ = store._driver(f"file://{tmp_path}")
    assert driver.auto_mkdir is True


def test_secrets_show_nowhere():
    store = FsspecLogStore({"optimist.store.fsspec.secret": "hunter2"})
    assert "hunter2" not in repr(store._parsed)
    assert "hunter2" not in str(store.describe())
    assert "secret" in store.describe()["driver options"]


def test_option_that_starts_like_json_and_is_not_is_refused_without_its_value():
    with pytest.raises(ConfigError) as caught:
        FsspecLogStore({"optimist.store.fsspec.client_kwargs": '{"secret": hunter2}'})
    assert caught.value.kind == "OPTIMIST_INVALID_OPTION"
    assert "hunter2" not in str(caught.value)


def test_two_spellings_of_an_option_that_differ_are_refused():
    with pytest.raises(ConfigError) as caught:
        FsspecLogStore(
            {"optimist.store.fsspec.key": "hunter1", "spark.optimist.store.fsspec.key": "hunter2"}
        )
    assert caught.value.kind == "OPTIMIST_CONTRADICTING_OPTIONS"
    assert "hunter" not in str(caught.value)


@pytest.mark.parametrize(
    "entry",
    [
        {"mtime": 1_700_000_000.5},
        {"LastModified": datetime.datetime.fromtimestamp(1_700_000_000.5, datetime.timezone.utc)},
        {"updated": "2023-11-14T22:13:20.500Z"},
        {"created": 1, "mtime": 1_700_000_000.5},
    ],
)
def test_modification_time_is_understood_in_every_drivers_words(entry):
    assert _modified_ms(entry) == 1_700_000_000_500


def test_modification_time_that_is_not_told_is_zero():
    assert _modified_ms({"name": "x", "created": None}) == 0
