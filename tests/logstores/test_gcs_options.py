import json

import google.auth
import pytest
from google.auth.credentials import AnonymousCredentials
from google.auth.exceptions import DefaultCredentialsError, TransportError

from optimist.core.errors import ConfigError, StorageError
from optimist.logstores.gcs.credentials import gcs_credentials
from optimist.logstores.gcs.options import GCS_ENDPOINT, GCSOptions
from optimist.logstores.gcs.store import GCSLogStore

OWN = "optimist.store.gcs."


def parse(options, environment=None):
    return GCSOptions.from_options(options, environment or {})


# Where and who


def test_google_is_asked_with_default_credentials():
    parsed = parse({})
    assert (parsed.endpoint, parsed.auth_kind, parsed.is_custom) == (GCS_ENDPOINT, "default", False)


@pytest.mark.parametrize(
    ("options", "environment"),
    [
        ({f"{OWN}emulatorHost": "http://127.0.0.1:4443"}, {}),
        ({f"spark.{OWN}emulatorHost": "127.0.0.1:4443/"}, {}),
        ({}, {"STORAGE_EMULATOR_HOST": "127.0.0.1:4443"}),
        ({f"{OWN}endpoint": "http://127.0.0.1:4443", f"{OWN}auth": "anonymous"}, {}),
        (
            {"fs.gs.storage.root.url": "http://127.0.0.1:4443/", "fs.gs.auth.null.enable": "true"},
            {},
        ),
    ],
)
def test_emulator_is_reached_without_credentials(options, environment):
    parsed = parse(options, environment)
    assert parsed.endpoint == "http://127.0.0.1:4443"
    assert parsed.is_custom
    assert isinstance(gcs_credentials(parsed), AnonymousCredentials)


def test_named_endpoint_wins_over_the_environment():
    parsed = parse({f"{OWN}endpoint": "https://proxy.example"}, {"STORAGE_EMULATOR_HOST": "x:1"})
    assert (parsed.endpoint, parsed.auth_kind) == ("https://proxy.example", "default")


@pytest.mark.parametrize(
    ("endpoint", "is_custom"),
    [
        ("https://storage.googleapis.com", False),
        ("https://storage.us-east1.rep.googleapis.com", False),
        ("https://evilgoogleapis.com", True),
        ("https://googleapis.com.example", True),
    ],
)
def test_only_googles_own_hosts_are_not_probed(endpoint, is_custom):
    assert parse({f"{OWN}endpoint": endpoint}).is_custom is is_custom


@pytest.mark.parametrize(
    "options",
    [
        {f"{OWN}keyFile": "/key.json"},
        {"fs.gs.auth.service.account.json.keyfile": "/key.json"},
        {"spark.hadoop.fs.gs.auth.service.account.json.keyfile": "/key.json"},
        {"spark.hadoop.google.cloud.auth.service.account.json.keyfile": "/key.json"},
        {
            "fs.gs.auth.type": "SERVICE_ACCOUNT_JSON_KEYFILE",
            "fs.gs.auth.service.account.json.keyfile": "/key.json",
        },
        {f"{OWN}keyFile": "/key.json", "fs.gs.auth.type": "UNAUTHENTICATED"},
    ],
)
def test_key_file_is_found(options):
    parsed = parse(options)
    assert (parsed.auth_kind, parsed.key_file) == ("service-account", "/key.json")


@pytest.mark.parametrize(
    ("auth_type", "kind"),
    [
        ("APPLICATION_DEFAULT", "default"),
        ("COMPUTE_ENGINE", "default"),
        ("UNAUTHENTICATED", "anonymous"),
    ],
)
def test_hadoops_auth_types_have_counterparts(auth_type, kind):
    assert parse({"spark.hadoop.fs.gs.auth.type": auth_type}).auth_kind == kind


def test_project_and_payer_come_from_hadoops_keys():
    parsed = parse(
        {
            "fs.gs.project.id": "mine",
            "fs.gs.requester.pays.mode": "CUSTOM",
            "fs.gs.requester.pays.project.id": "payer",
            "fs.gs.requester.pays.buckets": "a, b",
        }
    )
    assert parsed.project == "mine"
    assert [parsed.user_project_of(bucket) for bucket in "abc"] == ["payer", "payer", None]
    assert parse({"fs.gs.requester.pays.project.id": "payer"}).user_project_of("a") is None


@pytest.mark.parametrize("spelling", ["gs://box/t", "gs://box/t/", "GS://box//t", "gs://box//t//"])
def test_all_spellings_of_one_place_resolve_alike(spelling):
    assert GCSLogStore().resolve_path(spelling) == "gs://box/t"


