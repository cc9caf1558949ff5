"""Servers that break off in mid answer, at any byte, and servers that never answer.

An answer cut in its headers looks whole to an SDK: a listing of nothing, an entry that is not
there, a file of no bytes. Whatever arrives, the store gives what is there, or says that it can't.
"""

import contextlib
import json
import socket
import socketserver
import threading
from email.utils import formatdate

import pytest

from optimist.core import DeltaLog
from optimist.core.errors import StorageError
from optimist.core.plugins.arbiter import CommitEntry
from optimist.core.plugins.logstore import PutOutcome
from optimist.core.runtime.budget import within_budget
from optimist.core.runtime.clock import SystemClock
from optimist.core.testing import ManualClock
from optimist.locks.connection_limit import broken_off_after
from optimist.locks.dynamodb_arbiter import DynamoDBArbiter
from optimist.locks.redis_arbiter import RedisArbiter
from optimist.logstores.azure.store import AzureLogStore
from optimist.logstores.gcs.store import GCSLogStore
from optimist.logstores.s3.store import S3LogStore

COMMIT = f"{7:020d}.json"
CONTENT = b'{"commitInfo":{"txnId":"seven"}}\n' * 3
KEY = "c2VjcmV0LWtleS1vZi10aGUtdGVzdA=="


class CannedServer(socketserver.ThreadingTCPServer):
    """Gives each connection one answer of `answers`, the last one for ever; records requests.

    An answer of None is none: the connection stays open and silent until the test is over.
    """

    daemon_threads = True
    request_queue_size = 64

    def __init__(self):
        super().__init__(("127.0.0.1", 0), _Handler)
        self.answers = [None]
        self.requests = []
        self.is_over = threading.Event()

    @property
    def endpoint(self):
        return f"http://127.0.0.1:{self.server_address[1]}"

    def handle_error(self, request, client_address):
        """A client that went away is no failure of the test."""


class _Handler(socketserver.BaseRequestHandler):
    def handle(self):
        received = b""
        with contextlib.suppress(OSError):
            while b"\r\n\r\n" not in received and (piece := self.request.recv(65536)):
                received += piece
                if self.server.answers[0] is None:
                    break
            answers = self.server.answers
            answer = answers.pop(0) if len(answers) > 1 else answers[0]
            self.server.requests.append(received)
            if answer is None:
                self.server.is_over.wait(120)
            else:
                self.request.sendall(answer)


@pytest.fixture
def server():
    with CannedServer() as running:
        thread = threading.Thread(target=running.serve_forever, args=(0.02,), daemon=True)
        thread.start()
        yield running
        running.is_over.set()
        running.shutdown()
        thread.join()


