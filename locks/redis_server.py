"""One Redis server: its options, its client, its errors, and whether it keeps what it is given.

The client's own retries are off; each script here is sent once or, where a second run does no
harm, again by the Clock.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote

import redis
from redis.backoff import NoBackoff
from redis.exceptions import (
    AuthenticationError,
    BusyLoadingError,
    NoPermissionError,
    RedisError,
    ResponseError,
)
from redis.retry import Retry

from optimist.core.clock import Clock
from optimist.core.errors import ConfigError, OptimistError, StorageError
from optimist.locks.lock_options import OwnOptions, invalid_option

__all__ = [
    "REFUSED_CODES",
    "RedisOptions",
    "RedisServer",
    "is_unanswered",
    "key_of",
    "redis_error",
]

_TRIES = 4
_FIRST_PAUSE_S = 0.05
REFUSED_CODES = frozenset({"READONLY", "MASTERDOWN", "CLUSTERDOWN", "OOM", "LOADING", "TRYAGAIN"})
"""First words of answers by which a server says that it did nothing, for now."""


@dataclass(frozen=True, slots=True)
class RedisOptions:
    """Where the server is, from the keys `optimist.store.redis.<option>`.

    Attributes:
        url: `redis://`, `rediss://` (TLS) or `unix://`, as redis-py takes it; may hold a password,
            so it is never shown.
        password: Instead of one in the URL; never shown.
        prefix: Before every key (`prefix`).
        timeout_s: How long to wait for a connection and for an answer (`timeoutSeconds`).
        entry_ttl_s: Seconds a complete entry is kept (`entryTtlSeconds`).
    """

    url: str = field(default="redis://127.0.0.1:6379/0", repr=False)
    password: str | None = field(default=None, repr=False)
    prefix: str = "optimist"
    timeout_s: float = 10.0
    entry_ttl_s: int = 86_400

    @classmethod
    def from_options(cls, options: Mapping[str, str]) -> RedisOptions:
        """Parse the keys that are Redis's.

        Raises:
            ConfigError: There is no URL, a value does not parse, or a key is unknown.
        """
        own = OwnOptions(options, "redis")
        url = own.text("url")
        if url is None:
            raise ConfigError(
                "optimist.store.redis.url is missing: say where Redis is, for example "
                "redis://host:6379/0.",
                kind="OPTIMIST_MISSING_OPTION",
                key="optimist.store.redis.url",
            )
        parsed = cls(
            url=url,
            password=own.text("password"),
            prefix=own.text("prefix") or "optimist",
            timeout_s=own.seconds("timeoutSeconds", 10.0),
            entry_ttl_s=int(own.seconds("entryTtlSeconds", 86_400)),
        )
        own.ensure_all_taken()
        return parsed


class RedisServer:
    """Runs scripts on the server; at the first it is asked how it treats keys when memory is short.

    Threads may share it.
    """

    def __init__(
        self, options: RedisOptions, *, clock: Clock, client: redis.Redis | None = None
    ) -> None:
        self._client: Any = client if client is not None else _new_client(options)
        self._clock = clock
        self._lock = threading.Lock()
        self._is_trusted = False

    def send(self, script: str, keys: Sequence[str], *arguments: str) -> Any:
        """Run a script once.

        Raises:
            ConfigError: The server would throw entries away; nothing was run.
            StorageError: The server could not be reached in the first place; nothing was run.
            RedisError, OSError: What the client says of the script, as it is.
        """
        self._ensure_keeps_keys()
        return self._client.eval(script, len(keys), *keys, *arguments)

    def ask(self, script: str, keys: Sequence[str], *arguments: str, doing: str) -> Any:
        """Run a script that may run more than once.

        Args:
            script: Lua; atomic on the server.
            keys: Every key it touches.
            arguments: What it gets beside the keys.
            doing: What it does, for messages.

        Raises:
            StorageError: Every try failed; see `redis_error`.
            ConfigError: The server would throw entries away.
        """
        return self._retried(lambda: self.send(script, keys, *arguments), doing)

    def _retried(self, request: Callable[[], Any], doing: str) -> Any:
        pause_s = _FIRST_PAUSE_S
        for number in range(_TRIES):
            try:
                return request()
            except (RedisError, OSError) as error:
                translated = redis_error(error, doing=doing)
                if number == _TRIES - 1 or not translated.retryable:
                    raise translated from error
            self._clock.sleep(self._clock.uniform(0, pause_s))
            pause_s *= 2
        raise AssertionError("unreachable")

    def _ensure_keeps_keys(self) -> None:
        with self._lock:
            if self._is_trusted:
                return
            policy = self._retried(self._eviction_policy, "ask the server for its settings")
            if policy.startswith("allkeys-"):
                raise _evicting(policy)
            self._is_trusted = True

    def _eviction_policy(self) -> str:
        try:
            return str(self._client.info("memory").get("maxmemory_policy", "unknown"))
        except AuthenticationError:
            raise
        except ResponseError:  # the user may not ask, or the server has no such command
            return "unknown"


def key_of(prefix: str, kind: str, subject: str, *more: str) -> str:
    """A key; all keys of one subject share a hash tag, so that a cluster keeps them together."""
    return ":".join((prefix, kind, "{" + quote(subject, safe="/:@=+,;~") + "}", *more))


def redis_error(error: Exception, *, doing: str) -> StorageError:
    """Ours for one of the client's, by its class and code, never by its text.

    Args:
        error: What redis-py or the socket raised.
        doing: What was tried, for the message.
    """
    name = _code_of(error)
    if isinstance(error, AuthenticationError):
        kind, cause = "OPTIMIST_INVALID_CREDENTIALS", "the user or password was refused"
    elif isinstance(error, NoPermissionError):
        kind, cause = "OPTIMIST_PERMISSION_DENIED", "the user may not run scripts on these keys"
    elif name in REFUSED_CODES:
        kind, cause = "OPTIMIST_STORE_BUSY", "the server takes no writes at the moment"
    elif is_unanswered(error):
        kind, cause = "OPTIMIST_STORE_NO_ANSWER", "the server can't be reached, or gave no answer"
    else:
        kind, cause = "OPTIMIST_STORAGE_FAILED", "the server refused"
    return StorageError(
        f"Redis: could not {doing}: {cause} ({name}).",
        kind=kind,
        code=name,
        retryable=kind in ("OPTIMIST_STORE_BUSY", "OPTIMIST_STORE_NO_ANSWER"),
    )


def is_unanswered(error: Exception) -> bool:
    """Whether the script may have run although it failed.

    redis-py does not tell a connection that was refused from one that broke, so both count.
    """
    if isinstance(error, AuthenticationError | NoPermissionError | BusyLoadingError):
        return False
    return not isinstance(error, ResponseError)


def _code_of(error: Exception) -> str:
    """The first word of an error answer is its code by the protocol; else the class."""
    if isinstance(error, BusyLoadingError):
        return "LOADING"
    if isinstance(error, ResponseError) and error.args:
        word = str(error.args[0]).partition(" ")[0]
        if word.isupper() and word.isalpha():
            return word
    return type(error).__name__


def _new_client(options: RedisOptions) -> Any:
    arguments: dict[str, Any] = {
        "decode_responses": True,
        "socket_timeout": options.timeout_s,
        "socket_connect_timeout": options.timeout_s,
        "retry": Retry(NoBackoff(), 0),
        "retry_on_error": [],
    }
    if options.password is not None:
        arguments["password"] = options.password
    try:
        return redis.Redis.from_url(options.url, **arguments)
    except ValueError:
        # Not chained: the text of the cause may show the URL, and with it the password.
        reason = "must be a redis://, rediss:// or unix:// URL"
        raise invalid_option("optimist.store.redis.url", "(not shown)", reason) from None


def _evicting(policy: str) -> OptimistError:
    return ConfigError(
        f"This Redis throws any key away when its memory is full (maxmemory-policy {policy}), and "
        "with it entries of commits that are not finished. Nothing was written. Set "
        "maxmemory-policy to noeviction or to one of the volatile policies, or use another server.",
        kind="OPTIMIST_REDIS_EVICTS",
        policy=policy,
    )
