"""Writes from Spark in threads, as one version."""

from __future__ import annotations

import threading

from optimist.core.errors import ConcurrentTransactionException
from optimist.spark import write
from optimist.spark.session.conf import open_log

WRITERS = 3
PATIENCE_S = 60


def test_appends_of_threads_share_a_version_and_each_is_told_its_own(
    spark, conf, plane, table, numbers
):
    conf("spark.optimist.commit.group.enabled", "true")
    log = open_log(spark, table)
    queue, before = log.commit_queue, log.snapshot().version
    outcomes = {}

    def work(writer, application):
        try:
            outcomes[writer] = write(
                numbers.where(f"p = {writer}"),
                table,
                mode="append",
                txnAppId=application,
                txnVersion=1,
            )
        except ConcurrentTransactionException as error:
            outcomes[writer] = error

    # The last two run one job twice at a time.
    jobs = [(writer, f"job {min(writer, 1)}") for writer in range(WRITERS)]
    threads = [threading.Thread(target=work, args=job, daemon=True) for job in jobs]
    queue._leader = threading.get_ident()  # so that all of them come before one leads
    for thread in threads:
        thread.start()
    pulse = threading.Event()
    for _ in range(PATIENCE_S * 100):
        if queue.num_waiting == WRITERS:
            break
        pulse.wait(0.01)
    queue._end_lead()
    for thread in threads:
        thread.join(PATIENCE_S)
    failed = [each for each in outcomes.values() if isinstance(each, Exception)]
    landed = [each for each in outcomes.values() if not isinstance(each, Exception)]
    assert len(failed) == 1
    assert {each.version for each in landed} == {before + 1}
    assert log.snapshot().version == before + 1
    assert log.count() == 20 + 5 * len(landed)
    info = log.history(limit=1)[0].info
    assert info.operation_metrics["numOutputRows"] == "10"
    assert info.tags["optimist.group.size"] == "2"
