"""The table that the tests of fsck damage."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from checked_tables import make


@pytest.fixture(scope="module")
def healthy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("healthy") / "t"
    make(path)
    return path


@pytest.fixture
def table(healthy: Path, tmp_path: Path) -> Path:
    shutil.copytree(healthy, tmp_path / "t")
    return tmp_path / "t"
