"""The contract of stores, as a test class to subclass (spec 3.1).

    class TestMyStore(LogStoreSuite):
        store_factory = MyStore

        @pytest.fixture
        def directory(self, tmp_path):
            return f"my://{tmp_path}"

        def peek(self, path): ...   # the bytes at `path`, or None, without asking the store
        def poke(self, path, data): ...   # put bytes there, without asking the store

This is all: a subclass gives the store, a directory, and a way around the store. It declares what
its store cannot do (`supports_processes`, ...), and may add tests. It may not change the tests
here.
"""

# A test's name says what it checks.
# ruff: noqa: D102

from __future__ import annotations

import contextlib
import tempfile
import threading
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, ClassVar

import pytest

from optimist.core.errors import LogFileExistsError, LogFileNotFoundError, StorageError
from optimist.core.plugins.logstore import LogStore, PutOutcome
from optimist.core.testing.forked_children import run_in_forked_children
from optimist.core.testing.logstore_races import (
    append_commits,
    commit_path,
    payload_of,
    put_each_round,
    put_settled,
    run_in_processes,
    run_in_threads,
)

__all__ = ["LogStoreSuite"]

_THREADS = 16
_PROCESSES = 4
_CHILDREN = 5
_LARGE = 8 * 1024 * 1024

_ODD_NAMES = (
    "with space.json",
    "percent%20escape.json",
    "100%.json",
    "plus+plus.json",
    "hash#tag.json",
    "a=b&c,d.json",
    "umlaut-äöü.json",
    "日本語.json",
    "quote'quote.json",
    "[brackets]*.json",
    "~tilde.json",
    ".leading-dot.json",
    "_leading-underscore",
)


