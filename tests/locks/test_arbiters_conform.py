"""Every arbiter, by the suite that is for everybody."""

import os

import fakeredis
import pytest

from optimist.core.testing import ArbiterSuite
from optimist.locks import DynamoDBArbiter, RedisArbiter, SQLArbiter

REDIS_URL = "OPTIMIST_TEST_REDIS_URL"
SQLITE_PATH = "OPTIMIST_TEST_SQLITE_PATH"


def redis_arbiter():
    return RedisArbiter({"optimist.store.redis.url": os.environ[REDIS_URL]})


def sqlite_arbiter():
    return SQLArbiter({"optimist.store.sql.url": f"sqlite:///{os.environ[SQLITE_PATH]}"})


class TestDynamoDBArbiter(ArbiterSuite):
    supports_processes = False  # moto's server is this process

    @pytest.fixture(autouse=True)
    def server(self, dynamodb):
        self.client = dynamodb

    def new_arbiter(self):
        return DynamoDBArbiter(client=self.client)


class TestRedisArbiterInThisProcess(ArbiterSuite):
    supports_processes = False

    @pytest.fixture(autouse=True)
    def server(self):
        self.server = fakeredis.FakeServer()

    def new_arbiter(self):
        client = fakeredis.FakeRedis(server=self.server, decode_responses=True)
        return RedisArbiter({"optimist.store.redis.url": "redis://unused"}, client=client)


class TestRedisArbiter(ArbiterSuite):
    arbiter_factory = redis_arbiter

    @pytest.fixture(autouse=True)
    def server(self, redis_url, monkeypatch):
        monkeypatch.setenv(REDIS_URL, redis_url)


class TestSQLArbiterOnSQLite(ArbiterSuite):
    arbiter_factory = sqlite_arbiter

    @pytest.fixture(autouse=True)
    def database(self, tmp_path, monkeypatch):
        monkeypatch.setenv(SQLITE_PATH, str(tmp_path / "log.db"))
