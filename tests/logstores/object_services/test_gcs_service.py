"""What only GCSLogStore does, on a fake of the JSON API."""

import io
import re
from functools import partial

import pyarrow as pa
import pytest

from fake_json_api import FakeJsonApi
from object_services import GCS
from optimist.core import DeltaLog
from optimist.core.errors import StorageError
from optimist.core.plugins.logstore import PutOutcome
from optimist.core.testing import LogStoreSuite
from optimist.logstores.gcs.store import GCSLogStore
from scripted_http import LOST, Reply


@pytest.fixture
def kind():
    return GCS


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


@pytest.mark.parametrize("size", [4, 9 * 1024 * 1024], ids=["small", "past the sdk's threshold"])
def test_commit_is_one_upload_request_with_the_condition(service, probed, size, commit):
    assert probed.put_if_absent(commit, bytes(size)) is PutOutcome.CREATED
    [request] = service.requests
    assert (request.method, request.path) == ("POST", "/upload/storage/v1/b/box/o")
    assert request.query == {"uploadType": "multipart", "ifGenerationMatch": "0"}


def test_credentials_that_are_refused_are_told(service, probed, commit):
    service.script = [(401, "authError")] * 3
    with pytest.raises(StorageError) as caught:
        probed.put_if_absent(commit, b"x")
    assert caught.value.kind == "OPTIMIST_INVALID_CREDENTIALS"


def test_payer_is_named_in_every_request(service, commit):
    store = GCSLogStore(service.options(userProject="payer"))
    store.put_if_absent(commit, b"x")
    store.put_overwrite(commit, b"y")
    store.read_bytes(commit)
    list(store.list_from(commit))
    store.delete(commit)
    assert {request.query.get("userProject") for request in service.requests} == {"payer"}


def test_data_file_is_one_upload_with_the_condition(service):
    DeltaLog.for_path("gs://box/t", service.options()).append(pa.table({"id": [1, 2]}))
    uploads = [request.query for request in service.requests if "/upload/" in request.path]
    is_whole = {"uploadType": "multipart", "ifGenerationMatch": "0"}
    assert all(query == is_whole for query in uploads)
    names = [name for name in service.objects if "/part-" in name]
    assert len(names) == 1
    assert len(uploads) == len(service.objects) + 2  # the others probed, and are gone


@pytest.mark.parametrize("key", ["size", "md5Hash"])
def test_answer_that_speaks_of_other_bytes_leaves_the_outcome_open(
    service, probed, monkeypatch, key, commit
):
    about = service.about
    monkeypatch.setattr(service, "about", lambda name: {**about(name), key: "0"})
    assert probed.put_if_absent(commit, b"bytes") is PutOutcome.UNKNOWN


# Many deletions by one request


@pytest.fixture
def dead(service, probed):
    """The paths of 250 objects, beside one that stays."""
    keys = [f"t/{number} a%20\u00e9+&=?#.parquet" for number in range(250)]
    for key in (*keys, "t/stays"):
        service.put(key, b"x")
    return [f"gs://box/{key}" for key in keys]


def asked(service):
    return [(request.method, request.path) for request in service.requests]


BATCH = ("POST", "/batch/storage/v1")


def test_data_files_are_deleted_100_by_one_request_and_those_that_are_gone_are_fine(
    service, probed, dead
):
    del service.objects[dead[7].removeprefix("gs://box/")]
    probed.delete_data_files(dead)
    assert asked(service) == [BATCH] * 3
    assert list(service.objects) == ["t/stays"]


def test_payer_is_named_in_each_deletion_of_a_batch(service, dead):
    GCSLogStore(service.options(userProject="pay er")).delete_data_files(dead[:50])
    assert service.requests[0].body.count(b"?userProject=pay%20er HTTP/1.1\r\n") == 50


def test_deletion_that_a_batch_did_not_do_is_made_again(service, probed, dead):
    # The answers come in another order than the requests.
    service.refused = {dead[3].removeprefix("gs://box/"): (503, "backendError")}
    probed.delete_data_files(dead[:90])
    assert asked(service) == [BATCH, ("DELETE", "/storage/v1/b/box/o/" + dead[3][9:])]
    assert len(service.objects) == 250 - 90 + 1


