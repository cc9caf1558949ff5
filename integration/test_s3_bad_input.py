"""What goes wrong with S3, DynamoDB and Redis behind a table: one clear error each, in time."""

from contextlib import closing
from functools import partial

import pytest
import redis

from fleet import append_to, create_table
from optimist.core import DeltaLog
from optimist.core.errors import ConfigError, StorageError
from optimist.core.plugins.logstore import PutOutcome
from optimist.logstores.s3.store import S3LogStore
from private_servers import private_redis, skip_or_fail
from scripted_http import Reply, ScriptedService


@pytest.fixture
def options(s3_server, fresh_name):
    client = s3_server.client("s3")
    client.create_bucket(Bucket=fresh_name)
    return s3_server.s3a_options


def test_missing_bucket_is_told_on_read_and_write(options, fresh_name):
    log = DeltaLog.for_path(f"s3a://{fresh_name}-not-there/table", options)
    for call in (log.snapshot, partial(create_table, log)):
        with pytest.raises(StorageError) as caught:
            call()
        assert caught.value.kind == "OPTIMIST_BUCKET_NOT_FOUND"


def test_redis_that_loses_its_data_between_two_commits_is_noticed(options, fresh_name, tmp_path):
    with private_redis(tmp_path) as url:
        if url is None:
            skip_or_fail("there is no redis-server to start")
        given = {
            **options,
            "spark.delta.logStore.s3a.impl": "s3-redis",
            "spark.optimist.store.redis.url": url,
        }
        log = DeltaLog.for_path(f"s3a://{fresh_name}/table", given)
        create_table(log)
        append_to(log, "first")
        with closing(redis.Redis.from_url(url)) as client:
            client.flushdb()
        with pytest.raises(StorageError) as caught:
            append_to(log, "second")
        assert caught.value.kind == "OPTIMIST_ARBITER_LOST_DATA"
        # Another process, which has nothing to compare with, goes on: the files are all there.
        other = DeltaLog.for_path(
            f"s3a://{fresh_name}/table", {**given, "spark.optimist.store.redis.timeoutSeconds": "9"}
        )
        assert append_to(other, "third") == 2
    with pytest.raises(StorageError) as caught:  # and now there is no Redis at all
        append_to(other, "fourth")
    assert caught.value.kind == "OPTIMIST_STORE_NO_ANSWER"


class Overwriting(ScriptedService):
    """Speaks just enough S3 to take every PUT, whatever its condition says."""

    def work(self, request):
        if request.method == "PUT":
            return Reply(200, headers={"ETag": '"1"'})
        if request.method == "GET":
            empty = b"<ListBucketResult><IsTruncated>false</IsTruncated></ListBucketResult>"
            return Reply(200, empty, {"Content-Type": "application/xml"})
        return Reply(200)


@pytest.fixture
def overwriting():
    with Overwriting() as service:
        yield service


def test_endpoint_that_ignores_the_condition_is_refused_before_the_first_commit(overwriting):
    given = {
        "fs.s3a.endpoint": overwriting.endpoint,
        "fs.s3a.access.key": "key",
        "fs.s3a.secret.key": "hunter2",
    }
    store = S3LogStore(given)
    path = f"s3a://bucket/table/_delta_log/{0:020d}.json"
    with pytest.raises(ConfigError) as caught:
        store.put_if_absent(path, b"x")
    assert caught.value.kind == "OPTIMIST_NO_ATOMIC_CREATE"
    assert "hunter2" not in str(caught.value) + str(store.describe())
    # Both creations of the probe carried the condition, and no commit was sent.
    sent = [request for request in overwriting.requests if request.method == "PUT"]
    assert [request.headers.get("If-None-Match") for request in sent] == ["*", "*"]
    assert all("probe" in request.path for request in sent)
    insisting = S3LogStore({**given, "optimist.store.s3.allowUnsafeWrites": "true"})
    assert insisting.put_if_absent(path, b"x") is PutOutcome.CREATED
