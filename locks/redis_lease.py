"""Leases in Redis, by its own clock (docs/locks.md).

*Assumes* one Redis primary (or a cluster) for all competitors.

*Provides* one holder per name at a time as long as Redis keeps its data; a deadline by the server's
clock, so the clients' clocks do not matter; fencing numbers that grow, even after a loss of all
data if the server's clock does not go back: a number is the greater of the last one plus one and
the server's time in milliseconds.

*Does not provide* one holder across a failover: a replica that lagged may not know the lease and
grant it again. Then only the fencing number and the store's own exclusion protect the log.

*Excludes* other Optimist writers set to the same server and prefix.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import redis

from optimist.core.errors import OptimistError
from optimist.core.errors.foreign_text import quoted
from optimist.core.plugins.lease import Lease, LeaseGrant, lapsed
from optimist.core.runtime.clock import Clock, SystemClock
from optimist.locks.lease_state import damaged_lease
from optimist.locks.redis_server import RedisOptions, RedisServer, key_of, redis_error

__all__ = ["RedisLease"]

_NOW_MS = """
local time = redis.call('TIME')
local now_ms = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
"""

# KEYS: the holder, the last number. ARGV: owner, milliseconds. Numbers are below 2^53, so exact.
_ACQUIRE = (
    _NOW_MS
    + """
if redis.call('EXISTS', KEYS[1]) == 1 then return false end
local last = tonumber(redis.call('GET', KEYS[2]) or '0')
if not last or last < 0 or last >= 2^53 - 1 or last ~= math.floor(last) then return 'DAMAGED' end
local number = math.max(last + 1, now_ms)
redis.call('SET', KEYS[2], string.format('%.0f', number))
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
return {string.format('%.0f', number), string.format('%.0f', now_ms + tonumber(ARGV[2]))}
"""
)

_RENEW = (
    _NOW_MS
    + """
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return false end
redis.call('PEXPIRE', KEYS[1], ARGV[2])
return string.format('%.0f', now_ms + tonumber(ARGV[2]))
"""
)

_RELEASE = """
if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end
return 0
"""

_OWNER = "return redis.call('GET', KEYS[1])"


class RedisLease(Lease):
    """A key with an expiry, whose value is the owner's token.

    Args:
        options: See `RedisOptions`.
        clock: Paces retries, and makes the tokens; deadlines use the server's clock.
        client: A client to use instead of one from the options.
    """

    def __init__(
        self,
        options: Mapping[str, str] | None = None,
        *,
        clock: Clock | None = None,
        client: redis.Redis | None = None,
    ) -> None:
        super().__init__(options)
        self._parsed = RedisOptions.from_options(self.options)
        self._clock: Clock = clock or SystemClock()
        self._server = RedisServer(self._parsed, clock=self._clock, client=client)

    def try_acquire(self, name: str, *, ttl_s: float) -> LeaseGrant | None:
        """See `Lease.try_acquire`.

        It sends one script, once.

        If no answer comes, the lease may be ours: it is released if possible, and otherwise lapses.
        """
        owner = self._clock.new_uuid()
        keys = [self._key(name), self._key(name, "number")]
        try:
            answer: Any = self._server.send(_ACQUIRE, keys, owner, _milliseconds(ttl_s))
        except OptimistError:  # not sent
            raise
        except Exception as error:
            with contextlib.suppress(OptimistError):
                self._release_owned(name, owner)
            raise redis_error(error, doing=f"take the lease on {name}") from error
        if answer is None:
            return None
        if answer == "DAMAGED":
            where = f"Redis under the key {quoted(keys[1])}"
            raise damaged_lease(name, where, "its number is not a fencing number")
        return LeaseGrant(name, owner, int(answer[0]), int(answer[1]))

    def renew(self, grant: LeaseGrant, *, ttl_s: float) -> LeaseGrant:
        """See `Lease.renew`."""
        deadline_ms: Any = self._server.ask(
            _RENEW,
            [self._key(grant.name)],
            grant.owner,
            _milliseconds(ttl_s),
            doing=f"renew the lease on {grant.name}",
        )
        if deadline_ms is None:
            raise lapsed(grant)
        return replace(grant, deadline_ms=int(deadline_ms))

    def release(self, grant: LeaseGrant) -> None:
        """See `Lease.release`."""
        self._release_owned(grant.name, grant.owner)

    def ensure_held(self, grant: LeaseGrant) -> None:
        """See `Lease.ensure_held`.

        It asks the server, which drops the key at the deadline.
        """
        doing = f"look at the lease on {grant.name}"
        if self._server.ask(_OWNER, [self._key(grant.name)], doing=doing) != grant.owner:
            raise lapsed(grant)

    def describe(self) -> Mapping[str, str]:
        """See `Lease.describe`."""
        return {
            **super().describe(),
            "prefix": self._parsed.prefix,
            "excludes": "Optimist writers set to the same server and prefix",
        }

    def _release_owned(self, name: str, owner: str) -> None:
        self._server.ask(_RELEASE, [self._key(name)], owner, doing=f"give back the lease on {name}")

    def _key(self, name: str, *more: str) -> str:
        return key_of(self._parsed.prefix, "lease", name, *more)


def _milliseconds(ttl_s: float) -> str:
    return str(max(1, round(ttl_s * 1000)))