def answer(body, status="200 OK", **headers):
    lines = [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    head = "\r\n".join((f"HTTP/1.1 {status}", *lines, f"Content-Length: {len(body)}", "", ""))
    return head.encode() + body


def s3(server, **extra):
    return S3LogStore(
        {
            "fs.s3a.endpoint": server.endpoint,
            "fs.s3a.endpoint.region": "us-east-1",
            "fs.s3a.path.style.access": "true",
            "fs.s3a.access.key": "test",
            "fs.s3a.secret.key": "test",
            **extra,
        },
        clock=ManualClock(),
    )


def azure(server, **extra):
    own = {"account": "acct", "accountKey": KEY, "endpoint": f"{server.endpoint}/acct"}
    options = {f"optimist.store.azure.{name}": value for name, value in own.items()}
    return AzureLogStore({**options, **extra}, clock=ManualClock())


def gcs(server, **extra):
    options = {"optimist.store.gcs.emulatorHost": server.endpoint}
    return GCSLogStore({**options, **extra}, clock=ManualClock())


S3_LIST = answer(
    f"""<?xml version="1.0"?><ListBucketResult><Name>b</Name><Prefix>t/_delta_log/</Prefix>
<IsTruncated>false</IsTruncated><Contents><Key>t/_delta_log/{COMMIT}</Key>
<LastModified>2026-01-01T00:00:00.000Z</LastModified><ETag>"1"</ETag>
<Size>{len(CONTENT)}</Size></Contents></ListBucketResult>""".encode(),
    Content_Type="application/xml",
    x_amz_request_id="1",
    Date=formatdate(0, usegmt=True),
)
AZURE_LIST = answer(
    f"""<?xml version="1.0" encoding="utf-8"?><EnumerationResults><Blobs><Blob>
<Name>t/_delta_log/{COMMIT}</Name><Properties><Etag>1</Etag>
<Last-Modified>{formatdate(0, usegmt=True)}</Last-Modified>
<Content-Length>{len(CONTENT)}</Content-Length><BlobType>BlockBlob</BlobType></Properties>
</Blob></Blobs><NextMarker/></EnumerationResults>""".encode(),
    Content_Type="application/xml",
    x_ms_request_id="1",
)
GCS_LIST = answer(
    f"""{{"kind":"storage#objects","items":[{{"name":"t/_delta_log/{COMMIT}",
"size":"{len(CONTENT)}","updated":"2026-01-01T00:00:00.000Z"}}]}}""".encode(),
    Content_Type="application/json; charset=UTF-8",
    Vary="Origin",
)
S3_FILE = answer(
    CONTENT, ETag='"1"', Accept_Ranges="bytes", Last_Modified=formatdate(0, usegmt=True)
)
AZURE_FILE = answer(
    CONTENT,
    "206 Partial Content",
    ETag='"1"',
    Content_Range=f"bytes 0-{len(CONTENT) - 1}/{len(CONTENT)}",
    Last_Modified=formatdate(0, usegmt=True),
    x_ms_blob_type="BlockBlob",
    x_ms_request_id="1",
)
GCS_FILE = answer(CONTENT, Content_Type="application/octet-stream", ETag='"1"')

STORES = {
    "s3": (s3, "s3://b", S3_LIST, S3_FILE),
    "azure": (azure, "az://b", AZURE_LIST, AZURE_FILE),
    "gcs": (gcs, "gs://b", GCS_LIST, GCS_FILE),
}


def cuts(whole):
    """Where an answer may break off: at every byte of its headers, and here and there after."""
    head = whole.index(b"\r\n\r\n") + 4
    return (*range(1, head + 1), *range(head + 1, len(whole), 37), len(whole) - 1)


@pytest.mark.parametrize("name", STORES)
def test_listing_cut_at_any_byte_is_asked_for_again(server, name):
    make, root, whole, _ = STORES[name]
    store = make(server)
    for position in cuts(whole):
        server.answers = [whole[:position], whole]
        found = [each.name for each in store.list_from(f"{root}/t/_delta_log/{COMMIT}")]
        assert found == [COMMIT], whole[:position]


@pytest.mark.parametrize("name", STORES)
def test_file_cut_at_any_byte_is_read_again(server, name):
    make, root, _, whole = STORES[name]
    store = make(server)
    for position in cuts(whole):
        server.answers = [whole[:position], whole]
        assert store.read_bytes(f"{root}/t/_delta_log/{COMMIT}") == CONTENT, whole[:position]


def test_opened_file_cut_at_any_byte_is_read_again(server):
    store = azure(server)
    for position in cuts(AZURE_FILE):
        server.answers = [AZURE_FILE[:position], AZURE_FILE]
        with store.open_read(f"az://b/t/_delta_log/{COMMIT}") as file:
            assert file.read() == CONTENT


@pytest.mark.parametrize("name", STORES)
def test_listing_that_stays_cut_is_an_error_of_ours(server, name):
    make, root, whole, _ = STORES[name]
    store = make(server)
    for position in cuts(whole)[::5]:
        server.answers = [whole[:position]]
        with pytest.raises(StorageError) as caught:
            list(store.list_from(f"{root}/t/_delta_log/{COMMIT}"))
        assert caught.value.retryable, whole[:position]


# Arbiters


ENTRY = CommitEntry("s3://b/t", COMMIT, f".tmp/{COMMIT}.1", complete=False)
DYNAMODB_TABLE = answer(
    json.dumps(
        {
            "Table": {
                "TableStatus": "ACTIVE",
                "AttributeDefinitions": [
                    {"AttributeName": name, "AttributeType": "S"}
                    for name in ("tablePath", "fileName")
                ],
                "KeySchema": [
                    {"AttributeName": "tablePath", "KeyType": "HASH"},
                    {"AttributeName": "fileName", "KeyType": "RANGE"},
                ],
            }
        }
    ).encode(),
    Content_Type="application/x-amz-json-1.0",
)
ITEM = {
    "tablePath": {"S": ENTRY.table_path},
    "fileName": {"S": ENTRY.file_name},
    "tempPath": {"S": ENTRY.temp_path},
    "complete": {"S": "false"},
}


def dynamodb(server, **extra):
    own = {"endpoint": server.endpoint, "accessKeyId": "test", "secretAccessKey": "test"}
    options = {f"optimist.store.dynamodb.{name}": value for name, value in own.items()}
    return DynamoDBArbiter({**options, **extra}, clock=ManualClock())


def redis(server, **extra):
    options = {"optimist.store.redis.url": server.endpoint.replace("http", "redis")}
    return RedisArbiter({**options, **extra}, clock=ManualClock())


def dynamodb_answer(**fields):
    body = json.dumps(fields).encode()
    return answer(body, Content_Type="application/x-amz-json-1.0", x_amzn_RequestId="1")


@pytest.fixture
def dynamodb_arbiter(server):
    server.answers = [DYNAMODB_TABLE]
    arbiter = dynamodb(server)
    with contextlib.suppress(StorageError):
        arbiter.complete(ENTRY)
    return arbiter


@pytest.mark.parametrize("question", ["get", "latest"])
def test_entry_cut_at_any_byte_is_asked_for_again(server, dynamodb_arbiter, question):
    if question == "get":
        whole = dynamodb_answer(Item=ITEM)
    else:
        whole = dynamodb_answer(Items=[ITEM], Count=1)
    for position in cuts(whole):
        server.answers = [whole[:position], whole]
        if question == "get":
            found = dynamodb_arbiter.get(ENTRY.table_path, ENTRY.file_name)
        else:
            found = dynamodb_arbiter.latest(ENTRY.table_path)
        assert found == ENTRY, whole[:position]


def test_answer_to_a_new_entry_that_is_cut_is_no_answer_or_success(server, dynamodb_arbiter):
    whole = dynamodb_answer()
    for position in cuts(whole):
        server.answers = [whole[:position]]
        outcome = dynamodb_arbiter.create(ENTRY)
        assert outcome is PutOutcome.UNKNOWN, whole[:position]


@pytest.mark.parametrize("make", [dynamodb, redis])
def test_arbiter_that_never_answers_is_given_up_when_the_budget_is_spent(server, make, caplog):
    arbiter = make(server)
    with within_budget(SystemClock(), 3), pytest.raises(StorageError) as caught:
        arbiter.latest(ENTRY.table_path)
    assert caught.value.kind in ("OPTIMIST_STORE_BUDGET_SPENT", "OPTIMIST_STORE_NO_ANSWER")
    assert "Trying again" in caplog.text


def test_statement_that_is_never_answered_is_broken_off():
    ours, theirs = socket.socketpair()
    with ours, theirs:
        with broken_off_after(0.05, ours):
            assert ours.recv(1) == b"", "an end where there was silence"
        with pytest.raises(BrokenPipeError):
            ours.send(b"x")


def test_statement_that_is_answered_keeps_its_connection():
    ours, theirs = socket.socketpair()
    with ours, theirs:
        with broken_off_after(30, ours):
            theirs.send(b"x")
            assert ours.recv(1) == b"x"
        theirs.send(b"y")
        assert ours.recv(1) == b"y"


# Servers that never answer


@pytest.mark.parametrize("name", STORES)
def test_server_that_never_answers_is_given_up_when_the_budget_is_spent(server, name, caplog):
    make, root, _, _ = STORES[name]
    options = {"optimist.storage.budgetSeconds": "2"}
    log = DeltaLog.for_path(f"{root}/t", {**make(server).options, **options})
    with pytest.raises(StorageError) as caught:
        log.snapshot()
    assert caught.value.kind in ("OPTIMIST_STORE_BUDGET_SPENT", "OPTIMIST_STORE_NO_ANSWER")
    assert len(server.requests) > 1, "a request that is not answered is made again"
    assert "Trying again" in caplog.text
