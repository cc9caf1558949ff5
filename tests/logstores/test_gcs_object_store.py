import base64
import hashlib
import json
import re
import socket
import threading
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, unquote, urlsplit

import google_crc32c
import pyarrow as pa
import pytest

from optimist.core import DeltaLog
from optimist.core.errors import ConfigError, LogFileNotFoundError, StorageError
from optimist.core.plugins.logstore import PutOutcome
from optimist.core.testing import LogStoreSuite, ManualClock
from optimist.logstores.gcs.store import GCSLogStore
from optimist.logstores.shared.create_probe import known_verdict

PATH = "gs://box/t/_delta_log/00000000000000000000.json"
_PART = re.compile(
    rb"--(?P<mark>\S+)\r\n.*?\r\n\r\n(?P<about>.*?)\r\n--(?P=mark)\r\n.*?\r\n\r\n", re.S
)


class FakeJsonApi(ThreadingHTTPServer):
    """The objects of one bucket in memory, each with a generation that preconditions are about.

    `script` holds what the next requests get in place of an answer: a status and a reason, or
    `"lost"` for an answer that is dropped once the work is done.
    """

    daemon_threads = True
    request_queue_size = 128

    def __init__(self, *, page_size=1000, honours_condition=True):
        super().__init__(("127.0.0.1", 0), _Handler)
        self.lock = threading.Lock()
        self.objects = {}
        self.uploads = []
        self.page_size = page_size
        self.honours_condition = honours_condition
        self.script = []
        self.requests = []
        self.generation = 100

    @property
    def endpoint(self):
        return f"http://127.0.0.1:{self.server_address[1]}"

    def options(self, **own):
        given = {"emulatorHost": self.endpoint, **own}
        return {f"optimist.store.gcs.{name}": value for name, value in given.items()}

    def put(self, name, data):
        self.generation += 1
        self.objects[name] = (data, self.generation)
        return self.about(name)

    def about(self, name):
        data, generation = self.objects[name]
        return {
            "name": name,
            "bucket": "box",
            "generation": str(generation),
            "size": str(len(data)),
            "updated": "2026-11-20T10:00:00.123Z",
            "crc32c": base64.b64encode(google_crc32c.Checksum(data).digest()).decode(),
        }

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
        if url.path == "/storage/v1/b/box":
            # The client library asks about the bucket by itself, in a thread, for its traces.
            self.reply(*_refusal(403, "forbidden"))
            return
        query = {name: values[0] for name, values in parse_qs(url.query).items()}
        with service.lock:
            service.requests.append((self.command, url.path, query))
            planned = service.script.pop(0) if service.script else None
            if planned is None or planned == "lost":
                status, reply, *headers = self.work(url.path, query, body)
        if planned == "lost":
            self.connection.shutdown(socket.SHUT_RDWR)
            self.close_connection = True
            return
        if planned is not None:
            status, reply, *headers = _refusal(*planned)
        self.reply(status, reply, headers)

    def reply(self, status, body, headers=()):
        self.send_response(status)
        for name, value in headers:
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    do_GET = do_POST = do_PUT = do_DELETE = handle_any  # noqa: N815 - the server looks for these

    def work(self, path, query, body):
        """Status, body and headers."""
        if path == "/upload/storage/v1/b/box/o":
            return self.upload(query, body)
        if path == "/storage/v1/b/box/o":
            return 200, json.dumps(self.listing(query)).encode()
        media, name = re.fullmatch(r"(/download)?/storage/v1/b/box/o/(.*)", path).groups()
        name = unquote(name)
        if name not in self.server.objects:
            return _refusal(404, "notFound")
        if self.command == "DELETE":
            del self.server.objects[name]
            return 204, b""
        return (
            self.media(name, query)
            if media
            else (200, json.dumps(self.server.about(name)).encode())
        )

    def upload(self, query, body):
        if query["uploadType"] == "resumable":
            return self.upload_piece(query, body)
        part = _PART.match(body)
        data = body[part.end() : -len(b"\r\n--" + part["mark"] + b"--\r\n")]
        about = json.loads(part["about"])
        assert base64.b64decode(about["md5Hash"]) == hashlib.md5(data).digest()
        return self.create(about["name"], data, query)

    def upload_piece(self, query, body):
        uploads = self.server.uploads
        if self.command == "POST":
            name = json.loads(body)["name"]
            assert not name.endswith(".json"), "a commit is one request"
            uploads.append((name, query, bytearray()))
            link = f"{self.server.endpoint}{self.path}&upload_id={len(uploads) - 1}"
            return 200, b"", ("Location", link)
        name, begun_with, received = uploads[int(query["upload_id"])]
        received += body
        if not self.headers["Content-Range"].endswith(f"/{len(received)}"):
            return 308, b"", ("Range", f"bytes=0-{len(received) - 1}")
        return self.create(name, bytes(received), begun_with)

    def create(self, name, data, query):
        is_conditional = query.get("ifGenerationMatch") == "0" and self.server.honours_condition
        if is_conditional and name in self.server.objects:
            return _refusal(412, "conditionNotMet")
        return 200, json.dumps(self.server.put(name, data)).encode()

    def media(self, name, query):
        data, generation = self.server.objects[name]
        if query.get("ifGenerationMatch", str(generation)) != str(generation):
            return _refusal(412, "conditionNotMet")
        asked = re.fullmatch(r"bytes=(\d+)-(\d+)", self.headers.get("Range", ""))
        if asked is None:
            return 200, data
        return 206, data[int(asked[1]) : int(asked[2]) + 1]

    def listing(self, query):
        prefix, delimiter = query.get("prefix", ""), query.get("delimiter")
        start = max(query.get("startOffset", ""), query.get("pageToken", ""))
        names = {}
        for name in sorted(self.server.objects):
            if name.startswith(prefix) and name >= start:
                below = name[len(prefix) :]
                is_deeper = delimiter is not None and delimiter in below
                names[prefix + below.split("/")[0] + "/" if is_deeper else name] = is_deeper
        size = min(self.server.page_size, int(query.get("maxResults", 1000)))
        page, rest = list(names)[:size], list(names)[size:]
        return {
            "items": [self.server.about(name) for name in page if not names[name]],
            "prefixes": [name for name in page if names[name]],
            **({"nextPageToken": rest[0]} if rest else {}),
        }


