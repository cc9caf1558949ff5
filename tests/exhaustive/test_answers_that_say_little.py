"""Every request of every store gets each answer that says little; see `little_answers`."""

import pytest

from little_answers import CALLS, bench_of
from object_services import AZURE, GCS, S3


@pytest.mark.parametrize("call", CALLS, ids=lambda call: call.name.replace(" ", "-"))
@pytest.mark.parametrize("kind", [S3, AZURE, GCS], ids=lambda kind: kind.name)
def test_no_store_tells_more_than_an_answer_says(kind, call, monkeypatch):
    with bench_of(kind, monkeypatch) as bench:
        for case in bench.cases((call,)):
            bench.try_out(case)
