"""What others may write where arbiters and leases keep their records: any row, key or file."""

from __future__ import annotations

import hashlib
import sqlite3
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import fakeredis

from hostile_values import Chance, Surroundings, hostile_path, hostile_value, render
from json_mutations import mutated_json
from optimist.core.plugins.arbiter import Arbiter
from optimist.core.plugins.lease import Lease
from optimist.core.testing import ManualClock
from optimist.locks import FileLease, RedisArbiter, RedisLease, SQLArbiter
from optimist.locks.redis_server import key_of

__all__ = ["STAGED", "Record", "arbiter_with", "ensure_lease_is_sane", "lease_with", "record_of"]

STAGED = f"_delta_log/.tmp/{5:020}.json.00000000-0000-4000-8000-000000000000"
"""A commit that waits to be finished."""
_LEASE = "a table"
_REDIS = {"optimist.store.redis.url": "redis://127.0.0.1:1"}


@dataclass(frozen=True, slots=True)
class Record:
    """One entry of an arbiter and one record of a lease, both hostile.

    Attributes:
        keeper: `redis` or `sql`, and for the lease `redis` or `file`.
        file_name: Of the entry.
        fields: Of the entry, as JSON text.
        temp_path: Of the entry, for keepers that have no JSON.
        lease: The lease's record.
        link: Which of the lease's files is a link to what it must not reach; empty for none.
    """

    keeper: str
    file_name: str
    fields: str
    temp_path: Any
    lease: str
    link: str

    @property
    def said(self) -> str:
        """For a person."""
        return (
            f"in {self.keeper} the entry of {self.file_name!r:.200} is {self.fields[:300]!r}; "
            f"the lease is {self.lease[:200]!r}, linked: {self.link!r}"
        )


def record_of(chance: Chance, around: Surroundings) -> Record:
    """A record by chance."""
    temp = chance.choice(
        (
            f"../../../{around.canaries.name}/{around.text.name}",
            f"../../{around.text.name}",
            str(around.text),
            STAGED.removeprefix("_delta_log/"),
            STAGED.removeprefix("_delta_log/"),
            f".tmp/../../../../{around.canaries.name}/{around.text.name}",
            f"{0:020}.json",
            hostile_path(chance, around),
            hostile_value(chance, around, ""),
        )
    )
    entry = {"tempPath": temp, "complete": chance.choice(("true", "false", "false"))}
    if chance.random() < 0.5:
        entry["expireTime"] = chance.choice(("1", hostile_value(chance, around, 1)))
    changed = mutated_json(entry, chance, around)[0] if chance.random() < 0.5 else entry
    name = chance.choice(
        (
            f"{chance.choice((0, 3, 4, 5, 6)):020}.json",
            f"{5:020}.json",
            f"{'9' * 20}.json",
            f"../../{around.canaries.name}/made.json",
            str(hostile_value(chance, around, ""))[:5000],
        )
    )
    lease = {"name": "a", "owner": "somebody", "fencingNumber": 3, "deadlineMs": 1}
    damaged = mutated_json(lease, chance, around)[0]
    return Record(
        keeper=chance.choice(("redis", "sql")),
        file_name=name,
        fields=chance.choice((render(changed), render(changed), render(temp))),
        temp_path=temp if isinstance(temp, str | int | float | bytes | None) else str(temp),
        lease=render(chance.choice((damaged, damaged, temp))),
        link=chance.choice(("", "", "lock", "lease", "lease.tmp")),
    )


def arbiter_with(record: Record, table: str, folder: Path) -> Arbiter:
    """An arbiter in whose database the record is."""
    clock = ManualClock(now_ms=1_800_000_000_000)
    if record.keeper == "sql":
        return _sql_arbiter(record, table, folder / "entries.db", clock)
    client = fakeredis.FakeRedis(server=fakeredis.FakeServer(), decode_responses=True)
    name = _plain(record.file_name)
    client.set(key_of("optimist", "arbiter", table, "entry", name), _plain(record.fields))
    client.zadd(key_of("optimist", "arbiter", table, "names"), {name: 0})
    return RedisArbiter(_REDIS, client=client, clock=clock)


def _sql_arbiter(record: Record, table: str, path: Path, clock: ManualClock) -> Arbiter:
    arbiter = SQLArbiter({"optimist.store.sql.url": f"sqlite:///{path}"}, clock=clock)
    arbiter.latest("makes the table")
    temp = _storable(record.temp_path)
    row = (table, _plain(record.file_name), temp, _plain(record.fields)[:9], None)
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("INSERT OR REPLACE INTO delta_log VALUES (?, ?, ?, ?, ?)", row)
    return arbiter


def lease_with(record: Record, around: Surroundings, folder: Path) -> Lease:
    """A lease whose record, in a file or in Redis, is hostile."""
    clock = ManualClock(now_ms=1_800_000_000_000)
    if record.keeper == "sql":
        return _file_lease(record, around, folder / "leases", clock)
    client = fakeredis.FakeRedis(server=fakeredis.FakeServer(), decode_responses=True)
    client.set(key_of("optimist", "lease", _LEASE, "number"), _plain(record.lease))
    return RedisLease(_REDIS, client=client, clock=clock)


def _file_lease(record: Record, around: Surroundings, folder: Path, clock: ManualClock) -> Lease:
    folder.mkdir()
    path = folder / hashlib.sha256(_LEASE.encode()).hexdigest()
    path.with_suffix(".lease").write_text(_plain(record.lease))
    if record.link:
        linked = Path(f"{path}.{record.link}")
        linked.unlink(missing_ok=True)
        linked.symlink_to(around.text)
    return FileLease({"optimist.store.file-lease.directory": str(folder)}, clock=clock)


def ensure_lease_is_sane(lease: Lease) -> None:
    """Take it, keep it, give it back; its number is one that a fence can compare."""
    grant = lease.try_acquire(_LEASE, ttl_s=5)
    if grant is not None:
        assert type(grant.fencing_number) is int
        assert 0 <= grant.fencing_number < 1 << 63
        assert type(grant.deadline_ms) is int
        lease.ensure_held(grant)
        lease.release(lease.renew(grant, ttl_s=5))


def _plain(text: str) -> str:
    """What a database can hold: no half characters."""
    return text.encode("utf-8", "replace").decode()


def _storable(value: Any) -> Any:
    """What the column can hold: no null, and a whole number of more than 64 bits as a text."""
    if value is None:
        return ""
    is_long = isinstance(value, int) and not -(1 << 63) <= value < 1 << 63
    return _plain(str(value)) if is_long or isinstance(value, str) else value
