"""AzureLogStore against Azurite, which enforces `If-None-Match` atomically; blob service only."""

from functools import partial

import pytest
from azure.core.exceptions import ResourceNotFoundError
from azure.storage.blob import ContainerClient, generate_container_sas

from fleet import race_of_processes
from optimist.core.errors import StorageError
from optimist.core.plugins.logstore import PutOutcome
from optimist.core.testing import LogStoreSuite
from optimist.logstores.azure.store import AzureLogStore

URL = "abfss://{container}@devstoreaccount1.dfs.core.windows.net"


@pytest.fixture
def container(azure_server, fresh_name):
    client = ContainerClient.from_connection_string(azure_server.connection_string, fresh_name)
    with client:
        client.create_container()
        yield client
        client.delete_container()


@pytest.fixture
def options(azure_server):
    return {"optimist.store.azure.connectionString": azure_server.connection_string}


class TestAzureLogStoreOnAzurite(LogStoreSuite):
    has_directories = False

    @pytest.fixture(autouse=True)
    def at_server(self, options, container):
        type(self).store_factory = partial(AzureLogStore, options)
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


def test_listing_of_several_pages_starts_at_the_name(options, container):
    store = AzureLogStore(options)
    directory = URL.format(container=container.container_name) + "/table"
    for version in range(30):
        store.put_if_absent(f"{directory}/{version:020d}.json", b"x")
    store.put_if_absent(f"{directory}/_sidecars/1.parquet", b"x")
    listed = [status.name for status in store.list_from(f"{directory}/{12:020d}.json")]
    assert listed == [f"{version:020d}.json" for version in range(12, 30)]


def test_azurite_passes_the_probe(options, container):
    store = AzureLogStore(options)
    path = f"az://{container.container_name}/0.json"
    assert store.put_if_absent(path, b"x") is PutOutcome.CREATED
    assert "refuses a second creation" in store.describe()["probed"]
    assert [blob.name for blob in container.list_blobs()] == ["0.json"]


def test_missing_container_is_told(options, fresh_name):
    store = AzureLogStore(options)
    with pytest.raises(StorageError) as caught:
        store.put_if_absent(f"az://{fresh_name}-missing/0.json", b"x")
    assert caught.value.kind == "OPTIMIST_BUCKET_NOT_FOUND"
    with pytest.raises(StorageError) as caught:
        list(store.list_from(f"az://{fresh_name}-missing/t/0.json"))
    assert caught.value.kind == "OPTIMIST_BUCKET_NOT_FOUND"


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


# Through the engine


def test_commits_of_16_processes_are_dense_and_each_is_there_once(options, container):
    race_of_processes(URL.format(container=container.container_name) + "/raced", options)
