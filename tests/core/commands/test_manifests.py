"""GENERATE: a manifest for each partition that there is, and none for those that are gone."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from optimist.core import DeltaLog
from optimist.core.errors import UsageError


def manifests(path: Path) -> dict[str, list[str]]:
    root = path / "_symlink_format_manifest"
    return {
        str(file.relative_to(root).parent): file.read_text().splitlines()
        for file in root.rglob("manifest")
    }


def test_each_partition_has_its_files_and_gone_ones_have_none(tmp_path):
    log = DeltaLog.for_path(tmp_path / "t")
    log.append(pa.table({"p": ["a", "b b", None], "v": [1, 2, 3]}), partition_by=["p"])
    log.generate()
    found = manifests(tmp_path / "t")
    assert set(found) == {"p=a", "p=b b", "p=__HIVE_DEFAULT_PARTITION__"}
    listed = sorted(name for names in found.values() for name in names)
    assert len(listed) == 3
    log.delete("p = 'a'")
    log.append(pa.table({"p": ["c"], "v": [4]}))
    log.generate("SYMLINK_FORMAT_MANIFEST")
    assert set(manifests(tmp_path / "t")) == {"p=c", "p=b b", "p=__HIVE_DEFAULT_PARTITION__"}


def test_a_table_without_files_has_no_manifest(tmp_path):
    log = DeltaLog.for_path(tmp_path / "t")
    log.append(pa.table({"v": [1, 2]}))
    log.generate()
    assert [len(files) for files in manifests(tmp_path / "t").values()] == [1]
    log.delete()
    log.generate()
    assert manifests(tmp_path / "t") == {}


def test_another_mode_is_refused(tmp_path):
    log = DeltaLog.for_path(tmp_path / "t")
    log.append(pa.table({"v": [1]}))
    with pytest.raises(UsageError, match="symlink_format_manifest") as caught:
        log.generate("full")
    assert caught.value.kind == "DELTA_MODE_NOT_SUPPORTED"
    assert manifests(tmp_path / "t") == {}


def test_manifests_of_a_large_table_are_the_same(tmp_path, read_in_part):
    small = {"optimist.checkpoint.rowGroupRows": "2"}
    log = DeltaLog.for_path(tmp_path / "t", small)
    texts = ["a", "b", None, "c c"]
    for number in range(3):
        rows = pa.table({"p": texts, "v": pa.repeat(number, 4)})
        log.append(rows, partition_by=["p"])
    log.checkpoint()
    log.delete("p = 'b'")
    log.append(pa.table({"p": ["a"], "v": [9]}))
    log = DeltaLog.for_path(tmp_path / "t", small)
    log.generate()
    found = manifests(tmp_path / "t")
    assert {name: len(lines) for name, lines in found.items()} == {
        "p=a": 4, "p=c c": 3, "p=__HIVE_DEFAULT_PARTITION__": 3}  # fmt: skip
    live = [
        path for batch in log.snapshot().iter_files(9) for path in batch.column("path").to_pylist()
    ]
    assert {line.rpartition("/")[2] for lines in found.values() for line in lines} == {
        path.rpartition("/")[2] for path in live
    }
    log.alter.set_properties({"delta.compatibility.symlinkFormatManifest.enabled": "true"})
    log.append(pa.table({"p": ["a", "d"], "v": [10, 11]}))
    after = {name: len(lines) for name, lines in manifests(tmp_path / "t").items()}
    assert after == {"p=a": 5, "p=c c": 3, "p=d": 1, "p=__HIVE_DEFAULT_PARTITION__": 3}
