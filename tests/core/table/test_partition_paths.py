"""What a path below a table means."""

from __future__ import annotations

import pyarrow as pa
import pytest

from optimist.core import DeltaLog
from optimist.core.errors import UsageError
from optimist.core.table.partition_paths import PartitionPath, partition_paths

OWN = "data-0f0f0f0f-1111-2222-3333-444444444444"


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("/t/p=1", [("/t", (("p", "1"),))]),
        ("/t/p=1/", [("/t", (("p", "1"),))]),
        (
            "s3://b/t/p=1/q=a%2Fb",
            [("s3://b/t/p=1", (("q", "a/b"),)), ("s3://b/t", (("p", "1"), ("q", "a/b")))],
        ),
        ("/t/p=__HIVE_DEFAULT_PARTITION__", [("/t", (("p", None),))]),
        (f"/t/{OWN}/p=1", [(f"/t/{OWN}", (("p", "1"),)), ("/t", (("p", "1"),))]),
        (f"/t/{OWN}", []),
        ("/a=1/t", []),
        ("p=1", []),
    ],
)
def test_a_path_names_partitions_of_the_tables_above_it(path, expected):
    found = [(place.table_path, place.values) for place in partition_paths(path)]
    assert found == expected
    assert all(isinstance(place, PartitionPath) for place in partition_paths(path))


def test_a_write_makes_no_table_within_a_table(tmp_path):
    root = tmp_path / "t"
    rows = pa.table({"id": [1, 2], "p": [1, 2]})
    DeltaLog.for_path(root).append(rows, partition_by=["p"])
    for below in ("p=1", "p=9/q=2", f"{OWN}/p=1"):
        with pytest.raises(UsageError) as caught:
            DeltaLog.for_path(root / below).append(rows)
        assert caught.value.kind == "OPTIMIST_PATH_OF_A_PARTITION"
        assert caught.value.fields["table_path"] == str(root)
    assert [path.parent for path in tmp_path.rglob("_delta_log")] == [root]
    DeltaLog.for_path(tmp_path / "lake" / "day=1").append(rows)
    DeltaLog.for_path(root / "other").append(rows)
