import io
import sys
from types import SimpleNamespace

import pytest
import requests
import urllib3
from azure.core.credentials import AccessToken, AzureNamedKeyCredential, AzureSasCredential
from azure.core.pipeline.transport import RequestsTransport
from hypothesis import given
from hypothesis import strategies as st

from optimist.core.errors import ConfigError, StorageError
from optimist.core.secrets import Secret
from optimist.logstores.azure.identity import AzureCredential, sdk_credential
from optimist.logstores.azure.options import AzureOptions
from optimist.logstores.azure.paths import parse_location
from optimist.logstores.azure.store import AzureLogStore

OWN = "optimist.store.azure."
HERE = parse_location("abfss://box@acct.dfs.core.windows.net/t", None)
OTHER = parse_location("abfss://box@other.dfs.core.windows.net/t", None)


def credential(options, environment=None, location=HERE):
    return AzureOptions.from_options(options, environment or {}).credential_of(location)


# URLs


@pytest.mark.parametrize(
    "spelling",
    [
        "abfss://box@acct.dfs.core.windows.net/t/_delta_log",
        "abfs://box@acct.dfs.core.windows.net/t/_delta_log/",
        "wasbs://box@acct.blob.core.windows.net/t/_delta_log",
        "wasb://box@ACCT.blob.core.windows.net//t//_delta_log",
        "az://box/t/_delta_log",
        "az://box@acct.blob.core.windows.net/t/_delta_log",
        "ABFSS://box/t/_delta_log",
    ],
)
def test_all_spellings_of_one_place_resolve_alike(spelling):
    store = AzureLogStore({f"{OWN}account": "acct"})
    expected = "abfss://box@acct.dfs.core.windows.net/t/_delta_log"
    assert store.resolve_path(spelling) == expected


@given(name=st.text(st.characters(exclude_characters="/", exclude_categories=["Cs"]), min_size=1))
def test_names_are_taken_as_they_stand(name):
    location = parse_location(f"az://box/t/{name}", "acct")
    assert (location.directory, location.name) == ("t/", name)


def test_account_of_another_cloud_keeps_its_hosts():
    location = parse_location("abfss://box@acct.dfs.core.chinacloudapi.cn/t", None)
    assert location.blob_endpoint == "https://acct.blob.core.chinacloudapi.cn"
    by_option = parse_location("az://box/t", "acct.blob.core.chinacloudapi.cn")
    assert by_option == location


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("s3://box/t", "DELTA_INCORRECT_LOG_STORE_IMPLEMENTATION"),
        ("/t", "DELTA_INCORRECT_LOG_STORE_IMPLEMENTATION"),
        ("az://box/t", "OPTIMIST_INCOMPLETE_PATH"),
        ("abfss://@acct.dfs.core.windows.net/t", "OPTIMIST_INCOMPLETE_PATH"),
        ("abfss:///t", "OPTIMIST_INCOMPLETE_PATH"),
    ],
)
def test_path_that_names_no_place_is_refused(path, kind, monkeypatch):
    monkeypatch.delenv("AZURE_STORAGE_CONNECTION_STRING", raising=False)
    monkeypatch.delenv("AZURE_STORAGE_ACCOUNT", raising=False)
    with pytest.raises(ConfigError) as caught:
        AzureLogStore().resolve_path(path)
    assert caught.value.kind == kind


# Credentials from each source


@pytest.mark.parametrize(
    "options",
    [
        {f"{OWN}accountKey": "hunter2"},
        {f"spark.{OWN}accountKey": "hunter2", f"{OWN}account": "acct"},
        {f"{OWN}connectionString": "AccountName=acct;AccountKey=hunter2"},
        {"fs.azure.account.key.acct.dfs.core.windows.net": "hunter2"},
        {"spark.hadoop.fs.azure.account.key.acct.blob.core.windows.net": "hunter2"},
        {"fs.azure.account.key.acct": "hunter2"},
        {"spark.hadoop.fs.azure.account.key": "hunter2"},
        {
            "fs.azure.account.auth.type.acct.dfs.core.windows.net": "SharedKey",
            "fs.azure.account.key": "hunter2",
        },
    ],
)
def test_account_key_is_found(options):
    found = credential(options)
    assert (found.kind, found.account) == ("key", "acct")
    assert found.account_key == Secret("hunter2")
    given = sdk_credential(found)
    assert isinstance(given, AzureNamedKeyCredential)
    assert given.named_key == ("acct", "hunter2")


