"""A sample of the answers that say little; all of them are in tests/exhaustive."""

import pytest

from little_answers import bench_of
from object_services import AZURE, GCS, S3

ONE_IN = 67


@pytest.mark.parametrize("kind", [S3, AZURE, GCS], ids=lambda kind: kind.name)
def test_no_store_tells_more_than_an_answer_says(kind, monkeypatch):
    with bench_of(kind, monkeypatch) as bench:
        for case in list(bench.cases())[::ONE_IN]:
            bench.try_out(case)
