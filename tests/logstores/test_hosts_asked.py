"""Which host gets what, for every way in which a client can be configured.

For each way a server listens that must be asked, and one for every other that the configuration
names or tempts a client with: they must get nothing. The log and the data must go to one host.
"""

import contextlib
import io
import json
import os

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from google.auth.compute_engine import _metadata

from hosts_asked import Outside, hosts
from optimist.core.data.storage.filesystem import filesystem_for
from optimist.core.errors import ConfigError, OptimistError, StorageError
from optimist.core.plugins.logstore_registry import find_store
from optimist.core.testing import ManualClock
from optimist.logstores import AzureLogStore, GCSLogStore, S3LogStore

KEYS = {"fs.s3a.access.key": "AKID", "fs.s3a.secret.key": "hush"}
ENVIRONMENT_KEYS = {"AWS_ACCESS_KEY_ID": "AKID", "AWS_SECRET_ACCESS_KEY": "hush"}
NETRC = "default login everybody password netrc-password\n"


@pytest.fixture
def outside(monkeypatch):
    return Outside(monkeypatch)


@pytest.fixture
def clean(monkeypatch, tmp_path):
    """A process that nothing configures; returns what does: variables and files of its home."""
    for name in list(os.environ):
        if name.startswith(("AWS_", "AZURE_", "GOOGLE_", "GCE_", "STORAGE_", "CLOUD_")) or (
            name.lower().endswith("_proxy")
        ):
            monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "credentials"))
    monkeypatch.setenv("NETRC", str(tmp_path / ".netrc"))

    def configure(variables, **files):
        for name, text in files.items():
            (tmp_path / name.replace("dot_", ".")).write_text(text)
            (tmp_path / name.replace("dot_", ".")).chmod(0o600)
        for name, value in variables.items():
            monkeypatch.setenv(name, value)

    return configure


def use(store, path, *, reads_by_arrow=True):
    """Ask for a commit and for a data file, and create one, as executors do; nothing is there."""
    with pytest.raises(OptimistError):
        store.read_bytes(f"{path}/_delta_log/{0:020}.json")
    access = store.data_access(path)
    if reads_by_arrow:
        filesystem, inner = filesystem_for(f"{path}/part.parquet", access)
        with pytest.raises(OSError):
            filesystem.open_input_file(inner).read()
    remote = find_store(path, dict(access.store_options))
    with contextlib.suppress(StorageError):  # the answer to an upload is not a whole one
        remote.put_data_file(f"{path}/new.parquet", io.BytesIO(b"rows"))
    return access.revealed_settings()


# S3

S3_WAYS = {
    "keys": ({}, {}, {"fs.s3a.endpoint": "{right}", **KEYS}),
    "keys, with others in the environment": (
        {"AWS_ENDPOINT_URL_S3": "{wrong}", "AWS_ENDPOINT_URL": "{wrong}", "AWS_PROFILE": "p"},
        {"config": "[profile p]\nendpoint_url = {wrong}\nregion = xx-1\n"},
        {"fs.s3a.endpoint": "{right}", "optimist.store.s3.region": "us-east-1", **KEYS},
    ),
    "environment": ({"AWS_ENDPOINT_URL": "{right}", **ENVIRONMENT_KEYS}, {}, {}),
    "environment, of S3": (
        {"AWS_ENDPOINT_URL_S3": "{right}", "AWS_ENDPOINT_URL": "{wrong}", **ENVIRONMENT_KEYS},
        {},
        {},
    ),
    "profile of the environment": (
        {"AWS_PROFILE": "minio"},
        {
            "config": "[profile minio]\nendpoint_url = {right}\nregion = us-east-2\n",
            "credentials": "[minio]\naws_access_key_id = AKID\naws_secret_access_key = hush\n",
        },
        {},
    ),
    "profile of the options": (
        {},
        {
            "config": "[profile minio]\nservices = mine\nregion = us-east-2\n"
            "[services mine]\ns3 =\n  endpoint_url = {right}\n",
            "credentials": "[minio]\naws_access_key_id = AKID\naws_secret_access_key = hush\n",
        },
        {"optimist.store.s3.profile": "minio"},
    ),
    "netrc": ({}, {"dot_netrc": NETRC}, {"fs.s3a.endpoint": "{right}", **KEYS}),
}


