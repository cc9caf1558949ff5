import base64
import email.utils
import hashlib
import io
import re
import socket
import threading
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, unquote, urlsplit
from xml.sax.saxutils import escape

import pyarrow as pa
import pytest

from optimist.core import DeltaLog
from optimist.core.errors import ConfigError, LogFileNotFoundError, StorageError
from optimist.core.plugins.logstore import PutOutcome
from optimist.core.testing import LogStoreSuite, ManualClock
from optimist.logstores.azure.store import AzureLogStore
from optimist.logstores.shared.create_probe import known_verdict

KEY = "c2VjcmV0LWtleS1vZi10aGUtdGVzdA=="
PATH = "az://box/t/_delta_log/00000000000000000000.json"


class FakeBlobService(ThreadingHTTPServer):
    """Blobs of one account in memory; speaks as much of the protocol as the store needs.

    `script` holds what the next requests get in place of an answer: a status and an error code, or
    `"lost"` for an answer that is dropped once the work is done.
    """

    daemon_threads = True
    request_queue_size = 128

    def __init__(self, *, page_size=5000, honours_condition=True, knows_start_from=True):
        super().__init__(("127.0.0.1", 0), _Handler)
        self.lock = threading.Lock()
        self.blobs = {}
        self.staged = {}
        self.page_size = page_size
        self.honours_condition = honours_condition
        self.knows_start_from = knows_start_from
        self.script = []
        self.requests = []
        self.changes = 0

    @property
    def endpoint(self):
        return f"http://127.0.0.1:{self.server_address[1]}/acct"

    def options(self, **own):
        given = {"account": "acct", "accountKey": KEY, "endpoint": self.endpoint, **own}
        return {f"optimist.store.azure.{name}": value for name, value in given.items()}

    def handle_error(self, request, client_address):
        """A client that went away is no failure of the test."""

    def __enter__(self):
        threading.Thread(target=self.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_):
        self.shutdown()
        self.server_close()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def log_message(self, *_):
        pass

    def handle_any(self):
        url = urlsplit(self.path)
        # Read before anything is answered, or the rest is taken for the next request.
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        service = self.server
        with service.lock:
            service.requests.append((self.command, unquote(url.path), dict(self.headers)))
            planned = service.script.pop(0) if service.script else None
            if planned is None or planned == "lost":
                reply = self.work(url, body)
        if planned == "lost":
            self.connection.shutdown(socket.SHUT_RDWR)
            self.close_connection = True
            return
        self.answer(*(reply if planned is None else (*planned, b"")))

    do_GET = do_PUT = do_HEAD = do_DELETE = handle_any  # noqa: N815 - the server looks for these

    def work(self, url, body):
        """Status, error code, body."""
        query = {name: values[0] for name, values in parse_qs(url.query).items()}
        if query.get("comp") == "list":
            return 200, "", self.listing(query)
        name = unquote(url.path).removeprefix("/acct/box/")
        if query.get("comp") == "block":
            assert not name.endswith(".json"), "a commit is one request"
            self.server.staged[name, query["blockid"]] = body
            return 201, "", b""
        if query.get("comp") == "blocklist":
            wanted = re.findall(r"<Latest>(.*?)</Latest>", body.decode())
            return self.create(name, b"".join(self.server.staged[name, each] for each in wanted))
        assert "comp" not in query, url.query
        return getattr(self, f"blob_{self.command.lower()}")(name, body)

    def blob_put(self, name, body):
        assert self.headers["x-ms-blob-type"] == "BlockBlob"
        return self.create(name, body)

    def create(self, name, body):
        blobs = self.server.blobs
        is_conditional = self.headers.get("If-None-Match") == "*" and self.server.honours_condition
        if is_conditional and name in blobs:
            return 409, "BlobAlreadyExists", b""
        self.server.changes += 1
        blobs[name] = (body, f'"0x{self.server.changes}"')
        return 201, "", b""

    def blob_delete(self, name, body):
        if self.server.blobs.pop(name, None) is None:
            return 404, "BlobNotFound", b""
        return 202, "", b""

    def blob_get(self, name, body):
        found = self.server.blobs.get(name)
        if found is None:
            return 404, "BlobNotFound", b""
        data, self.etag = found
        if self.headers.get("If-Match") not in (None, self.etag):
            return 412, "ConditionNotMet", b""
        asked = re.fullmatch(r"bytes=(\d+)-(\d+)", self.headers.get("x-ms-range", ""))
        if asked is None or self.command == "HEAD":
            return 200, "", data
        start, end = int(asked[1]), min(int(asked[2]), len(data) - 1)
        if start >= len(data):
            return 416, "InvalidRange", b""
        self.content_range = f"bytes {start}-{end}/{len(data)}"
        return 206, "", data[start : end + 1]

    blob_head = blob_get

    def listing(self, query):
        prefix, delimiter = query.get("prefix", ""), query.get("delimiter")
        start = query.get("startFrom", "") if self.server.knows_start_from else ""
        start = max(start, query.get("marker", ""))
        items = {}
        for name, (data, etag) in sorted(self.server.blobs.items()):
            if not name.startswith(prefix) or name < start:
                continue
            below = name[len(prefix) :]
            if delimiter and delimiter in below:
                items[prefix + below.split(delimiter)[0] + delimiter] = None
            else:
                items[name] = (len(data), etag)
        names = list(items)
        size = min(self.server.page_size, int(query.get("maxresults", 5000)))
        entries = "".join(_entry(name, items[name]) for name in names[:size])
        marker = escape(names[size]) if len(names) > size else ""
        return (
            '<?xml version="1.0" encoding="utf-8"?><EnumerationResults ContainerName="box">'
            f"<Prefix>{escape(prefix)}</Prefix><Blobs>{entries}</Blobs><NextMarker>{marker}</NextMarker></EnumerationResults>"
        ).encode()

    def answer(self, status, code, body):
        self.send_response(status)
        if code:
            self.send_header("x-ms-error-code", code)
        else:
            self.send_header("Last-Modified", "Fri, 20 Nov 2026 10:00:00 GMT")
            self.send_header("ETag", getattr(self, "etag", '"0x0"'))
            self.send_header("x-ms-blob-type", "BlockBlob")
        if hasattr(self, "content_range"):
            self.send_header("Content-Range", self.content_range)
            del self.content_range
        self.send_header("Content-Type", "application/xml" if b"<?xml" in body else "binary/x")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)


