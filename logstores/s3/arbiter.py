"""`S3LogStore` with the arbiter that `optimist.store.arbiter` names.

*Assumes* the same as `external_arbiter` and `s3/store.py`.

*Provides* both fences: the arbiter's entry, and the conditional PUT.

*Does not provide* more than the arbiter; see its own header.

*Excludes* the writers that ask the same arbiter, and those that `S3LogStore` excludes.

The entries spell a table as the caller does (`s3a://bucket/table`), because all its writers, of all
engines, must spell it alike. `optimist.store.s3arbiter.scheme` sets the scheme for all. If the
arbiter knows the table only under another of `s3`, `s3a` and `s3n`, nothing is written.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from optimist.core.options.engine import STORE_PREFIX
from optimist.core.options.fields import (
    foreign_option,
    option,
    parse_foreign_options,
    parse_options,
)
from optimist.core.options.values import at_least, blank_as, one_of
from optimist.core.paths import scheme_of
from optimist.core.plugins.arbiter import Arbiter
from optimist.core.plugins.lock_registry import needed_arbiter
from optimist.core.runtime.clock import Clock
from optimist.logstores.s3.path import SCHEMES, S3Location
from optimist.logstores.s3.reader import READ_RETRIES
from optimist.logstores.s3.store import S3LogStore
from optimist.logstores.shared.external_arbiter import ExternalArbiterLogStore
from optimist.logstores.shared.hadoop_options import hadoop_options

__all__ = ["S3ArbiterLogStore"]

_READ_RETRIES = "io.delta.storage.S3DynamoDBLogStore.read.retries"


@dataclass(frozen=True, slots=True)
class S3ArbiterOptions:
    """The options of S3ArbiterLogStore, besides those of S3LogStore and the arbiter.

    Attributes:
        scheme: The scheme in the arbiter's entries, for all writers; None takes the path's.
        read_retries: How often in a row a reader continues if a commit is replaced while it is read
            (spec 3.5).
    """

    scheme: str | None = option(None, blank_as(None, one_of(*SCHEMES)))
    read_retries: int = foreign_option(READ_RETRIES, at_least(0), _READ_RETRIES)

    @classmethod
    def from_options(cls, options: Mapping[str, str]) -> S3ArbiterOptions:
        """Parse the store's key, and the key of Delta's own store.

        Raises:
            ConfigError: A key of the store is unknown, a value does not parse, or two spellings
                differ.
        """
        deltas = parse_foreign_options(cls, hadoop_options(options, _READ_RETRIES))
        return cls(**deltas, **parse_options(cls, options, f"{STORE_PREFIX}s3arbiter."))


class S3ArbiterLogStore(ExternalArbiterLogStore):
    """S3 with the arbiter that the conf names.

    Args:
        options: The options of `S3LogStore` and the arbiter, and `optimist.store.s3arbiter.scheme`.
        arbiter: An arbiter to use instead of the one that the conf names.
        clock: Paces retries, and decides when entries may expire.
    """

    arbiter_name: ClassVar[str | None] = None
    """The short name of the arbiter, for a class that takes only one arbiter."""

    def __init__(
        self,
        options: Mapping[str, str] | None = None,
        *,
        arbiter: Arbiter | None = None,
        clock: Clock | None = None,
    ) -> None:
        given = options or {}
        parsed = S3ArbiterOptions.from_options(given)
        super().__init__(
            given,
            store=S3LogStore(
                given, clock=clock, has_arbiter=True, read_retries=parsed.read_retries
            ),
            arbiter=arbiter or needed_arbiter(given, only=self.arbiter_name),
            clock=clock,
        )
        self._scheme = parsed.scheme

    def table_path(self, path: str) -> str:
        """Return `<scheme>://bucket/table`, with the scheme of the option or else the path."""
        scheme = self._scheme or scheme_of(path)
        return super().table_path(path).replace("s3", scheme, 1)

    def resolve_path(self, path: str) -> str:
        """Return `<scheme>://bucket/key`, with the scheme of the option or else the path.

        Raises:
            ConfigError: See `S3Location.of`.
        """
        return S3Location.of(path).url.replace("s3", self._scheme or scheme_of(path), 1)

    def spelling_hint(self, other_path: str) -> str:
        """See `ExternalArbiterLogStore.spelling_hint`."""
        return f"Use {other_path}, or set optimist.store.s3arbiter.scheme={scheme_of(other_path)}."
