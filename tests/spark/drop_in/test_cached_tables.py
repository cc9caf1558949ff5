"""What Spark caches of a table: as with Delta, own commits make it anew, others leave it."""

from __future__ import annotations

import shutil

import deltalake
import pyarrow as pa
import pytest

from cached_frames import CachedFrames
from optimist.core import DeltaLog
from optimist.core.errors import DeltaConcurrentModificationException, TableError
from optimist.spark import DeltaTable, write
from read_back import add_row


@pytest.fixture
def held(enabled):
    """How many results Spark holds."""
    return lambda: enabled.sparkContext._jsc.getPersistentRDDs().size()


def _add_as_another(path):
    deltalake.write_deltalake(path, pa.table({"id": pa.array([200])}), mode="append")


@pytest.mark.again
def test_own_commits_make_the_cache_anew_and_others_leave_it(enabled, path, plane, held):
    def load():
        return enabled.read.format("delta").load(path)

    before = held()
    cached = load().where("id < 1000").cache()
    nested = enabled.range(300).join(cached, "id", "left_semi")
    nested = nested.where(f"id NOT IN (SELECT id FROM delta.`{path}` WHERE id = 0)").cache()
    fixed = enabled.read.format("delta").option("versionAsOf", 0).load(path).cache()
    frames = [cached, nested, fixed, load().where("id < 1000"), load()]

    def counts():
        return [frame.count() for frame in frames]

    assert counts() == [3, 2, 3, 3, 3]
    add_row(enabled, path)
    assert counts() == [4, 3, 3, 4, 4]
    DeltaTable.forPath(enabled, path).delete("id = 1")
    assert counts() == [3, 2, 3, 3, 3]
    _add_as_another(path)
    assert counts() == [3, 2, 3, 3, 4]
    assert load().where("id < 1000").count() == 3
    add_row(enabled, path)
    assert counts() == [5, 3, 3, 5, 5]
    for frame in (cached, nested, fixed):
        frame.unpersist(blocking=True)
    _add_as_another(path)
    assert counts() == [6, 3, 3, 6, 6]
    assert held() == before


def test_to_cache_looks_at_the_log_once_and_to_read_the_cache_never(enabled, path, monkeypatch):
    looks = []
    look = DeltaLog.snapshot

    def counted(log, *args, **named):
        looks.append(log)
        return look(log, *args, **named)

    monkeypatch.setattr(DeltaLog, "snapshot", counted)
    frame = enabled.read.format("delta").load(path)
    twice = frame.join(frame.where("id > 0"), "id", "left_anti")
    looks.clear()
    twice.cache()
    assert len(looks) == 1
    assert (twice.count(), twice.where("id = 0").count()) == (1, 1)
    assert len(looks) == 1
    assert frame.count() == 3
    assert len(looks) == 2
    twice.unpersist(blocking=True)


@pytest.mark.again
def test_a_frame_given_back_before_it_was_read_shows_the_newest_rows(enabled, path, held):
    before = held()
    frames = [enabled.read.format("delta").load(path).where(f"id > -{n}") for n in range(1, 7)]
    for frame in frames:
        frame.cache().count()
    _add_as_another(path)
    assert [frame.selectExpr("id").count() for frame in frames] == [3] * 6
    for frame in frames:
        frame.unpersist(blocking=True)
    assert len(frames[0].collect()) == 4  # its own plan, which was made when it was cached
    assert held() == before


def test_frames_of_a_table_mean_the_same_over_its_versions(enabled, path):
    older = enabled.read.format("delta").load(path)
    add_row(enabled, path)
    newer = enabled.sql(f"SELECT * FROM delta.`{path}`")
    fixed = enabled.read.format("delta").option("versionAsOf", 1).load(path)
    assert older.sameSemantics(enabled.read.format("delta").load(path))
    assert older.where("id = 1").semanticHash() == newer.where("id = 1").semanticHash()
    assert not older.sameSemantics(fixed)
    assert fixed.sameSemantics(enabled.read.option("versionAsOf", 1).format("delta").load(path))
    assert not older.sameSemantics(older.where("id = 1"))


@pytest.mark.again
def test_what_can_not_be_read_any_more_is_cached_no_longer(enabled, path, held):
    before = held()
    frame = enabled.read.format("delta").load(path).cache()
    kept = enabled.read.format("delta").load(path).selectExpr("1 AS one").cache()
    assert (frame.count(), kept.count()) == (3, 3)
    rows = enabled.range(1).selectExpr("CAST(id AS STRING) AS id")
    rows.write.format("delta").mode("overwrite").option("overwriteSchema", True).save(path)
    with pytest.raises(TableError) as caught:
        frame.count()
    assert caught.value.kind == "DELTA_SCHEMA_CHANGE_SINCE_ANALYSIS"
    assert held() == before


