"""For those who write or test a plug-in: conformance suites, faulty plug-ins, a manual clock."""

import pytest

# Before the imports, so that a failing assertion of a suite shows its values.
pytest.register_assert_rewrite(
    "optimist.core.testing.arbiter_suite",
    "optimist.core.testing.lease_suite",
    "optimist.core.testing.logstore_suite",
)

from optimist.core.testing.arbiter_suite import ArbiterSuite  # noqa: E402
from optimist.core.testing.faulty_arbiter import ArbiterFault, FaultyArbiter  # noqa: E402
from optimist.core.testing.faulty_store import (  # noqa: E402
    Fault,
    FaultyLogStore,
    Pause,
    When,
    injected_error,
)
from optimist.core.testing.lease_suite import LeaseSuite  # noqa: E402
from optimist.core.testing.logstore_suite import LogStoreSuite  # noqa: E402
from optimist.core.testing.manual_clock import ManualClock  # noqa: E402

__all__ = [
    "ArbiterFault",
    "ArbiterSuite",
    "Fault",
    "FaultyArbiter",
    "FaultyLogStore",
    "LeaseSuite",
    "LogStoreSuite",
    "ManualClock",
    "Pause",
    "When",
    "injected_error",
]
