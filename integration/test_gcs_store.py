"""GCSLogStore against fake-gcs-server, which enforces `ifGenerationMatch` on uploads atomically."""

from functools import partial

import pytest
from google.api_core.exceptions import NotFound
from google.auth.credentials import AnonymousCredentials
from google.cloud.storage import Client

from fleet import race_of_processes
from lossy_proxy import LossyProxy
from optimist.core.errors import StorageError
from optimist.core.plugins.logstore import PutOutcome
from optimist.core.testing import LogStoreSuite
from optimist.logstores.gcs.store import GCSLogStore


@pytest.fixture
def bucket(gcs_server, fresh_name):
    client = Client(
        project=gcs_server.project,
        credentials=AnonymousCredentials(),
        client_options={"api_endpoint": gcs_server.endpoint},
    )
    yield client.create_bucket(fresh_name)
    client.close()


@pytest.fixture
def options(gcs_server):
    return {"optimist.store.gcs.emulatorHost": gcs_server.endpoint}


class TestGCSLogStoreOnFakeServer(LogStoreSuite):
    has_directories = False

    @pytest.fixture(autouse=True)
    def at_server(self, options, bucket):
        type(self).store_factory = partial(GCSLogStore, options)
        self.bucket = bucket

    @pytest.fixture
    def directory(self, bucket):
        return f"gs://{bucket.name}/table/_delta_log"

    def peek(self, path):
        try:
            return self._blob(path).download_as_bytes()
        except NotFound:
            return None

    def poke(self, path, data):
        self._blob(path).upload_from_string(data)

    def _blob(self, path):
        return self.bucket.blob(path.removeprefix(f"gs://{self.bucket.name}/"))


def test_listing_starts_at_the_name(options, bucket):
    store = GCSLogStore(options)
    directory = f"gs://{bucket.name}/table"
    for version in range(30):
        store.put_if_absent(f"{directory}/{version:020d}.json", b"x")
    store.put_if_absent(f"{directory}/_sidecars/1.parquet", b"x")
    listed = [status.name for status in store.list_from(f"{directory}/{12:020d}.json")]
    assert listed == [f"{version:020d}.json" for version in range(12, 30)]


def test_server_passes_the_probe(options, bucket):
    store = GCSLogStore(options)
    assert store.put_if_absent(f"gs://{bucket.name}/0.json", b"x") is PutOutcome.CREATED
    assert "refuses a second creation" in store.describe()["probed"]
    assert [blob.name for blob in bucket.list_blobs()] == ["0.json"]


def test_missing_bucket_is_told(options, fresh_name):
    store = GCSLogStore(options)
    for call in (
        lambda: store.put_if_absent(f"gs://{fresh_name}-missing/0.json", b"x"),
        lambda: list(store.list_from(f"gs://{fresh_name}-missing/t/0.json")),
    ):
        with pytest.raises(StorageError) as caught:
            call()
        assert caught.value.kind == "OPTIMIST_BUCKET_NOT_FOUND"


def test_every_request_goes_to_the_endpoint_that_was_given(gcs_server, options, bucket):
    path = f"gs://{bucket.name}/t/{'0' * 20}.json"
    with LossyProxy(gcs_server.endpoint) as proxy:
        store = GCSLogStore({"optimist.store.gcs.emulatorHost": proxy.endpoint})
        store.put_if_absent(path, b"0123456789")
        proxy.forget_requests()
        with store.open_read(path) as file:
            file.seek(5)
            assert file.read(2) == b"56"
        assert any("alt=media" in request.path for request in proxy.requests)


# Through the engine


def test_commits_of_16_processes_are_dense_and_each_is_there_once(options, bucket):
    race_of_processes(f"gs://{bucket.name}/raced", options)
