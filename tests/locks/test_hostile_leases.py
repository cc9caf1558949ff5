"""Records and files of leases that others put there: leases, or errors that say what is wrong."""

import errno
import fcntl
import json
import os
import stat
import subprocess
import sys

import fakeredis
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from optimist.core.errors import StorageError
from optimist.core.plugins.lease import LeaseGrant
from optimist.core.testing import ManualClock
from optimist.locks import DynamoDBLease, FileLease, RedisLease
from optimist.locks.lease_state import LARGEST_NUMBER, LeaseState, parse_lease
from optimist.locks.redis_server import key_of

DAMAGED, FOREIGN = "OPTIMIST_LEASE_DAMAGED", "OPTIMIST_LEASE_FILE_FOREIGN"
GENEROUS_S = 120
NAME = "/t/_delta_log"
NUMBERS = ["inf", "-inf", "nan", "-1", "1.5", "1e400", "9" * 400, "9" * 5_000, "0x10", "abc", ""]


@pytest.fixture
def clock():
    return ManualClock()


# Any values

fuzzed = settings(
    max_examples=2 * settings.default.max_examples,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
TEXTS = st.text(max_size=20) | st.sampled_from(NUMBERS)
SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-5, 1 << 70)
    | st.integers().map(lambda number: number * 10**400)
    | st.floats()
    | TEXTS
)
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3)
)
GOOD = {"owner": "somebody", "fencingNumber": 7, "deadlineMs": 1_700_000_000_000}
RECORDS = VALUES | st.fixed_dictionaries(
    {}, optional={name: st.just(value) | VALUES for name, value in GOOD.items()}
)


@fuzzed
@given(RECORDS)
def test_any_record_is_a_lease_or_a_reason(record):
    try:
        state = parse_lease(record)
    except ValueError as error:
        assert str(error).startswith("it")
        return
    assert 0 <= state.fencing_number <= LARGEST_NUMBER
    assert 0 <= state.deadline_ms <= LARGEST_NUMBER
    assert state.owner is None or isinstance(state.owner, str)


def test_numbers_may_be_spelled_as_text():
    record = {"owner": "a", "fencingNumber": "7", "deadlineMs": "12"}
    assert parse_lease(record) == LeaseState(7, "a", 12)


# Files


@pytest.fixture
def directory(tmp_path):
    return tmp_path / "leases"


@pytest.fixture
def lease(directory, clock):
    return FileLease({"optimist.store.file-lease.directory": str(directory)}, clock=clock)


@pytest.fixture
def files(lease, directory):
    """The lock file and the lease file of a lease that was taken and given back."""
    lease.release(lease.try_acquire(NAME, ttl_s=30))
    (lock,) = directory.glob("*.lock")
    return lock, lock.with_suffix(".lease")


def every_call(lease):
    grant = LeaseGrant(NAME, "owner", 1, 5)
    return (
        lambda: lease.try_acquire(NAME, ttl_s=30),
        lambda: lease.renew(grant, ttl_s=30),
        lambda: lease.release(grant),
        lambda: lease.ensure_held(grant),
    )


def ensure_refused(lease, kind, *words):
    for call in every_call(lease):
        with pytest.raises(StorageError) as caught:
            call()
        assert caught.value.kind == kind
        assert not caught.value.retryable
        assert all(word in str(caught.value) for word in words), str(caught.value)


def test_files_are_for_their_owner_alone_and_nothing_else_is_left(lease, directory, files):
    previous = os.umask(0)
    try:
        for file in files:
            file.unlink()
        assert lease.try_acquire(NAME, ttl_s=30) is not None
    finally:
        os.umask(previous)
    assert sorted(directory.iterdir()) == sorted(files)
    assert {stat.S_IMODE(file.stat().st_mode) for file in files} == {0o600}
    assert stat.S_IMODE(directory.stat().st_mode) == 0o700


def test_files_of_an_older_version_are_taken_over_and_closed_to_others(lease, files):
    for file in files:
        file.chmod(0o666)
    lease.ensure_held(lease.try_acquire(NAME, ttl_s=30))
    assert {stat.S_IMODE(file.stat().st_mode) for file in files} == {0o600}


@pytest.mark.parametrize("which", [0, 1], ids=["lock", "lease"])
@pytest.mark.parametrize("target_exists", [False, True])
def test_no_link_is_followed(lease, files, tmp_path, which, target_exists):
    target = tmp_path / "precious"
    if target_exists:
        target.write_text("precious")
    files[which].unlink()
    files[which].symlink_to(target)
    ensure_refused(lease, FOREIGN, files[which].name, "link")
    assert target.exists() == target_exists
    if target_exists:
        assert target.read_text() == "precious"


def test_a_link_at_the_old_temporary_name_is_not_written_through(lease, files, tmp_path):
    target = tmp_path / "precious"
    files[1].with_suffix(".lease.tmp").symlink_to(target)
    assert lease.try_acquire(NAME, ttl_s=30) is not None
    assert not target.exists()


@pytest.mark.parametrize("which", [0, 1], ids=["lock", "lease"])
@pytest.mark.parametrize("make", [os.mkdir, os.mkfifo, lambda path: os.mknod(path, stat.S_IFSOCK)])
def test_what_is_no_file_is_refused_without_waiting(directory, files, which, make):
    files[which].unlink()
    make(files[which])
    script = (
        "import sys\n"
        "from optimist.core.errors import StorageError\n"
        "from optimist.locks import FileLease\n"
        "lease = FileLease({'optimist.store.file-lease.directory': sys.argv[1]})\n"
        "try:\n"
        f"    lease.try_acquire({NAME!r}, ttl_s=30)\n"
        "except StorageError as error:\n"
        "    print(error.kind)\n"
    )
    finished = subprocess.run(
        [sys.executable, "-c", script, str(directory)],
        capture_output=True,
        text=True,
        timeout=GENEROUS_S,
        check=True,
    )
    assert finished.stdout == f"{FOREIGN}\n"


