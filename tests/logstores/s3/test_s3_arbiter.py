"""By which URL an arbiter knows a table, and what becomes of writers that spell it otherwise."""

from __future__ import annotations

from collections import Counter

import pytest

from optimist.core.errors import ConfigError
from optimist.core.plugins.arbiter import CommitEntry
from optimist.core.plugins.logstore import PutOutcome
from optimist.logstores.s3.arbiter import S3ArbiterLogStore
from optimist.logstores.shared.external_arbiter import ExternalArbiterLogStore

SCHEMES = ("s3", "s3a", "s3n")
COMMIT = "bucket/table/_delta_log/00000000000000000001.json"


class KnownTables:
    """As much of an arbiter as is asked before the first write to a table."""

    def __init__(self, *tables):
        self.tables, self.asked = tables, Counter()

    def latest(self, table_path):
        self.asked[table_path] += 1
        if table_path not in self.tables:
            return None
        return CommitEntry(table_path, "0.json", ".tmp/0.json.x", complete=True)


@pytest.fixture
def put(monkeypatch):
    """Puts a commit by a store with this arbiter; what follows the check of the URL finds it."""
    monkeypatch.setattr(ExternalArbiterLogStore, "_is_taken", lambda *_args: True)

    def put(arbiter, scheme, **options):
        store = S3ArbiterLogStore(options, arbiter=arbiter)
        first, second = (store.put_if_absent(f"{scheme}://{COMMIT}", b"{}") for _ in range(2))
        assert first is second
        return first

    return put


@pytest.mark.parametrize("known", SCHEMES)
@pytest.mark.parametrize("own", SCHEMES)
def test_a_table_that_is_known_by_another_scheme_is_not_written_to(put, own, known):
    arbiter = KnownTables(f"{known}://bucket/table")
    if own == known:
        assert put(arbiter, own) is PutOutcome.EXISTS
        assert arbiter.asked == {f"{own}://bucket/table": 1}
        return
    with pytest.raises(ConfigError) as caught:
        put(arbiter, own)
    assert caught.value.kind == "OPTIMIST_ARBITER_PATH_MISMATCH"
    assert caught.value.fields["table_path"] == f"{own}://bucket/table"
    assert caught.value.fields["other_path"] == f"{known}://bucket/table"
    assert f"optimist.store.s3arbiter.scheme={known}" in str(caught.value)
    same = {"optimist.store.s3arbiter.scheme": known}
    assert put(arbiter, own, **same) is PutOutcome.EXISTS


@pytest.mark.parametrize("own", SCHEMES)
def test_a_table_that_no_arbiter_knows_is_looked_for_once_by_each_scheme(put, own):
    arbiter = KnownTables("s3://bucket/another")
    assert put(arbiter, own) is PutOutcome.EXISTS
    assert arbiter.asked == {f"{scheme}://bucket/table": 1 for scheme in SCHEMES}
