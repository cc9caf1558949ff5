"""A secret under whatever key of a store or lock: nothing that went wrong or is kept shows it."""

import pytest

from optimist.core.errors import ConfigError, OptimistError
from optimist.core.plugins.lock_registry import find_arbiter, find_lease
from optimist.core.plugins.logstore_registry import find_store
from optimist.locks.dynamodb_options import DynamoDBOptions
from optimist.locks.redis_server import RedisOptions
from optimist.locks.sql_arbiter import SQLOptions
from optimist.logstores.azure.options import AzureOptions
from optimist.logstores.fsspec.store import FsspecOptions
from optimist.logstores.gcs.options import GCSOptions
from optimist.logstores.hdfs.options import HDFSOptions
from optimist.logstores.s3.options import S3Options
from secret_hunt import SECRET, assert_untold

CLASSES = {
    "azure": AzureOptions,
    "dynamodb": DynamoDBOptions,
    "gcs": GCSOptions,
    "hdfs": HDFSOptions,
    "redis": RedisOptions,
    "s3": S3Options,
    "sql": SQLOptions,
}
NEEDED = {
    "redis": {"optimist.store.redis.url": "redis://h"},
    "sql": {"optimist.store.sql.url": "sqlite://"},
}
HADOOP = {
    "azure": (
        "fs.azure.account.auth.type",
        "fs.azure.account.oauth.provider.type",
        "fs.azure.account.key",
        "fs.azure.sas.fixed.token",
    ),
    "dynamodb": (
        "io.delta.storage.S3DynamoDBLogStore.ddb.tableName",
        "io.delta.storage.S3DynamoDBLogStore.ddb.region",
        "io.delta.storage.S3DynamoDBLogStore.ddb.ttl",
        "io.delta.storage.S3DynamoDBLogStore.provisionedThroughput.rcu",
        "io.delta.storage.S3DynamoDBLogStore.credentials.provider",
    ),
    "gcs": (
        "fs.gs.auth.type",
        "fs.gs.project.id",
        "fs.gs.storage.root.url",
        "fs.gs.requester.pays.mode",
        "fs.gs.auth.service.account.json.keyfile",
    ),
    "hdfs": ("fs.defaultFS", "dfs.nameservices", "hadoop.security.authentication"),
    "s3": (
        "fs.s3a.endpoint",
        "fs.s3a.endpoint.region",
        "fs.s3a.path.style.access",
        "fs.s3a.requester.pays.enabled",
        "fs.s3a.encryption.algorithm",
        "fs.s3a.encryption.key",
        "fs.s3a.aws.credentials.provider",
    ),
}


def own_keys(name):
    """As the error about an unknown option lists them."""
    with pytest.raises(ConfigError) as caught:
        CLASSES[name].from_options({**NEEDED.get(name, {}), f"optimist.store.{name}.nosuch": "1"})
    known = str(caught.value).partition("The known options are: ")[2].rstrip(".").split(", ")
    assert len(known) > 1, caught.value
    return [f"optimist.store.{name}.{option}" for option in known]


ALL = [(name, key) for name in CLASSES for key in (*own_keys(name), *HADOOP.get(name, ()))]


def test_every_option_of_a_store_is_walked():
    keys = {key for _, key in ALL}
    assert len(ALL) > 75
    for key in ("s3.secretKey", "azure.maxTries", "gcs.keyJson", "redis.url", "sql.password"):
        assert f"optimist.store.{key}" in keys


@pytest.mark.parametrize(("name", "key"), ALL)
def test_a_secret_under_any_key_is_not_told(name, key):
    conf = {**NEEDED.get(name, {}), f"spark.hadoop.{key}" if key[:3] == "fs." else key: SECRET}
    try:
        parsed = CLASSES[name].from_options(find_store("/t", conf).options)
    except OptimistError as error:
        assert_untold(error)
    else:
        assert SECRET not in repr(parsed) + str(parsed) + f"{parsed}"