def test_object_that_may_not_be_deleted_is_named(service, probed, dead):
    service.refused = {dead[3].removeprefix("gs://box/"): (403, "forbidden")}
    service.script = [None, (403, "forbidden")]
    with pytest.raises(StorageError) as caught:
        probed.delete_data_files(dead)
    assert (caught.value.kind, caught.value.fields["path"]) == (
        "OPTIMIST_PERMISSION_DENIED",
        dead[3],
    )


@pytest.mark.parametrize(
    "reply",
    [
        Reply(404, b"no such page"),
        Reply(200, b"<html>"),
        Reply(200, b"", {"Content-Type": "multipart/mixed; boundary=parts"}),
        Reply(
            200, b"--p\r\n\r\nHTTP/1.1 204 \r\n", {"Content-Type": "multipart/mixed; boundary=p"}
        ),
        Reply(307, headers={"Location": "http://127.0.0.1:1/"}),
    ],
    ids=["no batches", "a page", "nothing", "without a number", "redirect"],
)
def test_answer_that_confirms_nothing_leaves_each_object_to_a_request_of_its_own(
    service, probed, dead, monkeypatch, reply
):
    monkeypatch.setattr(service, "batch", lambda _: reply)
    probed.delete_data_files(dead[:3])
    assert [method for method, _ in asked(service)] == ["POST", "DELETE", "DELETE", "DELETE"]
    assert len(service.objects) == 250 - 3 + 1


def test_object_with_two_answers_is_deleted_by_a_request_of_its_own(
    service, probed, dead, monkeypatch
):
    def batch(request):
        [first, second] = re.findall(r"Content-ID: <(.*?)>", request.body.decode())
        answers = [(first, 204), (second, 204), (first, 500)]
        parts = "".join(
            f"--p\r\nContent-ID: <response-{number}>\r\n\r\nHTTP/1.1 {status} x\r\n\r\n"
            for number, status in answers
        )
        return Reply(200, parts.encode(), {"Content-Type": "multipart/mixed; boundary=p"})

    monkeypatch.setattr(service, "batch", batch)
    probed.delete_data_files(dead[:2])
    assert asked(service)[1:] == [("DELETE", "/storage/v1/b/box/o/" + dead[0][9:])]


def test_lost_answer_to_a_batch_is_asked_for_again(service, probed, dead):
    service.script = [LOST]
    probed.delete_data_files(dead[:100])
    assert asked(service) == [BATCH] * 2
    assert len(service.objects) == 250 - 100 + 1


# Answers that say little


def test_pieces_are_sent_to_no_host_that_an_answer_names(service, probed):
    class Elsewhere(FakeJsonApi):
        """Another host, which must see neither the token nor the rows."""

    with Elsewhere() as elsewhere:
        link = f"{elsewhere.endpoint}/upload/storage/v1/b/box/o?uploadType=resumable&upload_id=0"
        service.upload_piece = lambda _: Reply(200, headers={"Location": link})
        with pytest.raises(StorageError) as caught:
            probed.put_data_file("gs://box/t/part-1", io.BytesIO(bytes(9 << 20)))
        assert elsewhere.requests == []
    assert caught.value.kind == "OPTIMIST_INVALID_ENDPOINT"
    assert "Nothing was written." in str(caught.value)


@pytest.mark.parametrize("body", [b"{}", b"", b'{"size": "1"}', b"<html/>"])
def test_upload_that_is_not_described_has_no_known_outcome(service, probed, commit, body):
    service.upload = lambda _: Reply(200, body)
    assert probed.put_if_absent(commit, b"x") is PutOutcome.UNKNOWN


def test_server_that_ignores_ranges_is_read_all_the_same(service, probed):
    data = bytes(range(256)) * 8192
    service.put("t/large", data)
    service.media = lambda *_: Reply(200, data, {"X-Goog-Generation": "101"})
    with probed.open_read("gs://box/t/large") as file:
        file.seek(5000)
        assert file.read(1000) == data[5000:6000]


def test_range_that_was_not_asked_for_is_refused(service, probed):
    data = bytes(range(256)) * 8192
    service.put("t/large", data)
    said = {"X-Goog-Generation": "101", "Content-Range": f"bytes 0-262143/{len(data)}"}
    service.media = lambda *_: Reply(206, data[:262144], said)
    with probed.open_read("gs://box/t/large") as file, pytest.raises(StorageError):
        file.seek(5000)
        file.read(1000)
