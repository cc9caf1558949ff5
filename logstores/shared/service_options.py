"""The common options of Azure's and Google's stores, and how all options are read."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, TypeVar

from optimist.core.options.fields import option, parse_options
from optimist.core.options.values import at_least, parse_bool, parse_positive
from optimist.core.secrets import masked_repr

__all__ = ["ServiceOptions"]

_Options = TypeVar("_Options", bound="ServiceOptions")


@dataclass(frozen=True, slots=True)
class ServiceOptions:
    """The options of every such store, built by a subclass's `from_options`.

    A subclass sets the `prefix` of its keys, and adds fields for them. It sets `__repr__` to
    `masked_repr`, as here: the `__repr__` of `dataclass` would show secrets.

    Attributes:
        connect_timeout_s: How long to wait for a connection.
        read_timeout_s: How long to wait for an answer.
        max_tries: How often a request is sent if the store is busy.
        allow_unsafe_writes: Write although a custom endpoint may overwrite a commit; for tables
            with one writer. Every commit is logged.
    """

    prefix: ClassVar[str]

    connect_timeout_s: float = option(10.0, parse_positive)
    read_timeout_s: float = option(60.0, parse_positive)
    max_tries: int = option(5, at_least(1))
    allow_unsafe_writes: bool = option(False, parse_bool)

    __repr__ = masked_repr

    @classmethod
    def from_options(
        cls: type[_Options],
        options: Mapping[str, str],
        environment: Mapping[str, str] | None = None,
    ) -> _Options:
        """Parse the store's keys, and ignore all others.

        Args:
            options: A plain mapping, for example the entries of a Spark conf.
            environment: Environment variables; those of the process if None.

        Raises:
            ConfigError: A key of the store is unknown or does not parse, keys contradict each
                other, or Hadoop's keys need an unsupported feature.
        """
        own = parse_options(cls, options, cls.prefix)
        given = os.environ if environment is None else environment
        return cls._completed(own, options, given)

    @classmethod
    def _completed(
        cls: type[_Options],
        own: dict[str, Any],
        options: Mapping[str, str],
        environment: Mapping[str, str],
    ) -> _Options:
        """Complete the store's own keys by Hadoop's keys and the environment.

        Args:
            own: The values of the store's own keys, by the names of the fields.
            options: All options.
            environment: The environment variables.
        """
        raise NotImplementedError