@pytest.mark.again
def test_names_are_cached_refreshed_and_given_back(enabled, path, database, entry, held):
    before, catalog = held(), enabled.catalog
    name = entry("cached", path)
    enabled.read.format("delta").load(path).createOrReplaceTempView("cached_rows")

    def counts():
        return [enabled.table(one).count() for one in (name, "cached_rows", f"delta.`{path}`")]

    for cached in (name, "cached_rows", f"delta.`{path}`"):
        enabled.sql(f"CACHE TABLE {cached}")
        assert counts() == [enabled.table(name).count()] * 3
        assert [catalog.isCached(one) for one in (name, cached)] == [True, True]
        _add_as_another(path)
        shown = counts()
        enabled.sql(f"REFRESH TABLE {cached}")
        assert counts() == [shown[0] + 1] * 3
        add_row(enabled, path)
        assert counts() == [shown[0] + 2] * 3
        if cached != f"delta.`{path}`":
            _add_as_another(path)
            catalog.refreshTable(cached)
            assert counts() == [shown[0] + 3] * 3
        _add_as_another(path)
        catalog.refreshByPath(path)
        rows = counts()
        assert rows == [rows[0]] * 3
        enabled.sql(f"UNCACHE TABLE {cached}")
        assert held() == before
    enabled.sql(f"CACHE TABLE {name}")
    assert held() == before + 1
    enabled.sql(f"DROP TABLE {name}")
    assert held() == before
    catalog.dropTempView("cached_rows")


@pytest.mark.again
def test_columns_that_change_their_meaning_are_not_served_from_the_cache(enabled, path, held):
    before = held()
    mapped = f"{path}-mapped"
    enabled.range(1).selectExpr("1 AS a", "2 AS b").write.format("delta").option(
        "delta.columnMapping.mode", "name"
    ).save(mapped)
    enabled.sql(f"CACHE TABLE delta.`{mapped}`")
    assert enabled.table(f"delta.`{mapped}`").collect() == [(1, 2)]
    change = DeltaTable.forPath(enabled, mapped).alter.rename_column
    for old, new in (("a", "x"), ("b", "a"), ("x", "b")):
        change(old, new)
    frame = enabled.table(f"delta.`{mapped}`")
    assert frame.where("a = 2").count() == 1
    assert held() == before
    enabled.sql(f"CACHE TABLE delta.`{mapped}`")
    wider = enabled.range(1).selectExpr("5 AS a", "6 AS b", "7 AS c")
    write(wider, mapped, mode="append", mergeSchema=True)
    assert (frame.count(), enabled.table(f"delta.`{mapped}`").where("c = 7").count()) == (2, 1)
    enabled.sql(f"UNCACHE TABLE delta.`{mapped}`")
    assert held() == before


@pytest.mark.again
def test_a_table_made_anew_is_not_served_from_what_was_cached(enabled, path, plane, held):
    """The restored log has the id and the versions of the one before, and other rows."""
    before = held()
    shutil.copytree(path, f"{path}-copy")
    add_row(enabled, path)
    frame = enabled.read.format("delta").load(path)
    fixed = enabled.read.format("delta").option("versionAsOf", 1).load(path)
    assert (frame.cache().count(), fixed.cache().count()) == (4, 4)
    shutil.rmtree(path)
    shutil.copytree(f"{path}-copy", path)
    deltalake.DeltaTable(path).delete("id = 0")
    again = enabled.read.format("delta").option("versionAsOf", 1).load(path)
    assert again.count() == 2
    assert enabled.read.format("delta").load(path).count() == 2
    assert frame.count() == 2
    fixed.unpersist(blocking=True)
    assert held() == before


def test_a_write_of_cached_rows_starts_from_their_version(enabled, path, plane):
    frame = enabled.read.format("delta").load(path).selectExpr("id + 10 AS id").cache()
    assert frame.count() == 3
    _add_as_another(path)
    with pytest.raises(DeltaConcurrentModificationException):
        frame.write.format("delta").mode("overwrite").save(path)
    frame.write.format("delta").save(f"{path}-other")
    assert enabled.read.format("delta").load(f"{path}-other").count() == 3
    assert enabled.read.format("delta").load(path).count() == 4
    frame.unpersist()


@pytest.mark.again
@pytest.mark.parametrize("seed", range(2))
def test_random_frames_show_what_the_model_says(enabled, tmp_path, held, seed):
    before = held()
    frames = CachedFrames(enabled, tmp_path, seed)
    for _ in range(12):
        frames.step()
    frames.give_back()
    assert held() == before, (seed, frames.done)
