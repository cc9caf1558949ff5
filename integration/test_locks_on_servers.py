"""Every arbiter and lease by the suites for everybody, on DynamoDB Local, Redis and PostgreSQL."""

from contextlib import closing
from functools import partial

import pytest
import redis
from sqlalchemy import create_engine, text

from hostile_entries import HostileEntriesSuite, InDynamoDB, InRedis
from optimist.core.errors import StorageError
from optimist.core.testing import ArbiterSuite, LeaseSuite, ManualClock
from optimist.core.testing.arbiter_suite import entry_of
from optimist.locks import (
    DynamoDBArbiter,
    DynamoDBLease,
    RedisArbiter,
    RedisLease,
    SQLArbiter,
)
from private_servers import postgresql_driver, private_postgresql, skip_or_fail

MUCH_LATER_S = 400.0


@pytest.fixture
def dynamodb_options(dynamodb_server, fresh_name):
    return {
        "io.delta.storage.S3DynamoDBLogStore.ddb.tableName": fresh_name,
        "io.delta.storage.S3DynamoDBLogStore.ddb.region": dynamodb_server.region,
        "optimist.store.dynamodb.endpoint": dynamodb_server.endpoint,
        "optimist.store.dynamodb.leaseTable": f"{fresh_name}-leases",
        "optimist.store.dynamodb.accessKeyId": dynamodb_server.access_key_id,
        "optimist.store.dynamodb.secretAccessKey": dynamodb_server.secret_access_key,
    }


@pytest.fixture
def redis_options(redis_server, fresh_name):
    return {
        "optimist.store.redis.url": redis_server.endpoint,
        "optimist.store.redis.prefix": fresh_name,
    }


@pytest.fixture
def postgresql_options(postgresql, fresh_name):
    # A table of its own per test: whoever comes first makes it, also of many processes.
    return {
        "optimist.store.sql.url": postgresql,
        "optimist.store.sql.table": fresh_name.replace("-", "_"),
    }


@pytest.fixture(scope="module")
def postgresql(tmp_path_factory):
    """The URL of an empty database, as SQLAlchemy takes it."""
    driver = postgresql_driver()
    if driver is None:
        skip_or_fail("no driver of PostgreSQL is installed (psycopg or pg8000)")
    # Not one of the emulators that `localstack/up.py` installs, so CI does without it as well.
    with private_postgresql(tmp_path_factory.mktemp("postgresql")) as address:
        if address is None:
            pytest.skip("there is no PostgreSQL server; Debian: apt-get install postgresql")
        yield f"postgresql+{driver}://{address}"


class TestDynamoDBArbiter(ArbiterSuite):
    @pytest.fixture(autouse=True)
    def at_server(self, dynamodb_options):
        type(self).arbiter_factory = partial(DynamoDBArbiter, dynamodb_options)


class TestRedisArbiter(ArbiterSuite):
    @pytest.fixture(autouse=True)
    def at_server(self, redis_options):
        type(self).arbiter_factory = partial(RedisArbiter, redis_options)


@pytest.mark.again
class TestSQLArbiterOnPostgreSQL(ArbiterSuite):
    @pytest.fixture(autouse=True)
    def at_server(self, postgresql_options):
        self.options = postgresql_options
        type(self).arbiter_factory = partial(SQLArbiter, postgresql_options)

    def test_wrong_database_is_told_without_the_password(self, table_path):
        address = self.options["optimist.store.sql.url"].replace("optimist@", "optimist:hunter2@")
        missing = address.replace("/postgres", "/nothing-here")
        arbiter = SQLArbiter({"optimist.store.sql.url": missing})
        with pytest.raises(StorageError) as caught:
            arbiter.create(entry_of(table_path, 0))
        assert "hunter2" not in str(caught.value) + str(dict(caught.value.fields))


class InPostgreSQL:
    """An SQL arbiter on PostgreSQL, and what others write past it."""

    keeper = "SQL"
    keeps_nul = False

    def __init__(self, options, engine):
        self.arbiter = SQLArbiter(options)
        self.arbiter.latest("makes the table")
        self.engine = engine
        self.table_name = options["optimist.store.sql.table"]

    def poke(self, table_path, file_name, temp_path):
        row = {"table": table_path, "file": file_name, "temp": temp_path}
        with self.engine.begin() as connection:
            connection.execute(
                text(
                    f"INSERT INTO {self.table_name} VALUES (:table, :file, :temp, false, NULL) "
                    "ON CONFLICT (table_path, file_name) DO UPDATE SET temp_path = :temp"
                ),
                row,
            )


class TestHostileEntriesInDynamoDB(HostileEntriesSuite):
    @pytest.fixture
    def database(self, dynamodb_server, dynamodb_options):
        with closing(dynamodb_server.client("dynamodb")) as client:
            name = dynamodb_options["io.delta.storage.S3DynamoDBLogStore.ddb.tableName"]
            yield InDynamoDB(DynamoDBArbiter(dynamodb_options), client, name)


class TestHostileEntriesInRedis(HostileEntriesSuite):
    @pytest.fixture
    def database(self, redis_options):
        url = redis_options["optimist.store.redis.url"]
        with closing(redis.Redis.from_url(url, decode_responses=True)) as client:
            prefix = redis_options["optimist.store.redis.prefix"]
            yield InRedis(RedisArbiter(redis_options), client, prefix)


@pytest.mark.again
class TestHostileEntriesInPostgreSQL(HostileEntriesSuite):
    @pytest.fixture
    def database(self, postgresql_options):
        engine = create_engine(postgresql_options["optimist.store.sql.url"])
        yield InPostgreSQL(postgresql_options, engine)
        engine.dispose()


@pytest.mark.again
class TestDynamoDBLease(LeaseSuite):
    @pytest.fixture(autouse=True)
    def at_server(self, dynamodb_options):
        self.clock = ManualClock()
        self.options = dynamodb_options
        type(self).lease_factory = partial(DynamoDBLease, dynamodb_options)

    def new_lease(self):
        return DynamoDBLease(self.options, clock=self.clock)

    def let_lapse(self, grant):
        self.clock.advance(MUCH_LATER_S)


@pytest.mark.again
class TestRedisLease(LeaseSuite):
    @pytest.fixture(autouse=True)
    def at_server(self, redis_options):
        self.options = redis_options
        type(self).lease_factory = partial(RedisLease, redis_options)

    def let_lapse(self, grant):
        prefix = self.options["optimist.store.redis.prefix"]
        url = self.options["optimist.store.redis.url"]
        with closing(redis.Redis.from_url(url, decode_responses=True)) as client:
            keys = [key for key in client.scan_iter(f"{prefix}:*") if not key.endswith(":number")]
            held = [key for key in keys if client.get(key) == grant.owner]
            assert len(held) == 1
            client.pexpire(held[0], 0)