@pytest.mark.parametrize(
    ("path", "conf"),
    [
        ("s3a://b/t", {"optimist.store.s3.connectTimeoutSeconds": SECRET}),
        ("s3a://b/t", {"fs.s3a.access.key": "AKIA"}),
        ("s3a://b/t", {"optimist.store.s3.credentialsProvider": SECRET}),
        ("s3a://b/t", {"delta.logStore.class": "s3-arbiter", "optimist.store.arbiter": SECRET}),
        ("gs://b/t", {"optimist.store.gcs.keyFile": SECRET}),
        ("gs://b/t", {"optimist.store.gcs.keyFile": '{"private_key": "' + SECRET + '"}'}),
        ("gs://b/t", {"optimist.store.gcs.keyJson": SECRET}),
        ("abfss://c@a.dfs.core.windows.net/t", {"optimist.store.azure.tenantId": SECRET}),
        ("abfss://c@a.dfs.core.windows.net/t", {"optimist.store.azure.connectionString": SECRET}),
        ("abfss://c@a.dfs.core.windows.net/t", {"fs.azure.account.auth.type": SECRET}),
        ("dropbox://t", {"optimist.store.fsspec.token": SECRET}),
        ("memory://t", {"delta.logStore.class": "fsspec", "optimist.store.fsspec.x": "{" + SECRET}),
        ("memory://t", {"optimist.store.memory.key": SECRET}),
    ],
)
def test_a_store_that_fails_for_its_options_tells_no_secret(path, conf):
    full = {"fs.s3a.session.token": SECRET, **conf}
    with pytest.raises(OptimistError) as caught:
        store = find_store(path, full)
        store.data_access(path)
        store.read_bytes(f"{path}/f")
    assert_untold(caught.value)


@pytest.mark.parametrize(
    ("find", "conf"),
    [
        (find_arbiter, {"optimist.store.arbiter": "redis", "optimist.store.redis.url": SECRET}),
        (find_arbiter, {"optimist.store.arbiter": "sql", "optimist.store.sql.url": SECRET}),
        (
            find_arbiter,
            {
                "optimist.store.arbiter": "sql",
                "optimist.store.sql.url": "sqlite://",
                "optimist.store.sql.timeoutSeconds": SECRET,
            },
        ),
        (
            find_lease,
            {"optimist.store.lease": "dynamodb", "optimist.store.dynamodb.endpoint": SECRET},
        ),
        (
            find_lease,
            {"optimist.store.lease": "dynamodb", "optimist.store.dynamodb.profile": SECRET},
        ),
        (find_lease, {"optimist.store.lease": "file", "optimist.store.file-lease.x": SECRET}),
    ],
)
def test_a_lock_that_fails_for_its_options_tells_no_secret(find, conf):
    with pytest.raises(OptimistError) as caught:
        find(conf)
    assert_untold(caught.value)


def test_what_a_driver_is_given_is_kept_as_a_secret():
    parsed = FsspecOptions.from_options({"optimist.store.fsspec.account": SECRET})
    assert SECRET not in repr(parsed) + repr(parsed.storage_options)
    assert parsed.revealed() == {"account": SECRET}


@pytest.mark.parametrize(
    ("path", "conf"),
    [
        ("s3a://b/t", {"fs.s3a.access.key": SECRET, "fs.s3a.secret.key": SECRET}),
        (
            "abfss://c@a.dfs.core.windows.net/t",
            {"optimist.store.azure.sas": f"sv=1&sig={SECRET}"},
        ),
        ("dropbox://t", {"optimist.store.fsspec.token": SECRET}),
    ],
)
def test_the_way_to_data_files_keeps_secrets_as_such(path, conf):
    access = find_store(path, conf).data_access(path)
    assert SECRET not in repr(access) + repr(access.settings)
    assert SECRET in repr(access.revealed_settings())
