"""A sample of the hostile tables that `make exhaustive` tries by the thousand."""

import sys

import pytest

from trial_runner import run_cases

pytestmark = pytest.mark.skipif(
    sys.platform != "linux", reason="only Linux limits memory and tells who opened a file"
)

SAMPLE = 60


@pytest.mark.again
@pytest.mark.timeout(900)
def test_a_sample_of_hostile_tables_is_read_or_refused():
    tally = run_cases(0, SAMPLE)
    assert not tally.faults, "\n\n".join(tally.faults)
    assert tally.cases == SAMPLE
    # A fuzzer whose tables are all sound, or all refused, would find nothing.
    assert SAMPLE / 4 < tally.read["rows"] < SAMPLE
    assert tally.read["append"] > SAMPLE / 5
    assert len(tally.refused) > 8
