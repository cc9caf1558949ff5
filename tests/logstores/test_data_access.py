"""Credentials are set once: what the stores of the clouds hand on to Arrow's file systems."""

from __future__ import annotations

import datetime as dt
import gc
import pickle

import pytest
from botocore.credentials import Credentials
from pyarrow import fs

from optimist.core.data.intents import stored_intents
from optimist.core.data.storage import filesystem
from optimist.core.data.storage.filesystem import filesystem_for
from optimist.core.data.table_ref import TableRef
from optimist.core.errors import ConfigError
from optimist.core.options.engine import EngineOptions
from optimist.core.plugins.logstore_registry import find_store
from optimist.core.plugins.renewed_access import newest_access
from optimist.core.runtime.clock import SystemClock
from optimist.core.secrets import Secret
from optimist.core.testing import FaultyLogStore, ManualClock
from optimist.logstores.azure.store import AzureLogStore
from optimist.logstores.fsspec.store import FsspecLogStore
from optimist.logstores.gcs import data as gcs_data
from optimist.logstores.gcs.credentials import gcs_credentials
from optimist.logstores.gcs.store import GCSLogStore
from optimist.logstores.local.store import LocalLogStore
from optimist.logstores.s3.client import S3Credentials
from optimist.logstores.s3.data import s3_data_access
from optimist.logstores.s3.options import S3Options
from optimist.logstores.s3.server import S3Server
from optimist.logstores.s3.store import S3LogStore

S3_KEYS = {"fs.s3a.access.key": "id", "fs.s3a.secret.key": "hush", "fs.s3a.session.token": "tok"}


def settings(store, path):
    access = store.data_access(path)
    assert "hush" not in repr(access)
    return access.revealed_settings()


def test_s3_hands_on_keys_region_and_endpoint():
    options = {
        **S3_KEYS,
        "fs.s3a.endpoint": "http://127.0.0.1:9000",
        "fs.s3a.endpoint.region": "eu-west-1",
    }
    found = settings(S3LogStore(options), "s3a://bucket/t")
    assert found["access_key"] == "id"
    assert (found["secret_key"], found["session_token"]) == ("hush", "tok")
    assert (found["region"], found["endpoint_override"]) == ("eu-west-1", "http://127.0.0.1:9000")
    path = "s3a://bucket/t/x"
    filesystem, inner = filesystem_for(path, S3LogStore(options).data_access(path))
    assert isinstance(filesystem, fs.S3FileSystem)
    assert inner == "bucket/t/x"


def test_s3_options_of_one_bucket_hold_for_its_data():
    options = {**S3_KEYS, "fs.s3a.bucket.special.endpoint.region": "ap-south-1"}
    store = S3LogStore({**options, "fs.s3a.endpoint.region": "eu-west-1"})
    assert settings(store, "s3://special/t")["region"] == "ap-south-1"
    assert settings(store, "s3://other/t")["region"] == "eu-west-1"


def test_s3_anonymous_sends_no_keys():
    found = settings(S3LogStore({"optimist.store.s3.anonymous": "true"}), "s3://public/t")
    assert found["anonymous"] is True
    assert "access_key" not in found


def test_s3_credentials_of_a_callable_are_fetched_for_the_data():
    store = S3LogStore(
        {"optimist.store.s3.region": "us-east-1"},
        credentials=lambda: S3Credentials("id-2", "hush", "tok-2"),
    )
    found = settings(store, "s3://bucket/t")
    assert (found["access_key"], found["session_token"]) == ("id-2", "tok-2")


AMAZON = S3Server("https://s3.amazonaws.com", "us-east-1", is_virtual=True, pinned=None)


@pytest.mark.parametrize("method", ["iam-role", "container-role", "assume-role-with-web-identity"])
def test_s3_roles_of_the_machine_are_left_to_each_machine(method):
    class Session:
        def get_credentials(self):
            return Credentials("id", "hush", "tok", method=method)

    found = s3_data_access(S3Options(), Session(), AMAZON, "b").revealed_settings()
    assert "secret_key" not in found


@pytest.mark.parametrize(
    "options",
    [
        {"fs.s3a.requester.pays.enabled": "true"},
        {"fs.s3a.encryption.algorithm": "SSE-C", "fs.s3a.encryption.key": "a2V5"},
    ],
)
def test_s3_settings_that_reading_needs_and_arrow_lacks_are_refused(options):
    with pytest.raises(ConfigError) as caught:
        S3LogStore({**S3_KEYS, **options}).data_access("s3://bucket/t")
    assert caught.value.kind == "OPTIMIST_UNSUPPORTED_OPTION"