@pytest.mark.parametrize("way", S3_WAYS)
def test_s3_log_and_data_go_to_the_one_server_that_is_configured(clean, outside, way):
    variables, files, options = S3_WAYS[way]
    with hosts("right", "wrong") as (right, wrong):
        places = {"right": right.endpoint, "wrong": wrong.endpoint}
        clean(_filled(variables, places), **_filled(files, places))
        settings = use(S3LogStore(_filled(options, places), clock=ManualClock()), "s3://b/t")
        assert (wrong.requests, outside.asked) == ([], [])
        assert right.authorizations == {"AWS4-HMAC-SHA256"}
        assert {each.path for each in right.requests} == {
            f"/b/t/_delta_log/{0:020}.json",
            "/b/t/part.parquet",
            "/b/t/new.parquet",
        }
        signed = {each.headers["Authorization"].split("/")[2] for each in right.requests}
        assert signed == {settings["region"]}


AMAZON_WAYS = {
    "region of the environment": ({"AWS_REGION": "eu-west-3"}, {}, "eu-west-3"),
    "boto3's own variable first": (
        {"AWS_REGION": "eu-west-3", "AWS_DEFAULT_REGION": "eu-north-1"},
        {},
        "eu-north-1",
    ),
    "told to ignore the endpoint": (
        {
            "AWS_ENDPOINT_URL": "{wrong}",
            "AWS_IGNORE_CONFIGURED_ENDPOINT_URLS": "true",
            "AWS_REGION": "eu-west-3",
        },
        {},
        "eu-west-3",
    ),
    "Amazon's endpoint by key": (
        {"AWS_ENDPOINT_URL": "{wrong}", "AWS_REGION": "eu-west-3"},
        {"fs.s3a.endpoint": "s3.amazonaws.com"},
        "eu-west-3",
    ),
    "endpoint of a region by key": (
        {"AWS_ENDPOINT_URL_S3": "{wrong}", "AWS_REGION": "xx-1"},
        {"fs.s3a.endpoint": "s3.eu-west-3.amazonaws.com"},
        "eu-west-3",
    ),
}


@pytest.mark.parametrize("way", AMAZON_WAYS)
def test_s3_of_amazon_is_asked_where_it_is_configured(clean, outside, way):
    variables, options, region = AMAZON_WAYS[way]
    with hosts("wrong") as (wrong,):
        clean(_filled({**variables, **ENVIRONMENT_KEYS}, {"wrong": wrong.endpoint}))
        store = S3LogStore(options, clock=ManualClock())
        settings = use(store, "s3://b/t", reads_by_arrow=False)
        assert {each.removeprefix("b.") for each in outside.asked} == {f"s3.{region}.amazonaws.com"}
        assert settings["region"] == region
        # Arrow reads the variables that mislead, too.
        pinned = settings.get("endpoint_override", "")
        expected = f"https://s3.{region}.amazonaws.com" if "wrong" in str(variables) else ""
        assert pinned == expected
        assert wrong.requests == []


def test_s3_takes_the_credentials_of_the_machine_to_the_endpoint_only(clean, outside):
    with hosts("right", "metadata") as (right, metadata):
        clean(
            {
                "AWS_EC2_METADATA_DISABLED": "false",
                "AWS_EC2_METADATA_SERVICE_ENDPOINT": metadata.endpoint,
            }
        )
        options = {"fs.s3a.endpoint": right.endpoint}
        settings = use(S3LogStore(options, clock=ManualClock()), "s3://b/t", reads_by_arrow=False)
        assert right.authorizations == {"AWS4-HMAC-SHA256"}
        assert {each.path.split("/")[1] for each in metadata.requests} == {"latest"}
        assert "secret_key" not in settings
        assert outside.asked == []


