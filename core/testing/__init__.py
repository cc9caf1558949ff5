"""Tools for testing plug-ins: suites, faulty plug-ins, a manual clock, a scheduler."""

import pytest

# Before the imports, so that a failing assertion of a suite shows its values.
pytest.register_assert_rewrite(
    "optimist.core.testing.arbiter_suite",
    "optimist.core.testing.lease_suite",
    "optimist.core.testing.logstore_suite",
)

from optimist.core.testing.arbiter_suite import ArbiterSuite  # noqa: E402
from optimist.core.testing.engine_workers import (  # noqa: E402
    added_file,
    engine_writer,
    first_commit,
    snapshot_reader,
)
from optimist.core.testing.faulty_arbiter import ArbiterFault, FaultyArbiter  # noqa: E402
from optimist.core.testing.faulty_store import (  # noqa: E402
    Fault,
    FaultyLogStore,
    Pause,
    When,
    injected_error,
)
from optimist.core.testing.interleavings import (  # noqa: E402
    Exploration,
    InterleavingError,
    TooManyStatesError,
    explore_all,
    explore_randomly,
    replay,
)
from optimist.core.testing.lease_suite import LeaseSuite  # noqa: E402
from optimist.core.testing.log_scenario import (  # noqa: E402
    LogInvariants,
    Seen,
    Told,
    Wrote,
    appender,
    commit_bytes,
    numbered_writer,
    reader,
)
from optimist.core.testing.logstore_suite import LogStoreSuite  # noqa: E402
from optimist.core.testing.manual_clock import ManualClock  # noqa: E402
from optimist.core.testing.scheduler import (  # noqa: E402
    DirectLine,
    Line,
    Mishap,
    Model,
    Moment,
    NotDeterministicError,
    Operation,
    Raised,
    Worker,
    World,
    run_alone,
)
from optimist.core.testing.simulated_store import (  # noqa: E402
    LogState,
    SimulatedArbiter,
    SimulatedClock,
    SimulatedLogStore,
    SimulatedWorld,
)

__all__ = [
    "ArbiterFault",
    "ArbiterSuite",
    "DirectLine",
    "Exploration",
    "Fault",
    "FaultyArbiter",
    "FaultyLogStore",
    "InterleavingError",
    "LeaseSuite",
    "Line",
    "LogInvariants",
    "LogState",
    "LogStoreSuite",
    "ManualClock",
    "Mishap",
    "Model",
    "Moment",
    "NotDeterministicError",
    "Operation",
    "Pause",
    "Raised",
    "Seen",
    "SimulatedArbiter",
    "SimulatedClock",
    "SimulatedLogStore",
    "SimulatedWorld",
    "Told",
    "TooManyStatesError",
    "When",
    "Worker",
    "World",
    "Wrote",
    "added_file",
    "appender",
    "commit_bytes",
    "engine_writer",
    "explore_all",
    "explore_randomly",
    "first_commit",
    "injected_error",
    "numbered_writer",
    "reader",
    "replay",
    "run_alone",
    "snapshot_reader",
]
