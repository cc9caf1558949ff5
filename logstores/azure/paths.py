"""The URLs of Azure storage: which account, which container, which blob.

| form | account from |
|---|---|
| `abfss://container@account.dfs.core.windows.net/path` (and `abfs:`) | the URL |
| `wasbs://container@account.blob.core.windows.net/path` (and `wasb:`) | the URL |
| `az://container/path` (and any scheme above without `@`) | the option `account` |

All schemes mean the same bytes, and the connection is encrypted for each of them. Names are taken
as they stand: nothing is percent-decoded.
"""

from __future__ import annotations

from dataclasses import dataclass

from optimist.core.errors import ConfigError
from optimist.core.paths import scheme_of
from optimist.logstores.shared.object_keys import object_key, split_key

__all__ = ["DEFAULT_SUFFIX", "SCHEMES", "AzureLocation", "parse_account", "parse_location"]

DEFAULT_SUFFIX = "core.windows.net"
SCHEMES = ("abfss", "abfs", "az", "wasbs", "wasb")
"""The first is that of the one URL which stands for all."""
_SERVICES = ("blob", "dfs")


@dataclass(frozen=True, slots=True)
class AzureLocation:
    """One place in Azure storage.

    Attributes:
        account: The name of the account, without host.
        suffix: What stands after `blob.` or `dfs.` in the account's host names.
        container: The container, which Data Lake Storage calls a file system.
        key: The blob's name, without a leading slash; a trailing slash of the path stays.
    """

    account: str
    suffix: str
    container: str
    key: str

    @property
    def url(self) -> str:
        """The one spelling that stands for all."""
        host = f"{self.account}.dfs.{self.suffix}"
        return f"abfss://{self.container}@{host}/{self.key}".rstrip("/")

    @property
    def blob_endpoint(self) -> str:
        """Where the account's Blob service is."""
        return f"https://{self.account}.blob.{self.suffix}"

    @property
    def directory(self) -> str:
        """The prefix of everything beside the blob: empty, or ending in a slash."""
        return split_key(self.key)[0]

    @property
    def name(self) -> str:
        """The final component of the key."""
        return split_key(self.key)[1]


def parse_location(path: str, default_account: str | None) -> AzureLocation:
    """Parse a URL; a trailing slash of the path counts (`name` is empty then).

    Args:
        path: A URL of one of the forms above.
        default_account: The account for URLs that name none, as a name or a host.

    Raises:
        ConfigError: The scheme is another store's, or container or account are missing.
    """
    if scheme_of(path) not in SCHEMES:
        raise ConfigError(
            f"AzureLogStore cannot serve {path}: its scheme is none of {', '.join(SCHEMES)}. "
            "Check spark.delta.logStore.class and the scheme keys.",
            kind="DELTA_INCORRECT_LOG_STORE_IMPLEMENTATION",
            path=path,
        )
    authority, slash, rest = path.partition(":")[2].removeprefix("//").partition("/")
    container, at, host = authority.partition("@")
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
    name, suffix = parse_account(account)
    return AzureLocation(name, suffix, container, object_key(slash + rest))


def parse_account(text: str) -> tuple[str, str]:
    """Name and host suffix of an account given as `name` or as `name.dfs.core.windows.net`."""
    name, _, host = text.lower().partition(".")
    service, _, suffix = host.partition(".")
    if service not in _SERVICES:
        return name, host or DEFAULT_SUFFIX
    return name, suffix
