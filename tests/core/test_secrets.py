from __future__ import annotations

import pickle
from pathlib import Path

import pytest

from optimist.core import DeltaLog, Operation
from optimist.core.errors import ConfigError, StorageError
from optimist.core.options.values import parse_option, parse_url
from optimist.core.plugins.logstore_registry import find_store
from optimist.core.protocol.actions import Metadata
from optimist.core.secrets import Options, Secret, without_secrets
from optimist.logstores import MemoryLogStore
from secret_hunt import SECRET, assert_untold


def test_a_secret_shows_in_no_text_and_is_there_when_asked_for() -> None:
    secret = Secret(SECRET)
    shown = f"{secret} {secret!r} {secret!s} {secret:>9} {[secret]} {'%s' % secret}"  # noqa: UP031
    assert SECRET not in shown
    assert secret.reveal() == SECRET
    assert pickle.loads(pickle.dumps(secret)) == secret
    assert secret != Secret("another")
    assert len({secret, Secret(SECRET)}) == 1


def test_options_are_a_mapping_whose_repr_has_keys_only() -> None:
    options = Options({"fs.s3a.secret.key": SECRET, "fs.s3a.access.key": "AKIA"})
    assert repr(options) == "Options(fs.s3a.access.key=***, fs.s3a.secret.key=***)"
    assert options["fs.s3a.secret.key"] == SECRET
    assert options == dict(options)
    assert pickle.loads(pickle.dumps(options)) == options
    assert hash(options) == hash(Options(dict(reversed(list(options.items())))))


def test_options_of_a_handles_store_and_locks_do_not_show(tmp_path: Path) -> None:
    conf = {"spark.hadoop.fs.s3a.secret.key": SECRET, "fs.azure.account.key": SECRET}
    log = DeltaLog.for_path(str(tmp_path), conf)
    assert log.store.options["fs.azure.account.key"] == SECRET
    assert SECRET not in repr(log.store.options) + str(log.store.options) + repr(vars(log.store))


def test_options_that_were_found_for_a_store_are_its_own_copy() -> None:
    conf = {"fs.x": "1"}
    store = find_store("/t", conf)
    conf["fs.x"] = "2"
    assert store.options["fs.x"] == "1"


@pytest.mark.parametrize(
    "key",
    [
        "spark.databricks.delta.maxCommitAttempts",
        "spark.databricks.delta.commitLock.enabled",
        "spark.databricks.delta.write.txnVersion",
        "spark.optimist.commit.retry.capSeconds",
        "spark.optimist.conflict.granularity",
        "spark.delta.logStore.class",
        "spark.delta.logStore.file.impl",
        "spark.optimist.store.lease",
        "spark.optimist.store.local.sas",
    ],
)
def test_a_secret_under_a_wrong_key_of_the_engine_is_not_told(tmp_path: Path, key: str) -> None:
    with pytest.raises(ConfigError) as caught:
        DeltaLog.for_path(str(tmp_path), {key: SECRET})
    assert key.removeprefix("spark.") in str(caught.value)
    assert_untold(caught.value)


def test_two_spellings_that_differ_are_told_without_their_values(tmp_path: Path) -> None:
    for key in ("delta.logStore.class", "optimist.conflict.granularity", "optimist.store.lease"):
        with pytest.raises(ConfigError) as caught:
            DeltaLog.for_path(str(tmp_path), {key: SECRET, f"spark.{key}": "other"})
        assert_untold(caught.value)


def test_what_is_no_text_is_refused_by_its_key() -> None:
    options: dict[str, str] = {"k": 7}  # type: ignore[dict-item]
    with pytest.raises(ConfigError, match="must be text, not int"):
        parse_option(options, "k", str)


@pytest.mark.parametrize(
    "url",
    [
        f"http://user:{SECRET.replace('/', '')}@host",
        f"https://host/?sig={SECRET}",
        SECRET,
        f"http://[{SECRET}",
        "ftp://host",
    ],
)
def test_a_servers_url_has_no_credentials(url: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse_option(Options({"k": url}), "k", parse_url)
    assert_untold(caught.value)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("sftp://user:hush@host/t is gone", "sftp://user:***@host/t is gone"),
        ("redis://:hush@host", "redis://:***@host"),
        ("s3a://AKIA:hush/hush@bucket/t is gone", "s3a://AKIA:***@bucket/t is gone"),
        ("sftp://user:p@hush@host", "sftp://user:***@host"),
        ("open 'sftp://user:hu'sh@host/t'", "open 'sftp://user:***@host/t'"),
        ("sftp://user:8020hush@host/t", "sftp://user:***@host/t"),
        ("http://nn:8020 and a@b", "http://nn:8020 and a@b"),
        ("AccountName=a;AccountKey=hush==;Sv=1", "AccountName=a;AccountKey=***;Sv=1"),
        ("host=h password=hush", "host=h password=***"),
        ("see https://a.b/c?sv=1&sig=hush%3D&sp=r.", "see https://a.b/c?sv=1&sig=***&sp=r."),
        ("PUT h/k?X-Amz-Signature=hush", "PUT h/k?X-Amz-Signature=***"),
        ("abfss://c@a.dfs.core.windows.net/t", "abfss://c@a.dfs.core.windows.net/t"),
        ("hdfs://nn:8020/at=12:30/x@y", "hdfs://nn:8020/at=12:30/x@y"),
        ("/t/token=5/sig=7/part-0.parquet", "/t/token=5/sig=7/part-0.parquet"),
        ("price > 3 AND token = 'x'", "price > 3 AND token = 'x'"),
        ("https://user:1234/hush@host/x", "https://user:***@host/x"),
        ("s3a://AKIA:12/hush@bucket/t", "s3a://AKIA:***@bucket/t"),
        ("http://127.0.0.1:4443/b/t@v5", "http://127.0.0.1:4443/b/t@v5"),
        ("http://hush@host/x", "http://***@host/x"),
        ("token=hush", "token=***"),
        ("https://h/#sig=hush", "https://h/#sig=***"),
        ("Authorization: Bearer hushhush1", "Authorization: Bearer ***"),
        ("the bearer of news", "the bearer of news"),
    ],
)
def test_addresses_lose_their_secrets_and_nothing_else(text: str, expected: str) -> None:
    assert without_secrets(text) == expected


def test_errors_show_no_password_of_a_path_in_message_or_fields() -> None:
    path = "sftp://user:hush@host/t"
    error = StorageError(f"Cannot read {path}.", kind="K", path=path, paths=(path,), retryable=True)
    copy = pickle.loads(pickle.dumps(error))
    for each in (error, copy):
        assert "hush" not in str(each) + repr(each) + str(dict(each.fields))
        assert each.fields["path"] == "sftp://user:***@host/t"
        assert each.retryable


def test_no_log_line_shows_a_password_of_the_path(caplog: pytest.LogCaptureFixture) -> None:
    store = MemoryLogStore()
    log = DeltaLog("memory://user:hush@host/t", store)
    schema = '{"type":"struct","fields":[]}'
    with caplog.at_level("DEBUG", logger="optimist"):
        transaction = log.start_transaction()
        transaction.update_metadata(Metadata(id="x", schema_string=schema, partition_columns=()))
        transaction.commit([], Operation("CREATE TABLE"))
        log.checkpoint()
        store.put_overwrite(f"{log.log_path}/_last_checkpoint", b"damaged")
        fresh = DeltaLog("memory://user:hush@host/t", store)
        assert fresh.snapshot().version == 0
    assert "user:***@host" in caplog.text
    assert "hush" not in caplog.text
