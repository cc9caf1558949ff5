"""`S3LogStore` with an arbiter before it: whichever `optimist.store.arbiter` names.

*Assumes* what `external_arbiter` and `s3` assume.

*Provides* both fences: the arbiter's entry, and the conditional PUT.

*Does not provide* what the arbiter does not; see its own header.

*Excludes* the writers that ask the same arbiter, and those that `S3LogStore` excludes.

The entries spell a table as the caller does (`s3a://bucket/table`), because all writers of it, of
all engines, must spell it alike. `optimist.store.s3arbiter.scheme` sets the scheme for all;
where entries are found under another scheme than ours, nothing is written.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import ClassVar

from optimist.core.arbiter import Arbiter
from optimist.core.clock import Clock
from optimist.core.errors import ConfigError
from optimist.core.logstore import PutOutcome
from optimist.core.paths import parent_of, scheme_of
from optimist.core.plugins.lock_registry import ARBITER_KEY, find_arbiter
from optimist.logstores.s3.path import SCHEMES, S3Location
from optimist.logstores.s3.reader import READ_RETRIES
from optimist.logstores.s3.store import S3LogStore
from optimist.logstores.shared.external_arbiter import ExternalArbiterLogStore
from optimist.logstores.shared.hadoop_options import hadoop_options
from optimist.logstores.store_options import own_options

__all__ = ["S3ArbiterLogStore"]

_READ_RETRIES = "io.delta.storage.S3DynamoDBLogStore.read.retries"


class S3ArbiterLogStore(ExternalArbiterLogStore):
    """S3 with the arbiter that the conf names.

    Args:
        options: Those of `S3LogStore` and of the arbiter, and `optimist.store.s3arbiter.scheme`.
        arbiter: An arbiter to use instead of the one that the conf names.
        clock: Paces retries, and tells when entries may expire.
    """

    arbiter_name: ClassVar[str | None] = None
    """The short name of the arbiter, where the class stands for one."""

    def __init__(
        self,
        options: Mapping[str, str] | None = None,
        *,
        arbiter: Arbiter | None = None,
        clock: Clock | None = None,
    ) -> None:
        given = options or {}
        super().__init__(
            given,
            store=S3LogStore(
                given, clock=clock, has_arbiter=True, read_retries=_parse_read_retries(given)
            ),
            arbiter=arbiter or self._find_arbiter(given),
            clock=clock,
        )
        self._scheme = _parse_scheme(given)
        self._checking = threading.Lock()
        self._checked: set[str] = set()

    def table_path(self, path: str) -> str:
        """`<scheme>://bucket/table`, with the scheme of the option or else of the path."""
        return self.resolve_path(parent_of(parent_of(path)))

    def resolve_path(self, path: str) -> str:
        """`<scheme>://bucket/key`; the scheme is kept, since to the arbiter it tells tables apart.

        Raises:
            ConfigError: See `S3Location.of`.
        """
        scheme = self._scheme or scheme_of(path)
        return S3Location.of(path).url.replace("s3", scheme, 1)

    def put_if_absent(self, path: str, data: bytes) -> PutOutcome:
        """See `ExternalArbiterLogStore.put_if_absent`.

        Raises:
            ConfigError: Other writers spell the table with another scheme (kind
                `OPTIMIST_ARBITER_PATH_MISMATCH`).
        """
        table_path = self.table_path(path)
        with self._checking:
            is_checked = table_path in self._checked
        if not is_checked:
            self._ensure_spelled_alike(table_path)
            with self._checking:
                self._checked.add(table_path)
        return super().put_if_absent(path, data)

    def _ensure_spelled_alike(self, table_path: str) -> None:
        if self._arbiter.latest(table_path) is not None:
            return
        own, _, rest = table_path.partition(":")
        other = f"{'s3' if own == 's3a' else 's3a'}:{rest}"
        if self._arbiter.latest(other) is None:
            return
        raise ConfigError(
            f"Nothing was written: the arbiter has entries for {other} and none for {table_path}. "
            "All writers must spell a table alike, or two of them can win one version. Use that "
            f"URL, or set optimist.store.s3arbiter.scheme={scheme_of(other)}.",
            kind="OPTIMIST_ARBITER_PATH_MISMATCH",
            table_path=table_path,
            other_path=other,
        )

    @classmethod
    def _find_arbiter(cls, options: Mapping[str, str]) -> Arbiter:
        if cls.arbiter_name is not None:
            # The class says which one; the key may be there for the stores of other schemes.
            keys = (ARBITER_KEY, f"spark.{ARBITER_KEY}")
            rest = {key: value for key, value in options.items() if key not in keys}
            found = find_arbiter(rest, default=cls.arbiter_name)
        else:
            found = find_arbiter(options)
        if found is None:
            raise ConfigError(
                f"This store needs an arbiter: set spark.{ARBITER_KEY} to dynamodb, redis, or a "
                "class of your own as package.module:Class.",
                kind="OPTIMIST_NO_ARBITER",
                key=ARBITER_KEY,
            )
        return found


def _parse_scheme(options: Mapping[str, str]) -> str | None:
    own = own_options(options, "s3arbiter")
    unknown = sorted(set(own) - {"scheme"})
    if unknown:
        raise ConfigError(
            f"Unknown option optimist.store.s3arbiter.{unknown[0]}. Known: scheme.",
            kind="OPTIMIST_UNKNOWN_OPTION",
            key=f"optimist.store.s3arbiter.{unknown[0]}",
        )
    scheme = own.get("scheme", "").strip().lower() or None
    if scheme is not None and scheme not in SCHEMES:
        raise ConfigError(
            f"optimist.store.s3arbiter.scheme must be one of {', '.join(SCHEMES)}.",
            kind="OPTIMIST_INVALID_OPTION",
            key="optimist.store.s3arbiter.scheme",
        )
    return scheme


def _parse_read_retries(options: Mapping[str, str]) -> int:
    text = hadoop_options(options, _READ_RETRIES).get(_READ_RETRIES)
    if text is None:
        return READ_RETRIES
    if not text.strip().isdecimal():
        raise ConfigError(
            f"The value {text!r} of spark.{_READ_RETRIES} does not parse: it must be a whole "
            "number, at least 0.",
            kind="OPTIMIST_INVALID_OPTION",
            key=_READ_RETRIES,
        )
    return int(text.strip())