def test_s3_asks_a_proxy_where_one_is_set(clean, outside):
    with hosts("proxy") as (proxy,):
        # What earlier tests left running in this process goes its own way.
        clean({"HTTP_PROXY": proxy.endpoint, "NO_PROXY": "127.0.0.1", **ENVIRONMENT_KEYS})
        store = S3LogStore({"fs.s3a.endpoint": "http://minio.example"}, clock=ManualClock())
        use(store, "s3://b/t", reads_by_arrow=False)
        assert {each.target.split("/")[2] for each in proxy.requests} == {"minio.example"}
        assert proxy.authorizations == {"AWS4-HMAC-SHA256"}
        assert outside.asked == []


def test_s3_files_of_another_bucket_are_asked_of_the_same_server(clean, outside):
    with hosts("right") as (right,):
        clean(ENVIRONMENT_KEYS)
        store = S3LogStore({"fs.s3a.endpoint": right.endpoint, **KEYS}, clock=ManualClock())
        filesystem, inner = filesystem_for("s3://other/x", store.data_access("s3://b/t"))
        with pytest.raises(OSError):
            filesystem.open_input_file(inner).read()
        assert {each.path for each in right.requests} == {"/other/x"}


# Google Cloud Storage


@pytest.fixture(scope="module")
def private_key():
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    return key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    ).decode()


def account_file(private_key, login):
    return json.dumps(
        {
            "type": "service_account",
            "project_id": "p",
            "client_email": "e@p.example",
            "private_key": private_key,
            "token_uri": f"{login.endpoint}/token",
        }
    )


EMULATED = {
    "nothing": {},
    "Hadoop's default": {"fs.gs.auth.type": "APPLICATION_DEFAULT"},
    "Hadoop's key file": {
        "fs.gs.auth.type": "SERVICE_ACCOUNT_JSON_KEYFILE",
        "fs.gs.auth.service.account.json.keyfile": "{key}",
    },
    "impersonation": {"fs.gs.auth.impersonation.service.account": "other@p.example"},
    "our key file": {"optimist.store.gcs.keyFile": "{key}"},
    "our token": {"optimist.store.gcs.accessToken": "hush"},
    "our kind": {"optimist.store.gcs.auth": "default"},
}


@pytest.mark.parametrize("given", EMULATED)
@pytest.mark.parametrize("by", ["environment", "option"])
def test_an_emulator_of_google_gets_no_credentials(
    clean, outside, tmp_path, private_key, given, by
):
    with hosts("right", "login") as (right, login):
        key = tmp_path / "key.json"
        key.write_text(account_file(private_key, login))
        clean({"GOOGLE_APPLICATION_CREDENTIALS": str(key)}, dot_netrc=NETRC)
        options = _filled(EMULATED[given], {"key": str(key)})
        if by == "environment":
            clean({"STORAGE_EMULATOR_HOST": right.endpoint})
        else:
            options["optimist.store.gcs.emulatorHost"] = right.endpoint
        use(GCSLogStore(options, clock=ManualClock()), "gs://b/t")
        assert right.authorizations == {""}
        assert right.requests
        assert (login.requests, outside.asked) == ([], [])


GOOGLE_WAYS = {
    "token": ({"optimist.store.gcs.accessToken": "hush"}, {}, "Bearer hush"),
    "key file": ({"optimist.store.gcs.keyFile": "{key}"}, {}, "Bearer of-the-machine"),
    "default file": ({}, {"GOOGLE_APPLICATION_CREDENTIALS": "{key}"}, "Bearer of-the-machine"),
}


@pytest.mark.parametrize("way", GOOGLE_WAYS)
def test_googles_credentials_go_to_the_endpoint_and_the_login_host(
    clean, outside, tmp_path, private_key, way
):
    options, variables, expected = GOOGLE_WAYS[way]
    with hosts("right", "login") as (right, login):
        key = tmp_path / "key.json"
        key.write_text(account_file(private_key, login))
        clean(_filled(variables, {"key": str(key)}), dot_netrc=NETRC)
        given = {
            **_filled(options, {"key": str(key)}),
            "optimist.store.gcs.endpoint": right.endpoint,
        }
        use(GCSLogStore(given, clock=ManualClock()), "gs://b/t")
        assert expected in right.authorizations
        # Arrow signs a token of its own with the key of the default file.
        assert {each.split(" ")[0] for each in right.authorizations} == {"Bearer"}
        assert login.authorizations <= {""}
        assert outside.asked == []


