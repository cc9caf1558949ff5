"""Stores and leases of one's own on the arrow plane: where their modules must be."""

from __future__ import annotations

import os
import platform
import re
from pathlib import Path

import pytest

from optimist.core.errors import ConfigError
from optimist.spark import read, write

MODULE = """
from optimist.locks.in_process_lease import InProcessLease
from optimist.logstores.local.store import LocalLogStore


class OwnStore(LocalLogStore):
    pass


class OwnLease(InProcessLease):
    pass
"""
KEYS = {
    "spark.delta.logStore.class": ("OwnStore", "OPTIMIST_LOGSTORE_NOT_IMPORTED"),
    "spark.optimist.store.lease": ("OwnLease", "OPTIMIST_LOCK_NOT_IMPORTED"),
}


@pytest.fixture(autouse=True)
def on_the_arrow_plane(conf):
    conf("spark.optimist.spark.plane", "arrow")


def own_module(folder, name):
    """A module on the Python path of this process alone."""
    file = folder / f"{name}.py"
    file.write_text(MODULE, encoding="utf-8")
    return file


@pytest.mark.sample(2)
@pytest.mark.parametrize("key", KEYS)
def test_class_that_workers_lack_is_refused_before_the_first_write(
    spark, table_path, tmp_path, monkeypatch, conf, key
):
    name, kind = KEYS[key]
    own_module(tmp_path, "own_of_driver")
    monkeypatch.syspath_prepend(str(tmp_path))
    conf(key, f"own_of_driver:{name}")
    with pytest.raises(ConfigError) as caught:
        write(spark.range(3), table_path)
    assert caught.value.kind == kind
    text = str(caught.value)
    assert "Nothing was written" in text
    assert f"on machine {platform.node()}, in process" in text
    assert int(re.search(r"in process (\d+)", text)[1]) != os.getpid()
    assert not list(Path(table_path).rglob("*.parquet"))
    assert not list(Path(table_path).rglob("*.json"))


def test_class_that_workers_have_too_writes_and_reads(
    spark, table_path, tmp_path, monkeypatch, conf
):
    file = own_module(tmp_path, "own_of_all")
    monkeypatch.syspath_prepend(str(tmp_path))
    spark.sparkContext.addPyFile(str(file))
    conf("spark.delta.logStore.class", "own_of_all:OwnStore")
    write(spark.range(3), table_path)
    write(spark.range(3, 5), table_path, mode="append")
    assert sorted(row.id for row in read(spark, table_path).collect()) == [0, 1, 2, 3, 4]
