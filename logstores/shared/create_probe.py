"""A probe whether a store really refuses to create a file twice.

Servers with a cloud's protocol differ. Some accept the condition of a put but ignore it, and then
the last of two writers wins silently. So before the first write to a bucket or container:

1. Create an object with a fresh name beside the file to write. It must be created.
2. Create it again. It must be refused: with a second `CREATED`, commits would get lost.
3. Remove it. If this fails, it does no harm: readers of a log ignore such names.

The verdict applies to the endpoint and the container, for all stores of this process.

Passing is necessary but not sufficient: a server that first checks and then writes also passes, and
may still let two racing writers win. A client can't detect this.
"""

from __future__ import annotations

import contextlib
import datetime
import logging
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from optimist.core.errors import ConfigError, StorageError
from optimist.core.forking import ForkSafeLock
from optimist.core.paths import join, parent_of
from optimist.core.plugins.logstore import NO_ATOMIC_CREATE, PutOutcome
from optimist.core.runtime.clock import Clock

__all__ = [
    "STORE_UNSUPPORTED",
    "ProbeVerdict",
    "describe_verdicts",
    "ensure_exclusive",
    "known_verdict",
    "probe_once",
]

_LOG = logging.getLogger(__name__)
_ATTEMPTS = 2
STORE_UNSUPPORTED = "OPTIMIST_STORE_UNSUPPORTED"
"""The error kind of a store that does not support the condition of a request."""
_OTHER_STORE = "another store for this scheme (spark.delta.logStore.<scheme>.impl)"


@dataclass(frozen=True, slots=True)
class ProbeVerdict:
    """The result of a probe.

    Attributes:
        is_exclusive: True if the second creation was refused.
        reason: The store's behaviour, in words.
        probed_ms: The time of the probe, in epoch milliseconds.
    """

    is_exclusive: bool
    reason: str
    probed_ms: int


_LOCK = ForkSafeLock()
_VERDICTS: dict[tuple[str, str], ProbeVerdict] = {}
_PROBING: dict[tuple[str, str], ForkSafeLock] = {}


def known_verdict(endpoint: str, container: str) -> ProbeVerdict | None:
    """Return the verdict on a container, or None if it was not probed yet."""
    with _LOCK:
        return _VERDICTS.get((endpoint, container))


def describe_verdicts(places: Iterable[tuple[str, str]]) -> str:
    """Describe the verdicts on (endpoint, container) pairs, for `LogStore.describe`."""
    return "; ".join(_descriptions(places)) or "nothing yet"


def probe_once(
    address: tuple[str, str],
    path: str,
    *,
    create: Callable[[str, bytes], PutOutcome],
    delete: Callable[[str], None],
    clock: Clock,
) -> ProbeVerdict:
    """Probe a container once, and return the verdict.

    Args:
        address: Endpoint, and container or bucket.
        path: The file that is about to be created; the probe is made next to it.
        create: The conditional put of the store.
        delete: The store's delete.
        clock: Makes the fresh name and the time of the verdict.

    Raises:
        StorageError: The probe got no clear answer (kind `OPTIMIST_STORE_NO_ANSWER`), or was not
            permitted. Only the probe was written.
    """
    with _LOCK:
        is_probing = _PROBING.setdefault(address, ForkSafeLock())
    with is_probing:  # one probe per container, for any number of threads
        verdict = known_verdict(*address)
        if verdict is None:
            probe = join(parent_of(path), f".optimist-probe-{clock.new_uuid()}")
            is_exclusive, reason = _probe_store(probe, create, delete)
            verdict = ProbeVerdict(is_exclusive, reason, clock.now_ms())
            with _LOCK:
                _VERDICTS[address] = verdict
    return verdict


def ensure_exclusive(
    verdict: ProbeVerdict,
    address: tuple[str, str],
    path: str,
    *,
    override: tuple[str, bool],
    instead: str = _OTHER_STORE,
) -> None:
    """Refuse to write where two writers could both win, unless the user insists.

    Args:
        verdict: The result of `probe_once`.
        address: Endpoint, and container or bucket.
        path: The file that is about to be created.
        override: The option that insists, and True if it is set; then each write is logged.
        instead: What to use instead: an arbiter, or another store.

    Raises:
        ConfigError: The condition is ignored (kind `OPTIMIST_NO_ATOMIC_CREATE`).
    """
    if verdict.is_exclusive:
        return
    endpoint, container = address
    option, is_overridden = override
    if is_overridden:
        _LOG.warning(
            "%s is written although nothing excludes other writers, because %s is set: %s %s, so "
            "a second writer can destroy this commit.",
            path,
            option,
            endpoint,
            verdict.reason,
        )
        return
    raise ConfigError(
        f"Nothing was written to {path}: {endpoint} {verdict.reason} in {container}, as a test "
        "showed. Two writers could overwrite each other's commits there. Use a server that honours "
        f"the condition; or {instead}; or, for a table with a single writer, set {option}=true. "
        "Reading works without that.",
        kind=NO_ATOMIC_CREATE,
        path=path,
        endpoint=endpoint,
        container=container,
    )


def _descriptions(places: Iterable[tuple[str, str]]) -> Iterator[str]:
    for endpoint, container in sorted(set(places)):
        verdict = known_verdict(endpoint, container)
        if verdict is not None:
            seconds, rest = divmod(verdict.probed_ms, 1000)
            moment = datetime.datetime.fromtimestamp(seconds, datetime.timezone.utc)
            when = f"{moment:%Y-%m-%dT%H:%M:%S}.{rest:03d}Z"
            yield f"{container} {verdict.reason} (probed at {when})"


def _probe_store(
    path: str, create: Callable[[str, bytes], PutOutcome], delete: Callable[[str], None]
) -> tuple[bool, str]:
    try:
        # EXISTS means that an earlier answer was lost: the file exists, as wanted.
        _create_until_answered(create, path, b"first")
    except StorageError as error:
        if error.kind != STORE_UNSUPPORTED:
            raise
        return False, "does not know conditional writes"
    try:
        second = _create_until_answered(create, path, b"second, the longer")
    finally:
        with contextlib.suppress(StorageError):
            delete(path)
    if second is PutOutcome.CREATED:
        return False, "accepts a second creation of one name"
    return True, "refuses a second creation of one name"


def _create_until_answered(
    create: Callable[[str, bytes], PutOutcome], path: str, data: bytes
) -> PutOutcome:
    """Create a file until the store answers, in a bounded number of attempts."""
    for _ in range(_ATTEMPTS):
        outcome = create(path, data)
        if outcome is not PutOutcome.UNKNOWN:
            return outcome
    raise StorageError(
        f"The store gave no answer when {path} was created to test whether the store honours "
        "conditional writes. Nothing was committed. Run the operation again.",
        kind="OPTIMIST_STORE_NO_ANSWER",
        path=path,
        retryable=True,
    )
