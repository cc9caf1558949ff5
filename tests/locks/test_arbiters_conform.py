"""Every arbiter, by the suite that is for everybody; with servers that live in this process."""

import os

import fakeredis
import pytest

from optimist.core.arbiter import CommitEntry
from optimist.core.testing import ArbiterSuite
from optimist.locks import DynamoDBArbiter, RedisArbiter, SQLArbiter

SQLITE_PATH = "OPTIMIST_TEST_SQLITE_PATH"


def sqlite_arbiter():
    return SQLArbiter({"optimist.store.sql.url": f"sqlite:///{os.environ[SQLITE_PATH]}"})


@pytest.mark.again  # on a server instead of the stand-in: integration/test_locks_on_servers.py
class TestDynamoDBArbiter(ArbiterSuite):
    supports_processes = False  # moto's server is this process

    @pytest.fixture(autouse=True)
    def server(self, dynamodb):
        self.client = dynamodb

    def new_arbiter(self):
        return DynamoDBArbiter(client=self.client)


class TestRedisArbiter(ArbiterSuite):
    supports_processes = False

    @pytest.fixture(autouse=True)
    def server(self):
        self.server = fakeredis.FakeServer()

    def new_arbiter(self):
        client = fakeredis.FakeRedis(server=self.server, decode_responses=True)
        return RedisArbiter({"optimist.store.redis.url": "redis://unused"}, client=client)


class TestSQLArbiterOnSQLite(ArbiterSuite):
    arbiter_factory = sqlite_arbiter

    @pytest.fixture(autouse=True)
    def database(self, tmp_path, monkeypatch):
        monkeypatch.setenv(SQLITE_PATH, str(tmp_path / "log.db"))


def test_items_have_the_names_and_the_types_of_deltas(dynamodb):
    table_path = "s3a://bucket/t"
    arbiter = DynamoDBArbiter(client=dynamodb)
    name = f"{3:020d}.json"
    entry = CommitEntry(table_path, name, f".tmp/{name}.x", complete=False)
    key = {"tablePath": {"S": table_path}, "fileName": {"S": name}}
    claimed = {**key, "tempPath": {"S": f".tmp/{name}.x"}, "complete": {"S": "false"}}
    arbiter.create(entry)
    assert dynamodb.get_item(TableName="delta_log", Key=key)["Item"] == claimed
    arbiter.complete(entry.completed(1_900_000_000))
    done = dynamodb.get_item(TableName="delta_log", Key=key)["Item"]
    assert done == {**claimed, "complete": {"S": "true"}, "expireTime": {"N": "1900000000"}}