@pytest.mark.parametrize("which", [0, 1], ids=["lock", "lease"])
def test_a_file_of_another_user_is_refused(lease, files, which, monkeypatch):
    ours = os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: ours + 1)
    ensure_refused(lease, FOREIGN, "another", str(ours))


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"nonsense",
        b"\xff\xfe",
        b"[" * 60_000,
        b" " * 70_000,
        b'{"fencingNumber":' + b"9" * 5_000 + b"}",
        b'{"owner":5,"fencingNumber":1,"deadlineMs":5}',
        b'{"owner":"","fencingNumber":1,"deadlineMs":5}',
        *(
            json.dumps({**GOOD, field: value}).encode()
            for field in ("fencingNumber", "deadlineMs")
            for value in (None, True, "x", 1.5, float("inf"), float("nan"), -1, 10**400, [1], {})
        ),
    ],
)
def test_a_file_that_holds_no_lease_is_told(lease, files, data):
    files[1].write_bytes(data)
    ensure_refused(lease, DAMAGED, files[1].name)
    assert files[1].read_bytes() == data


def test_any_file_is_a_lease_or_a_clear_error(lease, files):
    @fuzzed
    @given(st.binary(max_size=60) | RECORDS.map(lambda record: json.dumps(record).encode()))
    def check(data):
        files[1].write_bytes(data)
        for call in every_call(lease):
            try:
                call()
            except StorageError as error:
                assert error.kind in (DAMAGED, "OPTIMIST_LEASE_LAPSED")

    check()


def test_nothing_is_left_where_the_disk_is_full(lease, directory, files, monkeypatch):
    def full(*_):
        raise OSError(errno.ENOSPC, "full")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(StorageError) as caught:
        lease.try_acquire(NAME, ttl_s=30)
    assert caught.value.kind == "OPTIMIST_NO_SPACE"
    assert sorted(directory.iterdir()) == sorted(files)


def test_a_holder_of_the_lock_file_that_is_stopped_is_not_waited_for_for_ever(
    lease, directory, monkeypatch
):
    monkeypatch.setattr("optimist.locks.file_lease._LOCK_WAIT_S", 0.05)
    grant = lease.try_acquire(NAME, ttl_s=30)
    (locked,) = directory.glob("*.lock")
    calls = (
        lambda: lease.try_acquire(NAME, ttl_s=30),
        lambda: lease.renew(grant, ttl_s=30),
        lambda: lease.ensure_held(grant),
        lambda: lease.release(grant),
    )
    with locked.open("rb") as stopped:
        fcntl.flock(stopped, fcntl.LOCK_EX)
        for call in calls:
            with pytest.raises(StorageError) as caught:
                call()
            assert caught.value.kind == "OPTIMIST_STORE_BUSY"
            assert caught.value.retryable
            assert caught.value.fields["path"] == str(locked)
    lease.release(grant)
    assert lease.try_acquire(NAME, ttl_s=30) is not None


# Redis


@pytest.mark.parametrize("number", [*NUMBERS[:-1], "9007199254740992", "1e300", "-inf"])
def test_a_number_in_redis_that_is_none_is_told_and_nothing_is_taken(number):
    client = fakeredis.FakeRedis(server=fakeredis.FakeServer(), decode_responses=True)
    lease = RedisLease({"optimist.store.redis.url": "redis://unused"}, client=client)
    key = key_of("optimist", "lease", NAME)
    client.set(f"{key}:number", number)
    if number == "0x10":  # Lua takes that for a number, and so may we
        assert lease.try_acquire(NAME, ttl_s=30) is not None
        return
    with pytest.raises(StorageError) as caught:
        lease.try_acquire(NAME, ttl_s=30)
    assert caught.value.kind == DAMAGED
    assert f"{key}:number" in str(caught.value)
    assert client.get(f"{key}:number") == number
    assert not client.exists(key)


# DynamoDB


@pytest.mark.parametrize(
    "fields",
    [
        {"fencingNumber": {"N": "9" * 38}},
        {"fencingNumber": {"N": "1.5"}},
        {"fencingNumber": {"N": "-7"}},
        {"owner": {"S": "x"}},
        {"owner": {"S": "x"}, "fencingNumber": {"S": "inf"}, "deadlineMs": {"N": "1" + "0" * 30}},
        {"owner": {"S": "x"}, "fencingNumber": {"N": "1"}, "deadlineMs": {"S": "nan"}},
        {"owner": {"L": []}, "fencingNumber": {"N": "1"}, "deadlineMs": {"N": "9" * 30}},
        {"owner": {"S": "owner"}, "fencingNumber": {"N": "1"}},
    ],
)
def test_an_item_that_is_no_lease_is_told(dynamodb, clock, fields):
    lease = DynamoDBLease(client=dynamodb, clock=clock)
    assert lease.try_acquire("makes the table", ttl_s=30) is not None
    item = {"leaseName": {"S": NAME}, **fields}
    for call in (
        lambda: lease.try_acquire(NAME, ttl_s=30),
        lambda: lease.ensure_held(LeaseGrant(NAME, "owner", 1, clock.now_ms() + 5)),
    ):
        dynamodb.put_item(TableName="optimist_leases", Item=item)
        with pytest.raises(StorageError) as caught:
            call()
        assert caught.value.kind == DAMAGED
        assert "optimist_leases" in str(caught.value)
