"""Stores in memory begin empty, and leave nothing behind."""

from __future__ import annotations

import fsspec
import pytest

from optimist.logstores import MemoryLogStore


@pytest.fixture(autouse=True)
def empty_memory():
    MemoryLogStore.clear()
    yield
    MemoryLogStore.clear()


@pytest.fixture
def memory():
    """The file system in memory that fsspec has."""
    driver = fsspec.filesystem("memory")
    driver.store.clear()
    driver.pseudo_dirs[:] = [""]
    yield driver
    driver.store.clear()
    driver.pseudo_dirs[:] = [""]
