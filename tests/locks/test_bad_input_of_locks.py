"""What goes wrong with the servers of arbiters and leases: one clear error each, no secrets."""

import contextlib
import sqlite3
import sys
from contextlib import closing
from unittest import mock

import fakeredis
import pytest
from botocore.exceptions import ClientError
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlalchemy.exc import OperationalError

from optimist.core.errors import ConfigError, StorageError
from optimist.core.plugins.lock_registry import find_arbiter
from optimist.core.plugins.logstore import PutOutcome
from optimist.core.testing import ManualClock
from optimist.core.testing.arbiter_suite import entry_of
from optimist.locks import DynamoDBArbiter, DynamoDBLease, RedisArbiter, RedisLease, SQLArbiter

TABLE = "s3a://bucket/table"
NOBODY_LISTENS = "127.0.0.1:1"
DYNAMODB = {
    "optimist.store.dynamodb.endpoint": f"http://{NOBODY_LISTENS}",
    "optimist.store.dynamodb.accessKeyId": "AKIDHUNTER2",
    "optimist.store.dynamodb.secretAccessKey": "hunter2",
}


def keep_out(secret, error):
    shown = str(error) + repr(error) + str(dict(error.fields))
    assert secret not in shown.lower()


# DynamoDB


@pytest.mark.parametrize(
    "keys",
    [
        [("tablePath", "HASH", "S")],
        [("tablePath", "HASH", "S"), ("version", "RANGE", "N")],
        [("tablePath", "HASH", "S"), ("fileName", "RANGE", "B")],
    ],
)
def test_table_with_other_keys_is_refused_and_nothing_written(dynamodb, keys):
    dynamodb.create_table(
        TableName="delta_log",
        AttributeDefinitions=[{"AttributeName": n, "AttributeType": t} for n, _, t in keys],
        KeySchema=[{"AttributeName": n, "KeyType": role} for n, role, _ in keys],
        BillingMode="PAY_PER_REQUEST",
    )
    with pytest.raises(ConfigError) as caught:
        DynamoDBArbiter(client=dynamodb).create(entry_of(TABLE, 0))
    assert caught.value.kind == "OPTIMIST_LOCK_TABLE_SHAPE"
    assert "fileName RANGE S" in str(caught.value)
    assert dynamodb.scan(TableName="delta_log")["Count"] == 0


def test_table_of_leases_with_other_keys_is_refused(dynamodb):
    dynamodb.create_table(
        TableName="optimist_leases",
        AttributeDefinitions=[{"AttributeName": "id", "AttributeType": "S"}],
        KeySchema=[{"AttributeName": "id", "KeyType": "HASH"}],
        BillingMode="PAY_PER_REQUEST",
    )
    with pytest.raises(ConfigError) as caught:
        DynamoDBLease(client=dynamodb).try_acquire("t", ttl_s=30)
    assert caught.value.kind == "OPTIMIST_LOCK_TABLE_SHAPE"


def test_missing_table_is_told_where_none_may_be_made(dynamodb):
    arbiter = DynamoDBArbiter({"optimist.store.dynamodb.createTables": "false"}, client=dynamodb)
    with pytest.raises(ConfigError) as caught:
        arbiter.create(entry_of(TABLE, 0))
    assert caught.value.kind == "OPTIMIST_LOCK_TABLE_MISSING"


@pytest.mark.parametrize("make", [DynamoDBArbiter, DynamoDBLease])
def test_dynamodb_that_is_down_is_told_within_bounds(make):
    clock = ManualClock()
    began_s = clock.monotonic_s()
    lock = make(DYNAMODB, clock=clock)
    with pytest.raises(StorageError) as caught:
        if make is DynamoDBArbiter:
            lock.create(entry_of(TABLE, 0))
        else:
            lock.try_acquire("t", ttl_s=30)
    assert caught.value.kind == "OPTIMIST_STORE_UNREACHABLE"
    assert caught.value.retryable
    assert clock.monotonic_s() - began_s < 10
    keep_out("hunter2", caught.value)


