"""Each store and arbiter behind wires upon which it can rain, with a way round to the raw files."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any
from urllib.parse import urlsplit

from lossy_places import (
    TIMEOUT_S,
    Place,
    QuickClock,
    new_bucket,
    s3_error,
    s3_files,
    s3_options,
)
from lossy_proxy import (
    CLOSE,
    CUT_ANSWER,
    CUT_HEAD,
    CUT_REQUEST,
    DROP_ANSWER,
    DUPLICATE,
    LATE_ANSWER,
    LATE_COPY,
    LATE_REQUEST,
    NO_ANSWER,
    RESET,
    RESET_AFTER,
    Fault,
    LossyProxy,
    answer_after,
    answer_instead,
)
from lossy_tcp import TCP_FAULTS, LossyTcp
from optimist.core.plugins.arbiter import Arbiter
from optimist.core.plugins.logstore import LogStore
from optimist.locks.redis_arbiter import RedisArbiter
from optimist.locks.sql_arbiter import SQLArbiter
from optimist.logstores.hdfs.native_store import HDFSNativeLogStore
from optimist.logstores.s3.arbiter import S3ArbiterLogStore
from weather import Weather

__all__ = ["Wires", "hdfs_wires", "s3_redis_wires", "s3_sql_wires", "wires_of"]

HTTP_FAULTS: tuple[Fault, ...] = (
    RESET,
    RESET_AFTER,
    CLOSE,
    DROP_ANSWER,
    CUT_REQUEST,
    CUT_ANSWER,
    CUT_HEAD,
    DUPLICATE,
    LATE_REQUEST,
    LATE_COPY,
    LATE_ANSWER,
    NO_ANSWER,
    *(answer_instead(status) for status in (429, 500, 503)),
    *(answer_after(status) for status in (500, 503)),
)


@dataclass(frozen=True)
class Wires:
    """A place, and the wires that lead to its servers."""

    place: Place
    http: tuple[LossyProxy, ...]
    tcp: tuple[LossyTcp, ...] = ()

    @contextmanager
    def disturbed(self, seed: int, rate: float) -> Iterator[tuple[Weather[Any], ...]]:
        """Bad weather meanwhile; afterwards all that was late has arrived."""
        weather = Weather(HTTP_FAULTS, rate=rate, seed=seed)
        of_tcp = Weather(TCP_FAULTS, rate=rate, seed=seed)
        for proxy in self.http:
            proxy.disturb(weather)
        for wire in self.tcp:
            wire.disturb(of_tcp)
        try:
            yield weather, of_tcp
        finally:
            for each in (*self.http, *self.tcp):
                each.settle()


def wires_of(place: Place) -> Wires:
    """The wires of a place whose servers all speak HTTP."""
    return Wires(place, tuple(place.proxies.values()))


@contextmanager
def s3_redis_wires(s3_endpoint: str, redis_url: str) -> Iterator[Wires]:
    url = urlsplit(redis_url)
    prefix = uuid.uuid4().hex

    def arbiter(netloc: str) -> Arbiter:
        own = {
            "url": url._replace(netloc=netloc).geturl(),
            "prefix": prefix,
            "timeoutSeconds": str(TIMEOUT_S),
        }
        options = {f"optimist.store.redis.{name}": value for name, value in own.items()}
        return RedisArbiter(options, clock=QuickClock())

    with _s3_behind(s3_endpoint, str(url.hostname), url.port or 6379, url.netloc, arbiter) as wires:
        yield wires


@contextmanager
def s3_sql_wires(s3_endpoint: str, address: str, driver: str) -> Iterator[Wires]:
    """With an arbiter in PostgreSQL at `user@host:port/database`."""
    url = urlsplit(f"postgresql+{driver}://{address}")
    table = f"log_{uuid.uuid4().hex}"

    def arbiter(netloc: str) -> Arbiter:
        own = {
            "url": url._replace(netloc=f"{url.username}@{netloc}").geturl(),
            "table": table,
            "timeoutSeconds": str(TIMEOUT_S),
        }
        options = {f"optimist.store.sql.{name}": value for name, value in own.items()}
        return SQLArbiter(options, clock=QuickClock())

    netloc = f"{url.hostname}:{url.port}"
    with _s3_behind(s3_endpoint, str(url.hostname), url.port or 5432, netloc, arbiter) as wires:
        yield wires


@contextmanager
def _s3_behind(s3_endpoint, host, port, netloc, arbiter) -> Iterator[Wires]:
    bucket, client = new_bucket(s3_endpoint)

    def store(endpoint: str, there: str) -> LogStore:
        return S3ArbiterLogStore(s3_options(endpoint), arbiter=arbiter(there), clock=QuickClock())

    with ExitStack() as stack:
        s3 = stack.enter_context(LossyProxy(s3_endpoint, error_answer=s3_error))
        wire = stack.enter_context(LossyTcp(host, port))
        place = Place(
            f"s3://{bucket}",
            store(s3.endpoint, f"127.0.0.1:{wire.port}"),
            store(s3_endpoint, netloc),
            {"s3": s3},
            {},
            partial(s3_files, client, bucket),
        )
        yield Wires(place, (s3,), (wire,))


@contextmanager
def hdfs_wires(endpoint: str) -> Iterator[Wires]:
    """Before the name node; with data nodes a client speaks past us."""
    url = urlsplit(endpoint)
    with LossyTcp(str(url.hostname), url.port or 8020) as wire:
        root = f"/wire-{uuid.uuid4().hex}"
        direct = HDFSNativeLogStore(clock=QuickClock())

        def files(prefix: str) -> dict[str, bytes]:
            listed = direct.list_from(f"{endpoint}{root}/{prefix}")
            return {f"{prefix}{each.name}": direct.read_bytes(each.path) for each in listed}

        lossy = HDFSNativeLogStore(clock=QuickClock())
        behind = f"hdfs://127.0.0.1:{wire.port}{root}"
        place = Place(behind, lossy, direct, {}, {}, files, past_proxies=f"{endpoint}{root}")
        yield Wires(place, (), (wire,))