def _refusal(status, reason):
    error = {"code": status, "message": "no", "errors": [{"reason": reason, "message": "no"}]}
    return status, json.dumps({"error": error}).encode()


@pytest.fixture
def service():
    with FakeJsonApi() as service:
        yield service


@pytest.fixture
def clock():
    return ManualClock()


@pytest.fixture
def store(service, clock):
    return GCSLogStore(service.options(), clock=clock)


@pytest.fixture
def probed(service, store):
    """The store when the endpoint has been probed already, and nothing has been asked since."""
    store.put_if_absent("gs://box/other", b"x")
    service.objects.clear()
    service.requests.clear()
    return store


class TestGCSLogStore(LogStoreSuite):
    has_directories = False

    @pytest.fixture(scope="class", autouse=True)
    @classmethod
    def running(cls):
        # Small pages, so that every longer listing is several requests.
        with FakeJsonApi(page_size=7) as service:
            cls.service = service
            cls.store_factory = partial(GCSLogStore, service.options())
            yield

    @pytest.fixture
    def directory(self):
        self.service.objects.clear()
        return "gs://box/table/_delta_log"

    def peek(self, path):
        return self.service.objects.get(path.removeprefix("gs://box/"), (None,))[0]

    def poke(self, path, data):
        self.service.put(path.removeprefix("gs://box/"), data)


# One request, and what each answer means


@pytest.mark.parametrize("size", [4, 9 * 1024 * 1024], ids=["small", "past the sdk's threshold"])
def test_commit_is_one_upload_request_with_the_condition(service, probed, size):
    assert probed.put_if_absent(PATH, bytes(size)) is PutOutcome.CREATED
    [(method, path, query)] = service.requests
    assert (method, path) == ("POST", "/upload/storage/v1/b/box/o")
    assert query == {"uploadType": "multipart", "ifGenerationMatch": "0"}