def _entry(name, found):
    if found is None:
        return f"<BlobPrefix><Name>{escape(name)}</Name></BlobPrefix>"
    size, etag = found
    when = email.utils.formatdate(1_790_000_000, usegmt=True)
    return (
        f"<Blob><Name>{escape(name)}</Name><Properties><Last-Modified>{when}</Last-Modified>"
        f"<Etag>{escape(etag)}</Etag><Content-Length>{size}</Content-Length>"
        "<BlobType>BlockBlob</BlobType></Properties></Blob>"
    )


@pytest.fixture
def service():
    with FakeBlobService() as service:
        yield service


@pytest.fixture
def clock():
    return ManualClock()


@pytest.fixture
def store(service, clock):
    return AzureLogStore(service.options(), clock=clock)


@pytest.fixture
def probed(service, store):
    """The store when the endpoint has been probed already, and nothing has been asked since."""
    store.put_if_absent("az://box/other", b"x")
    service.blobs.clear()
    service.requests.clear()
    return store


class TestAzureLogStore(LogStoreSuite):
    has_directories = False

    @pytest.fixture(scope="class", autouse=True)
    @classmethod
    def running(cls):
        # Small pages, so that every longer listing is several requests.
        with FakeBlobService(page_size=7) as service:
            cls.service = service
            cls.store_factory = partial(AzureLogStore, service.options())
            yield

    @pytest.fixture
    def directory(self, request):
        self.service.blobs.clear()
        return "abfss://box@acct.dfs.core.windows.net/" + str(abs(hash(request.node.name)))

    def peek(self, path):
        return self.service.blobs.get(_name(path), (None,))[0]

    def poke(self, path, data):
        self.service.blobs[_name(path)] = (data, '"poked"')


def _name(path):
    return path.removeprefix("abfss://box@acct.dfs.core.windows.net/")


# One request, and what each answer means


