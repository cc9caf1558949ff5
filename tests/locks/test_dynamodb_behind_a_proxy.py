"""The arbiter in DynamoDB behind an HTTP proxy that breaks off the connection."""

import json

import pytest

from optimist.core.errors import StorageError
from optimist.core.plugins.logstore import PutOutcome
from optimist.core.testing import ManualClock
from optimist.core.testing.arbiter_suite import entry_of
from optimist.locks import DynamoDBArbiter
from scripted_http import LOST, Reply, ScriptedService

KEYS = (("tablePath", "HASH"), ("fileName", "RANGE"))


class Table(ScriptedService):
    """A table that exists and takes every item."""

    def __init__(self):
        super().__init__()
        self.items = []
        self.answer = None

    def work(self, request):
        if self.answer is not None:
            return self.answer
        if request.headers["X-Amz-Target"].endswith(".PutItem"):
            self.items.append(json.loads(request.body)["Item"])
            return Reply(200, b"{}")
        about = {
            "TableStatus": "ACTIVE",
            "KeySchema": [{"AttributeName": name, "KeyType": role} for name, role in KEYS],
            "AttributeDefinitions": [{"AttributeName": n, "AttributeType": "S"} for n, _ in KEYS],
        }
        return Reply(200, json.dumps({"Table": about}).encode())


@pytest.fixture
def table(monkeypatch):
    with Table() as table:
        for name in ("HTTP_PROXY", "http_proxy"):
            monkeypatch.setenv(name, table.endpoint)
        for name in ("NO_PROXY", "no_proxy"):
            monkeypatch.delenv(name, raising=False)
        yield table


@pytest.fixture
def arbiter():
    own = {"endpoint": "http://table.test", "accessKeyId": "key", "secretAccessKey": "secret"}
    options = {f"optimist.store.dynamodb.{name}": value for name, value in own.items()}
    return DynamoDBArbiter(options, clock=ManualClock())


def test_entry_whose_answer_the_proxy_loses_has_no_known_outcome(table, arbiter):
    assert arbiter.create(entry_of("s3://b/t", 0)) is PutOutcome.CREATED
    table.script = [LOST]
    assert arbiter.create(entry_of("s3://b/t", 1)) is PutOutcome.UNKNOWN
    assert len(table.items) == 2


@pytest.mark.parametrize("page", [b"<html>Sign in</html>", b"", b"[]", b"\xff"])
def test_page_of_the_proxy_is_no_answer(table, arbiter, page):
    arbiter.get("s3://b/t", "0")
    table.answer = Reply(200, page)
    assert arbiter.create(entry_of("s3://b/t", 0)) is PutOutcome.UNKNOWN
    questions = (
        lambda: arbiter.get("s3://b/t", "0"),
        lambda: arbiter.latest("s3://b/t"),
        lambda: arbiter.complete(entry_of("s3://b/t", 0).completed(1)),
    )
    for ask in questions:
        with pytest.raises(StorageError) as caught:
            ask()
        assert caught.value.kind == "OPTIMIST_STORE_NO_ANSWER"


def test_query_without_items_is_no_answer(table, arbiter):
    arbiter.get("s3://b/t", "0")
    table.answer = Reply(200, b"{}")
    with pytest.raises(StorageError) as caught:
        arbiter.latest("s3://b/t")
    assert caught.value.kind == "OPTIMIST_STORE_NO_ANSWER"


def test_entry_is_unknown_if_the_proxy_waits_too_long(table, arbiter):
    arbiter.get("s3://b/t", "0")
    table.answer = Reply(408, b"")
    assert arbiter.create(entry_of("s3://b/t", 0)) is PutOutcome.UNKNOWN


def test_proxy_that_can_not_be_reached_is_told(table, arbiter):
    table.__exit__()
    with pytest.raises(StorageError) as caught:
        arbiter.get("s3://b/t", "0")
    assert caught.value.kind == "OPTIMIST_STORE_UNREACHABLE"