@pytest.mark.parametrize(
    "options",
    [
        {f"{OWN}sas": "?sig=hunter2"},
        {
            f"{OWN}connectionString": "BlobEndpoint=https://acct.blob.core.windows.net/;"
            "SharedAccessSignature=sig=hunter2"
        },
        {"fs.azure.sas.box.acct.blob.core.windows.net": "sig=hunter2"},
        {"spark.hadoop.fs.azure.sas.box.acct.dfs.core.windows.net": "sig=hunter2"},
        {"fs.azure.sas.fixed.token.acct.dfs.core.windows.net": "sig=hunter2"},
        {"fs.azure.account.auth.type": "SAS", "fs.azure.sas.fixed.token": "sig=hunter2"},
    ],
)
def test_shared_access_signature_is_found(options):
    found = credential(options)
    assert found.kind == "sas"
    given = sdk_credential(found)
    assert isinstance(given, AzureSasCredential)
    assert given.signature == "sig=hunter2"


OAUTH = {
    "fs.azure.account.auth.type.acct.dfs.core.windows.net": "OAuth",
    "fs.azure.account.oauth.provider.type.acct.dfs.core.windows.net": (
        "org.apache.hadoop.fs.azurebfs.oauth2.ClientCredsTokenProvider"
    ),
    "fs.azure.account.oauth2.client.id.acct.dfs.core.windows.net": "app",
    "fs.azure.account.oauth2.client.secret.acct.dfs.core.windows.net": "hunter2",
    "fs.azure.account.oauth2.client.endpoint.acct.dfs.core.windows.net": (
        "https://login.microsoftonline.com/tenant-1/oauth2/token"
    ),
}


@pytest.mark.parametrize(
    ("options", "environment"),
    [
        (OAUTH, {}),
        ({f"spark.hadoop.{key}": value for key, value in OAUTH.items()}, {}),
        ({f"{OWN}tenantId": "tenant-1", f"{OWN}clientId": "app", f"{OWN}clientSecret": "s"}, {}),
        (
            {},
            {
                "AZURE_TENANT_ID": "tenant-1",
                "AZURE_CLIENT_ID": "app",
                "AZURE_CLIENT_SECRET": "hunter2",
            },
        ),
    ],
)
def test_service_principal_is_found(options, environment):
    found = credential(options, environment)
    assert (found.kind, found.tenant_id, found.client_id) == (
        "service-principal",
        "tenant-1",
        "app",
    )


@pytest.mark.parametrize(
    ("environment", "kind"),
    [
        ({"AZURE_STORAGE_CONNECTION_STRING": "AccountName=acct;AccountKey=k"}, "key"),
        ({"AZURE_STORAGE_ACCOUNT": "acct", "AZURE_STORAGE_KEY": "k"}, "key"),
        ({"AZURE_STORAGE_SAS_TOKEN": "sig=x"}, "sas"),
    ],
)
def test_environment_is_asked_last(environment, kind):
    assert credential({}, environment).kind == kind
    own = credential({f"{OWN}auth": "anonymous"}, environment)
    assert own.kind == "anonymous"
    assert sdk_credential(own) is None


@pytest.mark.parametrize(
    ("options", "environment"),
    [
        ({f"{OWN}account": "acct", f"{OWN}accountKey": "k"}, {}),
        ({"fs.azure.account.key.acct.dfs.core.windows.net": "k"}, {}),
        ({}, {"AZURE_STORAGE_CONNECTION_STRING": "AccountName=acct;AccountKey=k"}),
        ({}, {"AZURE_STORAGE_ACCOUNT": "acct", "AZURE_STORAGE_KEY": "k"}),
    ],
)
def test_credentials_of_one_account_do_not_go_to_another(options, environment):
    assert credential(options, environment).kind == "key"
    with pytest.raises(ConfigError) as caught:
        credential(options, environment, location=OTHER)
    assert caught.value.kind == "OPTIMIST_NO_CREDENTIALS"
    assert "fs.azure.account.key.other.dfs.core.windows.net" in str(caught.value)


def test_connection_string_gives_the_endpoint_to_its_account_only():
    text = "AccountName=acct;AccountKey=k;BlobEndpoint=http://127.0.0.1:1/acct;"
    for options, environment in (
        ({f"{OWN}connectionString": text}, {}),
        ({}, {"AZURE_STORAGE_CONNECTION_STRING": text}),
    ):
        parsed = AzureOptions.from_options(options, environment)
        assert parsed.default_account == "acct"
        assert parsed.endpoint_of(HERE) == "http://127.0.0.1:1/acct"
        assert parsed.is_custom(HERE)
        assert not parsed.is_custom(OTHER)


