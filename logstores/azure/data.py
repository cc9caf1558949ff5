"""Access to data files in Azure storage: Arrow reads them, the log's store creates them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from optimist.core.errors import ConfigError
from optimist.core.plugins.data_access import DataAccess
from optimist.core.plugins.data_origin import DataOrigin
from optimist.core.secrets import Options, Secret, revealed
from optimist.logstores.azure.identity import AzureCredential
from optimist.logstores.azure.options import AzureOptions
from optimist.logstores.azure.paths import SCHEMES, AzureLocation, parse_account
from optimist.logstores.shared.store_options import options_from, options_of_store

__all__ = ["azure_data_access", "azure_origin"]

_STORE = "optimist.logstores:AzureLogStore"
_SENT_ALONG = ("key", "sas", "service-principal")


def azure_origin(options: AzureOptions, location: AzureLocation) -> DataOrigin:
    """Return which URLs name blobs of an account, in any container."""
    default = options.default_account
    is_default = default is not None and parse_account(default) == location.of
    return DataOrigin(SCHEMES, location.of.host("dfs"), is_account=True, is_default=is_default)


def azure_data_access(
    options: AzureOptions, location: AzureLocation, given: Mapping[str, str]
) -> DataAccess:
    """Return the settings of `pyarrow.fs.AzureFileSystem`, and the options of a creating store.

    Each executor finds managed and workload identities and the default chain itself.

    Args:
        options: The store's options.
        location: The table.
        given: The options before they were parsed.

    Raises:
        ConfigError: Credentials are missing, or Arrow does not support an option (kind
            `OPTIMIST_UNSUPPORTED_OPTION`).
    """
    settings: dict[str, Any] = {"account_name": location.account}
    settings |= _host_settings(options, location)
    credential = options.credential_of(location)
    settings |= _credential_settings(credential)
    return DataAccess.of(
        "azure",
        azure_origin(options, location),
        settings,
        store_options=_options_for_creating(options, location, credential, given),
    )


def _options_for_creating(
    options: AzureOptions,
    location: AzureLocation,
    credential: AzureCredential,
    given: Mapping[str, str],
) -> Options:
    """Return options for creating files, with keys and secrets but without a machine's identity."""
    if credential.kind not in _SENT_ALONG:
        return options_of_store(_STORE, given)
    own = {
        "account": location.of.host("blob"),
        "endpoint": options.endpoint_of(location) if options.is_custom(location) else None,
        "auth": credential.kind,
        "accountKey": credential.account_key,
        "sas": credential.sas,
        "tenantId": credential.tenant_id,
        "clientId": credential.client_id,
        "clientSecret": credential.client_secret,
        "authority": credential.authority,
        "connectTimeoutSeconds": options.connect_timeout_s,
        "readTimeoutSeconds": options.read_timeout_s,
        "maxTries": options.max_tries,
    }
    return options_of_store(_STORE, options_from("azure", own))


def _credential_settings(credential: AzureCredential) -> dict[str, Any]:
    if credential.kind == "key":
        return {"account_key": credential.account_key}
    if credential.kind == "sas":
        # Arrow appends it to a URL unchanged, so it needs the question mark.
        return {"sas_token": Secret("?" + (revealed(credential.sas) or "").lstrip("?"))}
    if credential.kind == "service-principal":
        return {
            "tenant_id": credential.tenant_id,
            "client_id": credential.client_id,
            "client_secret": credential.client_secret,
        }
    if credential.kind == "managed-identity":
        return {"client_id": credential.client_id}
    if credential.kind == "anonymous":
        raise ConfigError(
            "Arrow's Azure file system can't read without credentials. Set an account key or "
            "a shared access signature.",
            kind="OPTIMIST_UNSUPPORTED_OPTION",
            key="optimist.store.azure.auth",
        )
    return {}


def _host_settings(options: AzureOptions, location: AzureLocation) -> dict[str, Any]:
    if not options.is_custom(location):
        return {
            "blob_storage_authority": location.of.authority("blob"),
            "dfs_storage_authority": location.of.authority("dfs"),
        }
    endpoint = urlsplit(options.endpoint_of(location))
    own_host = f"{location.account}."
    if endpoint.path.strip("/") == location.account:
        authority = endpoint.netloc  # an emulator: the account is part of the path
    elif endpoint.netloc.startswith(own_host):
        authority = endpoint.netloc.removeprefix(location.account)
    else:
        raise ConfigError(
            "Arrow's Azure file system can use this endpoint only if the account is the first part "
            "of its host or the whole of its path, as in "
            f"http://127.0.0.1:10000/{location.account}. Set such an endpoint.",
            kind="OPTIMIST_UNSUPPORTED_OPTION",
            key="optimist.store.azure.endpoint",
        )
    return {
        "blob_storage_authority": authority,
        "dfs_storage_authority": authority.replace(".blob.", ".dfs.", 1),
        "blob_storage_scheme": endpoint.scheme,
        "dfs_storage_scheme": endpoint.scheme,
    }
