"""Where S3LogStore writes nothing: no exclusion, other writers' arbiters, commits overwritten."""

import threading

import pytest

from optimist.core.errors import ConfigError, LogFileNotFoundError, StorageError
from optimist.core.plugins.logstore import PutOutcome
from optimist.core.testing import ManualClock
from optimist.logstores.s3.store import S3LogStore
from s3_tables import commit, info, put


def test_first_write_probes_and_leaves_nothing(server, s3, unprobed_log):
    bucket = unprobed_log.split("/")[2]
    store = S3LogStore(clock=ManualClock(now_ms=1_700_000_000_123))
    assert "nothing yet" in store.describe()["probed"]
    with server.counting() as made:
        store.put_if_absent(commit(unprobed_log, 0), b"x")
    assert [method for method, _, _ in made] == ["GET", "PUT", "PUT", "DELETE", "PUT"]
    keys = [item["Key"] for item in s3.list_objects_v2(Bucket=bucket)["Contents"]]
    assert keys == [f"table/_delta_log/{0:020d}.json"]
    probed = store.describe()["probed"]
    assert probed == (
        f"{bucket} refuses a second creation of one name (probed at 2023-11-14T22:13:20.123Z)"
    )


def test_verdict_holds_for_the_bucket_and_every_store_of_the_process(server, unprobed_log):
    S3LogStore().put_if_absent(commit(unprobed_log, 0), b"x")
    other_table = unprobed_log.replace("/table/", "/other/")
    with server.counting() as made:
        S3LogStore().put_if_absent(commit(other_table, 0), b"x")
    # It looks for staged commits of the table, and probes no more.
    assert [method for method, _, _ in made] == ["GET", "PUT"]


def test_store_that_ignores_the_condition_is_refused(server, unprobed_log, monkeypatch):
    monkeypatch.setattr(server, "ignores_condition", True)
    store = S3LogStore()
    for _ in range(2):
        with pytest.raises(ConfigError) as caught:
            store.put_if_absent(commit(unprobed_log, 0), b"x")
    assert caught.value.kind == "OPTIMIST_NO_ATOMIC_CREATE"
    for way_out in ("s3-dynamodb", "s3-redis", "s3-arbiter", "allowUnsafeWrites"):
        assert way_out in str(caught.value)
    with pytest.raises(LogFileNotFoundError):
        store.read_bytes(commit(unprobed_log, 0))
    assert "accepts a second creation" in store.describe()["probed"]


def test_override_writes_and_says_so_on_every_commit(server, unprobed_log, monkeypatch, caplog):
    monkeypatch.setattr(server, "ignores_condition", True)
    log = unprobed_log
    store = S3LogStore({"spark.optimist.store.s3.allowUnsafeWrites": "true"})
    assert store.put_if_absent(commit(log, 0), b"x") is PutOutcome.CREATED
    assert store.put_if_absent(commit(log, 0), b"y") is PutOutcome.EXISTS
    assert store.read_bytes(commit(log, 0)) == b"x"
    warnings = [each for each in caplog.records if "nothing excludes other" in each.getMessage()]
    assert len(warnings) == 2


def test_threads_that_come_together_probe_once(server, unprobed_log):
    store = S3LogStore()
    with server.counting() as made:
        threads = [
            threading.Thread(target=store.put_if_absent, args=(commit(unprobed_log, n), b"x"))
            for n in range(8)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert sum("probe" in path and method == "PUT" for method, path, _ in made) == 2


# Neighbours


def test_table_with_staged_commits_is_refused_but_read(s3, log):
    put(s3, f"{log}/.tmp/{1:020d}.json.0000", b"x")
    put(s3, commit(log, 0), b"x")
    store = S3LogStore()
    with pytest.raises(ConfigError) as caught:
        store.put_if_absent(commit(log, 1), b"y")
    assert caught.value.kind == "OPTIMIST_FOREIGN_ARBITER"
    assert "s3-dynamodb" in str(caught.value)
    assert len(list(store.list_from(commit(log, 0)))) == 1


def test_staged_commits_can_be_overridden(s3, log):
    put(s3, f"{log}/.tmp/{1:020d}.json.0000", b"x")
    store = S3LogStore({"optimist.store.s3.allowForeignArbiter": "true"})
    assert store.put_if_absent(commit(log, 1), b"y") is PutOutcome.CREATED


def test_commit_that_was_overwritten_is_reported_once_naming_both(s3, log):
    store = S3LogStore()
    put(s3, commit(log, 0), info("zero"))
    store.put_if_absent(commit(log, 1), info("ours", "MERGE", "Optimist"))
    put(s3, commit(log, 1), info("theirs", "WRITE", "Apache-Spark/4.0"))
    with pytest.raises(StorageError) as caught:
        list(store.list_from(commit(log, 1)))
    assert caught.value.kind == "OPTIMIST_COMMIT_REPLACED"
    assert caught.value.fields["lost_txn_id"] == "ours"
    assert caught.value.fields["found_txn_id"] == "theirs"
    assert caught.value.fields["found_engine"] == "Apache-Spark/4.0"
    assert len(list(store.list_from(commit(log, 1)))) == 1


def test_commit_known_by_reading_or_listing_is_watched_too(s3, log):
    for version in range(3):
        put(s3, commit(log, version), info(f"first-{version}"))
    store = S3LogStore()
    list(store.list_from(commit(log, 0)))
    store.read_bytes(commit(log, 1))
    for version in (1, 2):
        put(s3, commit(log, version), info(f"second-{version}"))
        with pytest.raises(StorageError) as caught:
            list(store.list_from(commit(log, version)))
        assert caught.value.fields["found_txn_id"] == f"second-{version}"
    assert caught.value.fields["lost_txn_id"] is None  # of this one only the listing was known


def test_table_made_anew_is_no_overwritten_commit(s3, log):
    store = S3LogStore()
    for version in range(2):
        put(s3, commit(log, version), info(f"old-{version}"))
    list(store.list_from(commit(log, 0)))
    for version in range(2):
        put(s3, commit(log, version), info(f"new-{version}"))
    assert len(list(store.list_from(commit(log, 1)))) == 2 - 1


def test_own_first_commit_is_not_given_up_in_silence(s3, log):
    store = S3LogStore()
    store.put_if_absent(commit(log, 0), info("ours"))
    put(s3, commit(log, 0), info("theirs"))
    with pytest.raises(StorageError) as caught:
        list(store.list_from(commit(log, 0)))
    assert caught.value.kind == "OPTIMIST_COMMIT_REPLACED"


def test_file_that_was_deleted_through_the_store_may_come_again(s3, log):
    store = S3LogStore()
    store.put_if_absent(commit(log, 0), info("a"))
    store.delete(commit(log, 0))
    put(s3, commit(log, 0), info("b"))
    assert len(list(store.list_from(commit(log, 0)))) == 1


def test_same_bytes_under_another_tag_are_no_loss_with_an_arbiter(s3, log):
    store = S3LogStore(has_arbiter=True)
    store.put_if_absent(commit(log, 0), info("a", "WRITE"))
    put(s3, commit(log, 0), info("a", "MERGE"))
    assert len(list(store.list_from(commit(log, 0)))) == 1
