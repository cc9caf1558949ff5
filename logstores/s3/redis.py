"""S3 with entries in Redis, for teams without DynamoDB: the algorithm of `external_arbiter`.

*Assumes* one Redis for all writers, configured to keep all acknowledged writes (`appendonly yes`
with `appendfsync always`, `maxmemory-policy noeviction`).

*Provides* both fences: an entry per version, created in one step and without expiry while it is
incomplete, and a conditional PUT of N.json. It uses no lock, so none can expire.

*Does not provide* more than Redis in a failover: replication is asynchronous, so a replica that
takes over may lack the newest entries, and two writers may then both create the entry of one
version. In that case the conditional PUT still decides: one file is created, and the other writer
finds it and reports a conflict. If the store has no conditional PUT, don't use Redis with failover.

*Excludes* other Optimist writers with the same Redis, and those that `S3LogStore` excludes
(deltalake 1.x). It does not exclude delta-spark.
"""

from __future__ import annotations

from typing import ClassVar

from optimist.logstores.s3.arbiter import S3ArbiterLogStore

__all__ = ["S3RedisLogStore"]


class S3RedisLogStore(S3ArbiterLogStore):
    """`S3ArbiterLogStore` with the arbiter `redis` (see the module)."""

    arbiter_name: ClassVar[str | None] = "redis"
