"""Credentials from the keys that users of Hadoop's Azure connectors have: `fs.azure.*`.

A key is looked for with the account's host name after it, dfs and blob alike, then with the bare
account, then for all accounts. `fs.azure.account.auth.type` decides where it is set; else the first
of account key, shared access signature and client secret that is there.
"""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import urlsplit

from optimist.core.errors import ConfigError
from optimist.core.secrets import Secret
from optimist.logstores.azure.identity import AzureCredential
from optimist.logstores.azure.paths import AzureLocation

__all__ = ["hadoop_credential"]

_AUTH_TYPE = "fs.azure.account.auth.type"
_PROVIDER = "fs.azure.account.oauth.provider.type"
_KEY = "fs.azure.account.key"
_OAUTH2 = "fs.azure.account.oauth2."

_AUTH_TYPES = {"sharedkey": "key", "sas": "sas", "oauth": ""}
"""The kind that each means; for OAuth the provider tells."""
_PROVIDERS = {
    "ClientCredsTokenProvider": "service-principal",
    "MsiTokenProvider": "managed-identity",
    "WorkloadIdentityTokenProvider": "workload-identity",
}


def hadoop_credential(keys: Mapping[str, str], location: AzureLocation) -> AzureCredential | None:
    """The credentials that the keys give for a place, or None if they say nothing of it.

    Raises:
        ConfigError: They ask for something that does not exist here, or that is incomplete.
    """
    if _find(keys, _AUTH_TYPE, location) is None:
        kind = _present_kind(keys, location)
    else:
        kind = _asked_kind(keys, location)
    if kind is None:
        return None
    tenant_id, authority = _tenant(keys, location)
    return AzureCredential(
        kind=kind,
        account=location.account,
        account_key=_secret(_find(keys, _KEY, location)),
        sas=_secret(_find_sas(keys, location)),
        tenant_id=tenant_id,
        client_id=_find(keys, f"{_OAUTH2}client.id", location),
        client_secret=_secret(_find(keys, f"{_OAUTH2}client.secret", location)),
        authority=authority,
        token_file=_find(keys, f"{_OAUTH2}token.file", location),
    ).ensure_complete(source="fs.azure.*")


def _find(keys: Mapping[str, str], key: str, location: AzureLocation) -> str | None:
    account = location.account
    hosts = (f".{account}.dfs.{location.suffix}", f".{account}.blob.{location.suffix}")
    for ending in (*hosts, f".{account}", ""):
        value = keys.get(key + ending, "").strip()
        if value:
            return value
    return None


def _find_sas(keys: Mapping[str, str], location: AzureLocation) -> str | None:
    return (
        _find(keys, f"fs.azure.sas.{location.container}", location)
        or _find(keys, f"fs.azure.sas.fixed.token.{location.container}", location)
        or _find(keys, "fs.azure.sas.fixed.token", location)
    )


def _present_kind(keys: Mapping[str, str], location: AzureLocation) -> str | None:
    if _find(keys, _KEY, location):
        return "key"
    if _find_sas(keys, location):
        return "sas"
    if _find(keys, f"{_OAUTH2}client.secret", location):
        return "service-principal"
    return None


def _asked_kind(keys: Mapping[str, str], location: AzureLocation) -> str:
    kind = _AUTH_TYPES.get((_find(keys, _AUTH_TYPE, location) or "").lower())
    if kind is None:
        raise _unsupported(_AUTH_TYPE, "SharedKey, SAS, OAuth")
    return kind or _provider_kind(keys, location)


def _provider_kind(keys: Mapping[str, str], location: AzureLocation) -> str:
    if _find(keys, _PROVIDER, location) is None:
        return "service-principal"
    kind = _PROVIDERS.get((_find(keys, _PROVIDER, location) or "").rpartition(".")[2])
    if kind is None:
        raise _unsupported(_PROVIDER, ", ".join(_PROVIDERS))
    return kind


def _tenant(keys: Mapping[str, str], location: AzureLocation) -> tuple[str | None, str | None]:
    """Tenant and login host; Hadoop has both in one URL, `https://<host>/<tenant>/oauth2/token`."""
    endpoint = _find(keys, f"{_OAUTH2}client.endpoint", location)
    if endpoint is None:
        return _find(keys, f"{_OAUTH2}msi.tenant", location), None
    parts = urlsplit(endpoint)
    return parts.path.strip("/").partition("/")[0] or None, parts.netloc or None


def _secret(text: str | None) -> Secret[str] | None:
    return None if text is None else Secret(text)


def _unsupported(key: str, known: str) -> ConfigError:
    return ConfigError(
        f"The value of {key} is not supported. Supported are: {known}. Or give "
        "credentials with optimist.store.azure.*.",
        kind="OPTIMIST_UNSUPPORTED_OPTION",
        key=key,
    )
