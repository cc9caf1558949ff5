"""No test learns from another, though both run in one process and on one port."""

import pytest

from optimist.core import DeltaLog
from optimist.core.plugins.lock_registry import find_lease
from optimist.core.plugins.logstore import PutOutcome
from optimist.core.plugins.logstore_registry import find_store
from optimist.core.testing import ManualClock
from optimist.logstores.shared.create_probe import known_verdict, probe_once

PLACE = ("http://127.0.0.1:1", "box")
SEEN = set()


@pytest.mark.parametrize("run", ["first", "second"])
def test_the_second_test_on_one_endpoint_begins_as_the_first_did(run):
    assert known_verdict(*PLACE) is None
    answers = iter([PutOutcome.CREATED, PutOutcome.EXISTS])
    probe_once(
        PLACE,
        "az://box/t/_delta_log/0.json",
        create=lambda path, data: next(answers),
        delete=lambda path: None,
        clock=ManualClock(),
    )
    assert known_verdict(*PLACE) is not None
    conf = {"optimist.store.lease": "in-process"}
    found = (find_store("memory://t"), DeltaLog.for_path("memory://t"), find_lease(conf))
    assert not SEEN.intersection(found)
    SEEN.update(found)
