"""Leases within one process, for tests and for programs that run in one process.

*Assumes* that all competitors are threads of this process.

*Provides* one holder per name at a time over all instances in the process, deadlines by the clock,
fencing numbers that grow as long as the process lives.

*Does not provide* anything between processes.

*Excludes* nobody outside this process.
"""

from __future__ import annotations

from collections.abc import Mapping

from optimist.core.forking import ForkSafeLock, renew_in_child
from optimist.core.plugins.lease import Lease, LeaseGrant, lapsed
from optimist.core.runtime.clock import Clock, SystemClock
from optimist.locks.lease_state import LeaseState

__all__ = ["InProcessLease"]

_STATES: dict[str, LeaseState] = {}
_STATES_GUARD = ForkSafeLock()


def _free_all(_kind: object) -> None:
    """Free all leases in a forked child, since the parent's threads hold them.

    Numbers keep growing.
    """
    for name, state in _STATES.items():
        _STATES[name] = LeaseState(state.fencing_number)


class InProcessLease(Lease):
    """Leases in a dictionary under a mutex.

    Args:
        options: Kept as `options`; the class has none.
        clock: The clock by which leases lapse.
    """

    def __init__(
        self, options: Mapping[str, str] | None = None, *, clock: Clock | None = None
    ) -> None:
        super().__init__(options)
        self._clock: Clock = clock or SystemClock()

    def try_acquire(self, name: str, *, ttl_s: float) -> LeaseGrant | None:
        """See `Lease.try_acquire`."""
        with _STATES_GUARD:
            now_ms = self._clock.now_ms()
            state = _STATES.get(name, LeaseState())
            if not state.is_free(now_ms):
                return None
            _STATES[name] = state.taken(self._clock.new_uuid(), now_ms + round(ttl_s * 1000))
            return _STATES[name].grant(name)

    def renew(self, grant: LeaseGrant, *, ttl_s: float) -> LeaseGrant:
        """See `Lease.renew`."""
        with _STATES_GUARD:
            now_ms = self._clock.now_ms()
            state = _STATES.get(grant.name, LeaseState())
            _STATES[grant.name] = state.renewed(grant, now_ms, now_ms + round(ttl_s * 1000))
            return _STATES[grant.name].grant(grant.name)

    def release(self, grant: LeaseGrant) -> None:
        """See `Lease.release`."""
        with _STATES_GUARD:
            state = _STATES.get(grant.name, LeaseState())
            _STATES[grant.name] = state.released(grant)

    def ensure_held(self, grant: LeaseGrant) -> None:
        """See `Lease.ensure_held`."""
        with _STATES_GUARD:
            state = _STATES.get(grant.name, LeaseState())
        if not state.is_held_by(grant, self._clock.now_ms()):
            raise lapsed(grant)


renew_in_child(InProcessLease, _free_all)