def test_commit_is_one_conditional_put_blob(service, probed):
    assert probed.put_if_absent(PATH, b"data") is PutOutcome.CREATED
    [(method, path, headers)] = service.requests
    assert (method, path) == ("PUT", "/acct/box/t/_delta_log/00000000000000000000.json")
    assert headers["If-None-Match"] == "*"
    assert headers["Content-Length"] == "4"


def test_commit_larger_than_the_sdks_threshold_is_one_request_too(service, probed):
    data = bytes(65 * 1024 * 1024)
    assert probed.put_if_absent(PATH, data) is PutOutcome.CREATED
    assert len(service.requests) == 1


@pytest.mark.parametrize(
    ("answer", "outcome"),
    [
        ((409, "BlobAlreadyExists"), PutOutcome.EXISTS),
        ((412, "ConditionNotMet"), PutOutcome.EXISTS),
        ((412, "LeaseIdMissing"), PutOutcome.EXISTS),
        ((409, "SnapshotsPresent"), PutOutcome.UNKNOWN),
        ((408, "RequestTimeout"), PutOutcome.UNKNOWN),
        ((500, "InternalError"), PutOutcome.UNKNOWN),
        ((500, "OperationTimedOut"), PutOutcome.UNKNOWN),
        ((502, "Whatever"), PutOutcome.UNKNOWN),
        ((503, "Whatever"), PutOutcome.UNKNOWN),
        ("lost", PutOutcome.UNKNOWN),
    ],
)
def test_answer_to_a_put_is_told_as_it_is_and_never_retried(service, probed, answer, outcome):
    service.script = [answer]
    assert probed.put_if_absent(PATH, b"x") is outcome
    assert len(service.requests) == 1


def test_lost_answer_leaves_the_file(service, probed):
    service.script = ["lost"]
    assert probed.put_if_absent(PATH, b"ours") is PutOutcome.UNKNOWN
    assert probed.read_bytes(PATH) == b"ours"
    assert probed.put_if_absent(PATH, b"ours") is PutOutcome.EXISTS


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        ((404, "ContainerNotFound"), "OPTIMIST_BUCKET_NOT_FOUND"),
        ((409, "ContainerBeingDeleted"), "OPTIMIST_BUCKET_NOT_FOUND"),
        ((401, "NoAuthenticationInformation"), "OPTIMIST_INVALID_CREDENTIALS"),
        ((403, "AuthenticationFailed"), "OPTIMIST_INVALID_CREDENTIALS"),
        ((409, "PublicAccessNotPermitted"), "OPTIMIST_INVALID_CREDENTIALS"),
        ((403, "AuthorizationPermissionMismatch"), "OPTIMIST_PERMISSION_DENIED"),
        ((403, "AuthorizationFailure"), "OPTIMIST_PERMISSION_DENIED"),
        ((409, "ResourceTypeMismatch"), "OPTIMIST_NOT_A_FILE"),
        ((400, "InvalidResourceName"), "OPTIMIST_INVALID_PATH"),
        ((413, "RequestBodyTooLarge"), "OPTIMIST_FILE_TOO_LARGE"),
        ((400, "InvalidHeaderValue"), "OPTIMIST_REQUEST_REFUSED"),
    ],
)
def test_refused_put_raises_and_wrote_nothing(service, probed, answer, kind):
    service.script = [answer]
    with pytest.raises(StorageError) as caught:
        probed.put_if_absent(PATH, b"x")
    assert caught.value.kind == kind
    assert caught.value.fields["status"] == answer[0]
    assert caught.value.fields["code"] == answer[1]
    assert not caught.value.retryable
    assert service.blobs == {}
    assert KEY not in str(caught.value)


@pytest.mark.parametrize("busy", [(503, "ServerBusy"), (429, "TooManyRequests")])
def test_busy_service_is_asked_again_after_a_pause_by_the_clock(service, probed, clock, busy):
    service.script = [busy, busy]
    assert probed.put_if_absent(PATH, b"x") is PutOutcome.CREATED
    assert len(service.requests) == 3
    assert len(clock.sleeps) == 2
    assert 0 < clock.sleeps[0] < clock.sleeps[1]