def test_accounts_own_endpoint_is_not_custom():
    text = "AccountName=acct;AccountKey=k;BlobEndpoint=https://acct.blob.core.windows.net/"
    assert not AzureOptions.from_options({f"{OWN}connectionString": text}, {}).is_custom(HERE)


def test_development_storage_is_the_emulator():
    parsed = AzureOptions.from_options({f"{OWN}connectionString": "UseDevelopmentStorage=true"}, {})
    assert parsed.endpoint == "http://127.0.0.1:10000/devstoreaccount1"
    assert parsed.account == "devstoreaccount1"


# Tokens


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        (
            AzureCredential(
                "service-principal",
                "acct",
                tenant_id="t",
                client_id="c",
                client_secret=Secret("s"),
                authority="login.example",
            ),
            (
                "ClientSecretCredential",
                {
                    "tenant_id": "t",
                    "client_id": "c",
                    "client_secret": "s",
                    "authority": "login.example",
                },
            ),
        ),
        (AzureCredential("managed-identity", "acct"), ("ManagedIdentityCredential", {})),
        (
            AzureCredential("managed-identity", "acct", client_id="c"),
            ("ManagedIdentityCredential", {"client_id": "c"}),
        ),
        (
            AzureCredential("workload-identity", "acct", client_id="c", token_file="/f"),
            ("WorkloadIdentityCredential", {"client_id": "c", "token_file_path": "/f"}),
        ),
        (AzureCredential("default", "acct"), ("DefaultAzureCredential", {})),
    ],
)
def test_token_credentials_are_built_by_azure_identity(monkeypatch, asked, expected):
    class Recorder(SimpleNamespace):
        def __getattr__(self, name):
            return lambda **arguments: (name, arguments)

    monkeypatch.setitem(sys.modules, "azure.identity", Recorder())
    name, arguments = sdk_credential(asked).credential
    transport = arguments.pop("transport")
    assert transport.session.auth is not None  # so that no password of ~/.netrc is sent
    assert (name, arguments) == expected


class Challenging(requests.adapters.HTTPAdapter):
    """An endpoint that answers every request with a challenge."""

    def __init__(self, resource):
        super().__init__()
        self.resource = resource
        self.sent = []

    def send(self, request, **_):
        self.sent.append(request.headers.get("Authorization"))
        challenge = (
            "Bearer authorization_uri=https://login.microsoftonline.com/theirs/oauth2/authorize "
            f"resource_id={self.resource}"
        )
        headers = {"WWW-Authenticate": challenge}
        answer = urllib3.HTTPResponse(io.BytesIO(), headers, 401, preload_content=False)
        return self.build_response(request, answer)


@pytest.mark.parametrize("host", [{}, {f"{OWN}endpoint": "https://blobs.example"}])
@pytest.mark.parametrize("resource", ["https://graph.example", "https://storage.azure.com"])
def test_an_endpoint_does_not_choose_which_token_it_gets(monkeypatch, host, resource):
    asked = []

    class Credential:
        def __init__(self, **_):
            pass

        def get_token(self, *scopes, **given):
            asked.append((scopes, given.get("tenant_id")))
            return AccessToken(f"for {scopes[0]}", 4_000_000_000)

    identity = SimpleNamespace(DefaultAzureCredential=Credential)
    monkeypatch.setitem(sys.modules, "azure.identity", identity)
    service, session = Challenging(resource), requests.Session()
    session.mount("https://", service)
    transport = RequestsTransport(session=session, session_owner=False)
    store = AzureLogStore({f"{OWN}auth": "default", **host}, transport=transport)
    with pytest.raises(StorageError) as caught:
        store.read_bytes(f"{HERE.url}/0.json")
    assert caught.value.kind == "OPTIMIST_INVALID_CREDENTIALS"
    scope = "https://storage.azure.com/.default"
    assert set(asked) == {((scope,), None)}
    assert set(service.sent) == {f"Bearer for {scope}"}


def test_missing_azure_identity_is_told_when_it_is_needed(monkeypatch):
    monkeypatch.setitem(sys.modules, "azure.identity", None)
    store = AzureLogStore({f"{OWN}auth": "managed-identity"})
    with pytest.raises(ConfigError) as caught:
        store.read_bytes(f"{HERE.url}/0.json")
    assert caught.value.kind == "OPTIMIST_MISSING_PACKAGE"
    assert "pip install 'azure-identity" in str(caught.value)


