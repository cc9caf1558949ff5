"""One Redis server: its options, client and errors, and a check that it keeps its keys.

The client's own retries are off. Each script is sent once. If a second run is safe, it is repeated
by the Clock and within the operation's budget.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any
from urllib.parse import quote

import redis
from redis.backoff import NoBackoff
from redis.exceptions import (
    AuthenticationError,
    BusyLoadingError,
    NoPermissionError,
    ResponseError,
)
from redis.retry import Retry

from optimist.core.errors import ConfigError, OptimistError, StorageError
from optimist.core.errors.kinds import STORE_BUSY, STORE_NO_ANSWER
from optimist.core.forking import ForkSafeLock
from optimist.core.options.engine import STORE_PREFIX
from optimist.core.options.fields import option, parse_options
from optimist.core.options.values import (
    blank_as,
    invalid_option,
    parse_seconds,
    parse_whole_seconds,
)
from optimist.core.runtime.budget import PerTimeout
from optimist.core.runtime.clock import Clock
from optimist.core.runtime.retry import Patience, call_once, call_patiently
from optimist.core.secrets import Secret, masked_repr

__all__ = [
    "REFUSED_CODES",
    "RedisOptions",
    "RedisServer",
    "is_unanswered",
    "key_of",
    "redis_error",
]

_REPEAT = Patience(max_tries=4)
REFUSED_CODES = frozenset({"READONLY", "MASTERDOWN", "CLUSTERDOWN", "OOM", "LOADING", "TRYAGAIN"})
"""First words of answers by which a server says that it did nothing for now."""


@dataclass(frozen=True, slots=True)
class RedisOptions:
    """The options to reach the server, from the keys `optimist.store.redis.<option>`.

    Attributes:
        url: `redis://`, `rediss://` (TLS) or `unix://`, as redis-py takes it; may hold a password.
        password: A password instead of one in the URL.
        prefix: The prefix of every key (`prefix`).
        timeout_s: How long to wait for a connection and for an answer (`timeoutSeconds`).
        entry_ttl_s: How many seconds a complete entry is kept (`entryTtlSeconds`).
    """

    url: Secret[str] = option(
        parse=Secret, missing="say where Redis is, for example redis://host:6379/0"
    )
    password: Secret[str] | None = option(None, Secret)
    prefix: str = option("optimist", blank_as("optimist", str))
    timeout_s: float = option(10.0, parse_seconds)
    entry_ttl_s: int = option(86_400, parse_whole_seconds)

    __repr__ = masked_repr

    @classmethod
    def from_options(cls, options: Mapping[str, str]) -> RedisOptions:
        """Parse Redis's keys.

        Raises:
            ConfigError: The URL is missing, a value does not parse, or a key is unknown.
        """
        return cls(**parse_options(cls, options, f"{STORE_PREFIX}redis."))


class RedisServer:
    """The runner of scripts on the server, which threads may share.

    Before the first script, it asks which keys the server evicts when memory is full.
    """

    def __init__(
        self, options: RedisOptions, *, clock: Clock, client: redis.Redis | None = None
    ) -> None:
        self._clients = PerTimeout[Any](
            lambda timeout_s: client if client is not None else _new_client(options, timeout_s),
            options.timeout_s,
        )
        self._clock = clock
        self._lock = ForkSafeLock()
        self._is_trusted = False

    def send(self, script: str, keys: Sequence[str], *arguments: str) -> Any:
        """Run a script once.

        Raises:
            ConfigError: The server may evict entries; nothing was run.
            StorageError: The server could not be reached before the script; nothing was run.
            Exception: The client's own error for the script.
        """
        self._ensure_keeps_keys()
        return call_once(
            lambda: self._clients.get().eval(script, len(keys), *keys, *arguments), self._clock
        )

    def ask(self, script: str, keys: Sequence[str], *arguments: str, doing: str) -> Any:
        """Run a script that may run more than once.

        Args:
            script: Lua; atomic on the server.
            keys: Every key that it uses.
            arguments: Its other arguments.
            doing: The action, for messages.

        Raises:
            StorageError: Every try failed; see `redis_error`.
            ConfigError: The server may evict entries.
        """
        self._ensure_keeps_keys()
        return self._ask_patiently(
            lambda: self._clients.get().eval(script, len(keys), *keys, *arguments), doing
        )

    def _ask_patiently(self, request: Callable[[], Any], doing: str) -> Any:
        return call_patiently(
            request, _REPEAT, self._clock, error_of=partial(redis_error, doing=doing)
        )

    def _ensure_keeps_keys(self) -> None:
        with self._lock:
            if self._is_trusted:
                return
            policy = self._ask_patiently(self._eviction_policy, "ask the server for its settings")
            if policy.startswith("allkeys-"):
                raise _evicts_keys(policy)
            self._is_trusted = True

    def _eviction_policy(self) -> str:
        try:
            return str(self._clients.get().info("memory").get("maxmemory_policy", "unknown"))
        except AuthenticationError:
            raise
        except ResponseError:  # the user may not ask, or the command is missing
            return "unknown"


def key_of(prefix: str, kind: str, subject: str, *more: str) -> str:
    """Return a key.

    All keys of one subject share a hash tag, so that a cluster keeps them together.
    """
    return ":".join((prefix, kind, "{" + quote(subject, safe="/:@=+,;~") + "}", *more))


def redis_error(error: Exception, *, doing: str, outcome: str = "") -> StorageError:
    """Translate an error of the client, by its class and code, never by its text.

    Args:
        error: The error of redis-py or the socket.
        doing: The action, for the message.
        outcome: The known outcome, as a sentence.
    """
    name = _code_of(error)
    if isinstance(error, AuthenticationError):
        kind, cause = (
            "OPTIMIST_INVALID_CREDENTIALS",
            "the user or the password was refused; check them",
        )
    elif isinstance(error, NoPermissionError):
        kind, cause = "OPTIMIST_PERMISSION_DENIED", "the user may not run scripts on these keys"
    elif name in REFUSED_CODES:
        kind, cause = STORE_BUSY, "the server takes no writes now; try again"
    elif isinstance(error, UnicodeDecodeError):
        kind, cause = (
            "OPTIMIST_STORAGE_FAILED",
            "the value is not text; find out who wrote it",
        )
    elif is_unanswered(error):
        kind, cause = (
            STORE_NO_ANSWER,
            "the server can't be reached, or gave no answer; check that it is up, and try again",
        )
    else:
        kind, cause = "OPTIMIST_STORAGE_FAILED", "the server refused the command"
    return StorageError(
        f"Cannot {doing} in Redis: {cause} ({name}). {outcome}".rstrip(),
        kind=kind,
        code=name,
        retryable=kind in (STORE_BUSY, STORE_NO_ANSWER),
    )


def is_unanswered(error: Exception) -> bool:
    """Check whether the script may have run although it failed.

    redis-py does not distinguish a refused connection from a broken one, so both count.
    """
    if isinstance(error, AuthenticationError | NoPermissionError | BusyLoadingError):
        return False
    return not isinstance(error, ResponseError)


def _code_of(error: Exception) -> str:
    """Return the first word of an error answer as its code, or else the error's class."""
    if isinstance(error, BusyLoadingError):
        return "LOADING"
    if isinstance(error, ResponseError) and error.args:
        word = str(error.args[0]).partition(" ")[0]
        if word.isupper() and word.isalpha():
            return word
    return type(error).__name__


def _new_client(options: RedisOptions, timeout_s: float) -> Any:
    arguments: dict[str, Any] = {
        "decode_responses": True,
        "socket_timeout": timeout_s,
        "socket_connect_timeout": timeout_s,
        "retry": Retry(NoBackoff(), 0),
        "retry_on_error": [],
    }
    own = {"password": options.password.reveal()} if options.password is not None else {}
    with contextlib.suppress(ValueError):  # its text may show the URL and its password
        return redis.Redis.from_url(options.url.reveal(), **arguments, **own)
    rule = "must be a redis://, rediss:// or unix:// URL"
    raise invalid_option("optimist.store.redis.url", rule)


def _evicts_keys(policy: str) -> OptimistError:
    return ConfigError(
        f"This Redis throws any key away when its memory is full (maxmemory-policy {policy}), and "
        "with it entries of unfinished commits. Nothing was written. Set "
        "maxmemory-policy to noeviction or to one of the volatile policies, or use another server.",
        kind="OPTIMIST_REDIS_EVICTS",
        policy=policy,
    )
