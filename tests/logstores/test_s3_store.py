"""S3LogStore against moto's S3 in this process, one request at a time: moto can be raced."""

import logging
import threading
import uuid
from contextlib import contextmanager

import boto3
import pytest
from botocore.exceptions import ClientError
from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
from werkzeug.serving import WSGIRequestHandler, make_server

from optimist.core import DeltaLog
from optimist.core.errors import ConfigError, LogFileNotFoundError, StorageError
from optimist.core.logstore import PutOutcome
from optimist.core.plugins.logstore_registry import find_store
from optimist.core.protocol.actions import AddFile, Metadata
from optimist.core.testing import LogStoreSuite, ManualClock
from optimist.core.transaction.conflicts.operations import Operation
from optimist.logstores.s3.client import S3Credentials
from optimist.logstores.s3.dynamodb import S3DynamoDBLogStore
from optimist.logstores.s3.store import S3LogStore

logging.getLogger("werkzeug").setLevel(logging.ERROR)


class OneAtATime:
    """The server, with a lock, a record of requests, and a rule that can be told to misbehave."""

    def __init__(self):
        self.app = DomainDispatcherApplication(create_backend_app)
        self.lock = threading.Lock()
        self.requests = []
        self.ignores_condition = False
        self.refusals = []

    def __call__(self, environ, start_response):
        with self.lock:
            self.requests.append(
                (environ["REQUEST_METHOD"], environ["PATH_INFO"], environ["QUERY_STRING"])
            )
            if self.refusals and environ["REQUEST_METHOD"] == "PUT":
                return self._refuse(*self.refusals.pop(0), start_response)
            if self.ignores_condition:
                environ.pop("HTTP_IF_NONE_MATCH", None)
            return list(self.app(environ, start_response))

    def _refuse(self, status, code, start_response):
        body = f"<Error><Code>{code}</Code><Message>hunter2</Message></Error>".encode()
        start_response(f"{status} Refused", [("Content-Length", str(len(body)))])
        return [body]

    @contextmanager
    def counting(self):
        """The requests made meanwhile."""
        start = len(self.requests)
        made = []
        yield made
        made.extend(self.requests[start:])


class Quiet(WSGIRequestHandler):
    protocol_version = "HTTP/1.1"

    def log(self, *arguments):
        pass


@pytest.fixture(scope="module")
def server():
    app = OneAtATime()
    running = make_server("127.0.0.1", 0, app, threaded=True, request_handler=Quiet)
    running.daemon_threads = True
    app.url = f"http://127.0.0.1:{running.server_port}"
    thread = threading.Thread(target=running.serve_forever, daemon=True)
    thread.start()
    yield app
    running.shutdown()
    running.server_close()
    thread.join()


@pytest.fixture(autouse=True)
def environment(server, monkeypatch):
    for key in ("AWS_PROFILE", "AWS_SESSION_TOKEN", "AWS_REGION", "AWS_CONFIG_FILE"):
        monkeypatch.delenv(key, raising=False)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "test")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "test")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    monkeypatch.setenv("AWS_ENDPOINT_URL", server.url)


@pytest.fixture(scope="module")
def s3(server):
    client = boto3.client(
        "s3",
        endpoint_url=server.url,
        region_name="us-east-1",
        aws_access_key_id="test",
        aws_secret_access_key="test",
    )
    client.create_bucket(Bucket="tables")
    return client


@pytest.fixture
def table(s3):
    return f"s3://tables/{uuid.uuid4()}"


@pytest.fixture
def log(table):
    return f"{table}/_delta_log"


@pytest.fixture
def unprobed_log(s3):
    """A log in a bucket of its own: no store of this process has written there."""
    bucket = f"bucket-{uuid.uuid4()}"
    s3.create_bucket(Bucket=bucket)
    return f"s3://{bucket}/table/_delta_log"


def commit(log, version):
    return f"{log}/{version:020d}.json"


