"""Every lease, by the suite that is for everybody; with servers that live in this process."""

import os

import fakeredis
import pytest

from optimist.core.testing import LeaseSuite, ManualClock
from optimist.locks import DynamoDBLease, FileLease, InProcessLease, RedisLease

DIRECTORY = "OPTIMIST_TEST_LEASE_DIRECTORY"
MUCH_LATER_S = 400.0


def file_lease(clock=None):
    directory = {"optimist.store.file-lease.directory": os.environ[DIRECTORY]}
    return FileLease(directory, clock=clock)


class ByManualClock(LeaseSuite):
    """For keepers that go by the clock they are given; tokens come from it, so it is shared."""

    @pytest.fixture(autouse=True)
    def clock(self):
        self.clock = ManualClock()

    def let_lapse(self, grant):
        self.clock.advance(MUCH_LATER_S)

    def test_renewed_lease_outlives_its_first_deadline(self, lease, name):
        grant = lease.try_acquire(name, ttl_s=30.0)
        self.clock.advance(29.0)
        renewed = lease.renew(grant, ttl_s=30.0)
        assert renewed.deadline_ms == grant.deadline_ms + 29_000
        self.clock.advance(29.0)
        lease.ensure_held(renewed)
        assert self.new_lease().try_acquire(name, ttl_s=30.0) is None


class TestInProcessLease(ByManualClock):
    supports_processes = False

    def new_lease(self):
        return InProcessLease(clock=self.clock)


class TestFileLease(ByManualClock):
    lease_factory = file_lease

    @pytest.fixture(autouse=True)
    def directory(self, tmp_path, monkeypatch):
        monkeypatch.setenv(DIRECTORY, str(tmp_path / "leases"))

    def new_lease(self):
        return file_lease(self.clock)


class TestDynamoDBLease(ByManualClock):
    supports_processes = False  # moto's server is this process

    @pytest.fixture(autouse=True)
    def server(self, dynamodb):
        self.client = dynamodb

    def new_lease(self):
        return DynamoDBLease(client=self.client, clock=self.clock)


def expire(client, grant):
    """What the server does by itself once the time is up."""
    keys = [key for key in client.scan_iter("optimist:lease:*") if not key.endswith(":number")]
    held = [key for key in keys if client.get(key) == grant.owner]
    assert len(held) == 1
    client.pexpire(held[0], 0)


class TestRedisLease(LeaseSuite):
    supports_processes = False

    @pytest.fixture(autouse=True)
    def server(self):
        self.server = fakeredis.FakeServer()

    def new_lease(self):
        return RedisLease({"optimist.store.redis.url": "redis://unused"}, client=self.client())

    def client(self):
        return fakeredis.FakeRedis(server=self.server, decode_responses=True)

    def let_lapse(self, grant):
        expire(self.client(), grant)
