"""Whatever stands in a table's folder: it is read as before, or refused by an error of ours.

Each case is a sound table with something wrong in it, tried in a process that may take 1 GB and ten
seconds of the processors. A fault names its case; `python tests/hostile/support/trial_worker.py
1234` tells all about case 1234.
"""

import sys

import pytest

from exhaustive_cases import CASES
from trial_runner import run_cases

pytestmark = pytest.mark.skipif(
    sys.platform != "linux", reason="only Linux limits memory and tells who opened a file"
)

BLOCK = 500


@pytest.mark.timeout(7200)
@pytest.mark.parametrize("first", range(0, CASES, BLOCK))
def test_hostile_tables_are_read_or_refused(first):
    count = min(BLOCK, CASES - first)
    tally = run_cases(first, count)
    assert not tally.faults, "\n\n".join(tally.faults)
    assert tally.cases == count
