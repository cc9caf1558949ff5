"""Credentials, endpoints and paths of S3LogStore: what it is given, and how it says no."""

import pytest

from optimist.core import DeltaLog
from optimist.core.errors import ConfigError, LogFileNotFoundError, StorageError
from optimist.core.plugins.logstore_registry import find_store
from optimist.core.testing import ManualClock
from optimist.logstores.s3.client import S3Credentials
from optimist.logstores.s3.store import S3LogStore
from s3_tables import BY_S3, append, commit, create, put


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
    assert caught.value.kind == "OPTIMIST_CREDENTIALS_UNAVAILABLE"
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
        (400, "AuthorizationHeaderMalformed", "OPTIMIST_WRONG_REGION"),
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
    assert delta.snapshot().version == 0
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


@pytest.mark.parametrize("given", ["KEY:SECRET", "KEY:AB/SECRET", "KEY:/SECRET", "KEY:A@SECRET"])
def test_path_with_credentials_is_refused_without_quoting_them(given):
    with pytest.raises(ConfigError) as caught:
        S3LogStore().read_bytes(f"s3a://{given}@tables/f")
    assert caught.value.fields["bucket"] == "tables"
    assert caught.value.kind == "OPTIMIST_CREDENTIALS_IN_URL"
    assert "SECRET" not in str(caught.value)
    assert "SECRET" not in str(dict(caught.value.fields))


@pytest.mark.parametrize("path", ["/tmp/x", "gs://b/x", "s3:///"])
def test_path_that_is_no_object_is_refused(path):
    with pytest.raises(ConfigError):
        S3LogStore().read_bytes(path)
