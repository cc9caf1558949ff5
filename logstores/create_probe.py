"""Whether an endpoint that nobody vouches for really refuses the second of two creations.

1. Create an object of a fresh name. The answer must be `CREATED`.
2. Create it again. The answer must be `EXISTS`; a server that ignores the condition says `CREATED`,
   and two writers would overwrite each other's commits there.
3. Remove it; that it can't be removed is no harm, readers of a log pass over such names.

The verdict holds for the endpoint and the container, for all stores of this process.
"""

from __future__ import annotations

import contextlib
import logging
import threading
from collections.abc import Callable
from dataclasses import dataclass

from optimist.core.clock import Clock
from optimist.core.errors import ConfigError, StorageError
from optimist.core.logstore import PutOutcome
from optimist.core.paths import join, parent_of

__all__ = ["ProbeVerdict", "ensure_exclusive", "known_verdict", "probe_once"]

_LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ProbeVerdict:
    """What a probe found, and when (epoch milliseconds)."""

    is_exclusive: bool
    probed_ms: int


_lock = threading.Lock()
_verdicts: dict[tuple[str, str], ProbeVerdict] = {}


def known_verdict(endpoint: str, container: str) -> ProbeVerdict | None:
    """The verdict on a place, or None where it was not probed yet."""
    return _verdicts.get((endpoint, container))


def probe_once(
    place: tuple[str, str],
    path: str,
    *,
    create: Callable[[str, bytes], PutOutcome],
    delete: Callable[[str], None],
    clock: Clock,
) -> ProbeVerdict:
    """The verdict on a place, found out beside the file that is about to be written.

    Args:
        place: Endpoint, and container or bucket.
        path: The file that is about to be created.
        create: The conditional put of the store.
        delete: The store's delete.
        clock: Gives the fresh name and the time of the verdict.

    Raises:
        StorageError: The probe got no clear answer (kind `OPTIMIST_STORE_NO_ANSWER`), or none was
            allowed; nothing but the probe was written.
    """
    with _lock:  # one probe per place, however many threads come together
        verdict = _verdicts.get(place)
        if verdict is None:
            name = f".optimist-probe-{clock.new_uuid()}"
            is_exclusive = _probe(join(parent_of(path), name), create, delete)
            verdict = _verdicts[place] = ProbeVerdict(is_exclusive, clock.now_ms())
    return verdict


def ensure_exclusive(
    verdict: ProbeVerdict, place: tuple[str, str], path: str, *, override: tuple[str, bool]
) -> None:
    """Refuse to write where two writers could both win, unless the user insists.

    Args:
        verdict: What `probe_once` found.
        place: Endpoint, and container or bucket.
        path: The file that is about to be created.
        override: The option that insists, and whether it is set; each write is logged then.

    Raises:
        ConfigError: The condition is ignored (kind `OPTIMIST_NO_ATOMIC_CREATE`).
    """
    if verdict.is_exclusive:
        return
    endpoint, container = place
    option, is_overridden = override
    if is_overridden:
        _LOG.warning(
            "Writing %s although %s does not refuse to overwrite it (%s is set): a second writer "
            "can destroy this commit.",
            path,
            endpoint,
            option,
        )
        return
    raise ConfigError(
        f"Nothing was written to {path}: {endpoint} accepted a second creation of one name in "
        f"{container}, so it ignores the condition that makes commits safe, and two writers could "
        "overwrite each other's. Ways out: an endpoint that honours it; another store for this "
        "scheme (spark.delta.logStore.<scheme>.impl); or, for a table that has one writer only, "
        f"{option}=true. Reading works as it is.",
        kind="OPTIMIST_NO_ATOMIC_CREATE",
        path=path,
        endpoint=endpoint,
        container=container,
    )


def _probe(
    path: str, create: Callable[[str, bytes], PutOutcome], delete: Callable[[str], None]
) -> bool:
    outcomes = (create(path, b"first"), create(path, b"second, the longer"))
    with contextlib.suppress(StorageError):
        delete(path)
    if outcomes == (PutOutcome.CREATED, PutOutcome.EXISTS):
        return True
    if outcomes == (PutOutcome.CREATED, PutOutcome.CREATED):
        return False
    raise StorageError(
        "Whether the store honours conditional writes could not be found out: creating "
        f"{path} twice ended in {outcomes[0].value} and {outcomes[1].value}. "
        "Nothing was committed; try again.",
        kind="OPTIMIST_STORE_NO_ANSWER",
        path=path,
        retryable=True,
    )
