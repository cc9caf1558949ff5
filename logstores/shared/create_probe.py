"""Whether a store really refuses to create a file twice: asked of the store, not of its brochure.

Servers that speak a cloud's protocol differ: some accept the condition of a put and ignore it, and
then the last of two writers wins in silence. So before the first write to a bucket or container:

1. Create an object of a fresh name beside the file that is to be written. It must be created.
2. Create it again. It must be refused: a second `CREATED` is how commits get lost.
3. Remove it. If it stays behind, it does no harm: readers of a log ignore such names.

The verdict holds for the endpoint and the container, for all stores of this process.

Passing is necessary, not sufficient: a server that first looks and then writes passes too, and can
still let two racing writers win. No client can tell.
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
"""The kind of the error of a store that does not know the condition of a request."""
_OTHER_STORE = "another store for this scheme (spark.delta.logStore.<scheme>.impl)"


@dataclass(frozen=True, slots=True)
class ProbeVerdict:
    """What a probe found.

    Attributes:
        is_exclusive: Whether the second creation was refused.
        reason: What the store does, in words.
        probed_ms: When, epoch milliseconds.
    """

    is_exclusive: bool
    reason: str
    probed_ms: int


_LOCK = ForkSafeLock()
_VERDICTS: dict[tuple[str, str], ProbeVerdict] = {}
_PROBING: dict[tuple[str, str], ForkSafeLock] = {}


def known_verdict(endpoint: str, container: str) -> ProbeVerdict | None:
    """The verdict on a place, or None where it was not probed yet."""
    with _LOCK:
        return _VERDICTS.get((endpoint, container))


def describe_verdicts(places: Iterable[tuple[str, str]]) -> str:
    """What is known of some places (endpoint, container), for `LogStore.describe`."""
    return "; ".join(_descriptions(places)) or "nothing yet"


def probe_once(
    place: tuple[str, str],
    path: str,
    *,
    create: Callable[[str, bytes], PutOutcome],
    delete: Callable[[str], None],
    clock: Clock,
) -> ProbeVerdict:
    """Probe a place, if that was not done yet, and return the verdict.

    Args:
        place: Endpoint, and container or bucket.
        path: The file that is about to be created; the probe is made beside it.
        create: The conditional put of the store.
        delete: The store's delete.
        clock: Gives the fresh name and the time of the verdict.

    Raises:
        StorageError: The probe got no clear answer (kind `OPTIMIST_STORE_NO_ANSWER`), or was not
            permitted; nothing but the probe was written.
    """
    with _LOCK:
        is_probing = _PROBING.setdefault(place, ForkSafeLock())
    with is_probing:  # one probe per place, however many threads come together
        verdict = known_verdict(*place)
        if verdict is None:
            probe = join(parent_of(path), f".optimist-probe-{clock.new_uuid()}")
            is_exclusive, reason = _probe(probe, create, delete)
            verdict = ProbeVerdict(is_exclusive, reason, clock.now_ms())
            with _LOCK:
                _VERDICTS[place] = verdict
    return verdict


def ensure_exclusive(
    verdict: ProbeVerdict,
    place: tuple[str, str],
    path: str,
    *,
    override: tuple[str, bool],
    instead: str = _OTHER_STORE,
) -> None:
    """Refuse to write where two writers could both win, unless the user insists.

    Args:
        verdict: What `probe_once` found.
        place: Endpoint, and container or bucket.
        path: The file that is about to be created.
        override: The option that insists, and whether it is set; each write is logged then.
        instead: What to use there: an arbiter, another store.

    Raises:
        ConfigError: The condition is ignored (kind `OPTIMIST_NO_ATOMIC_CREATE`).
    """
    if verdict.is_exclusive:
        return
    endpoint, container = place
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


def _probe(
    path: str, create: Callable[[str, bytes], PutOutcome], delete: Callable[[str], None]
) -> tuple[bool, str]:
    try:
        # EXISTS means that an earlier answer was lost: the file is there, as wanted.
        _insist(create, path, b"first")
    except StorageError as error:
        if error.kind != STORE_UNSUPPORTED:
            raise
        return False, "does not know conditional writes"
    try:
        second = _insist(create, path, b"second, the longer")
    finally:
        with contextlib.suppress(StorageError):
            delete(path)
    if second is PutOutcome.CREATED:
        return False, "accepts a second creation of one name"
    return True, "refuses a second creation of one name"


def _insist(create: Callable[[str, bytes], PutOutcome], path: str, data: bytes) -> PutOutcome:
    """Create until there is an answer, in a bounded number of attempts."""
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