def creating(store, path):
    """The store that a task makes to create files with."""
    access = pickle.loads(pickle.dumps(store.data_access(path)))
    assert "hush" not in repr(access)
    return find_store(path, dict(access.store_options))


def test_s3_files_are_created_with_the_options_of_their_bucket_and_the_keys_found():
    store = S3LogStore(
        {
            "fs.s3a.bucket.special.endpoint": "http://127.0.0.1:9000",
            "fs.s3a.encryption.algorithm": "SSE-KMS",
            "fs.s3a.encryption.key": "key-id",
            "optimist.store.s3.connectTimeoutSeconds": "1.0",
            "optimist.store.s3.sortedListing": "false",
            "spark.delta.logStore.s3.impl": "s3-dynamodb",
        },
        credentials=lambda: S3Credentials("id-2", "hush", "tok-2"),
    )
    there = creating(store, "s3://special/t")
    found = there._locate("s3://special/t")[0].options
    assert type(there) is S3LogStore
    keys = (found.access_key, found.secret_key, found.session_token)
    assert keys == (Secret("id-2"), Secret("hush"), Secret("tok-2"))
    assert (found.endpoint, found.path_style) == ("http://127.0.0.1:9000", True)
    assert (found.encryption, found.encryption_key) == ("aws:kms", Secret("key-id"))
    assert (found.connect_timeout_s, found.lists_in_order) == (1.0, False)


AZURE = "abfss://c@acct.dfs.core.windows.net/t"


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (
            {"fs.azure.account.key.acct.dfs.core.windows.net": "aHVzaA=="},
            {
                "account_key": "aHVzaA==",
                "blob_storage_authority": ".blob.core.windows.net",
                "dfs_storage_authority": ".dfs.core.windows.net",
            },
        ),
        ({"optimist.store.azure.sas": "?sv=1&sig=hush"}, {"sas_token": "?sv=1&sig=hush"}),
        (
            {
                "optimist.store.azure.accountKey": "aHVzaA==",
                "optimist.store.azure.account": "acct",
                "optimist.store.azure.endpoint": "http://127.0.0.1:10000/acct",
            },
            {"blob_storage_authority": "127.0.0.1:10000", "blob_storage_scheme": "http"},
        ),
        (
            {
                "optimist.store.azure.accountKey": "aHVzaA==",
                "optimist.store.azure.account": "acct",
                "optimist.store.azure.endpoint": "https://acct.blob.private.example",
            },
            {
                "blob_storage_authority": ".blob.private.example",
                "dfs_storage_authority": ".dfs.private.example",
            },
        ),
        (
            {
                "optimist.store.azure.tenantId": "t",
                "optimist.store.azure.clientId": "c",
                "optimist.store.azure.clientSecret": "hush",
            },
            {"tenant_id": "t", "client_id": "c", "client_secret": "hush"},
        ),
        ({"optimist.store.azure.auth": "managed-identity"}, {"account_name": "acct"}),
    ],
)
def test_azure_hands_on_credentials_and_hosts(options, expected):
    found = settings(AzureLogStore(options), AZURE)
    assert {key: found[key] for key in expected} == expected
    assert isinstance(
        filesystem_for(AZURE, AzureLogStore(options).data_access(AZURE))[0], fs.AzureFileSystem
    )


@pytest.mark.parametrize(
    "options",
    [
        {"optimist.store.azure.auth": "anonymous"},
        {
            "optimist.store.azure.accountKey": "aHVzaA==",
            "optimist.store.azure.account": "acct",
            "optimist.store.azure.endpoint": "http://proxy.example/azure/acct",
        },
    ],
)
def test_azure_settings_that_arrow_lacks_are_refused(options):
    with pytest.raises(ConfigError) as caught:
        AzureLogStore(options).data_access(AZURE)
    assert caught.value.kind == "OPTIMIST_UNSUPPORTED_OPTION"