class Refusing:
    """A client whose conditional put is refused with a code; the rest is the real one's."""

    def __init__(self, client, code):
        self.client, self.code = client, code

    def __getattr__(self, name):
        return getattr(self.client, name)

    def put_item(self, **_):
        answer = {"Error": {"Code": self.code}, "ResponseMetadata": {"HTTPStatusCode": 400}}
        raise ClientError(answer, "PutItem")


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        ("UnrecognizedClientException", "OPTIMIST_INVALID_CREDENTIALS"),
        ("InvalidSignatureException", "OPTIMIST_INVALID_CREDENTIALS"),
        ("ExpiredTokenException", "OPTIMIST_INVALID_CREDENTIALS"),
        ("AccessDeniedException", "OPTIMIST_PERMISSION_DENIED"),
        ("ResourceNotFoundException", "OPTIMIST_LOCK_TABLE_GONE"),
        ("ProvisionedThroughputExceededException", "OPTIMIST_STORE_BUSY"),
    ],
)
def test_refused_put_says_why_and_created_nothing(dynamodb, code, kind):
    arbiter = DynamoDBArbiter(client=Refusing(dynamodb, code))
    with pytest.raises(StorageError) as caught:
        arbiter.create(entry_of(TABLE, 0))
    assert caught.value.kind == kind
    assert arbiter.get(TABLE, entry_of(TABLE, 0).file_name) is None


# Redis


@pytest.mark.parametrize("make", [RedisArbiter, RedisLease])
def test_redis_that_is_down_is_told_within_bounds_and_without_the_password(make):
    clock = ManualClock()
    began_s = clock.monotonic_s()
    url = f"redis://user:hunter2@{NOBODY_LISTENS}/0"
    lock = make({"optimist.store.redis.url": url}, clock=clock)
    with pytest.raises(StorageError) as caught:
        if make is RedisArbiter:
            lock.get(TABLE, "x")
        else:
            lock.try_acquire("t", ttl_s=30)
    assert caught.value.kind == "OPTIMIST_STORE_NO_ANSWER"
    assert clock.monotonic_s() - began_s < 10
    keep_out("hunter2", caught.value)
    assert "hunter2" not in str(lock.describe())


def test_redis_that_was_emptied_between_two_entries_is_noticed():
    server = fakeredis.FakeServer()
    with (
        closing(fakeredis.FakeRedis(server=server, decode_responses=True)) as client,
        closing(fakeredis.FakeRedis(server=server, decode_responses=True)) as other,
    ):
        arbiter = RedisArbiter({"optimist.store.redis.url": "redis://unused"}, client=client)
        assert arbiter.create(entry_of(TABLE, 0)) is PutOutcome.CREATED
        other.flushdb()
        for call in (lambda: arbiter.create(entry_of(TABLE, 1)), lambda: arbiter.latest(TABLE)):
            with pytest.raises(StorageError) as caught:
                call()
            assert caught.value.kind == "OPTIMIST_ARBITER_LOST_DATA"
            assert not caught.value.retryable
        assert other.keys() == []


@pytest.mark.parametrize(
    ("make", "key", "value"),
    [
        (RedisArbiter, "redis.url", "http://user:hunter2@host"),
        (SQLArbiter, "sql.url", "oracle://user:hunter2@host/db"),
        (SQLArbiter, "sql.url", "nonsense hunter2"),
        (SQLArbiter, "sql.url", "postgresql+psycopg://user:hunter2@host:abc/db"),
        (SQLArbiter, "sql.url", "postgresql+psycopg://user:hunter2@host:/db"),
        (SQLArbiter, "sql.url", "postgresql+psycopg://user:hunter2@host:0/db"),
        (SQLArbiter, "sql.url", "postgresql+psycopg://user:hunter2@host:65536/db"),
        (SQLArbiter, "sql.url", f"postgresql+psycopg://user:hunter2@host:{'9' * 5_000}/db"),
        (SQLArbiter, "sql.url", "postgresql+psycopg://user:hunter2@[::1/db"),
        (SQLArbiter, "sql.url", "sqlite:///hunter2?timeout=abc"),
        (RedisArbiter, "redis.url", "redis://user:hunter2@host:abc/0"),
        (RedisArbiter, "redis.url", "redis://user:hunter2@host:65536/0"),
        (RedisArbiter, "redis.url", f"redis://user:hunter2@host:{'9' * 5_000}/0"),
        (RedisArbiter, "redis.url", "redis://user:hunter2@[::1/0"),
    ],
)
def test_url_that_is_none_is_refused_without_being_shown(make, key, value):
    with pytest.raises(ConfigError) as caught:
        make({f"optimist.store.{key}": value})
    assert caught.value.kind == "OPTIMIST_INVALID_OPTION"
    keep_out("hunter2", caught.value)


