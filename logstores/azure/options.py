"""The options of AzureLogStore, and the credentials that they give for a location.

Our own keys are `optimist.store.azure.<option>`, with or without `spark.`: see `AzureOptions`.
Credentials are searched in this order, and the first source with some for the account and container
wins:

1. our own keys;
2. Hadoop's keys, `fs.azure.*` with or without `spark.hadoop.`, each for the account
   (`fs.azure.account.key.<account>.dfs.core.windows.net`, `.blob.` as well) or for all accounts;
3. the environment: `AZURE_STORAGE_CONNECTION_STRING`, `AZURE_STORAGE_ACCOUNT` with
   `AZURE_STORAGE_KEY` or `AZURE_STORAGE_SAS_TOKEN`; `AZURE_TENANT_ID`, `AZURE_CLIENT_ID` and
   `AZURE_CLIENT_SECRET`.

A path may name any host. So credentials that are given for an account by its bare name, or for all
accounts, are sent only to Azure's own hosts and to a configured endpoint. Any other host gets only
credentials that are given for exactly this host.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from optimist.core.errors import ConfigError
from optimist.core.options.engine import STORE_PREFIX
from optimist.core.options.fields import (
    contradicting_options,
    key_of_field,
    option,
)
from optimist.core.options.values import (
    one_of,
    parse_option,
    parse_url,
)
from optimist.core.secrets import Options, Secret, masked_repr
from optimist.logstores.azure.hadoop import hadoop_credential
from optimist.logstores.azure.identity import AUTH_KINDS, AzureCredential
from optimist.logstores.azure.paths import AzureLocation, parse_account
from optimist.logstores.shared.hadoop_options import hadoop_options
from optimist.logstores.shared.service_options import ServiceOptions

__all__ = ["AzureOptions"]

_PREFIX = f"{STORE_PREFIX}azure."
_CONNECTION = "AZURE_STORAGE_CONNECTION_STRING"
_BLOB_ENDPOINT = "blobendpoint"
_DEVELOPMENT = {
    "endpoint": "http://127.0.0.1:10000/devstoreaccount1",
    "account": "devstoreaccount1",
    # The public key of all emulators.
    "account_key": Secret(
        "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
    ),
}


@dataclass(frozen=True, slots=True)
class AzureOptions(ServiceOptions):
    """The options of AzureLogStore, parsed by `from_options`.

    Attributes:
        account: The account of URLs without one; a name, or a host name in another cloud.
        endpoint: The URL of the Blob service, if it is not the account's usual host: an emulator's
            `http://127.0.0.1:10000/devstoreaccount1`, or a proxy. It is probed before the first
            write.
        auth: The kind of credentials to use, one of `AUTH_KINDS`; by default the kind that is
            given.
        account_key: The account's key.
        sas: A shared access signature, with or without a leading question mark.
        connection_string: The connection string from the portal, which may hold key, signature and
            endpoint.
        tenant_id: The tenant of a service principal.
        client_id: The service principal, or the user-assigned managed identity.
        client_secret: The secret of the service principal.
        authority: The login host, for other clouds.
        hadoop: The `fs.azure.*` keys.
        environment: The `AZURE_*` variables.
    """

    prefix: ClassVar[str] = _PREFIX

    account: str | None = option(None)
    endpoint: str | None = option(None, parse_url)
    auth: str | None = option(None, one_of(*AUTH_KINDS))
    account_key: Secret[str] | None = option(None, Secret)
    sas: Secret[str] | None = option(None, Secret)
    connection_string: Secret[str] | None = option(None, Secret)
    tenant_id: str | None = option(None)
    client_id: str | None = option(None)
    client_secret: Secret[str] | None = option(None, Secret)
    authority: str | None = option(None)
    hadoop: Options = field(default_factory=Options)
    environment: Options = field(default_factory=Options)

    __repr__ = masked_repr

    @classmethod
    def _completed(
        cls, own: dict[str, Any], options: Mapping[str, str], environment: Mapping[str, str]
    ) -> AzureOptions:
        azure_variables = {
            key: value for key, value in environment.items() if key.startswith("AZURE_")
        }
        given = {
            "hadoop": hadoop_options(options, "fs.azure."),
            "environment": Options({key: value for key, value in azure_variables.items() if value}),
            **own,
        }
        return _with_connection_string(cls(**given), given)

    @property
    def default_account(self) -> str | None:
        """The account of URLs without one."""
        return self.account or _environment_account(self.environment)

    def endpoint_of(self, location: AzureLocation) -> str:
        """Return the URL of the Blob service that serves a location."""
        if self.endpoint is not None and self._applies_to(location):
            return self.endpoint
        there = _environment_connection(self.environment, location)
        return there.get("endpoint") or location.blob_endpoint

    def is_custom(self, location: AzureLocation) -> bool:
        """Check whether a location's endpoint is not Azure's own host for the account."""
        return self.endpoint_of(location) != location.blob_endpoint

    def credential_of(self, location: AzureLocation) -> AzureCredential:
        """Return the credentials for a location.

        Raises:
            ConfigError: They are missing or incomplete.
        """
        is_trusted = location.of.is_of_azure or self.is_custom(location)
        found = (
            self._own_credential(location)
            or hadoop_credential(self.hadoop, location, is_trusted=is_trusted)
            or _environment_credential(self.environment, location, is_trusted=is_trusted)
        )
        if found is None and not is_trusted:
            raise _unknown_host(location)
        if found is None:
            raise ConfigError(
                f"There are no credentials for account {location.account}, container "
                f"{location.container}; nothing was read or written. Set one of "
                f"{_PREFIX}accountKey, .sas, .connectionString, or .auth ({', '.join(AUTH_KINDS)}),"
                f" or the key that Hadoop knows, fs.azure.account.key.{location.of.host('dfs')}.",
                kind="OPTIMIST_NO_CREDENTIALS",
                account=location.account,
                container=location.container,
            )
        return found

    def _own_credential(self, location: AzureLocation) -> AzureCredential | None:
        if not self._applies_to(location):
            return None
        kind = self.auth or _kind_of(self)
        if kind is None:
            return None
        return AzureCredential(
            kind=kind,
            account=location.account,
            account_key=self.account_key,
            sas=self.sas,
            tenant_id=self.tenant_id,
            client_id=self.client_id,
            client_secret=self.client_secret,
            authority=self.authority,
        ).ensure_complete(source=_PREFIX.rstrip("."))

    def _applies_to(self, location: AzureLocation) -> bool:
        # Credentials for one account are not sent to another.
        if self.account is None:
            return location.of.is_of_azure or self.endpoint is not None
        has_name = parse_account(self.account).name == location.account
        return location.of.is_meant_by(self.account) or (has_name and self.endpoint is not None)


def _unknown_host(location: AzureLocation) -> ConfigError:
    host = location.of.host("dfs")
    return ConfigError(
        f"{host} is not a host of Azure, and no credentials are given for exactly this host; "
        f"nothing was sent there. If the host is right, set {_PREFIX}account={host} beside the "
        f"credentials, or Hadoop's key for it, fs.azure.account.key.{host}.",
        kind="OPTIMIST_NO_CREDENTIALS",
        account=location.account,
        container=location.container,
        host=host,
    )


def _kind_of(options: AzureOptions) -> str | None:
    if options.account_key is not None:
        return "key"
    if options.sas is not None:
        return "sas"
    if options.client_secret is not None:
        return "service-principal"
    return None


def _with_connection_string(options: AzureOptions, given: dict[str, Any]) -> AzureOptions:
    if options.connection_string is None:
        return options
    key = f"{_PREFIX}connectionString"
    parts = _parse_connection_string(options.connection_string, key)
    for name, value in parts.items():
        if _comparable(name, given.setdefault(name, value)) != _comparable(name, value):
            raise contradicting_options(_PREFIX + key_of_field(name), key, "they differ")
    return AzureOptions(**given)


def _comparable(name: str, value: Any) -> Any:
    return parse_account(value).name if name == "account" else value


def _parse_connection_string(connection: Secret[str], key: str) -> dict[str, Any]:
    pairs = _split_pairs(connection.reveal())
    if pairs.get("usedevelopmentstorage", "").lower() == "true":
        return dict(_DEVELOPMENT)
    found: dict[str, Any] = {
        "account": pairs.get("accountname"),
        "account_key": _secret(pairs.get("accountkey")),
        "sas": _secret(pairs.get("sharedaccesssignature")),
        "endpoint": parse_option(pairs, _BLOB_ENDPOINT, parse_url, key=key)
        if pairs.get(_BLOB_ENDPOINT)
        else None,
    }
    if found["account"] is None and found["endpoint"] is None:
        raise ConfigError(
            f"{key} names neither AccountName nor BlobEndpoint. Copy it again from the account's "
            "page.",
            kind="OPTIMIST_INVALID_OPTION",
            key=key,
        )
    if found["account"] is None and found["endpoint"] is not None:
        found["account"] = found["endpoint"].partition("://")[2].partition(".")[0]
    if "endpointsuffix" in pairs and found["account"] is not None:
        found["account"] = f"{found['account']}.blob.{pairs['endpointsuffix']}"
    return {name: value for name, value in found.items() if value is not None}


def _split_pairs(text: str) -> Options:
    parts = (part.partition("=") for part in text.split(";") if part.strip())
    return Options({name.strip().lower(): value for name, _, value in parts})


def _secret(text: str | None) -> Secret[str] | None:
    return Secret(text) if text else None


def _environment_account(environment: Mapping[str, str]) -> str | None:
    connection = _secret(environment.get(_CONNECTION))
    if connection is not None:
        return _parse_connection_string(connection, _CONNECTION).get("account")
    return environment.get("AZURE_STORAGE_ACCOUNT", environment.get("AZURE_STORAGE_ACCOUNT_NAME"))


def _environment_connection(
    environment: Mapping[str, str], location: AzureLocation
) -> dict[str, Any]:
    """Return the parts of the environment's connection string, if it is for the account."""
    connection = _secret(environment.get(_CONNECTION))
    parts = {} if connection is None else _parse_connection_string(connection, _CONNECTION)
    if not parts or not location.of.is_meant_by(parts["account"]):
        return {}
    return parts


