"""How data files in Azure storage are reached by Arrow's own file system."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit

from optimist.core.data.access import DataAccess
from optimist.core.errors import ConfigError
from optimist.logstores.azure.identity import AzureCredential
from optimist.logstores.azure.options import AzureOptions
from optimist.logstores.azure.paths import SCHEMES, AzureLocation

__all__ = ["azure_data_access"]


def azure_data_access(options: AzureOptions, location: AzureLocation) -> DataAccess:
    """The settings of `pyarrow.fs.AzureFileSystem`.

    Managed and workload identities and the default chain are found by each executor for itself.

    Raises:
        ConfigError: There are no credentials, or Arrow has no way to use what was asked for (kind
            `OPTIMIST_UNSUPPORTED_OPTION`).
    """
    settings: dict[str, Any] = {"account_name": location.account}
    settings |= _hosts(options, location)
    settings |= _credential(options.credential_of(location))
    return DataAccess.of("azure", SCHEMES, settings, account=location.account)


def _credential(credential: AzureCredential) -> dict[str, Any]:
    if credential.kind == "key":
        return {"account_key": credential.account_key}
    if credential.kind == "sas":
        # Arrow puts it behind a URL as it stands, and the URL then needs the question mark.
        return {"sas_token": "?" + str(credential.sas).lstrip("?")}
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
            "Arrow's Azure file system does not read without credentials. Give an account key or "
            "a shared access signature.",
            kind="OPTIMIST_UNSUPPORTED_OPTION",
            key="optimist.store.azure.auth",
        )
    return {}


def _hosts(options: AzureOptions, location: AzureLocation) -> dict[str, Any]:
    if not options.is_custom(location):
        return {
            "blob_storage_authority": f".blob.{location.suffix}",
            "dfs_storage_authority": f".dfs.{location.suffix}",
        }
    endpoint = urlsplit(options.endpoint_of(location))
    own_host = f"{location.account}."
    if endpoint.path.strip("/") == location.account:
        authority = endpoint.netloc  # as emulators have it: the account is part of the path
    elif endpoint.netloc.startswith(own_host):
        authority = endpoint.netloc.removeprefix(location.account)
    else:
        raise ConfigError(
            "Arrow's Azure file system reaches an endpoint of its own only where the account is "
            "the first part of the host or the whole of the path, as in "
            f"http://127.0.0.1:10000/{location.account}.",
            kind="OPTIMIST_UNSUPPORTED_OPTION",
            key="optimist.store.azure.endpoint",
        )
    return {
        "blob_storage_authority": authority,
        "dfs_storage_authority": authority.replace(".blob.", ".dfs.", 1),
        "blob_storage_scheme": endpoint.scheme,
        "dfs_storage_scheme": endpoint.scheme,
    }
