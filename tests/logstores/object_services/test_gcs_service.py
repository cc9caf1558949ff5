"""What only GCSLogStore does, on a fake of the JSON API."""

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
