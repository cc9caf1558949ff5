"""The compiled classes are kept, and never taken from a file that is not what was kept."""

from __future__ import annotations

import pytest

from optimist.spark.drop_in import compiler
from optimist.spark.session.jvm import Jvm


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path / "optimist" / "java"


def test_what_is_kept_is_found_again_and_only_by_its_user(cache):
    kept = compiler._keep(b"classes")
    assert kept.parent == cache
    assert cache.stat().st_mode & 0o777 == 0o700
    assert compiler._kept_file() == kept


@pytest.mark.parametrize("content", [b"", b"class", b"classes of somebody else"])
def test_a_damaged_file_is_removed(cache, content):
    kept = compiler._keep(b"classes")
    kept.write_bytes(content)
    assert compiler._kept_file() is None
    assert not kept.exists()


def test_a_folder_that_others_can_write_to_is_not_used(cache):
    kept = compiler._keep(b"classes")
    cache.chmod(0o777)
    assert compiler._kept_file() is None
    assert compiler._keep(b"classes").parent != kept.parent


def test_another_text_or_another_spark_has_files_of_its_own(cache, monkeypatch):
    compiler._keep(b"classes")
    monkeypatch.setattr(compiler.pyspark, "__version__", "4.0.99")
    assert compiler._kept_file() is None


def test_a_home_that_does_not_exist_keeps_nothing(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file" / "below"))
    (tmp_path / "file").write_text("")
    assert compiler._kept_file() is None
    assert compiler._keep(b"classes").read_bytes() == b"classes"


def test_the_text_compiles_to_the_same_classes_each_time(spark):
    jvm = Jvm.of(spark)
    first, second = (compiler._compiled(jvm, jvm._loader) for _ in range(2))
    assert first == second
    assert b"META-INF/services" in first