def info(txn_id, operation="WRITE", engine="another/1.0"):
    return (
        f'{{"commitInfo":{{"txnId":"{txn_id}","operation":"{operation}","engineInfo":"{engine}"}}}}'
        '\n{"remove":{"path":"a","dataChange":true}}\n'
    ).encode()


class S3Suite(LogStoreSuite):
    has_directories = False

    @pytest.fixture(autouse=True)
    def bind(self, s3):
        self.s3 = s3

    @pytest.fixture
    def directory(self, log):
        return log

    def peek(self, path):
        bucket, _, key = path.partition("://")[2].partition("/")
        try:
            return self.s3.get_object(Bucket=bucket, Key=key)["Body"].read()
        except ClientError as error:
            assert error.response["Error"]["Code"] == "NoSuchKey"
            return None

    def poke(self, path, data):
        bucket, _, key = path.partition("://")[2].partition("/")
        self.s3.put_object(Bucket=bucket, Key=key, Body=data)


class TestS3LogStore(S3Suite):
    store_factory = S3LogStore


class TestS3DynamoDBLogStore(S3Suite):
    store_factory = S3DynamoDBLogStore
    forgets_deleted = False
    # The stand-in answers one request at a time; the full races are run on real servers.
    rounds = 10
    process_rounds = 10
    commits = 3


def put(s3, path, data=b"x"):
    bucket, _, key = path.partition("://")[2].partition("/")
    s3.put_object(Bucket=bucket, Key=key, Body=data)


# Paths and listings


@pytest.mark.parametrize("scheme", ["s3", "s3a", "s3n", "S3A"])
def test_all_schemes_and_slashes_mean_one_object(s3, table, scheme):
    path = table.replace("s3:", f"{scheme}:").replace("/tables/", "/tables//") + "//f"
    S3LogStore().put_overwrite(path, b"x")
    assert S3LogStore().read_bytes(f"{table}/f") == b"x"
    assert S3LogStore().resolve_path(path) == f"{table}/f"


def test_listing_names_files_as_the_caller_does(s3, log):
    put(s3, commit(log, 3))
    spelled = log.replace("s3:", "s3a:")
    assert [status.path for status in S3LogStore().list_from(commit(spelled, 1))] == [
        commit(spelled, 3)
    ]


def test_listing_is_paged_as_the_caller_comes_to_it(server, s3, log):
    for version in range(1005):
        put(s3, commit(log, version))
    with server.counting() as made:
        listing = S3LogStore().list_from(commit(log, 0))
        assert next(listing).name == f"{0:020d}.json"
    assert len(made) == 1
    with server.counting() as made:
        assert sum(1 for _ in listing) == 1004
    assert len(made) == 1
    with server.counting() as made:
        assert len(list(S3LogStore().list_from(commit(log, 1003)))) == 2
    assert len(made) == 1


def test_listing_past_the_last_file_of_a_directory_is_empty(s3, log):
    put(s3, commit(log, 0))
    assert list(S3LogStore().list_from(commit(log, 1))) == []
    with pytest.raises(LogFileNotFoundError):
        list(S3LogStore().list_from(f"{log}/missing/0"))


def test_listing_of_a_directory_with_only_directories_is_empty(s3, table):
    put(s3, f"{table}/part=1/file")
    assert list(S3LogStore().list_from(f"{table}/")) == []


def test_directory_markers_are_not_files(s3, log):
    put(s3, f"{log}/", b"")
    put(s3, commit(log, 0))
    assert [status.name for status in S3LogStore().list_from(f"{log}/")] == [f"{0:020d}.json"]


def test_unsorted_store_is_listed_without_a_start_and_sorted(server, s3, log):
    for version in (2, 0, 1):
        put(s3, commit(log, version))
    store = S3LogStore({"optimist.store.s3.sortedListing": "false"})
    with server.counting() as made:
        names = [status.name for status in store.list_from(commit(log, 1))]
    assert names == [f"{1:020d}.json", f"{2:020d}.json"]
    assert "start-after" not in made[0][2]


