"""How many processors a process may use."""

from __future__ import annotations

import pytest

from optimist.core.runtime.processors import count_processors


def test_a_process_that_may_use_few_processors_counts_only_these(monkeypatch):
    monkeypatch.setattr("os.cpu_count", lambda: 64)
    monkeypatch.setattr("os.sched_getaffinity", lambda _: {3, 7}, raising=False)
    assert count_processors() == 2


@pytest.mark.parametrize(("cores", "wanted"), [(4, 4), (None, 1)])
def test_all_processors_count_where_a_system_tells_no_more(monkeypatch, cores, wanted):
    monkeypatch.setattr("os.cpu_count", lambda: cores)
    monkeypatch.delattr("os.sched_getaffinity", raising=False)
    assert count_processors() == wanted
