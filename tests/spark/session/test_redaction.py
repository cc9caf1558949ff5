"""Secrets in the conf: which of them Spark shows, and that whoever has one there is told."""

from __future__ import annotations

import logging
import re
import subprocess
import sys
import typing
from dataclasses import fields
from pathlib import Path

import pytest

from optimist.core.errors import ConfigError
from optimist.core.options.fields import options_under
from optimist.core.secrets import Secret
from optimist.locks.dynamodb_options import DynamoDBOptions
from optimist.locks.redis_server import RedisOptions
from optimist.locks.sql_arbiter import SQLOptions
from optimist.logstores.azure.options import AzureOptions
from optimist.logstores.gcs.options import GCSOptions
from optimist.logstores.s3.options import S3Options
from optimist.spark.session import redaction
from optimist.spark.session.redaction import warn_of_shown_secrets

STORE = "spark.optimist.store."
CLASSES = {
    "azure": AzureOptions,
    "dynamodb": DynamoDBOptions,
    "gcs": GCSOptions,
    "redis": RedisOptions,
    "s3": S3Options,
    "sql": SQLOptions,
}
NO_SECRETS = {"credentials_provider": "names a class"}
WITH_PASSWORD = "redis://user:hunter2@host:6379/0"
SHOWN = {
    f"{STORE}redis.url": WITH_PASSWORD,
    "optimist.store.sql.url": "postgresql+psycopg://user:hunter2@host/db",
    f"{STORE}azure.accountKey": "hunter2",
    f"{STORE}azure.sas": "hunter2",
    f"{STORE}azure.connectionString": "hunter2",
    f"{STORE}gcs.keyJson": "hunter2",
    f"{STORE}fsspec.account_key": "hunter2",
    f"{STORE}s3.encryptionKey": "hunter2",
}
HADOOP = {
    "spark.hadoop.fs.azure.account.key.us.dfs.core.windows.net": "hunter2",
    "fs.azure.sas.box.us.blob.core.windows.net": "hunter2",
    "spark.hadoop.fs.s3a.encryption.key": "hunter2",
    "spark.hadoop.fs.gs.auth.service.account.private.key": "hunter2",
}
HIDDEN = {
    f"{STORE}redis.secret.url": WITH_PASSWORD,
    f"{STORE}redis.password": "hunter2",
    f"{STORE}azure.clientSecret": "hunter2",
    f"{STORE}s3.secretKey": "hunter2",
    "spark.hadoop.fs.s3a.secret.key": "hunter2",
    "spark.hadoop.fs.s3a.access.key": "hunter2",
}
HARMLESS = {
    f"{STORE}redis.url": "redis://host:6379/0",
    f"{STORE}sql.url": "sqlite:////var/lib/log.db",
    "spark.hadoop.fs.s3a.aws.credentials.provider": "some.Class",
    "spark.optimist.store.azure.account": "us",
    f"{STORE}azure.sas": "",
    f"{STORE}s3.encryptionKey": "arn:aws:kms:eu-west-1:1:key/2",
    "spark.hadoop.fs.s3a.encryption.key": "01234567-89ab-cdef-0123-456789abcdef",
}


@pytest.fixture(autouse=True)
def untold(monkeypatch):
    monkeypatch.setattr(redaction, "_WARNED", set())


def warnings_of(entries, caplog, regex=None):
    caplog.clear()
    with caplog.at_level(logging.WARNING):
        warn_of_shown_secrets(entries, regex)
    assert "hunter2" not in caplog.text
    return [record.getMessage() for record in caplog.records]


def test_who_has_a_secret_that_spark_shows_is_told_once_what_to_write(caplog):
    told = warnings_of({**SHOWN, **HIDDEN}, caplog)
    assert len(told) == len(SHOWN)
    for key, text in zip(SHOWN, told, strict=True):
        room, _, option = key.removeprefix("spark.").removeprefix("optimist.store.").partition(".")
        assert key in text
        assert f"optimist.store.{room}.secret.{option} instead" in text
    assert warnings_of(SHOWN, caplog) == []


