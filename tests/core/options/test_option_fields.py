"""Options of engine, stores and locks: one way to have them, and one way to get them wrong."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from optimist.core.errors import ConfigError
from optimist.core.options.engine import EngineOptions
from optimist.core.options.fields import (
    foreign_option,
    option,
    own_values,
    parse_foreign_options,
    parse_options,
)
from optimist.core.options.values import at_least, blank_as, parse_bool
from optimist.core.secrets import Secret, masked_repr
from optimist.locks.dynamodb_options import DynamoDBOptions
from optimist.locks.file_lease import FileLeaseOptions
from optimist.locks.redis_server import RedisOptions
from optimist.locks.sql_arbiter import SQLOptions
from optimist.logstores.azure.options import AzureOptions
from optimist.logstores.gcs.options import GCSOptions
from optimist.logstores.hdfs.options import HDFSOptions
from optimist.logstores.s3.arbiter import S3ArbiterOptions
from optimist.logstores.s3.options import S3Options

PREFIX = "optimist.store.oven."


@dataclass(frozen=True, slots=True)
class Oven:
    place: str = option(missing="say where it stands")
    token: Secret[str] | None = option(None, Secret)
    warm_up_time_s: int = option(60, at_least(1))
    is_gas: bool = option(False, parse_bool, "gas")
    label: str = option("oven", blank_as("oven", str), foreign=("ui.label", "ui.oldLabel"))
    watts: int = foreign_option(900, at_least(1), "power")

    __repr__ = masked_repr


def own(**given: str) -> dict[str, Any]:
    place = {f"{PREFIX}place": "kitchen"}
    return parse_options(Oven, {**place, **{PREFIX + key: given[key] for key in given}}, PREFIX)


def test_what_is_not_set_is_left_to_the_default():
    assert Oven(**own()) == Oven("kitchen")


def test_a_field_is_called_by_its_name_in_camel_case_unless_it_says_otherwise():
    parsed = Oven(**own(warmUpTimeSeconds=" 5 ", gas="TRUE", token="hush"))
    assert (parsed.warm_up_time_s, parsed.is_gas, parsed.token) == (5, True, Secret("hush"))
    assert own_values(parsed) == {
        "place": "kitchen",
        "token": Secret("hush"),
        "warmUpTimeSeconds": 5,
        "gas": True,
        "label": "oven",
    }


@pytest.mark.parametrize("key", [PREFIX, f"spark.{PREFIX}", f"{PREFIX}secret."])
def test_prefixes_of_spark_and_of_secrets_may_stand_before_any_option(key):
    assert parse_options(Oven, {f"{key}place": "yard"}, PREFIX) == {"place": "yard"}


def test_no_text_means_the_default_where_the_option_says_so():
    assert own(label=" ")["label"] == "oven"
    with pytest.raises(ConfigError):
        own(warmUpTimeSeconds=" ")


def test_of_two_foreign_keys_the_stronger_one_holds():
    assert parse_foreign_options(Oven, {"ui.oldLabel": "a", "power": "7", "x": "y"}) == {
        "label": "a",
        "watts": 7,
    }
    assert parse_foreign_options(Oven, {"ui.oldLabel": "a", "ui.label": "b"}) == {"label": "b"}
    with pytest.raises(ConfigError, match=r"ui\.power does not parse"):
        parse_foreign_options(Oven, {"power": "much"}, "ui.")


@pytest.mark.parametrize("given", [{}, {f"{PREFIX}place": "  "}])
def test_one_that_must_be_set_and_is_not_is_told_with_what_to_set(given):
    with pytest.raises(ConfigError) as caught:
        parse_options(Oven, given, PREFIX)
    assert caught.value.kind == "OPTIMIST_MISSING_OPTION"
    assert "optimist.store.oven.place is missing: say where it stands." in str(caught.value)


COMPONENTS = {
    "": (EngineOptions, "conflict.granularity", "hunter2"),
    "store.azure.": (AzureOptions, "maxTries", "hunter2"),
    "store.dynamodb.": (DynamoDBOptions, "createTables", "hunter2"),
    "store.file-lease.": (FileLeaseOptions, "directory", 7),
    "store.gcs.": (GCSOptions, "auth", "hunter2"),
    "store.hdfs.": (HDFSOptions, "client", "hunter2"),
    "store.redis.": (RedisOptions, "timeoutSeconds", "hunter2"),
    "store.s3.": (S3Options, "pathStyle", "hunter2"),
    "store.s3arbiter.": (S3ArbiterOptions, "scheme", "hunter2"),
    "store.sql.": (SQLOptions, "entryTtlSeconds", "hunter2"),
}
NEEDED = {
    "optimist.store.redis.url": "redis://h",
    "optimist.store.sql.url": "sqlite://",
    "optimist.store.file-lease.directory": "/d",
}
each_component = pytest.mark.parametrize("prefix", COMPONENTS)


def refused(prefix: str, given: dict[str, str]) -> ConfigError:
    with pytest.raises(ConfigError) as caught:
        COMPONENTS[prefix][0].from_options({**NEEDED, **given})
    return caught.value


@each_component
def test_an_unknown_option_is_told_alike_everywhere(prefix):
    key = f"spark.optimist.{prefix}hunter2"
    error = refused(prefix, {key: "x"})
    assert (error.kind, error.fields["key"]) == ("OPTIMIST_UNKNOWN_OPTION", key)
    assert f"The option {key} is unknown. The known options are: " in str(error)


@each_component
def test_a_value_that_does_not_parse_is_told_alike_everywhere(prefix):
    name, value = COMPONENTS[prefix][1:]
    key = f"optimist.{prefix}{name}"
    error = refused(prefix, {key: value})
    assert (error.kind, error.fields["key"]) == ("OPTIMIST_INVALID_OPTION", key)
    assert f"The value of {key} does not parse: it must be" in str(error)
    assert "hunter2" not in str(error)


@each_component
def test_two_spellings_that_differ_are_told_alike_everywhere(prefix):
    name = COMPONENTS[prefix][1]
    keys = (f"spark.optimist.{prefix}{name}", f"optimist.{prefix}{name}")
    error = refused(prefix, dict(zip(keys, ("hunter2", "other"), strict=True)))
    assert error.kind == "OPTIMIST_CONTRADICTING_OPTIONS"
    assert set(error.fields["keys"]) == set(keys)
    assert "contradict each other: they are two spellings of one option. Keep one." in str(error)
    assert "hunter2" not in str(error)


def test_two_spellings_that_differ_in_blanks_alone_are_one():
    given = {f"{PREFIX}place": "kitchen ", f"spark.{PREFIX}place": "kitchen"}
    assert parse_options(Oven, given, PREFIX) == {"place": "kitchen"}
