"""Properties of a write under the names of deltalake: how files are packed, and what follows."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import optimist.deltalake as ours
from optimist.deltalake.exceptions import (
    NotSupportedError,
)

ROWS = pa.table({"k": [1, 2, 3, 4], "p": ["a", "a", "b", "b"], "v": [1.0, None, 3.0, 4.0]})
MORE = pa.table({"k": [3, 9], "p": ["b", "z"], "v": [30.0, 90.0]})
DEFAULTS = "spark.databricks.delta.properties.defaults."


@pytest.mark.parametrize("codec", ["snappy", "GZIP", "UNCOMPRESSED", "zstd"])
def test_files_have_the_codec_of_the_call(tmp_path: Path, codec: str) -> None:
    properties = ours.WriterProperties(
        compression=codec,
        default_column_properties=ours.ColumnProperties(dictionary_enabled=True),
        column_properties={"k": ours.ColumnProperties()},
    )
    ours.write_deltalake(tmp_path, ROWS, writer_properties=properties)
    table = ours.DeltaTable(tmp_path)
    table.delete("k = 1", writer_properties=properties)
    table.update({"v": "1.0"}, predicate="k = 2", writer_properties=properties)
    merge = table.merge(MORE, "t.k = s.k", "s", "t", writer_properties=properties)
    merge.when_matched_update_all().when_not_matched_insert_all().execute()
    table.optimize.compact(writer_properties=properties)
    found = set()
    for path in tmp_path.glob("*.parquet"):
        found.add(pq.read_metadata(path).row_group(0).column(0).compression)
    assert found == {codec.upper()}
    ours.write_deltalake(tmp_path, MORE, mode="append")
    assert len(table.history(1)) == 1
    newest = max(tmp_path.glob("*.parquet"), key=lambda path: path.stat().st_mtime_ns)
    assert pq.read_metadata(newest).row_group(0).column(0).compression == "ZSTD"


@pytest.mark.parametrize(
    "given",
    [
        {"compression": "LZ4"},
        {"compression": "GZIP", "compression_level": 10},
        {"data_page_row_count_limit": 5},
        {"column_properties": {"k": ours.ColumnProperties(encoding="PLAIN")}},
        {"default_column_properties": ours.ColumnProperties(dictionary_enabled=False)},
    ],
    ids=str,
)
def test_other_properties_of_files_are_refused_by_name(
    tmp_path: Path, given: dict[str, Any]
) -> None:
    with pytest.raises(NotSupportedError, match=r"compression|data_page_row|column_propert"):
        ours.write_deltalake(tmp_path, ROWS, writer_properties=ours.WriterProperties(**given))
    assert not ours.DeltaTable.is_deltatable(tmp_path)


def test_row_groups_and_levels_are_those_of_the_call(tmp_path: Path) -> None:
    rows = pa.table({"k": range(5000), "v": [f"{n:x}" * 9 for n in range(5000)]})
    sizes = []
    for level in (1, 19):
        path = tmp_path / str(level)
        properties = ours.WriterProperties(
            compression="ZSTD",
            compression_level=level,
            max_row_group_size=2000,
            data_page_size_limit=4000,
            dictionary_page_size_limit=2000,
            write_batch_size=100,
        )
        ours.write_deltalake(path, rows, writer_properties=properties)
        (file,) = path.glob("*.parquet")
        footer = pq.read_metadata(file)
        assert [footer.row_group(n).num_rows for n in range(3)] == [2000, 2000, 1000]
        assert ours.DeltaTable(path).to_pyarrow_table().sort_by("k") == rows
        assert ours.DeltaTable(path).get_add_actions(True)["max.k"].to_pylist() == [4999]
        sizes.append(file.stat().st_size)
    assert sizes[1] < sizes[0]
    huge = ours.WriterProperties(max_row_group_size=10**30, data_page_size_limit=10**30)
    ours.write_deltalake(tmp_path / "1", rows, mode="append", writer_properties=huge)
    with pytest.raises(ValueError, match="max_row_group_size"):
        ours.write_deltalake(
            tmp_path, rows, writer_properties=ours.WriterProperties(max_row_group_size=0)
        )


def test_a_call_decides_about_its_checkpoint_and_the_cleanup(tmp_path: Path) -> None:
    table = ours.DeltaTable.create(
        tmp_path,
        ROWS.schema,
        configuration={
            "delta.checkpointInterval": "2",
            "delta.logRetentionDuration": "interval 0 days",
            "delta.deletedFileRetentionDuration": "interval 0 days",
            "delta.enableExpiredLogCleanup": "false",
        },
    )

    def write(**hooks: Any) -> list[str]:
        after = ours.PostCommitHookProperties(**hooks)
        ours.write_deltalake(table, ROWS, mode="append", post_commithook_properties=after)
        names = (path.name.lstrip("0") for path in (tmp_path / "_delta_log").iterdir())
        return sorted(name for name in names if "checkpoint.parquet" in name or name == ".json")

    assert write() == [".json"]
    assert write(create_checkpoint=False) == [".json"]
    write()
    assert write() == [".json", "4.checkpoint.parquet"]
    for path in (tmp_path / "_delta_log").iterdir():
        os.utime(path, (0, 0))
    write()
    assert write(cleanup_expired_logs=True) == ["4.checkpoint.parquet", "6.checkpoint.parquet"]
    assert table.count() == 6 * ROWS.num_rows