def test_google_takes_the_token_of_the_machine_to_the_endpoint_only(clean, outside, monkeypatch):
    with hosts("right", "metadata") as (right, metadata):
        host = metadata.endpoint.removeprefix("http://")
        monkeypatch.setattr(_metadata, "_GCE_METADATA_HOST", host)  # read when it is imported
        clean({"GCE_METADATA_IP": host, "NO_GCE_CHECK": "false"}, dot_netrc=NETRC)
        given = {"optimist.store.gcs.endpoint": right.endpoint}
        settings = use(GCSLogStore(given, clock=ManualClock()), "gs://b/t", reads_by_arrow=False)
        assert right.authorizations == {"Bearer of-the-machine"}
        assert {each.path.split("/")[1] for each in metadata.requests} <= {"", "computeMetadata"}
        assert metadata.requests
        # One question of Google's library goes by a session of its own, which can't be replaced.
        ours = [each for each in metadata.requests if "universe" not in each.path]
        assert {each.headers.get("Authorization", "") for each in ours} == {""}
        assert "access_token" not in settings  # each executor asks for itself
        assert outside.asked == []


def test_google_is_not_asked_by_arrow_where_the_log_is_not(clean, outside):
    with hosts("right", "wrong") as (right, wrong):
        clean({"CLOUD_STORAGE_EMULATOR_ENDPOINT": wrong.endpoint})
        given = {
            "optimist.store.gcs.accessToken": "hush",
            "optimist.store.gcs.endpoint": right.endpoint,
        }
        with pytest.raises(ConfigError) as caught:
            GCSLogStore(given, clock=ManualClock()).data_access("gs://b/t")
        assert caught.value.kind == "OPTIMIST_CONTRADICTING_OPTIONS"
        assert (wrong.requests, outside.asked) == ([], [])


def test_google_without_the_token_that_was_asked_for_falls_back_to_nothing(clean, tmp_path):
    with hosts("right", "login") as (right, login):
        clean({"GOOGLE_APPLICATION_CREDENTIALS": str(tmp_path / "missing")})
        given = {
            "optimist.store.gcs.auth": "access-token",
            "optimist.store.gcs.endpoint": right.endpoint,
        }
        store = GCSLogStore(given, clock=ManualClock())
        for call in (lambda: store.read_bytes("gs://b/x"), lambda: store.data_access("gs://b/t")):
            with pytest.raises(ConfigError) as caught:
                call()
            assert caught.value.kind == "OPTIMIST_NO_CREDENTIALS"
        assert (right.requests, login.requests) == ([], [])


# Azure

AZURE_KEY = "aHVzaA=="
OWN = "optimist.store.azure."
HADOOP = "fs.azure.account."
PRINCIPAL = {"AZURE_TENANT_ID": "t", "AZURE_CLIENT_ID": "c", "AZURE_CLIENT_SECRET": "hush"}
AZURE_WAYS = {
    "our signature, for all": ({f"{OWN}sas": "sig=hush"}, {}),
    "our key, for a name": ({f"{OWN}account": "acct", f"{OWN}accountKey": AZURE_KEY}, {}),
    "our identity": ({f"{OWN}auth": "default"}, {}),
    "Hadoop's key, for all": ({f"{HADOOP}key": AZURE_KEY}, {}),
    "Hadoop's key, for a name": ({f"{HADOOP}key.acct": AZURE_KEY}, {}),
    "Hadoop's principal": (
        {
            f"{HADOOP}auth.type": "OAuth",
            f"{HADOOP}oauth2.client.id": "c",
            f"{HADOOP}oauth2.client.secret": "hush",
            f"{HADOOP}oauth2.client.endpoint": "https://login.example/t/oauth2/token",
        },
        {},
    ),
    "key of the environment": ({}, {"AZURE_STORAGE_KEY": AZURE_KEY}),
    "name and key of the environment": (
        {},
        {"AZURE_STORAGE_ACCOUNT": "acct", "AZURE_STORAGE_KEY": AZURE_KEY},
    ),
    "connection of the environment": (
        {},
        {"AZURE_STORAGE_CONNECTION_STRING": f"AccountName=acct;AccountKey={AZURE_KEY}"},
    ),
    "principal of the environment": ({}, PRINCIPAL),
}


