"""For those who write or test a plug-in: conformance suites, a faulty store, a manual clock."""

import pytest

# Before the import, so that a failing assertion of the suite shows its values.
pytest.register_assert_rewrite("optimist.core.testing.logstore_suite")

from optimist.core.testing.faulty_store import (  # noqa: E402
    Fault,
    FaultyLogStore,
    Pause,
    When,
    injected_error,
)
from optimist.core.testing.logstore_suite import LogStoreSuite  # noqa: E402
from optimist.core.testing.manual_clock import ManualClock  # noqa: E402

__all__ = [
    "Fault",
    "FaultyLogStore",
    "LogStoreSuite",
    "ManualClock",
    "Pause",
    "When",
    "injected_error",
]
