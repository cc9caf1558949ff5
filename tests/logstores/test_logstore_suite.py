"""The suite finds the faults that it is there to find: each store here has one."""

import threading
import uuid
from pathlib import Path

import pytest

from optimist.core.plugins.logstore import FileStatus, PutOutcome
from optimist.core.runtime.clock import SystemClock
from optimist.core.testing import Fault, FaultyLogStore, LogStoreSuite, When
from optimist.core.testing.logstore_races import append_commits, commit_path, payload_of
from optimist.logstores import LocalLogStore, MemoryLogStore

LONG_ENOUGH_TO_LOOK = 0.02


class ExistsThenPut(LocalLogStore):
    """Looks, then writes; here all sixteen look before any writes."""

    meeting = threading.Barrier(16)

    def put_if_absent(self, path, data):
        exists = Path(path).exists()
        self.meeting.wait(30)
        if exists:
            return PutOutcome.EXISTS
        self.put_overwrite(path, data)
        return PutOutcome.CREATED


class Overwriting(LocalLogStore):
    def put_if_absent(self, path, data):
        outcome = super().put_if_absent(path, data)
        self.put_overwrite(path, data)
        return outcome


class WritingInPlace(LocalLogStore):
    def put_if_absent(self, path, data):
        with Path(path).open("xb", buffering=0) as file:
            file.write(data[: len(data) // 2])
            SystemClock().sleep(LONG_ENOUGH_TO_LOOK)
            file.write(data[len(data) // 2 :])
        return PutOutcome.CREATED

    def put_overwrite(self, path, data):
        Path(path).write_bytes(data[: len(data) // 2])
        SystemClock().sleep(LONG_ENOUGH_TO_LOOK)
        Path(path).write_bytes(data)


class Unsorted(LocalLogStore):
    def list_from(self, path):
        return iter(list(super().list_from(path))[::-1])


class Forgetful(LocalLogStore):
    def list_from(self, path):
        return iter(list(super().list_from(path))[:-1])


class ListingAll(LocalLogStore):
    def list_from(self, path):
        return super().list_from(path.rpartition("/")[0] + "/")


class MissingIsEmpty(LocalLogStore):
    def list_from(self, path):
        return super().list_from(path) if Path(path).parent.is_dir() else iter(())


class Seconds(LocalLogStore):
    def list_from(self, path):
        for each in super().list_from(path):
            yield FileStatus(each.path, each.size_bytes, each.modified_ms // 1000)


class Decoding(LocalLogStore):
    def put_if_absent(self, path, data):
        return super().put_if_absent(path.replace("%20", " "), data)


class Littering(LocalLogStore):
    def put_if_absent(self, path, data):
        Path(f"{path}.tmp").write_bytes(data)
        return super().put_if_absent(path, data)


class DeletingOnce(LocalLogStore):
    def delete(self, path):
        Path(path).unlink()


def suite_of(store):
    class Suite(LogStoreSuite):
        store_factory = store

        def peek(self, path):
            return Path(path).read_bytes() if Path(path).exists() else None

        def poke(self, path, data):
            Path(path).write_bytes(data)

    return Suite()


@pytest.mark.parametrize(
    ("store", "test"),
    [
        (Overwriting, "test_existing_file_is_left_alone"),
        (Overwriting, "test_file_of_another_engine_is_left_alone"),
        (WritingInPlace, "test_reader_sees_a_new_file_whole_or_not_at_all"),
        (WritingInPlace, "test_reader_sees_the_old_file_or_the_new_one"),
        (Unsorted, "test_listing_is_sorted_and_starts_at_the_name"),
        (Forgetful, "test_listing_shows_a_file_as_soon_as_it_was_written"),
        (ListingAll, "test_listing_is_sorted_and_starts_at_the_name"),
        (ListingAll, "test_listing_may_start_at_a_name_that_does_not_exist"),
        (Seconds, "test_listing_shows_sizes_and_times"),
        (Decoding, "test_odd_directory_is_taken_as_it_is"),
        (Littering, "test_nothing_but_the_files_is_left_behind"),
    ],
)
def test_broken_store_is_found(store, test, tmp_path):
    with pytest.raises((AssertionError, FileNotFoundError)):
        getattr(suite_of(store), test)(store=store(), directory=str(tmp_path))


def test_listing_that_hides_a_missing_directory_is_found(tmp_path):
    with pytest.raises(pytest.fail.Exception):
        suite_of(MissingIsEmpty).test_listing_of_a_missing_directory_is_not_found(
            store=MissingIsEmpty(), directory=str(tmp_path)
        )


def test_delete_that_minds_a_missing_file_is_found(tmp_path):
    with pytest.raises(FileNotFoundError):
        suite_of(DeletingOnce).test_deleted_file_is_gone_and_its_name_is_free(
            store=DeletingOnce(), directory=str(tmp_path)
        )


def test_look_then_write_is_found_by_the_race(tmp_path):
    with pytest.raises(AssertionError, match="round 0"):
        suite_of(ExistsThenPut).test_of_many_threads_exactly_one_creates(directory=str(tmp_path))


def test_store_for_one_process_is_found_by_the_race_of_processes():
    class Suite(LogStoreSuite):
        store_factory = MemoryLogStore

    with pytest.raises(AssertionError):
        Suite().test_of_many_processes_exactly_one_creates(directory="memory://t")


def test_worker_that_fails_ends_the_race_with_its_error(tmp_path):
    class Failing(LocalLogStore):
        def put_if_absent(self, path, data):
            raise RuntimeError("the disk is gone")

    with pytest.raises((RuntimeError, threading.BrokenBarrierError)):
        suite_of(Failing).test_of_many_threads_exactly_one_creates(directory=str(tmp_path))


def test_store_that_hides_its_partial_writes_is_found(tmp_path):
    class Suite(LogStoreSuite):
        store_factory = MemoryLogStore
        writes_appear_whole = False

    with pytest.raises(AssertionError):
        Suite().test_partial_writes_are_admitted(store=MemoryLogStore(), directory="memory://t")


def test_test_of_the_suite_cannot_be_overridden():
    with pytest.raises(TypeError, match="test_missing_file_is_not_found"):

        class Overriding(LogStoreSuite):
            def test_missing_file_is_not_found(self):
                pass


def test_test_of_the_suite_cannot_be_overridden_by_another_parent():
    class Parent:
        test_missing_file_is_not_found = None

    with pytest.raises(TypeError, match="test_missing_file_is_not_found"):

        class Overriding(Parent, LogStoreSuite):
            pass


def test_tests_may_be_added():
    class Adding(LogStoreSuite):
        def test_of_its_own(self):
            pass

    assert issubclass(Adding, LogStoreSuite)


@pytest.mark.parametrize("when", [When.BEFORE, When.AFTER])
def test_races_settle_answers_that_a_busy_server_did_not_give(when):
    store = FaultyLogStore(MemoryLogStore(), Fault("put_if_absent", when, on_call=2, times=2))
    directory = f"memory://{uuid.uuid4()}/_delta_log"
    store.inner.put_if_absent(commit_path(directory, 1), b"another's")
    assert append_commits(store, directory, 3, worker=0) == [0, 2, 3]
    assert [store.read_bytes(commit_path(directory, version)) for version in (0, 1, 2, 3)] == [
        payload_of(0, 0),
        b"another's",
        payload_of(0, 1),
        payload_of(0, 2),
    ]