# Reading by ranges


def test_large_file_is_read_in_parts(server, s3, log):
    data = bytes(range(256)) * 8 * 1024  # 2 MiB
    put(s3, f"{log}/large", data)
    store = S3LogStore({"optimist.store.s3.readAheadBytes": str(256 * 1024)})
    with server.counting() as made, store.open_read(f"{log}/large") as file:
        assert file.seek(-8, 2) == len(data) - 8
        assert file.read() == data[-8:]
        file.seek(1000)
        assert file.read(5000) == data[1000:6000]
    assert len(made) == 2
    with store.open_read(f"{log}/large") as file:
        assert file.read() == data


def test_file_replaced_while_it_is_read_is_noticed(s3, log):
    put(s3, f"{log}/large", b"a" * 1_000_000)
    with S3LogStore().open_read(f"{log}/large") as file:
        put(s3, f"{log}/large", b"b" * 1_000_000)
        with pytest.raises(StorageError) as caught:
            file.read(10)
    assert caught.value.kind == "OPTIMIST_FILE_CHANGED"
    assert caught.value.retryable


def test_commit_copied_again_by_recovery_is_read_on(s3, log):
    data = b"x" * 400_000 + b"y" * 600_000
    put(s3, commit(log, 0), data[::-1])
    with S3LogStore(has_arbiter=True).open_read(commit(log, 0)) as file:
        put(s3, commit(log, 0), data)
        assert file.read(10) == data[:10]


# What a commit costs


def test_commit_is_one_put_once_the_place_is_known(server, s3, log):
    store = S3LogStore()
    store.put_if_absent(commit(log, 0), b"x")
    with server.counting() as made:
        assert store.put_if_absent(commit(log, 1), b"x") is PutOutcome.CREATED
    assert [method for method, _, _ in made] == ["PUT"]


BY_S3 = {"spark.delta.logStore.s3.impl": "optimist.logstores.s3.store:S3LogStore"}
SCHEMA = '{"type":"struct","fields":[{"name":"a","type":"long","nullable":true,"metadata":{}}]}'


def create(delta):
    txn = delta.start_transaction()
    txn.update_metadata(Metadata(id="t", schema_string=SCHEMA, partition_columns=()))
    txn.commit([], Operation("CREATE TABLE"))


def append(delta, name):
    add = AddFile(name, {}, size=1, modification_time=1, data_change=True)
    return delta.start_transaction().commit([add], Operation.write("Append"))


def test_append_of_a_warm_handle_is_one_put_of_a_commit_and_at_most_one_listing(server, table):
    delta = DeltaLog.for_path(table, options=BY_S3)
    create(delta)
    append(delta, "first")
    with server.counting() as made:
        append(delta, "second")
    assert sum(method == "PUT" and path.endswith(".json") for method, path, _ in made) == 1
    assert sum("list-type" in query for _, _, query in made) <= 1


# Safety by refusal


def test_first_write_probes_and_leaves_nothing(server, s3, unprobed_log):
    bucket = unprobed_log.split("/")[2]
    store = S3LogStore(clock=ManualClock(now_ms=1_700_000_000_123))
    assert "nothing yet" in store.describe()["probed"]
    with server.counting() as made:
        store.put_if_absent(commit(unprobed_log, 0), b"x")
    assert [method for method, _, _ in made] == ["GET", "PUT", "PUT", "DELETE", "PUT"]
    keys = [item["Key"] for item in s3.list_objects_v2(Bucket=bucket)["Contents"]]
    assert keys == [f"table/_delta_log/{0:020d}.json"]
    probed = store.describe()["probed"]
    assert probed == (
        f"{bucket} refuses a second creation of one name (probed at 2023-11-14T22:13:20.123Z)"
    )