@pytest.mark.parametrize("way", AZURE_WAYS)
@pytest.mark.parametrize("host", ["acct.dfs.storage.evil.example", "acct.evil.example"])
def test_azures_credentials_go_to_no_host_but_azures(clean, outside, way, host):
    options, variables = AZURE_WAYS[way]
    clean(variables)
    store = AzureLogStore(options, clock=ManualClock())
    path = f"abfss://c@{host}/t"
    for call in (lambda: store.read_bytes(f"{path}/x"), lambda: store.data_access(path)):
        with pytest.raises(ConfigError) as caught:
            call()
        assert caught.value.kind == "OPTIMIST_NO_CREDENTIALS"
    assert outside.asked == []


@pytest.mark.parametrize(
    ("options", "host", "asked"),
    [
        (
            {f"{OWN}account": "acct.dfs.storage.own.example", f"{OWN}accountKey": AZURE_KEY},
            "acct.dfs.storage.own.example",
            "acct.blob.storage.own.example",
        ),
        (
            {f"{HADOOP}key.acct.dfs.storage.own.example": AZURE_KEY},
            "acct.dfs.storage.own.example",
            "acct.blob.storage.own.example",
        ),
        (
            {f"{OWN}sas": "sig=hush"},
            "acct.z01.dfs.storage.azure.net",
            "acct.z01.blob.storage.azure.net",
        ),
        (
            {f"{OWN}account": "acct", f"{OWN}sas": "sig=hush"},
            "acct.privatelink.dfs.core.windows.net",
            "acct.privatelink.blob.core.windows.net",
        ),
        (
            {f"{OWN}account": "acct", f"{OWN}sas": "sig=hush"},
            "acct.dfs.core.chinacloudapi.cn",
            "acct.blob.core.chinacloudapi.cn",
        ),
    ],
)
def test_a_host_of_azure_or_of_the_users_is_asked_by_its_right_name(
    clean, outside, options, host, asked
):
    clean({})
    store = AzureLogStore(options, clock=ManualClock())
    with pytest.raises(StorageError):
        store.read_bytes(f"abfss://c@{host}/t/x")
    assert set(outside.asked) == {asked}
    settings = store.data_access(f"abfss://c@{host}/t").revealed_settings()
    assert settings["account_name"] + settings["blob_storage_authority"] == asked


@pytest.mark.parametrize("mark", ["#", "?", "\\", ":80#", "%23", " ", "@"])
def test_a_host_that_only_ends_like_azures_is_refused(clean, outside, mark):
    clean({})
    store = AzureLogStore({f"{OWN}sas": "sig=hush"}, clock=ManualClock())
    path = f"abfss://c@evil.example{mark}.dfs.core.windows.net/t"
    for call in (lambda: store.read_bytes(f"{path}/x"), lambda: store.data_access(path)):
        with pytest.raises(ConfigError) as caught:
            call()
        assert caught.value.kind == "OPTIMIST_INCOMPLETE_PATH"
    assert outside.asked == []


def test_an_account_of_a_zone_is_not_meant_by_its_bare_name(clean, outside):
    clean({})
    store = AzureLogStore({f"{OWN}account": "acct", f"{OWN}sas": "sig=hush"}, clock=ManualClock())
    with pytest.raises(ConfigError):
        store.read_bytes("abfss://c@acct.z02.dfs.storage.azure.net/t/x")
    assert outside.asked == []


