"""Credentials from the keys of Hadoop's Azure connectors: `fs.azure.*`.

A key is searched first with the account's host name after it (dfs or blob), then with the bare
account, then for all accounts. The last two apply only if the requests go to Azure, or to an
endpoint that was set for them. `fs.azure.account.auth.type` decides the kind, if it is set; else
the first of account key, shared access signature and client secret that exists.
"""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import urlsplit

from optimist.core.errors import ConfigError
from optimist.core.secrets import Options, Secret
from optimist.logstores.azure.identity import AzureCredential
from optimist.logstores.azure.paths import AzureLocation

__all__ = ["hadoop_credential"]

_AUTH_TYPE = "fs.azure.account.auth.type"
_PROVIDER = "fs.azure.account.oauth.provider.type"
_KEY = "fs.azure.account.key"
_OAUTH2 = "fs.azure.account.oauth2."

_AUTH_TYPES = {"sharedkey": "key", "sas": "sas", "oauth": ""}
"""The kind of each type. For OAuth, the provider decides."""
_PROVIDERS = {
    "ClientCredsTokenProvider": "service-principal",
    "MsiTokenProvider": "managed-identity",
    "WorkloadIdentityTokenProvider": "workload-identity",
}


def hadoop_credential(
    given: Mapping[str, str], location: AzureLocation, *, is_trusted: bool
) -> AzureCredential | None:
    """Return the credentials that the keys give for a location, or None.

    Args:
        given: The `fs.azure.*` keys.
        location: The location.
        is_trusted: True if keys that do not name its host apply to it.

    Raises:
        ConfigError: The keys are incomplete, or need an unsupported feature.
    """
    keys = _keys_of_location(given, location, is_trusted=is_trusted)
    kind = _asked_kind(keys) if _AUTH_TYPE in keys else _present_kind(keys, location)
    if kind is None:
        return None
    tenant_id, authority = _tenant_and_login_host(keys)
    return AzureCredential(
        kind=kind,
        account=location.account,
        account_key=_secret(keys.get(_KEY)),
        sas=_secret(_find_sas(keys, location)),
        tenant_id=tenant_id,
        client_id=keys.get(f"{_OAUTH2}client.id"),
        client_secret=_secret(keys.get(f"{_OAUTH2}client.secret")),
        authority=authority,
        token_file=keys.get(f"{_OAUTH2}token.file"),
    ).ensure_complete(source="fs.azure.*")


def _keys_of_location(
    keys: Mapping[str, str], location: AzureLocation, *, is_trusted: bool
) -> Options:
    """Return the keys for a location, without the account suffix, the most exact key first."""
    account = location.of
    endings = [""] if is_trusted else []
    if is_trusted and (account.is_meant_by(account.name) or not account.is_of_azure):
        endings.append(f".{account.name}")
    endings += [f".{account.host('blob')}", f".{account.host('dfs')}"]
    found = {
        key.removesuffix(ending): keys[key].strip()
        for ending in endings
        for key in keys
        if key.endswith(ending) and keys[key].strip()
    }
    return Options(found)


def _find_sas(keys: Mapping[str, str], location: AzureLocation) -> str | None:
    return (
        keys.get(f"fs.azure.sas.{location.container}")
        or keys.get(f"fs.azure.sas.fixed.token.{location.container}")
        or keys.get("fs.azure.sas.fixed.token")
    )


def _present_kind(keys: Mapping[str, str], location: AzureLocation) -> str | None:
    if keys.get(_KEY):
        return "key"
    if _find_sas(keys, location):
        return "sas"
    if keys.get(f"{_OAUTH2}client.secret"):
        return "service-principal"
    return None


def _asked_kind(keys: Mapping[str, str]) -> str:
    kind = _AUTH_TYPES.get((keys.get(_AUTH_TYPE) or "").lower())
    if kind is None:
        raise _unsupported(_AUTH_TYPE, "SharedKey, SAS, OAuth")
    return kind or _provider_kind(keys)


def _provider_kind(keys: Mapping[str, str]) -> str:
    if _PROVIDER not in keys:
        return "service-principal"
    kind = _PROVIDERS.get((keys.get(_PROVIDER) or "").rpartition(".")[2])
    if kind is None:
        raise _unsupported(_PROVIDER, ", ".join(_PROVIDERS))
    return kind


def _tenant_and_login_host(keys: Mapping[str, str]) -> tuple[str | None, str | None]:
    """Split Hadoop's one URL for both: `https://<host>/<tenant>/oauth2/token`."""
    endpoint = keys.get(f"{_OAUTH2}client.endpoint")
    if endpoint is None:
        return keys.get(f"{_OAUTH2}msi.tenant"), None
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