@pytest.mark.parametrize(
    ("provider", "kind"),
    [
        ("MsiTokenProvider", "managed-identity"),
        ("WorkloadIdentityTokenProvider", "workload-identity"),
    ],
)
def test_hadoops_token_providers_have_counterparts(provider, kind):
    options = {
        "fs.azure.account.auth.type": "OAuth",
        "fs.azure.account.oauth.provider.type": f"org.apache.hadoop.fs.azurebfs.oauth2.{provider}",
        "fs.azure.account.oauth2.client.id": "c",
        "fs.azure.account.oauth2.msi.tenant": "tenant-1",
    }
    found = credential(options)
    assert (found.kind, found.client_id, found.tenant_id) == (kind, "c", "tenant-1")


# Bad input


@pytest.mark.parametrize(
    ("options", "kind"),
    [
        ({f"{OWN}accountkey": "hunter2"}, "OPTIMIST_UNKNOWN_OPTION"),
        ({f"{OWN}maxTries": "0"}, "OPTIMIST_INVALID_OPTION"),
        ({f"{OWN}readTimeoutSeconds": "soon"}, "OPTIMIST_INVALID_OPTION"),
        ({f"{OWN}readTimeoutSeconds": "nan"}, "OPTIMIST_INVALID_OPTION"),
        ({f"{OWN}auth": "hunter2-password"}, "OPTIMIST_INVALID_OPTION"),
        ({f"{OWN}connectionString": "AccountKey=hunter2"}, "OPTIMIST_INVALID_OPTION"),
        (
            {f"{OWN}connectionString": "AccountName=a;AccountKey=hunter2", f"{OWN}accountKey": "x"},
            "OPTIMIST_CONTRADICTING_OPTIONS",
        ),
        (
            {f"{OWN}sas": "hunter2", f"spark.{OWN}sas": "hunter3"},
            "OPTIMIST_CONTRADICTING_OPTIONS",
        ),
        (
            {"fs.azure.account.key": "hunter2", "spark.hadoop.fs.azure.account.key": "hunter3"},
            "OPTIMIST_CONTRADICTING_OPTIONS",
        ),
    ],
)
def test_option_that_does_not_serve_is_refused_without_its_value(options, kind):
    with pytest.raises(ConfigError) as caught:
        AzureLogStore(options)
    assert caught.value.kind == kind
    assert "hunter" not in str(caught.value) + str(dict(caught.value.fields))


@pytest.mark.parametrize(
    ("options", "kind"),
    [
        ({}, "OPTIMIST_NO_CREDENTIALS"),
        ({f"{OWN}auth": "key"}, "OPTIMIST_NO_CREDENTIALS"),
        ({f"{OWN}clientSecret": "hunter2"}, "OPTIMIST_NO_CREDENTIALS"),
        ({"fs.azure.account.auth.type": "SharedKey"}, "OPTIMIST_NO_CREDENTIALS"),
        ({"fs.azure.account.auth.type": "OAuth"}, "OPTIMIST_NO_CREDENTIALS"),
        ({"fs.azure.account.auth.type": "Custom"}, "OPTIMIST_UNSUPPORTED_OPTION"),
        (
            {
                "fs.azure.account.auth.type": "OAuth",
                "fs.azure.account.oauth.provider.type": "my.own.Provider",
            },
            "OPTIMIST_UNSUPPORTED_OPTION",
        ),
    ],
)
def test_credentials_that_are_missing_or_unknown_are_told(options, kind):
    with pytest.raises(ConfigError) as caught:
        credential(options)
    assert caught.value.kind == kind
    assert "hunter" not in str(caught.value)


def test_secrets_show_nowhere():
    options = {
        f"{OWN}account": "acct",
        f"{OWN}accountKey": "hunter1",
        f"{OWN}sas": "hunter2",
        f"{OWN}clientSecret": "hunter3",
        "fs.azure.account.key": "hunter4",
    }
    store = AzureLogStore(options)
    parsed = AzureOptions.from_options(options, {"AZURE_STORAGE_KEY": "hunter5"})
    text = repr(parsed) + repr(parsed.credential_of(HERE)) + str(store.describe())
    assert "hunter" not in text
    assert "acct" in text


def test_nothing_is_asked_of_the_network_when_a_store_is_built():
    assert AzureLogStore({f"{OWN}auth": "default"}).describe()["probed"] == "nothing yet"