def _environment_credential(
    environment: Mapping[str, str], location: AzureLocation, *, is_trusted: bool
) -> AzureCredential | None:
    parts = _environment_connection(environment, location)
    named = _environment_account(environment)
    if is_trusted if named is None else location.of.is_meant_by(named):
        key = environment.get("AZURE_STORAGE_KEY", environment.get("AZURE_STORAGE_ACCOUNT_KEY"))
        given = {
            "account_key": _secret(key),
            "sas": _secret(environment.get("AZURE_STORAGE_SAS_TOKEN")),
        }
        parts = {**{name: value for name, value in given.items() if value is not None}, **parts}
    account = location.account
    if "account_key" in parts:
        return AzureCredential(kind="key", account=account, account_key=parts["account_key"])
    if "sas" in parts:
        return AzureCredential(kind="sas", account=account, sas=parts["sas"])
    principal = tuple(
        environment.get(f"AZURE_{name}") for name in ("TENANT_ID", "CLIENT_ID", "CLIENT_SECRET")
    )
    if None in principal or not is_trusted:
        return None
    tenant_id, client_id, client_secret = principal
    return AzureCredential(
        kind="service-principal",
        account=account,
        tenant_id=tenant_id,
        client_id=client_id,
        client_secret=_secret(client_secret),
        authority=environment.get("AZURE_AUTHORITY_HOST"),
    )
