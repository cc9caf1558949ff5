"""The URLs of Azure storage: account, container and blob.

| form | account from |
|---|---|
| `abfss://container@account.dfs.core.windows.net/path` (and `abfs:`) | the URL |
| `wasbs://container@account.blob.core.windows.net/path` (and `wasb:`) | the URL |
| `az://container/path` (and any scheme above without `@`) | the option `account` |

All schemes mean the same bytes, and each uses an encrypted connection. Names are not
percent-decoded.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from optimist.core.errors import ConfigError
from optimist.core.paths import scheme_of
from optimist.logstores.shared.object_keys import object_key, split_key

__all__ = ["SCHEMES", "AzureAccount", "AzureLocation", "parse_account", "parse_location"]

_DEFAULT_SUFFIX = "core.windows.net"
_AZURE_SUFFIXES = (
    _DEFAULT_SUFFIX,
    "core.chinacloudapi.cn",
    "core.usgovcloudapi.net",
    "core.cloudapi.de",
    "storage.azure.net",
    "fabric.microsoft.com",
)
"""The ends of host names in Azure's own clouds, which nobody else can have."""
_UNIQUE_BY_NAME = ("", "privatelink")
"""Zones in which an account's name is unique within its cloud."""
SCHEMES = ("abfss", "abfs", "az", "wasbs", "wasb")
"""The schemes, of which the first is used in the one URL for all spellings."""
_SERVICES = ("blob", "dfs")
_HOST = re.compile(r"[A-Za-z0-9._-]*(?::[0-9]+)?")
"""A `#` would end the host in a URL: a text that only ends like Azure's host is another host."""


@dataclass(frozen=True, slots=True)
class AzureAccount:
    """A storage account, by its host names: `<name>.<zone>.<service>.<suffix>`.

    Attributes:
        name: The name of the account.
        suffix: The part after `blob.` or `dfs.`.
        zone: The part before it, or empty: a DNS zone (`z01`), or `privatelink`.
    """

    name: str
    suffix: str = _DEFAULT_SUFFIX
    zone: str = ""

    @property
    def is_of_azure(self) -> bool:
        """True if its hosts are Microsoft's."""
        return self.suffix in _AZURE_SUFFIXES

    def host(self, service: str) -> str:
        """Return the host of a service of the account, `blob` or `dfs`."""
        return self.name + self.authority(service)

    def authority(self, service: str) -> str:
        """Return the host without the name, as Arrow takes it: `.blob.core.windows.net`."""
        zone = f".{self.zone}" if self.zone else ""
        return f"{zone}.{service}.{self.suffix}"

    def is_meant_by(self, given: str) -> bool:
        """Check whether a name or a host from the user means this account.

        A bare name is trusted only where Azure guarantees that no other account has it. Otherwise
        credentials for one account could go to any host to which a path gives that name.
        """
        if "." in given:
            return parse_account(given) == self
        return given.lower() == self.name and self.is_of_azure and self.zone in _UNIQUE_BY_NAME


@dataclass(frozen=True, slots=True)
class AzureLocation:
    """One blob, or prefix of blobs, in Azure storage.

    Attributes:
        of: The account.
        container: The container, which Data Lake Storage calls a file system.
        key: The blob's name, without a leading slash but with the path's trailing slash.
    """

    of: AzureAccount
    container: str
    key: str

    @property
    def account(self) -> str:
        """The name of the account, without its host."""
        return self.of.name

    @property
    def url(self) -> str:
        """The one URL for all spellings."""
        return f"abfss://{self.container}@{self.of.host('dfs')}/{self.key}".rstrip("/")

    @property
    def blob_endpoint(self) -> str:
        """The URL of the account's Blob service."""
        return f"https://{self.of.host('blob')}"

    @property
    def directory(self) -> str:
        """The prefix of all blobs in the same directory: empty, or ending in a slash."""
        return split_key(self.key)[0]

    @property
    def name(self) -> str:
        """The final component of the key."""
        return split_key(self.key)[1]


def parse_location(path: str, default_account: str | None) -> AzureLocation:
    """Parse a URL, whose `name` is empty if it ends in a slash.

    Args:
        path: A URL of one of the forms above.
        default_account: The account for URLs without one, as a name or a host.

    Raises:
        ConfigError: The scheme is another store's, or the container or account is missing.
    """
    if scheme_of(path) not in SCHEMES:
        raise ConfigError(
            f"AzureLogStore cannot serve {path}: its scheme is not one of {', '.join(SCHEMES)}. "
            "Check spark.delta.logStore.class and the scheme keys.",
            kind="DELTA_INCORRECT_LOG_STORE_IMPLEMENTATION",
            path=path,
        )
    authority, slash, rest = path.partition(":")[2].removeprefix("//").partition("/")
    container, at, host = authority.partition("@")
    if at and not _HOST.fullmatch(host):
        raise ConfigError(
            f"{path} names no host of an account: it has a character that a host can't have. Write "
            "abfss://container@account.dfs.core.windows.net/path.",
            kind="OPTIMIST_INCOMPLETE_PATH",
            path=path,
        )
    account = host if at else default_account
    if not container or not account:
        missing = "a container" if not container else "an account"
        raise ConfigError(
            f"{path} names no container and account. Write "
            "abfss://container@account.dfs.core.windows.net/path, or "
            f"az://container/path with optimist.store.azure.account ({missing} is missing).",
            kind="OPTIMIST_INCOMPLETE_PATH",
            path=path,
        )
    return AzureLocation(parse_account(account), container, object_key(slash + rest))


def parse_account(text: str) -> AzureAccount:
    """Parse an account: `name`, `name.dfs.core.windows.net`, or a host in a zone."""
    name, *labels = text.lower().split(".")
    service = next((index for index, label in enumerate(labels) if label in _SERVICES), None)
    if service is None:
        return AzureAccount(name, ".".join(labels) or _DEFAULT_SUFFIX)
    return AzureAccount(name, ".".join(labels[service + 1 :]), ".".join(labels[:service]))