def test_verdict_holds_for_the_bucket_and_every_store_of_the_process(server, unprobed_log):
    S3LogStore().put_if_absent(commit(unprobed_log, 0), b"x")
    other_table = unprobed_log.replace("/table/", "/other/")
    with server.counting() as made:
        S3LogStore().put_if_absent(commit(other_table, 0), b"x")
    # It looks for staged commits of the table, and probes no more.
    assert [method for method, _, _ in made] == ["GET", "PUT"]


def test_store_that_ignores_the_condition_is_refused(server, unprobed_log, monkeypatch):
    monkeypatch.setattr(server, "ignores_condition", True)
    store = S3LogStore()
    for _ in range(2):
        with pytest.raises(ConfigError) as caught:
            store.put_if_absent(commit(unprobed_log, 0), b"x")
    assert caught.value.kind == "OPTIMIST_NO_ATOMIC_CREATE"
    for way_out in ("s3-dynamodb", "s3-redis", "s3-arbiter", "allowUnsafeWrites"):
        assert way_out in str(caught.value)
    with pytest.raises(LogFileNotFoundError):
        store.read_bytes(commit(unprobed_log, 0))
    assert "accepts a second creation" in store.describe()["probed"]


def test_override_writes_and_says_so_on_every_commit(server, unprobed_log, monkeypatch, caplog):
    monkeypatch.setattr(server, "ignores_condition", True)
    log = unprobed_log
    store = S3LogStore({"spark.optimist.store.s3.allowUnsafeWrites": "true"})
    assert store.put_if_absent(commit(log, 0), b"x") is PutOutcome.CREATED
    assert store.put_if_absent(commit(log, 0), b"y") is PutOutcome.EXISTS
    assert store.read_bytes(commit(log, 0)) == b"x"
    assert sum("without exclusion" in each.getMessage() for each in caplog.records) == 2


