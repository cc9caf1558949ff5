import pytest

from optimist.core.errors import ConfigError, LogFileNotFoundError
from optimist.core.testing import LogStoreSuite, ManualClock
from optimist.logstores import MemoryLogStore
from optimist.logstores.memory import _Entry


def split(path):
    directory, _, name = path.removeprefix("memory:/").rpartition("/")
    return directory, name


class TestMemoryLogStore(LogStoreSuite):
    store_factory = MemoryLogStore
    supports_processes = False
    has_directories = False

    @pytest.fixture
    def directory(self):
        return "memory://bucket/table/_delta_log"

    def peek(self, path):
        directory, name = split(path)
        entry = MemoryLogStore()._directories.get(directory, {}).get(name)
        return None if entry is None else entry.data

    def poke(self, path, data):
        directory, name = split(path)
        MemoryLogStore()._directories.setdefault(directory, {})[name] = _Entry(
            data, 1_700_000_000_000
        )


@pytest.mark.parametrize(
    "spelling", ["memory:/b/t/f", "memory:///b/t/f", "memory://b//t/f", "/b/t/f", "MEMORY://b/t/f"]
)
def test_all_spellings_of_a_path_are_one_file(spelling):
    MemoryLogStore().put_overwrite("memory://b/t/f", b"x")
    assert MemoryLogStore().read_bytes(spelling) == b"x"
    assert MemoryLogStore().resolve_path(spelling) == "memory:///b/t/f"


def test_a_namespace_has_files_of_its_own():
    one, other = (MemoryLogStore(namespace=name) for name in ("one", "other"))
    one.put_overwrite("memory://b/t/f", b"x")
    assert MemoryLogStore(namespace="one").read_bytes("memory://b/t/f") == b"x"
    for stranger in (other, MemoryLogStore()):
        with pytest.raises(LogFileNotFoundError):
            stranger.read_bytes("memory://b/t/f")
    MemoryLogStore.clear()
    assert one.read_bytes("memory://b/t/f") == b"x"
    MemoryLogStore.clear("one")
    with pytest.raises(LogFileNotFoundError):
        one.read_bytes("memory://b/t/f")


def test_modification_time_is_the_clocks():
    clock = ManualClock(now_ms=5_000)
    store = MemoryLogStore(clock=clock)
    store.put_if_absent("memory://t/0", b"x")
    clock.advance(2)
    store.put_if_absent("memory://t/1", b"x")
    store.put_if_absent("memory://t/0", b"loses")
    assert [status.modified_ms for status in store.list_from("memory://t/0")] == [5_000, 7_000]


def test_bytes_that_the_caller_changes_later_do_not_change_the_file():
    data = bytearray(b"before")
    store = MemoryLogStore()
    store.put_if_absent("memory://t/0", data)
    data[:] = b"after!"
    assert store.read_bytes("memory://t/0") == b"before"


def test_directory_goes_with_its_last_file():
    store = MemoryLogStore()
    store.put_if_absent("memory://t/0", b"x")
    store.delete("memory://t/0")
    with pytest.raises(LogFileNotFoundError):
        store.list_from("memory://t/0")


def test_clear_forgets_everything():
    MemoryLogStore().put_if_absent("memory://t/0", b"x")
    MemoryLogStore.clear()
    with pytest.raises(LogFileNotFoundError):
        MemoryLogStore().read_bytes("memory://t/0")


def test_path_of_another_scheme_is_refused():
    with pytest.raises(ConfigError) as caught:
        MemoryLogStore().put_if_absent("s3://bucket/0", b"x")
    assert caught.value.kind == "DELTA_INCORRECT_LOG_STORE_IMPLEMENTATION"


def test_option_is_refused():
    with pytest.raises(ConfigError) as caught:
        MemoryLogStore({"spark.optimist.store.memory.size": "1"})
    assert caught.value.kind == "OPTIMIST_UNKNOWN_OPTION"
    assert caught.value.fields["key"] == "optimist.store.memory.size"