@pytest.mark.filterwarnings("ignore::sqlalchemy.exc.SAWarning")  # of settings that it ignores
@settings(max_examples=2 * settings.default.max_examples, deadline=None)
@given(
    st.text(max_size=40)
    | st.builds(
        "{}://{}:{}@{}:{}/{}?{}={}".format,
        st.sampled_from(["sqlite", "postgresql+psycopg", "redis"]),
        *([st.text("ab@:/?[]%0\x00", max_size=5)] * 3),
        st.text("0123456789-a", max_size=8),
        *([st.text(max_size=5)] * 3),
    )
)
def test_any_url_is_taken_or_refused_by_an_error_of_ours(url):
    for make, key in ((SQLArbiter, "sql.url"), (RedisArbiter, "redis.url")):
        with contextlib.suppress(ConfigError):
            make({f"optimist.store.{key}": url})


# A missing SDK


@pytest.mark.parametrize(
    ("name", "package", "needed"),
    [
        ("redis", "redis", "redis>=5"),
        ("dynamodb", "boto3", "boto3>=1.36"),
        ("sql", "sqlalchemy", "SQLAlchemy>=2"),
    ],
)
def test_missing_package_is_told_with_the_line_that_installs_it(monkeypatch, name, package, needed):
    for loaded in list(sys.modules):
        if loaded.startswith("optimist.locks."):
            monkeypatch.delitem(sys.modules, loaded)
    monkeypatch.setitem(sys.modules, package, None)
    options = {
        "spark.optimist.store.arbiter": name,
        "optimist.store.redis.url": "redis://nobody-has-this-one",
    }
    with pytest.raises(ConfigError) as caught:
        find_arbiter(options)
    assert caught.value.kind == "OPTIMIST_MISSING_PACKAGE"
    assert f"pip install '{needed}'" in str(caught.value)


def test_description_shows_no_credentials():
    assert "hunter2" not in str(DynamoDBArbiter(DYNAMODB).describe()).lower()


@pytest.mark.parametrize("state", ["40003", "08007", "57P01", "XX000"])
def test_a_statement_whose_completion_is_unknown_is_not_told_as_undone(tmp_path, state):
    arbiter = SQLArbiter({"optimist.store.sql.url": f"sqlite:///{tmp_path}/entries.db"})
    arbiter.latest("makes the table")
    answer = Exception()
    answer.sqlstate = state
    with mock.patch.object(
        SQLArbiter, "_insert", side_effect=OperationalError("INSERT", {}, answer)
    ):
        assert arbiter.create(entry_of("s3://b/t", 0)) is PutOutcome.UNKNOWN


def test_a_statement_that_was_undone_is_told_as_such(tmp_path):
    arbiter = SQLArbiter({"optimist.store.sql.url": f"sqlite:///{tmp_path}/entries.db"})
    answer = Exception()
    answer.sqlstate = "40001"
    with (
        mock.patch.object(SQLArbiter, "_insert", side_effect=OperationalError("I", {}, answer)),
        pytest.raises(StorageError) as caught,
    ):
        arbiter.create(entry_of("s3://b/t", 0))
    assert caught.value.kind == "OPTIMIST_STORE_BUSY"


def test_a_full_disk_is_told_as_such_and_not_as_an_open_outcome(tmp_path):
    arbiter = SQLArbiter({"optimist.store.sql.url": f"sqlite:///{tmp_path}/entries.db"})
    arbiter.latest("makes the table")
    full = sqlite3.OperationalError("database or disk is full")
    full.sqlite_errorcode = 13  # SQLITE_FULL
    with (
        mock.patch.object(SQLArbiter, "_insert", side_effect=OperationalError("I", {}, full)),
        pytest.raises(StorageError) as caught,
    ):
        arbiter.create(entry_of("s3://b/t", 0))
    assert caught.value.kind == "OPTIMIST_NO_SPACE"