def test_existing_file_after_a_busy_answer_may_be_our_own(service, probed):
    service.script = [(503, "ServerBusy"), (409, "BlobAlreadyExists")]
    assert probed.put_if_absent(PATH, b"x") is PutOutcome.UNKNOWN


def test_refusal_after_a_busy_answer_is_not_a_refusal_of_both(service, probed):
    service.script = [(503, "ServerBusy"), (403, "AuthenticationFailed")]
    assert probed.put_if_absent(PATH, b"x") is PutOutcome.UNKNOWN


def test_service_that_stays_busy_leaves_the_outcome_open(service, probed):
    service.script = [(503, "ServerBusy")] * 5
    assert probed.put_if_absent(PATH, b"x") is PutOutcome.UNKNOWN
    assert len(service.requests) == 5


def test_endpoint_that_is_down_is_told_within_bounded_tries(clock):
    with FakeBlobService() as gone:
        options = gone.options()
    store = AzureLogStore(options, clock=clock)
    for call in (
        lambda: store.put_if_absent(PATH, b"x"),
        lambda: store.read_bytes(PATH),
        lambda: list(store.list_from(PATH)),
    ):
        with pytest.raises(StorageError) as caught:
            call()
        assert caught.value.kind == "OPTIMIST_STORE_UNREACHABLE"
        assert caught.value.retryable
    assert len(clock.sleeps) == 8  # reading and listing, five tries each


def test_reads_are_tried_again_and_give_up(service, probed, clock):
    service.blobs["f"] = (b"x", '"1"')
    service.script = [(500, "InternalError"), (503, "ServerBusy")]
    assert probed.read_bytes("az://box/f") == b"x"
    service.script = [(500, "InternalError")] * 5
    with pytest.raises(StorageError) as caught:
        probed.read_bytes("az://box/f")
    assert caught.value.retryable
    assert len(clock.sleeps) == 6


def test_missing_container_is_told_from_a_missing_table(service, probed):
    service.script = [(404, "ContainerNotFound")]
    with pytest.raises(StorageError) as caught:
        list(probed.list_from(PATH))
    assert caught.value.kind == "OPTIMIST_BUCKET_NOT_FOUND"
    assert not isinstance(caught.value, FileNotFoundError)


# Listing and reading


def test_listing_asks_from_the_name_on(service, probed):
    for version in range(100):
        service.blobs[f"t/_delta_log/{version:020d}.json"] = (b"x", '"1"')
    assert len(list(probed.list_from(f"az://box/t/_delta_log/{95:020d}.json"))) == 5
    assert len(service.requests) == 1


def test_listing_is_right_where_the_start_is_not_known():
    with FakeBlobService(page_size=7, knows_start_from=False) as service:
        for version in range(30):
            service.blobs[f"t/{version:020d}.json"] = (b"x", '"1"')
        store = AzureLogStore(service.options())
        listed = [status.name for status in store.list_from(f"az://box/t/{12:020d}.json")]
    assert listed == [f"{version:020d}.json" for version in range(12, 30)]


def test_opened_file_fetches_ranges_of_one_version(service, probed):
    data = bytes(range(256)) * 8192
    service.blobs["f"] = (data, '"1"')
    with probed.open_read("az://box/f") as file:
        file.seek(-1000, 2)
        assert file.read(10) == data[-1000:-990]
        assert (
            sum(method == "GET" for method, _, _ in service.requests) == 2
        )  # the beginning, and the end
        service.blobs["f"] = (data, '"2"')
        file.seek(0)
        with pytest.raises(StorageError) as caught:
            file.read(10)
    assert caught.value.kind == "OPTIMIST_FILE_CHANGED"


# The probe of custom endpoints


def test_custom_endpoint_is_probed_once_and_cleaned(service, store):
    assert store.put_if_absent(PATH, b"x") is PutOutcome.CREATED
    assert list(service.blobs) == ["t/_delta_log/00000000000000000000.json"]
    assert [method for method, _, _ in service.requests] == ["PUT", "PUT", "DELETE", "PUT"]
    AzureLogStore(service.options()).put_if_absent(PATH, b"x")
    assert len(service.requests) == 5
    assert "box refuses a second creation" in store.describe()["probed"]


