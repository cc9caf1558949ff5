"""Entries that others put into an arbiter's database: finished as Delta's are, or refused by name.

Whoever can write there must gain nothing beyond the log: no file read, made or deleted elsewhere.
"""

import json
import posixpath
import sqlite3
from contextlib import closing
from types import SimpleNamespace

import fakeredis
import fsspec
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from hostile_entries import (
    DAMAGED,
    HOSTILE,
    NAME,
    SECRET,
    HostileEntriesSuite,
    InDynamoDB,
    InRedis,
    staged_path,
)
from optimist.core.errors import StorageError
from optimist.core.log.names import commit_name
from optimist.core.plugins.arbiter import CommitEntry, parse_commit_entry
from optimist.core.plugins.logstore import PutOutcome
from optimist.core.testing.arbiter_suite import entry_of
from optimist.locks import DynamoDBArbiter, RedisArbiter, SQLArbiter
from optimist.locks.redis_server import key_of
from optimist.logstores.fsspec.arbiter import FsspecArbiterLogStore


class InSQLite:
    """An SQL arbiter on SQLite, and what others write past it."""

    keeper = "SQL"
    keeps_nul = True

    def __init__(self, path):
        self.path = path
        self.arbiter = SQLArbiter({"optimist.store.sql.url": f"sqlite:///{path}"})
        self.arbiter.latest("makes the table")

    def poke(self, table_path, file_name, temp_path):
        self.poke_row(table_path, file_name, temp_path, 0, None)

    def poke_row(self, *row):
        with closing(sqlite3.connect(self.path)) as connection, connection:
            connection.execute("INSERT OR REPLACE INTO delta_log VALUES (?, ?, ?, ?, ?)", row)


def in_fake_redis():
    client = fakeredis.FakeRedis(server=fakeredis.FakeServer(), decode_responses=True)
    arbiter = RedisArbiter({"optimist.store.redis.url": "redis://unused"}, client=client)
    return InRedis(arbiter, client, "optimist")


class TestHostileEntries(HostileEntriesSuite):
    @pytest.fixture(params=["redis", "sql", "dynamodb"])
    def database(self, request, tmp_path):
        if request.param == "redis":
            return in_fake_redis()
        if request.param == "sql":
            return InSQLite(tmp_path / "entries.db")
        client = request.getfixturevalue("dynamodb")
        return InDynamoDB(DynamoDBArbiter(client=client), client, "delta_log")


@pytest.fixture
def bucket():
    driver = fsspec.filesystem("memory")
    driver.store.clear()
    for path in ("/secret", "/box/secret", "/box/t/secret", "/box/t/_delta_log/.tmp/secret"):
        driver.pipe_file(path, SECRET)
    driver.pipe_file(f"/box/t/_delta_log/{commit_name(0)}", b"{}\n")
    yield driver
    driver.store.clear()


def test_a_bucket_is_left_alone_too(bucket, tmp_path):
    database = InSQLite(tmp_path / "entries.db")
    store = FsspecArbiterLogStore(arbiter=database.arbiter)
    log = "memory:///box/t/_delta_log"
    before = {path: file.getvalue() for path, file in bucket.store.items()}
    for temp_path in HOSTILE:
        database.poke("memory:///box/t", NAME, temp_path)
        for road in (
            lambda: list(store.list_from(f"{log}/{commit_name(0)}")),
            lambda: store.read_bytes(f"{log}/{NAME}"),
            lambda: store.put_if_absent(f"{log}/{commit_name(2)}", b"{}\n"),
        ):
            with pytest.raises(StorageError) as caught:
                road()
            assert caught.value.kind == DAMAGED, temp_path
        assert {path: file.getvalue() for path, file in bucket.store.items()} == before, temp_path


def test_no_entry_can_be_built_that_leads_out_of_the_log():
    for temp_path in HOSTILE:
        with pytest.raises(StorageError) as caught:
            CommitEntry("s3a://b/t", NAME, temp_path, complete=False)
        assert caught.value.kind == DAMAGED
    for fields in ({"complete": 1}, {"expire_time_s": -1}, {"expire_time_s": 1 << 63}):
        values = {"complete": False, **fields}
        with pytest.raises(StorageError):
            CommitEntry("s3a://b/t", NAME, staged_path(NAME), **values)


# Nonsense of any kind

