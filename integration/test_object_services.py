"""The stores of Azure and Google against emulators, which enforce the conditions atomically.

AzureLogStore runs on Azurite (the blob service only), GCSLogStore on fake-gcs-server.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

import pyarrow as pa
import pytest
from azure.core.exceptions import ResourceNotFoundError
from azure.storage.blob import ContainerClient, generate_container_sas
from google.api_core.exceptions import NotFound

from fleet import race_of_processes
from lossy_proxy import LossyProxy
from optimist.core import DeltaLog
from optimist.core.errors import StorageError
from optimist.core.plugins.logstore import LogStore, PutOutcome
from optimist.core.testing import LogStoreSuite
from optimist.logstores.azure.store import AzureLogStore
from optimist.logstores.gcs.store import GCSLogStore

UNCHECKED = {"spark.databricks.delta.retentionDurationCheck.enabled": "false"}
URL = "abfss://{container}@devstoreaccount1.dfs.core.windows.net"


def azure_options(server):
    return {"optimist.store.azure.connectionString": server.connection_string}


def gcs_options(server):
    return {"optimist.store.gcs.emulatorHost": server.endpoint}


@dataclass(frozen=True)
class Place:
    """A bucket or container: its URL, how to reach it, and the names of all that is in it."""

    url: str
    options: Mapping[str, str]
    store: Callable[[Mapping[str, str]], LogStore]
    names: Callable[[], list[str]]


@pytest.fixture
def azure_place(azure_server, container):
    return Place(
        URL.format(container=container.container_name),
        azure_options(azure_server),
        AzureLogStore,
        lambda: [blob.name for blob in container.list_blobs()],
    )


@pytest.fixture
def gcs_place(gcs_server, bucket):
    return Place(
        f"gs://{bucket.name}",
        gcs_options(gcs_server),
        GCSLogStore,
        lambda: [blob.name for blob in bucket.list_blobs()],
    )


@pytest.fixture(params=["azure", "gcs"])
def place(request):
    return request.getfixturevalue(f"{request.param}_place")


class TestAzureLogStoreOnAzurite(LogStoreSuite):
    has_directories = False

    @pytest.fixture(autouse=True)
    def at_server(self, azure_server, container):
        type(self).store_factory = partial(AzureLogStore, azure_options(azure_server))
        self.container = container

    @pytest.fixture
    def directory(self, container):
        return URL.format(container=container.container_name) + "/table/_delta_log"

    def peek(self, path):
        try:
            return self.container.download_blob(self._name(path)).read()
        except ResourceNotFoundError:
            return None

    def poke(self, path, data):
        self.container.upload_blob(self._name(path), data, overwrite=True)

    def _name(self, path):
        url = URL.format(container=self.container.container_name) + "/"
        return path.removeprefix(url)


class TestGCSLogStoreOnFakeServer(LogStoreSuite):
    has_directories = False

    @pytest.fixture(autouse=True)
    def at_server(self, gcs_server, bucket):
        type(self).store_factory = partial(GCSLogStore, gcs_options(gcs_server))
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


def requests_of(owner, name, monkeypatch):
    """The arguments of each call of a method of the SDK, which sends one request."""
    original, sent = getattr(owner, name), []

    def noted(self, *given, **named):
        sent.append(given)
        return original(self, *given, **named)

    monkeypatch.setattr(owner, name, noted)
    return sent


# On each service


def test_listing_starts_at_the_name(place):
    store = place.store(place.options)
    directory = f"{place.url}/table"
    for version in range(30):
        store.put_if_absent(f"{directory}/{version:020d}.json", b"x")
    store.put_if_absent(f"{directory}/_sidecars/1.parquet", b"x")
    listed = [status.name for status in store.list_from(f"{directory}/{12:020d}.json")]
    assert listed == [f"{version:020d}.json" for version in range(12, 30)]


def test_server_passes_the_probe(place):
    store = place.store(place.options)
    assert store.put_if_absent(f"{place.url}/0.json", b"x") is PutOutcome.CREATED
    assert "refuses a second creation" in store.describe()["probed"]
    assert place.names() == ["0.json"]


def test_missing_bucket_is_told(place, fresh_name):
    store = place.store(place.options)
    missing = place.url.replace(fresh_name, f"{fresh_name}-missing")
    for call in (
        lambda: store.put_if_absent(f"{missing}/0.json", b"x"),
        lambda: list(store.list_from(f"{missing}/t/0.json")),
    ):
        with pytest.raises(StorageError) as caught:
            call()
        assert caught.value.kind == "OPTIMIST_BUCKET_NOT_FOUND"


def test_16_processes_commit_25_times_each(place):
    race_of_processes(f"{place.url}/raced", place.options)


def test_data_files_are_deleted_by_name_and_those_that_are_gone_are_fine(place):
    store = place.store(place.options)
    names = [f"part-{number}.parquet" for number in range(5)] + [
        "a b%20c/\u00e9+&=?#.parquet",
        "s/x",
    ]
    paths = [f"{place.url}/table/{name}" for name in (*names, "stays", "gone")]
    for path in paths[:-1]:
        store.put_if_absent(path, b"x")
    store.delete_data_files([path for path in paths if not path.endswith("stays")])
    assert place.names() == ["table/stays"]


# On Azurite


def test_data_files_on_azure_are_deleted_256_by_one_request(azure_place, monkeypatch):
    store = azure_place.store(azure_place.options)
    paths = [f"{azure_place.url}/table/{number}.parquet" for number in range(300)]
    for path in (*paths, f"{azure_place.url}/table/stays"):
        store.put_if_absent(path, b"x")
    monkeypatch.setattr(store, "delete", None)
    sent = requests_of(ContainerClient, "delete_blobs", monkeypatch)
    store.delete_data_files(paths)
    assert [len(names) for names in sent] == [256, 44]
    assert azure_place.names() == ["table/stays"]


def test_what_azure_does_not_delete_together_is_deleted_one_by_one(azure_place, monkeypatch):
    store = azure_place.store(azure_place.options)
    paths = [f"{azure_place.url}/table/{number}.parquet" for number in range(3)]
    for path in paths:
        store.put_if_absent(path, b"x")

    def refused(*_, **__):
        raise ResourceNotFoundError("no batches here")

    monkeypatch.setattr(ContainerClient, "delete_blobs", refused)
    store.delete_data_files(paths)
    assert azure_place.names() == []


# On fake-gcs-server


def test_data_files_on_google_are_deleted_100_by_one_request(gcs_server, gcs_place):
    with LossyProxy(gcs_server.endpoint) as proxy:
        store = GCSLogStore({"optimist.store.gcs.emulatorHost": proxy.endpoint})
        paths = [f"{gcs_place.url}/table/{number} \u00e9.parquet" for number in range(250)]
        for path in (*paths, f"{gcs_place.url}/table/stays"):
            store.put_if_absent(path, b"x")
        proxy.forget_requests()
        store.delete_data_files(paths)
        sent = [(request.method, request.path) for request in proxy.requests]
    assert [each for each in sent if each[0] != "GET"] == [("POST", "/batch/storage/v1")] * 3
    assert gcs_place.names() == ["table/stays"]


def test_a_vacuum_on_google_deletes_by_batches_and_the_living_stay(gcs_server, gcs_place):
    with LossyProxy(gcs_server.endpoint) as proxy:
        options = {"optimist.store.gcs.emulatorHost": proxy.endpoint, **UNCHECKED}
        log = DeltaLog.for_path(f"{gcs_place.url}/table", options)
        log.append(pa.table({"id": [1, 2]}))
        dead = [f"{gcs_place.url}/table/p={number % 3}/{number}.parquet" for number in range(150)]
        for path in dead:
            log.store.put_if_absent(path, b"x")
        proxy.forget_requests()
        assert log.vacuum(0).num_files == 150
        alone = [each.path for each in proxy.requests if each.method == "DELETE"]
        batches = [each for each in proxy.requests if each.path == "/batch/storage/v1"]
    assert all("_optimist_intents" in path for path in alone)  # one intent needs no batch
    assert len(batches) == 2
    left = DeltaLog.for_path(log.table_path, gcs_place.options)
    assert left.to_arrow().column("id").to_pylist() == [1, 2]
    assert [each.info.operation for each in left.history(2)] == ["VACUUM END", "VACUUM START"]
    assert not any(name.startswith("table/p=") for name in gcs_place.names())


# On Azurite


def test_wrong_key_is_told(azure_server, container):
    store = AzureLogStore(
        {
            "optimist.store.azure.account": azure_server.account,
            "optimist.store.azure.endpoint": azure_server.endpoint,
            "optimist.store.azure.accountKey": "d3Jvbmc=",
        }
    )
    with pytest.raises(StorageError) as caught:
        store.read_bytes(f"az://{container.container_name}/0.json")
    # Azure itself says AuthenticationFailed; Azurite says AuthorizationFailure.
    assert caught.value.kind == "OPTIMIST_PERMISSION_DENIED"
    assert "d3Jvbmc=" not in str(caught.value)


def signed_options(server, container, permission, expiry):
    signature = generate_container_sas(
        server.account,
        container.container_name,
        account_key=server.key,
        permission=permission,
        expiry=expiry,
    )
    given = {"account": server.account, "endpoint": server.endpoint, "sas": signature}
    return {f"optimist.store.azure.{name}": value for name, value in given.items()}


def test_expired_signature_is_told(azure_server, container):
    options = signed_options(azure_server, container, "rwl", "2020-01-01T00:00:00Z")
    store = AzureLogStore(options)
    path = f"az://{container.container_name}/t/0.json"
    for call in (lambda: store.put_if_absent(path, b"x"), lambda: list(store.list_from(path))):
        with pytest.raises(StorageError) as caught:
            call()
        # Azure itself says AuthenticationFailed; Azurite says AuthorizationFailure.
        assert caught.value.kind == "OPTIMIST_PERMISSION_DENIED"
        secret = options["optimist.store.azure.sas"].rpartition("sig=")[2]
        assert secret not in str(caught.value)
    assert list(container.list_blobs()) == []


def test_signature_without_permission_to_write_is_told(azure_server, container):
    store = AzureLogStore(signed_options(azure_server, container, "rl", "2099-01-01T00:00:00Z"))
    container.upload_blob("t/0.json", b"there")
    path = f"az://{container.container_name}/t/0.json"
    assert store.read_bytes(path) == b"there"
    with pytest.raises(StorageError) as caught:
        store.put_if_absent(path, b"x")
    assert caught.value.kind == "OPTIMIST_PERMISSION_DENIED"


# On fake-gcs-server


def test_every_request_goes_to_the_endpoint_that_was_given(gcs_server, bucket):
    path = f"gs://{bucket.name}/t/{'0' * 20}.json"
    with LossyProxy(gcs_server.endpoint) as proxy:
        store = GCSLogStore({"optimist.store.gcs.emulatorHost": proxy.endpoint})
        store.put_if_absent(path, b"0123456789")
        proxy.forget_requests()
        with store.open_read(path) as file:
            file.seek(5)
            assert file.read(2) == b"56"
        assert any("alt=media" in request.path for request in proxy.requests)