# Bad input


@pytest.mark.parametrize(
    ("options", "kind"),
    [
        ({f"{OWN}keyfile": "hunter2"}, "OPTIMIST_UNKNOWN_OPTION"),
        ({f"{OWN}auth": "magic"}, "OPTIMIST_INVALID_OPTION"),
        ({f"{OWN}endpoint": "http://"}, "OPTIMIST_INVALID_OPTION"),
        ({f"{OWN}maxTries": "0"}, "OPTIMIST_INVALID_OPTION"),
        ({f"{OWN}readTimeoutSeconds": "-1"}, "OPTIMIST_INVALID_OPTION"),
        (
            {f"{OWN}endpoint": "http://a", f"{OWN}emulatorHost": "b"},
            "OPTIMIST_CONTRADICTING_OPTIONS",
        ),
        ({f"{OWN}keyFile": "/f", f"{OWN}keyJson": "hunter2"}, "OPTIMIST_CONTRADICTING_OPTIONS"),
        (
            {"fs.gs.project.id": "a", "spark.hadoop.fs.gs.project.id": "b"},
            "OPTIMIST_CONTRADICTING_OPTIONS",
        ),
        ({"fs.gs.auth.type": "USER_CREDENTIALS"}, "OPTIMIST_UNSUPPORTED_OPTION"),
    ],
)
def test_option_that_does_not_serve_is_refused(options, kind):
    with pytest.raises(ConfigError) as caught:
        GCSLogStore(options)
    assert caught.value.kind == kind
    assert "hunter" not in str(caught.value)


@pytest.mark.parametrize("contents", [None, "no json", "{}", '{"private_key": "hunter2"}'])
def test_key_file_that_does_not_serve_is_told_without_its_contents(tmp_path, contents):
    file = tmp_path / "key.json"
    if contents is not None:
        file.write_text(contents)
    store = GCSLogStore({f"{OWN}keyFile": str(file)})
    with pytest.raises(ConfigError) as caught:
        store.read_bytes("gs://box/f")
    assert caught.value.kind == "OPTIMIST_NO_CREDENTIALS"
    assert (str(file) in str(caught.value)) == (contents is not None)
    assert "hunter2" not in str(caught.value)


def test_key_given_as_text_is_told_without_its_contents():
    store = GCSLogStore({f"{OWN}keyJson": json.dumps({"private_key": "hunter2"})})
    assert "hunter2" not in repr(store._parsed) + str(store.describe())
    with pytest.raises(ConfigError) as caught:
        store.read_bytes("gs://box/f")
    assert "hunter2" not in str(caught.value)


def test_missing_default_credentials_are_told_with_the_ways_out(monkeypatch):
    def nothing(**_):
        raise DefaultCredentialsError("none")

    monkeypatch.setattr(google.auth, "default", nothing)
    with pytest.raises(ConfigError) as caught:
        gcs_credentials(parse({}))
    assert caught.value.kind == "OPTIMIST_NO_CREDENTIALS"
    assert "GOOGLE_APPLICATION_CREDENTIALS" in str(caught.value)


def test_metadata_server_that_fails_is_told(monkeypatch):
    def fails(**_):
        raise TransportError("http://metadata.google.internal answered 503")

    monkeypatch.setattr(google.auth, "default", fails)
    store = GCSLogStore()
    for call in (
        lambda: store.read_bytes("gs://box/f"),
        lambda: list(store.list_from("gs://box/f")),
        lambda: store.put_if_absent("gs://box/f", b"x"),
        lambda: store.put_overwrite("gs://box/f", b"x"),
        lambda: store.delete("gs://box/f"),
    ):
        with pytest.raises(StorageError) as caught:
            call()
        assert caught.value.kind == "OPTIMIST_CREDENTIALS_UNAVAILABLE"


def test_service_account_without_a_key_is_told():
    with pytest.raises(ConfigError) as caught:
        gcs_credentials(parse({f"{OWN}auth": "service-account"}))
    assert caught.value.kind == "OPTIMIST_NO_CREDENTIALS"


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("s3://box/t", "DELTA_INCORRECT_LOG_STORE_IMPLEMENTATION"),
        ("/t", "DELTA_INCORRECT_LOG_STORE_IMPLEMENTATION"),
        ("gs:///t", "OPTIMIST_INCOMPLETE_PATH"),
    ],
)
def test_path_that_names_no_place_is_refused(path, kind):
    with pytest.raises(ConfigError) as caught:
        GCSLogStore().resolve_path(path)
    assert caught.value.kind == kind