NUMBERS = ["inf", "nan", "-1", "1e400", "9" * 400, "9" * 5000, "1E+125", "0x1", "", " 1", "\uff11"]
TEXTS = st.text(max_size=30) | st.sampled_from([*HOSTILE, *NUMBERS, "true", "FALSE"])
SCALARS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.integers().map(lambda n: n * 10**400)
    | st.floats()
    | st.binary(max_size=9)
    | TEXTS
)
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3)
)
GOOD = {"tempPath": staged_path(NAME), "complete": "false", "expireTime": "1700000000"}
FIELDS = st.fixed_dictionaries(
    {}, optional={name: st.just(value) | VALUES for name, value in GOOD.items()}
)
fuzzed = settings(
    max_examples=2 * settings.default.max_examples,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


def check_answer(ask):
    """A value whose staged file is where it must be, or an error of ours that says why."""
    try:
        entry = ask()
    except StorageError as error:
        assert error.kind == DAMAGED, error
        assert len(str(error)) < 2_000
        return
    assert entry.file_name == NAME
    whole = posixpath.normpath(f"/t/_delta_log/{entry.temp_path}")
    assert whole == f"/t/_delta_log/{entry.temp_path}"
    assert isinstance(entry.complete, bool)


@fuzzed
@given(FIELDS)
def test_any_fields_are_an_entry_or_a_clear_error(fields):
    check_answer(
        lambda: parse_commit_entry(fields, table_path="t", file_name=NAME, keeper="the test")
    )


@fuzzed
@given(st.text(max_size=60) | FIELDS.map(lambda fields: json.dumps(fields, default=repr)))
def test_any_text_in_redis_is_an_entry_or_a_clear_error(text):
    database = IN_REDIS
    try:
        database.poke_text("s3a://b/t", NAME, text)
    except UnicodeEncodeError:
        assume(False)
    check_answer(lambda: database.arbiter.get("s3a://b/t", NAME))
    check_answer(lambda: database.arbiter.latest("s3a://b/t"))
    ours = entry_of("s3a://b/t", 1)
    assert database.arbiter.create(ours) is PutOutcome.EXISTS
    database.arbiter.complete(ours.completed(4_000_000_000))  # another's is left alone


IN_REDIS = in_fake_redis()


@pytest.mark.parametrize(
    "text", ["[" * 100_000, '{"tempPath":' * 50_000, "null", "5", '"x"', "NaN"]
)
def test_odd_json_in_redis_is_a_clear_error(text):
    IN_REDIS.poke_text("t", NAME, text)
    for ask in (lambda: IN_REDIS.arbiter.get("t", NAME), lambda: IN_REDIS.arbiter.latest("t")):
        with pytest.raises(StorageError) as caught:
            ask()
        assert caught.value.kind == DAMAGED
    assert IN_REDIS.arbiter.create(entry_of("t", 1)) is PutOutcome.EXISTS


def test_any_row_in_sqlite_is_an_entry_or_a_clear_error(tmp_path):
    database = InSQLite(tmp_path / "entries.db")
    stored = (
        st.integers(-(2**63), 2**63 - 1)
        | st.floats(allow_nan=False)
        | st.binary(max_size=9)
        | TEXTS
    )

    @fuzzed
    @given(stored, stored | st.sampled_from([0, 1]), st.none() | stored)
    def check(temp_path, complete, expire):
        try:
            database.poke_row("t", NAME, temp_path, complete, expire)
        except (UnicodeEncodeError, sqlite3.IntegrityError):
            assume(False)
        check_answer(lambda: database.arbiter.get("t", NAME))
        check_answer(lambda: database.arbiter.latest("t"))

    check()
    database.poke_row("t", NAME, GOOD["tempPath"], "false", None)
    assert not database.arbiter.get("t", NAME).complete


def test_bytes_that_are_no_text_are_told(tmp_path):
    database = InSQLite(tmp_path / "entries.db")
    with closing(sqlite3.connect(database.path)) as connection, connection:
        connection.execute(
            "INSERT INTO delta_log VALUES ('t', ?, CAST(x'ff' AS TEXT), 0, NULL)", (NAME,)
        )
    server = fakeredis.FakeServer()
    client = fakeredis.FakeRedis(server=server, decode_responses=True)
    fakeredis.FakeRedis(server=server).set(
        key_of("optimist", "arbiter", "t", "entry", NAME), b"\xff"
    )
    in_redis = RedisArbiter({"optimist.store.redis.url": "redis://unused"}, client=client)
    for arbiter, kind in ((database.arbiter, DAMAGED), (in_redis, "OPTIMIST_STORAGE_FAILED")):
        with pytest.raises(StorageError) as caught:
            arbiter.get("t", NAME)
        assert caught.value.kind == kind
        assert not caught.value.retryable


ATTRIBUTES = (
    TEXTS.map(lambda text: {"S": text})
    | st.sampled_from(["1", "1E+125", "-1", "1.5", "17E8", "9" * 38]).map(lambda n: {"N": n})
    | st.booleans().map(lambda flag: {"BOOL": flag})
    | st.just({"NULL": True})
    | st.lists(TEXTS.map(lambda text: {"S": text}), max_size=2).map(lambda items: {"L": items})
    | st.binary(min_size=1, max_size=5).map(lambda data: {"B": data})
)


class Answering:
    """A client of DynamoDB that answers with one item, whatever a server would let in."""

    item: dict
    meta = SimpleNamespace(events=SimpleNamespace(register=lambda *_, **__: None))

    def describe_table(self, **_):
        keys = {"tablePath": "HASH", "fileName": "RANGE"}
        return {
            "Table": {
                "TableStatus": "ACTIVE",
                "AttributeDefinitions": [
                    {"AttributeName": name, "AttributeType": "S"} for name in keys
                ],
                "KeySchema": [
                    {"AttributeName": name, "KeyType": role} for name, role in keys.items()
                ],
            }
        }

    def get_item(self, **_):
        return {"Item": self.item}

    def query(self, **_):
        return {"Items": [self.item]}


@fuzzed
@given(
    st.fixed_dictionaries(
        {"tablePath": st.just({"S": "t"}), "fileName": st.just({"S": NAME})},
        optional={
            "tempPath": st.just({"S": GOOD["tempPath"]}) | ATTRIBUTES,
            "complete": st.just({"S": "true"}) | ATTRIBUTES,
            "expireTime": st.just({"N": "1700000000"}) | ATTRIBUTES,
            "more": ATTRIBUTES,
        },
    )
)
def test_any_item_of_dynamodb_is_an_entry_or_a_clear_error(item):
    client = Answering()
    client.item = item
    arbiter = DynamoDBArbiter(client=client)
    check_answer(lambda: arbiter.get("t", NAME))
    check_answer(lambda: arbiter.latest("t"))


@pytest.mark.parametrize(("text", "seconds"), [("1.7E9", 1_700_000_000), ("17E8", 1_700_000_000)])
def test_a_time_may_have_any_spelling_of_a_whole_number(text, seconds):
    fields = {**GOOD, "expireTime": text}
    entry = parse_commit_entry(fields, table_path="t", file_name=NAME, keeper="the test")
    assert entry.expire_time_s == seconds
