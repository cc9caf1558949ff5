"""Stores behind an HTTP proxy that passes a commit on and then breaks off the connection."""

import io

import pytest

from object_services import S3, SERVICES
from optimist.core.errors import StorageError
from optimist.core.plugins.logstore import PutOutcome
from scripted_http import LOST

BEHIND = "http://store.test"


@pytest.fixture(params=(*SERVICES, S3), ids=lambda kind: kind.name)
def kind(request):
    return request.param


@pytest.fixture
def store(kind, service, clock, monkeypatch):
    """The store of an endpoint that only the proxy can reach, which the fake serves."""
    for name in ("HTTP_PROXY", "http_proxy"):
        monkeypatch.setenv(name, service.endpoint)
    for name in ("NO_PROXY", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
    given = service.options().items()
    options = {name: value.replace(service.endpoint, BEHIND) for name, value in given}
    return kind.store(options, clock=clock)


@pytest.fixture
def next_commit(kind, service, store, commit):
    """The path of a commit to a log that has one already, and was looked at."""
    assert store.put_if_absent(commit, b"0") is PutOutcome.CREATED
    service.requests.clear()
    return kind.url("t/_delta_log/00000000000000000001.json")


def test_requests_go_through_the_proxy(service, store, next_commit):
    assert store.put_if_absent(next_commit, b"1") is PutOutcome.CREATED
    assert [request.target.startswith(BEHIND) for request in service.requests] == [True]


def test_commit_whose_answer_the_proxy_loses_has_no_known_outcome(service, store, next_commit):
    service.script = [LOST]
    assert store.put_if_absent(next_commit, b"1") is PutOutcome.UNKNOWN
    assert store.read_bytes(next_commit) == b"1"


def test_file_that_never_reached_the_proxy_is_refused(service, store, commit):
    service.__exit__()
    with pytest.raises(StorageError) as caught:
        store.put_data_file(commit, io.BytesIO(b"x"))
    assert caught.value.kind == "OPTIMIST_STORE_UNREACHABLE"
    assert caught.value.retryable