def test_for_keys_of_hadoop_the_regex_is_told_and_it_covers_them_all(caplog):
    told = warnings_of(HADOOP, caplog)
    assert len(told) == len(HADOOP)
    regexes = {text.partition("spark.redaction.regex=")[2] for text in told}
    assert len(regexes) == 1
    assert warnings_of({**HADOOP, **SHOWN}, caplog, regexes.pop() + "|url") == []


@pytest.mark.parametrize("regex", [None, "(?i)secret|password|token|access[.]?key"])
def test_nothing_is_said_of_what_is_hidden_or_harmless(caplog, regex):
    assert warnings_of(HIDDEN, caplog, regex) == []
    assert warnings_of(HARMLESS, caplog, regex) == []


def test_a_regex_that_only_java_understands_is_left_to_spark(caplog):
    assert warnings_of(SHOWN, caplog, r"\p{Alpha}++(?<x") == []


def secret_fields():
    for room, cls in CLASSES.items():
        hints = typing.get_type_hints(cls, vars(sys.modules[cls.__module__]))
        for field in fields(cls):
            if "Secret" in str(hints[field.name]) and field.name not in NO_SECRETS:
                yield room, field.name


def test_each_secret_of_each_store_and_lock_is_known_as_one(caplog):
    found = list(secret_fields())
    assert {("azure", "account_key"), ("redis", "url"), ("sql", "url")} <= set(found)
    for room, name in found:
        camel = re.sub("_(.)", lambda match: match[1].upper(), name)
        key = f"{STORE}{room}.{camel}"
        value = WITH_PASSWORD if name == "url" else "hunter2"
        is_hidden = re.search("(?i)secret|password|token|access[.]?key", key)
        assert bool(warnings_of({key: value}, caplog)) != bool(is_hidden), key


def test_any_option_may_be_called_secret():
    given = {f"{STORE}redis.secret.url": "a", "optimist.store.redis.prefix": "b"}
    assert dict(options_under(given, "optimist.store.redis.")) == {"url": "a", "prefix": "b"}
    given["optimist.store.redis.url"] = "a"
    assert dict(options_under(given, "optimist.store.redis.")) == {"url": "a", "prefix": "b"}
    given["optimist.store.redis.url"] = "hunter2"
    with pytest.raises(ConfigError, match=r"redis\.secret\.url and optimist") as caught:
        options_under(given, "optimist.store.redis.")
    assert caught.value.kind == "OPTIMIST_CONTRADICTING_OPTIONS"
    assert "hunter2" not in str(caught.value)


SESSION = """
import sys
from pyspark.sql import SparkSession
from optimist.spark.session.conf import engine_options
from optimist.locks.redis_server import RedisOptions

builder = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
for key, value in {entries!r}.items():
    builder = builder.config(key, value)
builder = builder.config("spark.eventLog.enabled", "true").config("spark.eventLog.dir", {folder!r})
spark = builder.config("spark.eventLog.compress", "false").getOrCreate()
spark.sparkContext.setLogLevel("OFF")
options = engine_options(spark)
assert RedisOptions.from_options(options).url.reveal() == {url!r}
spark.range(1).collect()
spark.stop()
"""


@pytest.mark.again
def test_sparks_event_log_shows_no_secret_under_a_name_of_ours(tmp_path):
    secrets = {f"{STORE}redis.secret.url": WITH_PASSWORD} | {
        key.replace("azure.", "azure.secret.").replace("gcs.", "gcs.secret."): value
        for key, value in SHOWN.items()
        if "azure" in key or "gcs" in key
    }
    shown = {"spark.optimist.shown": "canary"}
    script = SESSION.format(
        entries={**secrets, **shown}, folder=tmp_path.as_uri(), url=WITH_PASSWORD
    )
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert run.returncode == 0, run.stderr[-2000:]
    told = "".join(path.read_text() for path in Path(tmp_path).rglob("*") if path.is_file())
    assert "canary" in told
    assert all(key in told for key in secrets)
    assert "hunter2" not in told


def test_a_secret_is_what_its_options_wrap():
    options = RedisOptions.from_options({f"{STORE}redis.secret.url": WITH_PASSWORD})
    assert options.url == Secret(WITH_PASSWORD)
