"""S3 URLs: `s3:`, `s3a:` and `s3n:` are equal, and a `%` in them is a percent sign.

Several slashes count as one, as in Hadoop and the engines built on it, so that all of them mean the
same object.
"""

from __future__ import annotations

from dataclasses import dataclass

from optimist.core.errors import ConfigError
from optimist.core.paths import scheme_of

__all__ = ["SCHEMES", "S3Location"]

SCHEMES = ("s3", "s3a", "s3n")


@dataclass(frozen=True, slots=True)
class S3Location:
    """One object or prefix.

    Attributes:
        bucket: The bucket, or the name of an access point.
        key: The key, without a leading slash; empty for the bucket itself.
    """

    bucket: str
    key: str

    @classmethod
    def of(cls, path: str) -> S3Location:
        """Parse a URL, and keep a slash at its end.

        Raises:
            ConfigError: It is not an S3 URL, has no bucket, or holds credentials.
        """
        scheme = scheme_of(path)
        if scheme not in SCHEMES:
            raise ConfigError(
                f"S3LogStore cannot serve {path}: it is not an s3:, s3a: or s3n: URL. "
                "Check spark.delta.logStore.class and the scheme keys.",
                kind="DELTA_INCORRECT_LOG_STORE_IMPLEMENTATION",
                path=path,
            )
        rest = path[len(scheme) + 1 :].lstrip("/")
        bucket, _, key = rest.partition("/")
        if "@" in bucket or (":" in bucket and "@" in key):  # a secret may contain a slash
            # Not quoted: the text before the @ is a secret.
            bare = rest.rpartition("@")[2].partition("/")[0]
            raise ConfigError(
                f"A URL must not contain credentials. Write {scheme}://{bare}/... and set "
                "fs.s3a.access.key and fs.s3a.secret.key.",
                kind="OPTIMIST_CREDENTIALS_IN_URL",
                bucket=bare,
            )
        if not bucket:
            raise ConfigError(
                f"{path} names no bucket. Write it as s3://bucket/path.",
                kind="OPTIMIST_INCOMPLETE_PATH",
                path=path,
            )
        end = "/" if key.endswith("/") else ""
        parts = [part for part in key.split("/") if part]
        return cls(bucket, "/".join(parts) + (end if parts else ""))

    @property
    def url(self) -> str:
        """The one URL for all spellings, without a slash at the end."""
        return f"s3://{self.bucket}/{self.key}".rstrip("/")

    @property
    def prefix(self) -> str:
        """The key up to and including its last slash, or empty at the top of the bucket."""
        return self.key[: self.key.rfind("/") + 1]

    @property
    def name(self) -> str:
        """The key after its last slash."""
        return self.key[self.key.rfind("/") + 1 :]
