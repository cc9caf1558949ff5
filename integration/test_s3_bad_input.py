"""What goes wrong with S3, DynamoDB and Redis behind a table: one clear error each, in time."""

from contextlib import closing
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

import pytest
import redis

from fleet import append_to, create_table
from optimist.core import DeltaLog
from optimist.core.errors import ConfigError, StorageError
from optimist.core.plugins.logstore import PutOutcome
from optimist.logstores.s3.store import S3LogStore
from private_servers import private_redis, skip_or_fail


@pytest.fixture
def options(s3_server, fresh_name):
    client = s3_server.client("s3")
    client.create_bucket(Bucket=fresh_name)
    return s3_server.s3a_options


def test_missing_bucket_is_told_on_read_and_write(options, fresh_name):
    log = DeltaLog.for_path(f"s3a://{fresh_name}-not-there/table", options)
    for call in (log.update, partial(create_table, log)):
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


class Overwriting(BaseHTTPRequestHandler):
    """Speaks just enough S3 to take every PUT, whatever its condition says."""

    protocol_version = "HTTP/1.1"

    def do_PUT(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        self.server.taken.append((self.path, self.headers.get("If-None-Match")))
        self._answer(b"", ETag='"1"')

    def do_GET(self):
        self._answer(
            b"<ListBucketResult><IsTruncated>false</IsTruncated></ListBucketResult>",
            **{"Content-Type": "application/xml"},
        )

    def do_DELETE(self):
        self._answer(b"")

    def log_message(self, *arguments):
        pass

    def _answer(self, body, **headers):
        self.send_response(200)
        for name, value in {**headers, "Content-Length": str(len(body))}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)


@pytest.fixture
def overwriting():
    server = ThreadingHTTPServer(("127.0.0.1", 0), Overwriting)
    server.taken = []
    thread = Thread(target=server.serve_forever)
    thread.start()
    yield server
    server.shutdown()
    server.server_close()
    thread.join()


def test_endpoint_that_ignores_the_condition_is_refused_before_the_first_commit(overwriting):
    given = {
        "fs.s3a.endpoint": f"http://127.0.0.1:{overwriting.server_port}",
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
    assert [condition for _, condition in overwriting.taken] == ["*", "*"]
    assert all("probe" in sent for sent, _ in overwriting.taken)
    insisting = S3LogStore({**given, "optimist.store.s3.allowUnsafeWrites": "true"})
    assert insisting.put_if_absent(path, b"x") is PutOutcome.CREATED