@pytest.mark.parametrize(
    ("answer", "outcome"),
    [
        ((412, "conditionNotMet"), PutOutcome.EXISTS),
        ((429, "rateLimitExceeded"), PutOutcome.UNKNOWN),
        ((403, "rateLimitExceeded"), PutOutcome.UNKNOWN),
        ((503, "backendError"), PutOutcome.UNKNOWN),
        ((500, "internalError"), PutOutcome.UNKNOWN),
        ((502, ""), PutOutcome.UNKNOWN),
        ((504, ""), PutOutcome.UNKNOWN),
        ((408, ""), PutOutcome.UNKNOWN),
        ((409, "conflict"), PutOutcome.UNKNOWN),
        ("lost", PutOutcome.UNKNOWN),
    ],
)
def test_answer_to_a_put_is_told_as_it_is_and_never_retried(
    service, probed, clock, answer, outcome
):
    service.script = [answer]
    assert probed.put_if_absent(PATH, b"x") is outcome
    assert len(service.requests) == 1
    assert clock.sleeps == ()


def test_lost_answer_leaves_the_file(service, probed):
    service.script = ["lost"]
    assert probed.put_if_absent(PATH, b"ours") is PutOutcome.UNKNOWN
    assert probed.read_bytes(PATH) == b"ours"
    assert probed.put_if_absent(PATH, b"ours") is PutOutcome.EXISTS


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        ((404, "notFound"), "OPTIMIST_BUCKET_NOT_FOUND"),
        ((403, "forbidden"), "OPTIMIST_PERMISSION_DENIED"),
        ((413, "uploadTooLarge"), "OPTIMIST_FILE_TOO_LARGE"),
        ((400, "invalid"), "OPTIMIST_REQUEST_REFUSED"),
        ((307, ""), "OPTIMIST_REQUEST_REFUSED"),
    ],
)
def test_refused_put_raises_and_wrote_nothing(service, probed, answer, kind):
    service.script = [answer]
    with pytest.raises(StorageError) as caught:
        probed.put_if_absent(PATH, b"x")
    assert caught.value.kind == kind
    assert caught.value.fields["status"] == answer[0]
    assert not caught.value.retryable
    assert service.objects == {}


def test_credentials_that_are_refused_are_told(service, probed):
    service.script = [(401, "authError")] * 3
    with pytest.raises(StorageError) as caught:
        probed.put_if_absent(PATH, b"x")
    assert caught.value.kind == "OPTIMIST_INVALID_CREDENTIALS"


def test_endpoint_that_is_down_is_told_within_bounded_tries(clock):
    with FakeJsonApi() as gone:
        options = gone.options()
    store = GCSLogStore(options, clock=clock)
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
    service.put("f", b"x")
    service.script = [(500, ""), (503, ""), (429, "rateLimitExceeded")]
    assert probed.read_bytes("gs://box/f") == b"x"
    service.script = [(500, "")] * 5
    with pytest.raises(StorageError) as caught:
        probed.read_bytes("gs://box/f")
    assert caught.value.retryable
    assert len(clock.sleeps) == 7


def test_page_that_fails_is_asked_again(service, probed):
    service.page_size = 3
    for version in range(8):
        service.put(f"t/{version}", b"x")
    listing = probed.list_from("gs://box/t/1")
    names = [next(listing).name for _ in range(3)]
    service.script = [(503, "")]
    assert names + [status.name for status in listing] == list("1234567")


def test_missing_bucket_is_told_from_a_missing_table(service, probed):
    service.script = [(404, "notFound")]
    with pytest.raises(StorageError) as caught:
        list(probed.list_from(PATH))
    assert caught.value.kind == "OPTIMIST_BUCKET_NOT_FOUND"
    assert not isinstance(caught.value, FileNotFoundError)