AZURE_ENDPOINT_WAYS = {
    "options": ({f"{OWN}endpoint": "{right}/acct", f"{OWN}accountKey": AZURE_KEY}, {}),
    "environment": (
        {},
        {
            "AZURE_STORAGE_CONNECTION_STRING": "AccountName=acct;"
            f"AccountKey={AZURE_KEY};BlobEndpoint={{right}}/acct"
        },
    ),
}


@pytest.mark.parametrize("way", AZURE_ENDPOINT_WAYS)
def test_azure_is_asked_at_its_endpoint_without_the_password_of_netrc(clean, outside, way):
    options, variables = AZURE_ENDPOINT_WAYS[way]
    with hosts("right", "proxy") as (right, proxy):
        places = {"right": right.endpoint}
        clean(_filled(variables, places), dot_netrc=NETRC)
        clean({"HTTPS_PROXY": proxy.endpoint})
        store = AzureLogStore(_filled(options, places), clock=ManualClock())
        path = "abfss://c@acct.dfs.core.windows.net/t"
        settings = use(store, path)
        assert right.authorizations == {"SharedKey"}
        assert settings["blob_storage_authority"] == right.endpoint.removeprefix("http://")
        assert (proxy.requests, outside.asked) == ([], [])


# Proxies

BEHIND_A_PROXY = {
    "s3": (
        S3LogStore,
        "s3://b/t",
        {"fs.s3a.endpoint": "{right}", "optimist.store.s3.region": "us-east-1", **KEYS},
    ),
    "gcs": (
        GCSLogStore,
        "gs://b/t",
        {"optimist.store.gcs.endpoint": "{right}", "optimist.store.gcs.accessToken": "hush"},
    ),
    "azure": (
        AzureLogStore,
        "abfss://c@acct.dfs.core.windows.net/t",
        {f"{OWN}endpoint": "{right}/acct", f"{OWN}accountKey": AZURE_KEY},
    ),
}


@pytest.mark.parametrize("name", BEHIND_A_PROXY)
@pytest.mark.parametrize("is_direct", [False, True])
def test_log_and_data_go_by_the_proxy_of_the_environment_or_neither(
    clean, outside, name, is_direct
):
    make, path, options = BEHIND_A_PROXY[name]
    with hosts("right", "proxy") as (right, proxy):
        # Nothing has this name but in the eyes of a proxy.
        server = right.endpoint if is_direct else "http://store.example"
        proxies = {"HTTP_PROXY": proxy.endpoint, "http_proxy": proxy.endpoint}
        clean({**proxies, "NO_PROXY": "127.0.0.1", "no_proxy": "127.0.0.1"})
        use(make(_filled(options, {"right": server}), clock=ManualClock()), path)
        asked, other = (right, proxy) if is_direct else (proxy, right)
        files = {each.path.rpartition("/")[2] for each in asked.requests}
        assert {f"{0:020}.json", "part.parquet"} <= files
        assert {each.method for each in asked.requests} & {"PUT", "POST"}
        assert (other.requests, outside.asked) == ([], [])


# What `requests` does by itself


@pytest.mark.parametrize(
    ("store", "path", "options"),
    [
        (
            AzureLogStore,
            "abfss://c@acct.dfs.core.windows.net/t/x",
            {f"{OWN}endpoint": "{right}/acct", f"{OWN}accountKey": AZURE_KEY},
        ),
        (
            GCSLogStore,
            "gs://b/x",
            {"optimist.store.gcs.endpoint": "{right}", "optimist.store.gcs.accessToken": "hush"},
        ),
    ],
)
def test_no_redirect_is_followed(clean, outside, store, path, options):
    with hosts("right", "wrong") as (right, wrong):
        right.redirects_to = wrong
        clean({}, dot_netrc=NETRC)
        given = _filled(options, {"right": right.endpoint})
        with pytest.raises(OptimistError):
            store(given, clock=ManualClock()).read_bytes(path)
        assert right.requests
        assert (wrong.requests, outside.asked) == ([], [])


def _filled(texts, places):
    def filled(text):
        for name, value in places.items():
            text = text.replace("{" + name + "}", value)
        return text

    return {key: filled(text) for key, text in texts.items()}
