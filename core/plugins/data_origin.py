"""The URLs that name files of a table's own store (S3 bucket, Azure account, HDFS, ...)."""

from __future__ import annotations

from dataclasses import dataclass

from optimist.core.paths import scheme_of, split_url

__all__ = ["DataOrigin"]

_LOCAL = ("", "file")
_WITHOUT_HOSTS = ("memory",)


@dataclass(frozen=True, slots=True)
class DataOrigin:
    """The store of one table, as the URLs of its files name it.

    A table's log is data that others wrote. So only files in the table's own store, as defined
    here, are opened with its credentials (`data_paths` decides which other files may be opened at
    all). A log can neither choose a driver nor have the credentials sent to another host.

    Attributes:
        schemes: The URL schemes of the store, in lower case; `""` for plain paths.
        host: The bucket, or the host and port, exactly as written between `//` and `/`. None if the
            scheme has no such part (local files).
        is_account: Whether the host is an account: URLs are `scheme://container@host/...`.
        is_default: Whether URLs that name no account mean this account.
        goes_by_driver: Whether fsspec opens the files. It reads `::` in a path as a chain of
            drivers.
    """

    schemes: tuple[str, ...]
    host: str | None = None
    is_account: bool = False
    is_default: bool = False
    goes_by_driver: bool = False

    @classmethod
    def of(cls, path: str) -> DataOrigin:
        """Return the origin that a table's path alone shows, without its store."""
        scheme, authority, _ = split_url(path)
        if scheme in _LOCAL:
            return cls(_LOCAL)
        host = None if scheme in _WITHOUT_HOSTS else authority
        return cls((scheme,), host, goes_by_driver=True)

    @property
    def is_local(self) -> bool:
        """Whether the table is on a disk of this machine."""
        return "file" in self.schemes

    def serves(self, path: str) -> bool:
        """Return whether a path has one of the store's schemes. Its host may differ."""
        return scheme_of(path) in self.schemes

    def covers(self, path: str) -> bool:
        """Return whether a path is in this store."""
        return self.key_of(path) is not None

    def key_of(self, path: str) -> str | None:
        """Return the path within the store, the same for every URL of a file, or None outside it.

        Repeated slashes count as one.
        """
        scheme, authority, rest = split_url(path)
        if scheme not in self.schemes:
            return None
        if self.host is None:
            return _normalized_key(f"{authority}/{rest}")
        if not self.is_account:
            return _normalized_key(rest) if authority == self.host else None
        container, at, host = authority.partition("@")
        is_ours = _account_host(host) == self.host if at else self.is_default
        return _normalized_key(f"{container}/{rest}") if is_ours and container else None

    def url_of(self, path: str) -> str | None:
        """Return the standard URL of a path, by the first scheme, or None outside the store."""
        key = self.key_of(path)
        return None if key is None else self._url(self.schemes[0], key)

    def spellings_of(self, path: str) -> tuple[str, ...]:
        """Return the URLs of a path by every scheme and host of the store (none outside it)."""
        key = self.key_of(path)
        if key is None:
            return ()
        return tuple(url for scheme in self.schemes for url in self._urls(scheme, key))

    def _url(self, scheme: str, key: str) -> str:
        if self.is_account:
            container, _, rest = key.partition("/")
            return f"{scheme}://{container}@{self.host}/{rest}".rstrip("/")
        return f"{scheme}://{_without_password(self.host or '')}/{key}".rstrip("/")

    def _urls(self, scheme: str, key: str) -> tuple[str, ...]:
        url = self._url(scheme, key)
        if self.host is None:
            return url, f"{scheme}://{key}", f"{scheme}:/{key}"
        if not self.is_account:
            return (url,)
        by_blob = url.replace(".dfs.", ".blob.", 1)
        return (url, by_blob, f"{scheme}://{key}") if self.is_default else (url, by_blob)


def _without_password(authority: str) -> str:
    """Remove the password from an authority: the name of a store must not hold a secret."""
    user, at, host = authority.rpartition("@")
    return f"{user.partition(':')[0]}{at}{host}"


def _account_host(host: str) -> str:
    """Return the host in one spelling: an account has both a `.blob.` and a `.dfs.` name."""
    return host.lower().replace(".blob.", ".dfs.", 1)


def _normalized_key(text: str) -> str:
    return "/".join(part for part in text.split("/") if part)