def test_listing_asks_from_the_name_on(service, probed):
    for version in range(100):
        service.put(f"t/{version:020d}.json", b"x")
    assert len(list(probed.list_from(f"gs://box/t/{95:020d}.json"))) == 5
    [(_, _, query)] = service.requests
    assert query["startOffset"] == f"t/{95:020d}.json"


def test_opened_file_fetches_ranges_of_one_version(service, probed):
    data = bytes(range(256)) * 8192
    service.put("f", data)
    with probed.open_read("gs://box/f") as file:
        file.seek(-1000, 2)
        assert file.read(10) == data[-1000:-990]
        assert len(service.requests) == 2
        service.put("f", data)
        file.seek(0)
        with pytest.raises(StorageError) as caught:
            file.read(10)
    assert caught.value.kind == "OPTIMIST_FILE_CHANGED"


def test_payer_is_named_in_every_request(service):
    store = GCSLogStore(service.options(userProject="payer"))
    store.put_if_absent(PATH, b"x")
    store.put_overwrite(PATH, b"y")
    store.read_bytes(PATH)
    list(store.list_from(PATH))
    store.delete(PATH)
    assert {query.get("userProject") for _, _, query in service.requests} == {"payer"}


# The probe of custom endpoints


def test_custom_endpoint_is_probed_once_and_cleaned(service, store):
    assert store.put_if_absent(PATH, b"x") is PutOutcome.CREATED
    assert list(service.objects) == ["t/_delta_log/00000000000000000000.json"]
    assert [method for method, _, _ in service.requests] == ["POST", "POST", "DELETE", "POST"]
    GCSLogStore(service.options()).put_if_absent(PATH, b"x")
    assert len(service.requests) == 5
    assert "box refuses a second creation" in store.describe()["probed"]


def test_endpoint_that_ignores_the_condition_is_not_written():
    with FakeJsonApi(honours_condition=False) as service:
        store = GCSLogStore(service.options())
        for _ in range(2):
            with pytest.raises(ConfigError) as caught:
                store.put_if_absent(PATH, b"x")
            assert caught.value.kind == "OPTIMIST_NO_ATOMIC_CREATE"
            assert service.objects == {}
        assert len(service.requests) == 3
        with pytest.raises(LogFileNotFoundError):
            store.read_bytes(PATH)


def test_refusal_can_be_overridden_and_every_commit_is_logged(caplog):
    with FakeJsonApi(honours_condition=False) as service:
        store = GCSLogStore(service.options(allowUnsafeWrites="true"))
        for version in range(2):
            store.put_if_absent(f"gs://box/t/{version}", b"x")
        assert set(service.objects) == {"t/0", "t/1"}
    warnings = [record for record in caplog.records if record.levelname == "WARNING"]
    assert len(warnings) == 2
    assert "allowUnsafeWrites" in caplog.text


def test_probe_without_an_answer_decides_nothing(service, store):
    service.script = ["lost", "lost"]
    with pytest.raises(StorageError) as caught:
        store.put_if_absent(PATH, b"x")
    assert caught.value.kind == "OPTIMIST_STORE_NO_ANSWER"
    assert known_verdict(service.endpoint, "box") is None
    assert store.put_if_absent(PATH, b"x") is PutOutcome.CREATED


def test_data_file_is_one_upload_with_the_condition(service):
    DeltaLog.for_path("gs://box/t", service.options()).append(pa.table({"id": [1, 2]}))
    uploads = [query for method, path, query in service.requests if "/upload/" in path]
    is_whole = {"uploadType": "multipart", "ifGenerationMatch": "0"}
    assert all(query == is_whole for query in uploads)
    names = [name for name in service.objects if "_delta_log" not in name]
    assert len(names) == 1
    assert len(uploads) == len(service.objects) + 2  # the others probed, and are gone


@pytest.mark.parametrize("key", ["size", "md5Hash"])
def test_answer_that_speaks_of_other_bytes_leaves_the_outcome_open(
    service, probed, monkeypatch, key
):
    about = service.about
    monkeypatch.setattr(service, "about", lambda name: {**about(name), key: "0"})
    assert probed.put_if_absent(PATH, b"bytes") is PutOutcome.UNKNOWN
