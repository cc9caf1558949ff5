"""The stores of S3 on LocalStack, with DynamoDB Local, Redis and SQLite as arbiters."""

from functools import partial

import pytest
from botocore.exceptions import ClientError

from fleet import race_of_processes
from optimist.core.testing import LogStoreSuite
from optimist.logstores.s3 import arbiter as s3_arbiter
from optimist.logstores.s3 import dynamodb as s3_dynamodb
from optimist.logstores.s3 import redis as s3_redis
from optimist.logstores.s3 import store as s3

DELTA_KEY = "io.delta.storage.S3DynamoDBLogStore"


@pytest.fixture
def bucket(s3_server, fresh_name):
    client = s3_server.client("s3")
    client.create_bucket(Bucket=fresh_name)
    return client, fresh_name


@pytest.fixture
def s3_options(s3_server, request):
    # LocalStack compares the start of a listing with keys that it has percent-encoded, so that it
    # leaves out names with odd characters; Amazon's S3 and moto don't. Commits have no such names.
    is_odd = request.node.originalname == "test_odd_name_is_taken_as_it_is"
    return {
        "spark.optimist.store.s3.sortedListing": "false" if is_odd else "true",
        **{f"spark.hadoop.{key}": value for key, value in s3_server.s3a_options.items()},
    }


@pytest.fixture
def dynamodb_options(s3_options, dynamodb_server, fresh_name):
    return {
        **s3_options,
        f"spark.{DELTA_KEY}.ddb.tableName": fresh_name,
        f"spark.{DELTA_KEY}.ddb.region": dynamodb_server.region,
        "spark.optimist.store.dynamodb.endpoint": dynamodb_server.endpoint,
        "spark.optimist.store.dynamodb.accessKeyId": dynamodb_server.access_key_id,
        "spark.optimist.store.dynamodb.secretAccessKey": dynamodb_server.secret_access_key,
    }


@pytest.fixture
def redis_options(s3_options, redis_server, fresh_name):
    return {
        **s3_options,
        "spark.optimist.store.redis.url": redis_server.endpoint,
        "spark.optimist.store.redis.prefix": fresh_name,
    }


@pytest.fixture
def sql_options(s3_options, tmp_path):
    return {
        **s3_options,
        "spark.optimist.store.arbiter": "sql",
        "spark.optimist.store.sql.url": f"sqlite:///{tmp_path}/log.db",
    }


class OnLocalStack(LogStoreSuite):
    has_directories = False
    # It answers one request at a time.
    rounds = 20
    process_rounds = 10
    commits = 4

    @pytest.fixture
    def directory(self, bucket):
        self.client, name = bucket
        return f"s3a://{name}/table/_delta_log"

    def peek(self, path):
        name, _, key = path.removeprefix("s3a://").partition("/")
        try:
            return self.client.get_object(Bucket=name, Key=key)["Body"].read()
        except ClientError as error:
            assert error.response["Error"]["Code"] == "NoSuchKey"
            return None

    def poke(self, path, data):
        name, _, key = path.removeprefix("s3a://").partition("/")
        self.client.put_object(Bucket=name, Key=key, Body=data)


class TestS3LogStore(OnLocalStack):
    @pytest.fixture(autouse=True)
    def at_servers(self, s3_options):
        type(self).store_factory = partial(s3.S3LogStore, s3_options)


@pytest.mark.again  # store and arbiter have their own suites, and the engine runs over both
class TestS3DynamoDBLogStore(OnLocalStack):
    forgets_deleted = False

    @pytest.fixture(autouse=True)
    def at_servers(self, dynamodb_options):
        type(self).store_factory = partial(s3_dynamodb.S3DynamoDBLogStore, dynamodb_options)


@pytest.mark.again
class TestS3RedisLogStore(OnLocalStack):
    forgets_deleted = False

    @pytest.fixture(autouse=True)
    def at_servers(self, redis_options):
        type(self).store_factory = partial(s3_redis.S3RedisLogStore, redis_options)


@pytest.mark.again
class TestS3ArbiterLogStoreWithSQL(OnLocalStack):
    forgets_deleted = False

    @pytest.fixture(autouse=True)
    def at_servers(self, sql_options):
        type(self).store_factory = partial(s3_arbiter.S3ArbiterLogStore, sql_options)


# Through the engine


@pytest.mark.parametrize(
    ("store", "fixture"),
    [
        ("s3", "s3_options"),
        ("s3-dynamodb", "dynamodb_options"),
        ("s3-redis", "redis_options"),
        ("s3-arbiter", "sql_options"),
    ],
)
def test_commits_of_16_processes_are_dense_and_each_is_there_once(store, fixture, bucket, request):
    options = {**request.getfixturevalue(fixture), "spark.delta.logStore.s3a.impl": store}
    race_of_processes(f"s3a://{bucket[1]}/raced", options)