@pytest.mark.parametrize(
    ("options", "environment", "kind", "secret"),
    [
        ({"fs.azure.account.key.acct.dfs.core.windows.net": "aHVzaA=="}, {}, "key", "account_key"),
        ({"optimist.store.azure.sas": "?sv=1&sig=hush"}, {}, "sas", "sas"),
        ({}, {"AZURE_STORAGE_KEY": "aHVzaA=="}, "key", "account_key"),
        ({"optimist.store.azure.auth": "managed-identity"}, {}, "managed-identity", None),
    ],
)
def test_azure_files_are_created_with_the_credentials_found(
    options, environment, kind, secret, monkeypatch
):
    for key, value in environment.items():
        monkeypatch.setenv(key, value)
    store = AzureLogStore(options)
    location = store._locate(AZURE)
    access = store.data_access(AZURE)
    for key in environment:
        monkeypatch.delenv(key)
    there = find_store(AZURE, dict(access.store_options))._parsed
    found = there.credential_of(location)
    assert found.kind == kind
    assert secret is None or getattr(found, secret)
    assert there.endpoint_of(location) == "https://acct.blob.core.windows.net"


def test_gcs_hands_on_the_emulator_and_leaves_default_credentials_to_each_machine():
    emulated = settings(GCSLogStore({"optimist.store.gcs.emulatorHost": "127.0.0.1:1"}), "gs://b/t")
    assert (emulated["endpoint_override"], emulated["scheme"]) == ("127.0.0.1:1", "http")
    assert emulated["anonymous"] is True
    store = GCSLogStore({"optimist.store.gcs.emulatorHost": "127.0.0.1:1"})
    there = creating(store, "gs://b/t")._parsed
    assert (there.endpoint, there.auth_kind) == ("http://127.0.0.1:1", "anonymous")
    found = settings(GCSLogStore({"fs.gs.project.id": "p"}), "gs://b/t")
    assert found["project_id"] == "p"
    assert not {"access_token", "anonymous"} & found.keys()


def test_gcs_token_is_kept_until_shortly_before_its_end(monkeypatch):
    clock = ManualClock(now_ms=1_900_000_000_000)
    hour_ms = 3_600_000

    class Minting:
        token, expiry, made = None, None, 0

        def refresh(self, _request):
            self.made += 1
            self.token = f"hush-{self.made}"
            end_s = (clock.now_ms() + hour_ms) / 1000
            self.expiry = dt.datetime.fromtimestamp(end_s, dt.timezone.utc).replace(tzinfo=None)

    minting = Minting()
    monkeypatch.setattr(gcs_data, "gcs_credentials", lambda _options: minting)
    store = GCSLogStore({"optimist.store.gcs.keyJson": "{}"}, clock=clock)
    first = store.data_access("gs://b/t")
    assert store.data_access("gs://b/t") == first
    assert minting.made == 1
    clock.advance(50 * 60)
    second = store.data_access("gs://b/u")
    assert second.revealed_settings()["access_token"] == "hush-2"
    assert (newest_access(first), first.store_key) == (second, second.store_key)
    sent = pickle.loads(pickle.dumps(first))
    store_elsewhere = creating(store, "gs://b/t")
    assert store_elsewhere.data_access("gs://b/t").renewal == ""
    assert sent == first


@pytest.mark.parametrize("is_kept", [True, False])
def test_s3_credentials_that_expire_are_renewed_while_files_are_opened(monkeypatch, is_kept):
    made = iter(range(1, 100))

    def credentials():
        soon_ms = SystemClock().now_ms() + 60_000
        return S3Credentials(f"id-{next(made)}", "hush", "tok", expires_ms=soon_ms)

    store = S3LogStore({"optimist.store.s3.region": "us-east-1"}, credentials=credentials)
    first = store.data_access("s3://b/t")
    if not is_kept:  # as in a task of Spark
        del store
        gc.collect()
    built = []
    monkeypatch.setattr(filesystem, "_build", lambda access, _process: built.append(access))
    for name in "xy":
        filesystem_for(f"s3://b/t/{name}", first)
    keys = [access.revealed_settings()["access_key"] for access in built]
    assert (keys[0] != keys[1]) == is_kept
    assert {access.store_key for access in built} == {first.store_key}


def test_intents_are_shared_by_accesses_with_other_credentials():
    given = S3LogStore({**S3_KEYS, "optimist.store.s3.region": "us-east-1"})
    renewed = S3LogStore(
        {**S3_KEYS, "fs.s3a.secret.key": "new", "optimist.store.s3.region": "us-east-1"}
    )
    refs = [
        TableRef.of("s3://b/t", store, EngineOptions(), ManualClock()) for store in (given, renewed)
    ]
    assert stored_intents._intents_of(refs[0]) is stored_intents._intents_of(refs[1])