def test_threads_that_come_together_probe_once(server, unprobed_log):
    store = S3LogStore()
    with server.counting() as made:
        threads = [
            threading.Thread(target=store.put_if_absent, args=(commit(unprobed_log, n), b"x"))
            for n in range(8)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert sum("probe" in path and method == "PUT" for method, path, _ in made) == 2


# Neighbours


def test_table_with_staged_commits_is_refused_but_read(s3, log):
    put(s3, f"{log}/.tmp/{1:020d}.json.0000", b"x")
    put(s3, commit(log, 0), b"x")
    store = S3LogStore()
    with pytest.raises(ConfigError) as caught:
        store.put_if_absent(commit(log, 1), b"y")
    assert caught.value.kind == "OPTIMIST_FOREIGN_ARBITER"
    assert "s3-dynamodb" in str(caught.value)
    assert len(list(store.list_from(commit(log, 0)))) == 1


def test_staged_commits_can_be_overridden(s3, log):
    put(s3, f"{log}/.tmp/{1:020d}.json.0000", b"x")
    store = S3LogStore({"optimist.store.s3.allowForeignArbiter": "true"})
    assert store.put_if_absent(commit(log, 1), b"y") is PutOutcome.CREATED


def test_commit_that_was_overwritten_is_reported_once_naming_both(s3, log):
    store = S3LogStore()
    put(s3, commit(log, 0), info("zero"))
    store.put_if_absent(commit(log, 1), info("ours", "MERGE", "Optimist"))
    put(s3, commit(log, 1), info("theirs", "WRITE", "Apache-Spark/4.0"))
    with pytest.raises(StorageError) as caught:
        list(store.list_from(commit(log, 1)))
    assert caught.value.kind == "OPTIMIST_COMMIT_REPLACED"
    assert caught.value.fields["lost_txn_id"] == "ours"
    assert caught.value.fields["found_txn_id"] == "theirs"
    assert caught.value.fields["found_engine"] == "Apache-Spark/4.0"
    assert len(list(store.list_from(commit(log, 1)))) == 1


def test_commit_known_by_reading_or_listing_is_watched_too(s3, log):
    for version in range(3):
        put(s3, commit(log, version), info(f"first-{version}"))
    store = S3LogStore()
    list(store.list_from(commit(log, 0)))
    store.read_bytes(commit(log, 1))
    for version in (1, 2):
        put(s3, commit(log, version), info(f"second-{version}"))
        with pytest.raises(StorageError) as caught:
            list(store.list_from(commit(log, version)))
        assert caught.value.fields["found_txn_id"] == f"second-{version}"
    assert caught.value.fields["lost_txn_id"] is None  # of this one only the listing was known


def test_table_made_anew_is_no_overwritten_commit(s3, log):
    store = S3LogStore()
    for version in range(2):
        put(s3, commit(log, version), info(f"old-{version}"))
    list(store.list_from(commit(log, 0)))
    for version in range(2):
        put(s3, commit(log, version), info(f"new-{version}"))
    assert len(list(store.list_from(commit(log, 1)))) == 2 - 1


def test_own_first_commit_is_not_given_up_in_silence(s3, log):
    store = S3LogStore()
    store.put_if_absent(commit(log, 0), info("ours"))
    put(s3, commit(log, 0), info("theirs"))
    with pytest.raises(StorageError) as caught:
        list(store.list_from(commit(log, 0)))
    assert caught.value.kind == "OPTIMIST_COMMIT_REPLACED"


def test_file_that_was_deleted_through_the_store_may_come_again(s3, log):
    store = S3LogStore()
    store.put_if_absent(commit(log, 0), info("a"))
    store.delete(commit(log, 0))
    put(s3, commit(log, 0), info("b"))
    assert len(list(store.list_from(commit(log, 0)))) == 1


def test_same_bytes_under_another_tag_are_no_loss_with_an_arbiter(s3, log):
    store = S3LogStore(has_arbiter=True)
    store.put_if_absent(commit(log, 0), info("a", "WRITE"))
    put(s3, commit(log, 0), info("a", "MERGE"))
    assert len(list(store.list_from(commit(log, 0)))) == 1


# Configuration


def test_credentials_callable_is_asked_and_asked_again_when_they_expire(s3, log):
    clock = ManualClock()
    asked = []

    def credentials():
        asked.append(clock.now_ms())
        return S3Credentials("test", "test", "token", expires_ms=1)  # long ago

    store = S3LogStore(clock=clock, credentials=credentials)
    put(s3, commit(log, 0), b"x")
    with pytest.raises(StorageError) as caught:
        store.read_bytes(commit(log, 0))
    assert caught.value.kind == "OPTIMIST_NO_CREDENTIALS"
    assert len(asked) >= 1

    def fresh():
        asked.append(0)
        return S3Credentials("test", "test")

    asked.clear()
    store = S3LogStore(credentials=fresh)
    assert store.read_bytes(commit(log, 0)) == b"x"
    assert store.read_bytes(commit(log, 0)) == b"x"
    assert len(asked) == 1


def test_missing_bucket_is_told_from_a_missing_file(s3):
    with pytest.raises(StorageError) as caught:
        S3LogStore().read_bytes("s3://not-there/f")
    assert caught.value.kind == "OPTIMIST_BUCKET_NOT_FOUND"
    with pytest.raises(StorageError) as caught:
        S3LogStore().put_if_absent("s3://not-there/f", b"x")
    assert caught.value.kind == "OPTIMIST_BUCKET_NOT_FOUND"


@pytest.mark.parametrize(
    ("status", "code", "kind"),
    [
        (403, "InvalidAccessKeyId", "OPTIMIST_INVALID_CREDENTIALS"),
        (403, "SignatureDoesNotMatch", "OPTIMIST_INVALID_CREDENTIALS"),
        (400, "ExpiredToken", "OPTIMIST_CREDENTIALS_EXPIRED"),
        (403, "AccessDenied", "OPTIMIST_PERMISSION_DENIED"),
        (400, "AuthorizationHeaderMalformed", "OPTIMIST_INVALID_CREDENTIALS"),
        (403, "RequestTimeTooSkewed", "OPTIMIST_CLOCK_SKEWED"),
    ],
)
def test_refused_commit_says_why_and_wrote_nothing(server, s3, log, status, code, kind):
    store = S3LogStore(clock=ManualClock())
    store.put_if_absent(commit(log, 0), b"x")  # the place is known, the refusal comes in mid-work
    server.refusals = [(status, code)]
    with pytest.raises(StorageError) as caught:
        store.put_if_absent(commit(log, 1), b"x")
    assert caught.value.kind == kind
    assert caught.value.fields["code"] == code
    assert "hunter2" not in str(caught.value)  # the server's own text may quote a request
    with pytest.raises(LogFileNotFoundError):
        store.read_bytes(commit(log, 1))


def test_server_that_does_not_know_the_condition_is_refused(server, unprobed_log):
    server.refusals = [(501, "NotImplemented")]
    store = S3LogStore()
    with pytest.raises(ConfigError) as caught:
        store.put_if_absent(commit(unprobed_log, 0), b"x")
    assert caught.value.kind == "OPTIMIST_NO_ATOMIC_CREATE"
    assert "does not know conditional writes" in str(caught.value)


def test_token_that_expires_in_mid_commit_leaves_the_table_as_it_was(server, table):
    delta = DeltaLog.for_path(table, options=BY_S3)
    create(delta)
    server.refusals = [(400, "ExpiredToken")]
    with pytest.raises(StorageError) as caught:
        append(delta, "first")
    assert caught.value.kind == "OPTIMIST_CREDENTIALS_EXPIRED"
    assert delta.update().version == 0
    assert append(delta, "second").version == 1


def test_description_tells_why_the_store_was_chosen():
    by_key = {"spark.delta.logStore.s3n.impl": "s3", "optimist.store.s3.region": "eu-central-1"}
    by_default = {"optimist.store.s3.region": "eu-central-2"}
    said = find_store("s3n://tables/t", by_key).describe()["chosen because"]
    assert said == "conf key spark.delta.logStore.s3n.impl=s3"
    said = find_store("s3a://tables/t", by_default).describe()["chosen because"]
    assert said == "the default for scheme s3a"
    find_store("s3://tables/t", by_default)
    said = find_store("s3a://tables/t", by_default).describe()["chosen because"]
    assert said == "the default for scheme s3a; the default for scheme s3"
    assert S3LogStore().describe()["chosen because"] == "it was built by hand"


def test_endpoint_that_is_down_is_unreachable_within_bounds(s3):
    store = S3LogStore(
        {
            "fs.s3a.endpoint": "http://127.0.0.1:1",
            "optimist.store.s3.connectTimeoutSeconds": "0.2",
        },
        clock=ManualClock(),
    )
    with pytest.raises(StorageError) as caught:
        store.put_if_absent("s3://tables/t/_delta_log/0", b"x")
    assert caught.value.kind == "OPTIMIST_STORE_UNREACHABLE"
    assert caught.value.retryable


def test_path_with_credentials_is_refused_without_quoting_them():
    with pytest.raises(ConfigError) as caught:
        S3LogStore().read_bytes("s3a://KEY:SECRET@tables/f")
    assert caught.value.kind == "OPTIMIST_CREDENTIALS_IN_URL"
    assert "SECRET" not in str(caught.value)
    assert "SECRET" not in str(dict(caught.value.fields))


@pytest.mark.parametrize("path", ["/tmp/x", "gs://b/x", "s3:///"])
def test_path_that_is_no_object_is_refused(path):
    with pytest.raises(ConfigError):
        S3LogStore().read_bytes(path)
