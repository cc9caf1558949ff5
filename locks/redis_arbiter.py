"""Entries in Redis, one key per entry, for teams without DynamoDB (spec 4).

*Assumes* one Redis primary (or a cluster) for all writers, which loses no acknowledged write while
it runs, and which does not evict keys without an expiry (a `maxmemory-policy` of `allkeys-*` is
refused if the server shows it).

*Provides* one owner per file: one script creates an entry, and it runs alone on the server. An
entry has no expiry while it is incomplete. Once complete, it expires at its `expire_time_s`.

*Does not provide* more than Redis: replication is asynchronous, and with the default `appendfsync
everysec` a crash loses up to a second of writes. After a failover or a restart an acknowledged
entry may be gone, and another writer can then own the same version. So `S3RedisLogStore` has a
second fence, the conditional PUT of the file itself. With it, a lost entry costs at worst a commit
that had an entry but no file yet, and this is reported. `appendfsync always` on one server closes
the gap. Replicas with automatic failover keep it open, with or without `WAIT`. Every process that
has used the table before a loss detects it and refuses to commit: see `RedisArbiter`.

*Excludes* other Optimist writers set to the same server and prefix. No other engine knows these
entries.

Keys, with `T` the table's path, quoted:

| key | holds |
|---|---|
| `<prefix>:arbiter:{T}:entry:<file name>` | the entry as JSON, with the names of spec 4.2 |
| `<prefix>:arbiter:{T}:names` | sorted set of file names; the newest thousand |
| `<prefix>:arbiter:{T}:state` | hash: `epoch`, drawn once at random; `last`, the greatest name |
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import redis

from optimist.core.errors import OptimistError, StorageError
from optimist.core.errors.foreign_text import quoted
from optimist.core.forking import ForkSafeLock
from optimist.core.plugins.arbiter import Arbiter, CommitEntry, damaged_entry, parse_commit_entry
from optimist.core.plugins.logstore import PutOutcome
from optimist.core.runtime.clock import Clock, SystemClock
from optimist.locks.redis_server import (
    RedisOptions,
    RedisServer,
    is_unanswered,
    key_of,
    redis_error,
)

__all__ = ["RedisArbiter"]

# ARGV: entry, file name, temp path, epoch and last name seen by the caller, fresh epoch.
_CREATE = """
local epoch = redis.call('HGET', KEYS[3], 'epoch')
local last = redis.call('HGET', KEYS[3], 'last')
if ARGV[4] ~= '' and (epoch ~= ARGV[4] or not last or last < ARGV[5]) then
  return {'LOST', '', ''}
end
if not epoch then
  epoch = ARGV[6]
  redis.call('HSET', KEYS[3], 'epoch', epoch)
end
if not last or last < ARGV[2] then
  last = ARGV[2]
  redis.call('HSET', KEYS[3], 'last', last)
end
local found = redis.call('GET', KEYS[1])
if found then
  local is_json, entry = pcall(cjson.decode, found)
  if is_json and type(entry) == 'table' and entry['tempPath'] == ARGV[3] then
    return {'CREATED', epoch, last}
  end
  return {'EXISTS', epoch, last}
end
redis.call('SET', KEYS[1], ARGV[1])
redis.call('ZADD', KEYS[2], 0, ARGV[2])
redis.call('ZREMRANGEBYRANK', KEYS[2], 0, -1001)
return {'CREATED', epoch, last}
"""

# ARGV: temp path, expiry in epoch seconds or ''. Unknown fields stay in the entry.
_COMPLETE = """
local found = redis.call('GET', KEYS[1])
if not found then return 'GONE' end
local is_json, entry = pcall(cjson.decode, found)
if not is_json or type(entry) ~= 'table' or entry['tempPath'] ~= ARGV[1] then return 'FOREIGN' end
entry['complete'] = 'true'
if ARGV[2] ~= '' then entry['expireTime'] = ARGV[2] end
redis.call('SET', KEYS[1], cjson.encode(entry))
if ARGV[2] ~= '' then redis.call('EXPIREAT', KEYS[1], ARGV[2]) end
return 'COMPLETE'
"""

# The newest names, and the epoch and last name of the table on this server.
_NAMES = """
return {redis.call('ZREVRANGE', KEYS[1], ARGV[1], ARGV[2]),
        redis.call('HGET', KEYS[2], 'epoch'), redis.call('HGET', KEYS[2], 'last')}