class LogStoreSuite:
    """The tests for a store, to subclass.

    Every test gets a new `directory`.

    Attributes:
        store_factory: Builds a store. It must be a class or a function of a module, so that other
            processes can build theirs.
        supports_processes: Whether stores in different processes see the same files.
        has_directories: Whether a directory must exist before a file can be put there.
        writes_appear_whole: Whether no reader ever sees a part of a file that this store writes. A
            store that says no must say so to the engine, too, by `is_partial_write_visible`.
        survives_forks: Whether a store continues to work in a forked process.
        forgets_deleted: Whether a deleted commit can be created again. With an arbiter it can't,
            because the commit's entry stays.
        rounds: The number of files that sixteen threads race for. Use fewer only if a test server
            is so slow that the race would take minutes, and say so beside it.
        process_rounds: The number of files that the processes race for.
        commits: The number of commits that each worker makes, in threads and in processes.
    """

    store_factory: ClassVar[Callable[[], LogStore]]
    supports_processes: ClassVar[bool] = True
    has_directories: ClassVar[bool] = True
    writes_appear_whole: ClassVar[bool] = True
    survives_forks: ClassVar[bool] = True
    forgets_deleted: ClassVar[bool] = True
    rounds: ClassVar[int] = 50
    process_rounds: ClassVar[int] = 25
    commits: ClassVar[int] = 10

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        for name, test in vars(LogStoreSuite).items():
            if name.startswith("test_") and getattr(cls, name) is not test:
                raise TypeError(
                    f"{cls.__name__} overrides {name}. The suite holds for every store as it is; "
                    "declare what the store cannot do, or add a test under another name."
                )

    @pytest.fixture
    def directory(self) -> str:
        """Return a new, existing directory for files: a path or URL without a trailing slash."""
        raise NotImplementedError("give a fixture `directory`")

    @pytest.fixture
    def store(self) -> LogStore:
        """Return a new store."""
        return self.new_store()

    def peek(self, path: str) -> bytes | None:
        """Return the bytes at a path, or None without a file, without the store."""
        raise NotImplementedError("give a method `peek`")

    def poke(self, path: str, data: bytes) -> None:
        """Put bytes at a path, without the store."""
        raise NotImplementedError("give a method `poke`")

    def new_store(self) -> LogStore:
        """Return another instance of the store under test."""
        return type(self).store_factory()

    # Creating and reading

    def test_created_file_holds_exactly_the_bytes(self, store: LogStore, directory: str) -> None:
        path = commit_path(directory, 0)
        assert store.put_if_absent(path, b'{"a":1}\n') is PutOutcome.CREATED
        assert store.read_bytes(path) == b'{"a":1}\n'
        assert self.peek(path) == b'{"a":1}\n'

    def test_existing_file_is_left_alone(self, store: LogStore, directory: str) -> None:
        path = commit_path(directory, 0)
        store.put_if_absent(path, b"the winner's, longer")
        for loser in (store, self.new_store()):
            assert loser.put_if_absent(path, b"loser") is PutOutcome.EXISTS
            assert loser.put_if_absent(path, b"") is PutOutcome.EXISTS
        assert self.peek(path) == b"the winner's, longer"

    def test_file_of_another_engine_is_left_alone(self, store: LogStore, directory: str) -> None:
        path = commit_path(directory, 0)
        self.poke(path, b"written by another engine")
        assert store.put_if_absent(path, b"ours") is PutOutcome.EXISTS
        assert store.read_bytes(path) == b"written by another engine"

    def test_empty_file_of_another_engine_is_left_alone(
        self, store: LogStore, directory: str
    ) -> None:
        path = commit_path(directory, 0)
        self.poke(path, b"")
        assert store.put_if_absent(path, b"ours") is PutOutcome.EXISTS
        assert self.peek(path) == b""

    @pytest.mark.parametrize("name", _ODD_NAMES)
    def test_odd_name_is_taken_as_it_is(self, store: LogStore, directory: str, name: str) -> None:
        path = f"{directory}/{name}"
        assert store.put_if_absent(path, b"odd") is PutOutcome.CREATED
        assert store.put_if_absent(path, b"again") is PutOutcome.EXISTS
        assert self.peek(path) == b"odd"
        assert store.read_bytes(path) == b"odd"
        assert self.paths(store, path) == [path]
        store.delete(path)
        assert self.peek(path) is None

    def test_odd_directory_is_taken_as_it_is(self, store: LogStore, directory: str) -> None:
        odd = f"{directory}/a b%20c+ä/month=1"
        store.ensure_directory(odd)
        path = commit_path(odd, 0)
        assert store.put_if_absent(path, b"odd") is PutOutcome.CREATED
        assert self.peek(path) == b"odd"
        assert self.paths(store, f"{odd}/0") == [path]

    def test_empty_payload_makes_an_empty_file(self, store: LogStore, directory: str) -> None:
        path = commit_path(directory, 0)
        assert store.put_if_absent(path, b"") is PutOutcome.CREATED
        assert self.peek(path) == b""
        assert store.read_bytes(path) == b""
        assert store.put_if_absent(path, b"more") is PutOutcome.EXISTS

    def test_large_payload_comes_back_whole(self, store: LogStore, directory: str) -> None:
        path = commit_path(directory, 0)
        data = bytes(range(256)) * (_LARGE // 256)
        assert store.put_if_absent(path, data) is PutOutcome.CREATED
        assert store.read_bytes(path) == data
        assert self.peek(path) == data

    def test_local_file_is_created_whole_wherever_it_stands(
        self, store: LogStore, directory: str
    ) -> None:
        path, data = f"{directory}/0.checkpoint.parquet", bytes(range(256)) * 1024
        with tempfile.TemporaryFile() as file:
            file.write(data)
            assert store.put_file_if_absent(path, file) is PutOutcome.CREATED
            file.seek(7)
            file.write(b"another file")
            assert store.put_file_if_absent(path, file) is PutOutcome.EXISTS
            file.truncate(0)
            assert self.new_store().put_file_if_absent(path, file) is PutOutcome.EXISTS
        assert self.peek(path) == data

    def test_local_file_larger_than_a_request_is_created_whole(
        self, store: LogStore, directory: str
    ) -> None:
        path, data = f"{directory}/0.checkpoint.parquet", bytes(range(251)) * 40_000  # 10 MB
        with tempfile.TemporaryFile() as file:
            file.write(data)
            assert store.put_file_if_absent(path, file) is PutOutcome.CREATED
            assert self.peek(path) == data
            file.seek(0)
            file.write(b"another file")
            assert self.new_store().put_file_if_absent(path, file) is PutOutcome.EXISTS
        assert self.peek(path) == data

    def test_missing_file_is_not_found(self, store: LogStore, directory: str) -> None:
        with pytest.raises(LogFileNotFoundError):
            store.read_bytes(commit_path(directory, 0))
        with pytest.raises(FileNotFoundError):
            store.open_read(commit_path(directory, 0))

    def test_opened_file_can_be_read_from_any_place(self, store: LogStore, directory: str) -> None:
        path = commit_path(directory, 0)
        store.put_if_absent(path, b"0123456789")
        with store.open_read(path) as first, store.open_read(path) as second:
            first.seek(4)
            assert second.read(2) == b"01"
            assert first.read(3) == b"456"
            assert first.seek(-1, 2) == 9

    def test_lines_are_written_and_read_as_delta_does(
        self, store: LogStore, directory: str
    ) -> None:
        path = commit_path(directory, 0)
        lines = ['{"a":"x\u2028y"}', '{"b":"ä"}']
        store.write(path, lines)
        assert self.peek(path) == "".join(f"{line}\n" for line in lines).encode()
        assert store.read(path) == lines
        with pytest.raises(LogFileExistsError) as caught:
            store.write(path, ["other"])
        assert caught.value.fields["path"] == path
        store.write(path, ["other"], overwrite=True)
        assert store.read(path) == ["other"]

    def test_missing_directory_is_told_from_a_lost_race(
        self, store: LogStore, directory: str
    ) -> None:
        path = commit_path(f"{directory}/missing", 0)
        if not self.has_directories:
            assert store.put_if_absent(path, b"x") is PutOutcome.CREATED
            return
        with pytest.raises(LogFileNotFoundError):
            store.put_if_absent(path, b"x")
        assert self.peek(path) is None
        store.ensure_directory(f"{directory}/missing")
        assert store.put_if_absent(path, b"x") is PutOutcome.CREATED

    def test_ensure_directory_may_be_called_again(self, store: LogStore, directory: str) -> None:
        for _ in range(2):
            store.ensure_directory(f"{directory}/a/b/_delta_log")
        path = commit_path(f"{directory}/a/b/_delta_log", 0)
        assert store.put_if_absent(path, b"x") is PutOutcome.CREATED
        store.ensure_directory(f"{directory}/a/b/_delta_log")
        assert self.peek(path) == b"x"

    # Overwriting and deleting

    def test_overwrite_replaces_or_creates(self, store: LogStore, directory: str) -> None:
        path = f"{directory}/_last_checkpoint"
        store.put_overwrite(path, b"first, the longer one")
        assert self.peek(path) == b"first, the longer one"
        store.put_overwrite(path, b"second")
        assert self.peek(path) == b"second"
        assert self.sizes(store, f"{directory}/_") == [6]

    def test_deleted_file_is_gone_and_its_name_is_free(
        self, store: LogStore, directory: str
    ) -> None:
        path, other = commit_path(directory, 0), commit_path(directory, 1)
        store.put_if_absent(path, b"x")
        store.put_if_absent(other, b"other")
        store.delete(path)
        store.delete(path)
        assert self.peek(path) is None
        assert self.paths(store, path) == [other]
        if not self.forgets_deleted:
            with pytest.raises(StorageError):
                store.put_if_absent(path, b"again")
            return
        assert store.put_if_absent(path, b"again") is PutOutcome.CREATED

    # Listing

    def test_listing_is_sorted_and_starts_at_the_name(
        self, store: LogStore, directory: str
    ) -> None:
        # Poked, since a store with an arbiter creates no version whose predecessor is missing.
        for version in (11, 2, 9, 10, 0, 1):
            self.poke(commit_path(directory, version), b"x" * version)
        store.put_overwrite(f"{directory}/_last_checkpoint", b"hint")
        expected = [commit_path(directory, version) for version in (2, 9, 10, 11)]
        assert self.paths(store, expected[0]) == [*expected, f"{directory}/_last_checkpoint"]
        assert self.sizes(store, expected[0]) == [2, 9, 10, 11, 4]

    def test_listing_may_start_at_a_name_that_does_not_exist(
        self, store: LogStore, directory: str
    ) -> None:
        for version in (0, 5):
            self.poke(commit_path(directory, version), b"x")
        assert self.paths(store, commit_path(directory, 1)) == [commit_path(directory, 5)]
        assert self.paths(store, commit_path(directory, 6)) == []

    def test_listing_compares_names_not_numbers(self, store: LogStore, directory: str) -> None:
        for name in ("10", "9", "09", "1.json", "1"):
            self.poke(f"{directory}/{name}", b"x")
        names = [path.rpartition("/")[2] for path in self.paths(store, f"{directory}/1")]
        assert names == ["1", "1.json", "10", "9"]

    def test_listing_leaves_out_directories_and_what_is_in_them(
        self, store: LogStore, directory: str
    ) -> None:
        store.put_if_absent(commit_path(directory, 0), b"x")
        store.ensure_directory(f"{directory}/_sidecars")
        store.put_if_absent(f"{directory}/_sidecars/1.parquet", b"x")
        assert self.paths(store, f"{directory}/0") == [commit_path(directory, 0)]

    def test_listing_shows_sizes_and_times(self, store: LogStore, directory: str) -> None:
        store.put_if_absent(commit_path(directory, 0), b"123")
        store.put_if_absent(commit_path(directory, 1), b"")
        first, second = store.list_from(commit_path(directory, 0))
        assert (first.name, first.size_bytes) == (f"{0:020d}.json", 3)
        assert (second.name, second.size_bytes) == (f"{1:020d}.json", 0)
        # Milliseconds of this century, not seconds, not nanoseconds.
        assert 946_684_800_000 < first.modified_ms <= second.modified_ms < 4_102_444_800_000

    def test_listing_of_a_missing_directory_is_not_found(
        self, store: LogStore, directory: str
    ) -> None:
        with pytest.raises(LogFileNotFoundError):
            list(store.list_from(commit_path(f"{directory}/missing", 0)))

    def test_listing_shows_a_file_as_soon_as_it_was_written(
        self, store: LogStore, directory: str
    ) -> None:
        reader = self.new_store()
        for version in range(20):
            store.put_if_absent(commit_path(directory, version), b"x")
            assert len(self.paths(reader, commit_path(directory, 0))) == version + 1
        self.poke(commit_path(directory, 20), b"another engine's")
        assert len(self.paths(reader, commit_path(directory, 0))) == 21

    def test_nothing_but_the_files_is_left_behind(self, store: LogStore, directory: str) -> None:
        path = commit_path(directory, 0)
        store.put_if_absent(path, b"x")
        store.put_if_absent(path, b"y")
        store.put_overwrite(f"{directory}/_last_checkpoint", b"hint")
        # `!` sorts before the dot of a temporary name.
        assert self.paths(store, f"{directory}/!") == [path, f"{directory}/_last_checkpoint"]

    # Paths and description

    def test_resolved_path_is_stable_and_means_the_same_place(
        self, store: LogStore, directory: str
    ) -> None:
        path = commit_path(directory, 0)
        store.put_if_absent(path, b"x")
        resolved = store.resolve_path(path)
        assert store.resolve_path(resolved) == resolved
        assert store.read_bytes(resolved) == b"x"
        assert store.put_if_absent(resolved, b"y") is PutOutcome.EXISTS
        assert store.resolve_path(directory) == store.resolve_path(f"{directory}/")

    def test_description_names_the_store(self, store: LogStore) -> None:
        description = store.describe()
        assert type(store).__qualname__ in description["store"]
        assert all(isinstance(value, str) for value in description.values())

    # Guarantee 1: atomic visibility

    def test_partial_writes_are_admitted(self, store: LogStore, directory: str) -> None:
        visible = store.is_partial_write_visible(commit_path(directory, 0))
        assert visible or self.writes_appear_whole

    def test_reader_sees_a_new_file_whole_or_not_at_all(
        self, store: LogStore, directory: str
    ) -> None:
        self._skip_unless_whole()
        data = b"0123456789abcdef" * (_LARGE // 64)
        paths = [commit_path(directory, version) for version in range(12)]
        seen = self._write_watched(
            paths, lambda: [store.put_if_absent(path, data) for path in paths]
        )
        assert all(found == data for found in seen)

    def test_reader_sees_the_old_file_or_the_new_one(self, store: LogStore, directory: str) -> None:
        self._skip_unless_whole()
        path = f"{directory}/_last_checkpoint"
        contents = [bytes([letter]) * (_LARGE // 8 + letter) for letter in range(97, 109)]
        store.put_overwrite(path, contents[0])
        seen = self._write_watched(
            [path], lambda: [store.put_overwrite(path, each) for each in contents]
        )
        assert all(found in contents for found in seen)

    # Guarantee 2: mutual exclusion

    def test_of_many_threads_exactly_one_creates(self, directory: str) -> None:
        stores = [self.new_store() for _ in range(_THREADS // 2)]
        barrier = threading.Barrier(_THREADS)
        outcomes = run_in_threads(
            [
                partial(
                    put_each_round,
                    stores[worker % len(stores)],  # two threads share each store
                    directory,
                    self.rounds,
                    worker=worker,
                    barrier=barrier,
                )
                for worker in range(_THREADS)
            ]
        )
        self._check_one_winner_per_round(directory, outcomes, self.rounds)

    def test_of_many_processes_exactly_one_creates(self, directory: str) -> None:
        self._skip_unless_processes()
        outcomes = run_in_processes(
            type(self).store_factory,
            put_each_round,
            [
                {"directory": directory, "rounds": self.process_rounds, "worker": worker}
                for worker in range(_PROCESSES)
            ],
        )
        self._check_one_winner_per_round(directory, outcomes, self.process_rounds)

    def test_commits_of_many_threads_are_dense_and_each_is_there_once(self, directory: str) -> None:
        versions = run_in_threads(
            [
                partial(append_commits, self.new_store(), directory, self.commits, worker=worker)
                for worker in range(_THREADS)
            ]
        )
        self._check_dense(directory, versions)

    def test_commits_of_many_processes_are_dense_and_each_is_there_once(
        self, directory: str
    ) -> None:
        self._skip_unless_processes()
        versions = run_in_processes(
            type(self).store_factory,
            append_commits,
            [
                {"directory": directory, "count": self.commits, "worker": worker}
                for worker in range(_PROCESSES)
            ],
        )
        self._check_dense(directory, versions)

    # Forks

    def test_children_forked_at_any_moment_go_on_and_disturb_nobody(self, directory: str) -> None:
        if not self.survives_forks:
            pytest.skip("the store declares that it does not survive a fork")
        store = self.new_store()

        def put_and_look(name: str, number: int) -> None:
            path, payload = f"{directory}/{name}-{number}", payload_of(number % 50, number)
            assert put_settled(store, path, payload) is PutOutcome.CREATED
            assert put_settled(store, path, b"other") is PutOutcome.EXISTS
            assert store.read_bytes(path) == payload
            assert path in self.paths(store, path)

        put_and_look("first", 0)  # connections are there before the first fork
        rounds = run_in_forked_children(
            partial(put_and_look, "child"),
            meanwhile=partial(put_and_look, "parent"),
            children=_CHILDREN,
        )
        listed = self.paths(self.new_store(), f"{directory}/!")
        of_children = [path for path in listed if "/child-" in path]
        assert len(of_children) == _CHILDREN or not self.supports_processes
        assert len([path for path in listed if "/parent-" in path]) == rounds

    # Helpers

    def paths(self, store: LogStore, path: str) -> list[str]:
        """Return the paths of a listing."""
        return [status.path for status in store.list_from(path)]

    def sizes(self, store: LogStore, path: str) -> list[int]:
        """Return the sizes of a listing."""
        return [status.size_bytes for status in store.list_from(path)]

    def _skip_unless_whole(self) -> None:
        if not self.writes_appear_whole:
            pytest.skip("the store declares that its writes can be seen in part")

    def _skip_unless_processes(self) -> None:
        if not self.supports_processes:
            pytest.skip("the store declares that it serves one process only")

    def _write_watched(self, paths: list[str], write: Callable[[], object]) -> set[bytes]:
        """Write in one thread while another reads, and return everything that it read."""
        reader = self.new_store()
        done = threading.Event()
        seen: set[bytes] = set()

        def look() -> None:
            for path in paths:
                with contextlib.suppress(LogFileNotFoundError):
                    seen.add(reader.read_bytes(path))

        def look_until_done() -> None:
            while not done.is_set():
                look()
            look()

        def write_then_stop() -> None:
            try:
                write()
            finally:
                done.set()

        run_in_threads([look_until_done, write_then_stop])
        assert seen
        return seen

    def _check_one_winner_per_round(
        self, directory: str, outcomes: Sequence[Sequence[PutOutcome]], rounds: int
    ) -> None:
        for number in range(rounds):
            of_round = [each[number] for each in outcomes]
            assert of_round.count(PutOutcome.CREATED) == 1, f"round {number}: {of_round}"
            assert of_round.count(PutOutcome.EXISTS) == len(outcomes) - 1
            winner = of_round.index(PutOutcome.CREATED)
            assert self.peek(commit_path(directory, number)) == payload_of(winner, number)
        listed = self.paths(self.new_store(), f"{directory}/!")
        assert listed == [commit_path(directory, number) for number in range(rounds)]

    def _check_dense(self, directory: str, versions: Sequence[Sequence[int]]) -> None:
        total = sum(len(each) for each in versions)
        expected = [commit_path(directory, version) for version in range(total)]
        assert self.paths(self.new_store(), f"{directory}/!") == expected
        for worker, won in enumerate(versions):
            for number, version in enumerate(won):
                assert self.peek(commit_path(directory, version)) == payload_of(worker, number)
        assert sorted(version for won in versions for version in won) == list(range(total))