def test_endpoint_that_ignores_the_condition_is_not_written():
    with FakeBlobService(honours_condition=False) as service:
        store = AzureLogStore(service.options())
        for _ in range(2):
            with pytest.raises(ConfigError) as caught:
                store.put_if_absent(PATH, b"x")
            assert caught.value.kind == "OPTIMIST_NO_ATOMIC_CREATE"
            assert service.blobs == {}
        assert len(service.requests) == 3
        assert "accepts a second creation" in store.describe()["probed"]
        with pytest.raises(LogFileNotFoundError):
            store.read_bytes(PATH)


def test_refusal_can_be_overridden_and_every_commit_is_logged(caplog):
    with FakeBlobService(honours_condition=False) as service:
        store = AzureLogStore(service.options(allowUnsafeWrites="true"))
        for version in range(2):
            store.put_if_absent(f"az://box/t/{version}", b"x")
        assert set(service.blobs) == {"t/0", "t/1"}
    assert [record.levelname for record in caplog.records] == ["WARNING"] * 2
    assert "allowUnsafeWrites" in caplog.text


def test_probe_without_an_answer_decides_nothing(service, store):
    service.script = ["lost", "lost"]
    with pytest.raises(StorageError) as caught:
        store.put_if_absent(PATH, b"x")
    assert caught.value.kind == "OPTIMIST_STORE_NO_ANSWER"
    assert caught.value.retryable
    assert known_verdict(service.endpoint, "box") is None
    assert store.put_if_absent(PATH, b"x") is PutOutcome.CREATED


def test_probe_needs_no_permission_to_delete(service, store):
    service.script = [None, None, (403, "AuthorizationPermissionMismatch")]
    assert store.put_if_absent(PATH, b"x") is PutOutcome.CREATED


# Secrets


def test_signature_shows_in_no_error(clock):
    with FakeBlobService() as gone:
        endpoint = gone.endpoint
    store = AzureLogStore(
        {
            "optimist.store.azure.account": "acct",
            "optimist.store.azure.endpoint": endpoint,
            "optimist.store.azure.sas": "?sv=2026-01-01&sig=hunter2",
        },
        clock=clock,
    )
    with pytest.raises(StorageError) as caught:
        store.read_bytes(PATH)
    assert "hunter2" not in str(caught.value)
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__
    assert "hunter2" not in str(store.describe()) + repr(store._parsed)


def test_the_blocks_of_two_writers_of_one_checkpoint_are_told_apart(service, store):
    path = "abfss://box@acct.dfs.core.windows.net/t/_delta_log/0.checkpoint.parquet"
    contents = [bytes([number]) * (9 << 20) for number in (1, 2)]
    other = AzureLogStore(service.options())
    outcomes = [
        each.put_file_if_absent(path, io.BytesIO(content))
        for each, content in zip((store, other), contents, strict=True)
    ]
    assert outcomes == [PutOutcome.CREATED, PutOutcome.EXISTS]
    assert len(service.staged) == 4  # two blocks each, none of them replaced
    assert store.read_bytes(path) == contents[0]


def test_data_file_is_one_conditional_put_blob_with_its_checksum(service):
    log = DeltaLog.for_path("az://box/t", service.options())
    log.append(pa.table({"id": [1, 2]}))
    sent = [(method, headers) for method, path, headers in service.requests if "/part-" in path]
    ((method, headers),) = sent
    assert (method, headers["If-None-Match"], headers["x-ms-blob-type"]) == (
        "PUT",
        "*",
        "BlockBlob",
    )
    (data,) = (body for name, (body, _) in service.blobs.items() if "/part-" in name)
    md5 = hashlib.md5(data, usedforsecurity=False).digest()
    assert headers["Content-MD5"] == base64.b64encode(md5).decode()


def test_data_file_whose_answer_was_lost_is_read_back(service):
    log = DeltaLog.for_path("az://box/t", service.options())
    log.append(pa.table({"id": [1]}))
    service.script = [None, "lost"]  # of the listing that opens the table, and of the file
    assert log.append(pa.table({"id": [2]})).version == 1
    of_data = [method for method, path, _ in service.requests if "/part-" in path]
    assert of_data[:2] == ["PUT", "PUT"]
    assert set(of_data[2:]) <= {"HEAD", "GET"}
    assert len(of_data) > 2