"""
_GET = "return redis.call('GET', KEYS[1])"

_PAGE = 16


class RedisArbiter(Arbiter):
    """Entries in Redis, with the guarantees that the module describes.

    It remembers for each table the greatest file name that the server has shown it. If the server
    then has a smaller name or another epoch, it has lost data. From then on, `create` and `latest`
    raise a `StorageError` of kind `OPTIMIST_ARBITER_LOST_DATA` in this process, and nothing is
    created.

    Args:
        options: See `RedisOptions`.
        clock: Paces retries, and draws the epoch.
        client: A client to use instead of one from the options; its retries must be off and it must
            decode answers.
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
        self.entry_ttl_s = self._parsed.entry_ttl_s
        self._clock: Clock = clock or SystemClock()
        self._server = RedisServer(self._parsed, clock=self._clock, client=client)
        self._seen = _SeenNames()

    def create(self, entry: CommitEntry) -> PutOutcome:
        """See `Arbiter.create`.

        It sends one script, once.

        Raises:
            StorageError: Redis refused, or has lost existing entries; no entry was created.
        """
        epoch, last = self._seen.of(entry.table_path)
        keys = [
            self._entry_key(entry.table_path, entry.file_name),
            self._key(entry.table_path, "names"),
            self._key(entry.table_path, "state"),
        ]
        arguments = (_entry_json(entry), entry.file_name, entry.temp_path, epoch, last)
        try:
            answer = self._server.send(_CREATE, keys, *arguments, self._clock.new_uuid())
        except OptimistError:  # not sent
            raise
        except Exception as error:
            if is_unanswered(error):
                return PutOutcome.UNKNOWN
            doing = f"create the entry of {entry.file_name}"
            raise redis_error(error, doing=doing, outcome="Nothing was committed.") from error
        if answer[0] == "LOST":
            raise _lost_data(entry.table_path, last)
        self._seen.note(entry.table_path, answer[1], answer[2])
        return PutOutcome[answer[0]]

    def get(self, table_path: str, file_name: str) -> CommitEntry | None:
        """See `Arbiter.get`."""
        key = self._entry_key(table_path, file_name)
        found = self._server.ask(_GET, [key], doing=f"read the entry of {file_name}")
        return None if found is None else _entry_of(table_path, file_name, found, key)

    def latest(self, table_path: str) -> CommitEntry | None:
        """See `Arbiter.latest`.

        It returns the greatest name whose entry has not expired.

        Raises:
            StorageError: Redis failed, or has lost existing entries.
        """
        start = 0
        while True:
            names = self._read_names(table_path, start)
            for name in names:
                entry = self.get(table_path, name)
                if entry is not None:
                    return entry
            if len(names) < _PAGE:
                return None
            start += _PAGE

    def complete(self, entry: CommitEntry) -> None:
        """See `Arbiter.complete`."""
        expire = "" if entry.expire_time_s is None else str(entry.expire_time_s)
        self._server.ask(
            _COMPLETE,
            [self._entry_key(entry.table_path, entry.file_name)],
            entry.temp_path,
            expire,
            doing=f"mark the entry of {entry.file_name} as complete",
        )

    def describe(self) -> Mapping[str, str]:
        """See `Arbiter.describe`."""
        return {
            **super().describe(),
            "prefix": self._parsed.prefix,
            "excludes": "Optimist writers set to the same server and prefix",
        }

    def _read_names(self, table_path: str, start: int) -> list[str]:
        keys = [self._key(table_path, "names"), self._key(table_path, "state")]
        # Read before the request: what another thread sees meanwhile must not look like a loss.
        seen_epoch, seen_last = self._seen.of(table_path)
        names, epoch, last = self._server.ask(
            _NAMES,
            keys,
            str(start),
            str(start + _PAGE - 1),
            doing=f"read the newest entry of {table_path}",
        )
        if seen_epoch and (epoch != seen_epoch or (last or "") < seen_last):
            raise _lost_data(table_path, seen_last)
        if epoch is not None:
            self._seen.note(table_path, epoch, last)
        return list(names)

    def _key(self, table_path: str, *more: str) -> str:
        return key_of(self._parsed.prefix, "arbiter", table_path, *more)

    def _entry_key(self, table_path: str, file_name: str) -> str:
        return self._key(table_path, "entry", file_name)


class _SeenNames:
    """The epoch and the greatest name that the server has shown this process for each table."""

    def __init__(self) -> None:
        self._lock = ForkSafeLock()
        self._by_table: dict[str, tuple[str, str]] = {}

    def of(self, table_path: str) -> tuple[str, str]:
        with self._lock:
            return self._by_table.get(table_path, ("", ""))

    def note(self, table_path: str, epoch: str, last: str) -> None:
        with self._lock:
            known_epoch, known_last = self._by_table.get(table_path, (epoch, ""))
            self._by_table[table_path] = (known_epoch, max(known_last, last))


def _lost_data(table_path: str, last: str) -> StorageError:
    return StorageError(
        f"Redis has lost entries of {table_path}: it had the entry of {last}, and no longer has "
        "it. It was restarted without its data, failed over to a replica that was behind, or was "
        "emptied. Nothing was committed now, but a commit that was reported just before may have "
        f"no file in the log. Compare the log with what your jobs committed up to {last}, then "
        "restart this process.",
        kind="OPTIMIST_ARBITER_LOST_DATA",
        table_path=table_path,
        last_file_name=last,
        retryable=False,
    )


def _entry_json(entry: CommitEntry) -> str:
    fields: dict[str, Any] = {
        "tempPath": entry.temp_path,
        "complete": "true" if entry.complete else "false",
    }
    if entry.expire_time_s is not None:
        fields["expireTime"] = str(entry.expire_time_s)
    return json.dumps(fields)


def _entry_of(table_path: str, file_name: str, text: str, key: str) -> CommitEntry:
    keeper = f"Redis under the key {quoted(key)}"
    try:
        fields = json.loads(text)
    except (ValueError, RecursionError):
        fields = None
    if not isinstance(fields, dict):
        raise damaged_entry(table_path, file_name, "it is not a JSON object", keeper=keeper)
    return parse_commit_entry(fields, table_path=table_path, file_name=file_name, keeper=keeper)