def test_gcs_turns_a_key_into_a_token(monkeypatch):
    class Minted:
        token = "hush"
        expiry = dt.datetime(2030, 1, 1)

        def refresh(self, request):
            assert request is not None

    monkeypatch.setattr(gcs_data, "gcs_credentials", lambda options: Minted())
    store = GCSLogStore({"optimist.store.gcs.keyJson": '{"type": "service_account"}'})
    found = settings(store, "gs://b/t")
    assert found["access_token"] == "hush"
    assert found["credential_token_expiration"] == dt.datetime(2030, 1, 1, tzinfo=dt.timezone.utc)
    assert isinstance(
        filesystem_for("gs://b/t", store.data_access("gs://b/t"))[0], fs.GcsFileSystem
    )
    there = creating(store, "gs://b/t")._parsed
    assert (there.auth_kind, there.access_token) == ("access-token", Secret("hush"))
    assert there.key_json is None  # what lasts longer than the query stays here
    assert gcs_credentials(there).token == "hush"
    handed_on_again = settings(creating(store, "gs://b/t"), "gs://b/t")
    assert handed_on_again["access_token"] == "hush"


def test_gcs_requests_that_another_project_pays_for_are_refused():
    with pytest.raises(ConfigError):
        GCSLogStore({"optimist.store.gcs.userProject": "p"}).data_access("gs://b/t")


def test_drivers_get_the_options_of_the_log():
    store = FsspecLogStore({"optimist.store.fsspec.some_option": "hush"})
    assert settings(store, "memory://t") == {"some_option": "hush"}


def test_a_store_that_wraps_another_hands_on_its_access():
    store = S3LogStore({**S3_KEYS, "optimist.store.s3.region": "us-east-1"})
    assert FaultyLogStore(store).data_access("s3://b/t") == store.data_access("s3://b/t")
    assert FaultyLogStore(LocalLogStore()).data_access("/t") is None


# Whose URLs they are

AZURE_OTHER = "abfss://c@other.dfs.core.windows.net/t"


@pytest.mark.parametrize(
    ("store", "path", "own", "foreign"),
    [
        (S3LogStore(), "s3a://b/t", ["s3://b/x", "s3n://b/x"], ["s3://c/x", "gs://b/x"]),
        (GCSLogStore(), "gs://b/t", ["gs://b/x"], ["gs://c/x", "gcs://b/x"]),
        (
            AzureLogStore({"optimist.store.azure.account": "acct"}),
            AZURE,
            [AZURE, "wasb://d@ACCT.blob.core.windows.net/x", "az://c/x"],
            [AZURE_OTHER, "abfss://c@acct.dfs.core.evil.net/x", "https://acct/x"],
        ),
        (
            AzureLogStore({"optimist.store.azure.account": "acct"}),
            AZURE_OTHER,
            [AZURE_OTHER],
            ["az://c/x", AZURE],
        ),
        (AzureLogStore(), AZURE, [AZURE], ["az://c/x"]),
        (FsspecLogStore(), "s3://b/t", ["s3a://b/x"], ["s3n://b/x", "s3://c/x"]),
        (FsspecLogStore(), "sftp://h:22/t", ["sftp://h:22/x"], ["sftp://h/x", "ftp://h:22/x"]),
        (FsspecLogStore(), "/t", ["/x", "file:///x"], ["memory://x"]),
        (LocalLogStore(), "/t", ["/x", "FILE:/x"], ["s3://b/x"]),
        (FaultyLogStore(S3LogStore()), "s3://b/t", ["s3a://b/x"], ["s3a://c/x"]),
    ],
)  # fmt: skip
def test_a_store_says_which_urls_name_its_files(monkeypatch, store, path, own, foreign):
    for name in ("AZURE_STORAGE_ACCOUNT", "AZURE_STORAGE_ACCOUNT_NAME"):
        monkeypatch.delenv(name, raising=False)
    origin = store.data_origin(path)
    assert all(origin.covers(item) for item in [path, *own])
    assert not any(origin.covers(item) for item in foreign)
    assert pickle.loads(pickle.dumps(origin)) == origin
