"""Whether a store really refuses to create a file twice: asked of the store, not of its brochure.

Servers that speak S3 differ: some take `If-None-Match` and ignore it, and then the last of two
writers wins in silence. So before the first write to a place:

1. Create a probe under a fresh name. It must be created.
2. Create it again. It must be refused: a second `CREATED` is how commits get lost.
3. Delete it; one that stays behind does no harm, since readers ignore it.

That one request after the other is refused is necessary, not sufficient: a server that looks and
then writes passes, and can still break under a race. No client can tell; the table of stores in the
docs says which servers were raced.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass

from optimist.core.clock import Clock
from optimist.core.errors import ConfigError, StorageError
from optimist.core.logstore import PutOutcome

__all__ = ["ProbeVerdict", "no_atomic_create", "probe_create"]

_LOG = logging.getLogger(__name__)
_ATTEMPTS = 3
_UNSUPPORTED = "OPTIMIST_STORE_UNSUPPORTED"


@dataclass(frozen=True, slots=True)
class ProbeVerdict:
    """What a probe found.

    Attributes:
        place: The URL of the directory that was probed.
        is_safe: Whether the second create was refused.
        reason: What the store did, in words.
        probed_at_ms: When, epoch milliseconds.
    """

    place: str
    is_safe: bool
    reason: str
    probed_at_ms: int


def probe_create(
    create: Callable[[str, bytes], PutOutcome],
    delete: Callable[[str], None],
    *,
    place: str,
    clock: Clock,
) -> ProbeVerdict:
    """Create one file twice, see the module.

    Args:
        create: The store's create-if-absent.
        delete: The store's delete.
        place: The directory whose writers want to know.
        clock: Names the probe.

    Raises:
        StorageError: The store could not be asked; nothing is known.
    """
    path = f"{place}/.optimist/probe-{clock.new_uuid()}"
    try:
        is_safe, reason = _ask(create, path)
    finally:
        _discard(delete, path)
    return ProbeVerdict(place, is_safe, reason, clock.now_ms())


def no_atomic_create(
    verdict: ProbeVerdict, *, path: str, endpoint: str, scheme: str
) -> ConfigError:
    """The refusal to write where two writers could both win, with the ways out."""
    return ConfigError(
        f"Nothing was written to {path}: asked to create a file only if it is absent, the store at "
        f"{endpoint} failed the test: {verdict.reason}. Two writers could overwrite each other's "
        "commits there. Ways out: an arbiter that records who owns a version "
        f"(spark.delta.logStore.{scheme}.impl=s3-dynamodb or s3-redis); a server that honours "
        "If-None-Match (a newer release of this one, perhaps); or, for a table that has one writer "
        "only, optimist.store.s3.allowUnsafeWrites=true. Reading works as it is.",
        kind="OPTIMIST_NO_ATOMIC_CREATE",
        path=path,
        endpoint=endpoint,
        place=verdict.place,
    )


def _ask(create: Callable[[str, bytes], PutOutcome], path: str) -> tuple[bool, str]:
    try:
        first = _insist(create, path, b"first")
    except StorageError as error:
        if error.kind != _UNSUPPORTED:
            raise
        return False, "it does not know If-None-Match"
    # An EXISTS can only follow an answer that was lost: then the file is there, as wanted.
    assert first is not PutOutcome.UNKNOWN
    if _insist(create, path, b"second") is PutOutcome.CREATED:
        return False, "it overwrote a file that was there"
    return True, "it refused to overwrite a file"


def _insist(create: Callable[[str, bytes], PutOutcome], path: str, data: bytes) -> PutOutcome:
    """Create until there is an answer, in a bounded number of attempts."""
    for _ in range(_ATTEMPTS):
        outcome = create(path, data)
        if outcome is not PutOutcome.UNKNOWN:
            return outcome
    raise StorageError(
        "The store did not answer whether it creates files exclusively, so nothing was written "
        f"(probe {path}). Run the operation again.",
        kind="OPTIMIST_STORE_NO_ANSWER",
        path=path,
        retryable=True,
    )


def _discard(delete: Callable[[str], None], path: str) -> None:
    try:
        delete(path)
    except StorageError as error:
        _LOG.debug("The probe %s stays behind: %s", path, error)
