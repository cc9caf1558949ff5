import pytest

from foreign_tables import multi_part_checkpoint_name
from optimist.core.log.names import (
    LogFileKind,
    LogFileName,
    checksum_name,
    classic_checkpoint_name,
    commit_name,
    commit_path,
    compacted_name,
    listing_start,
    log_path_of,
    parse_log_file_name,
    v2_checkpoint_name,
)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        (commit_name(7), LogFileName(LogFileKind.COMMIT, 7)),
        ("7.json", LogFileName(LogFileKind.COMMIT, 7)),
        (commit_name((1 << 63) - 1), LogFileName(LogFileKind.COMMIT, (1 << 63) - 1)),
        (checksum_name(7), LogFileName(LogFileKind.CHECKSUM, 7)),
        (classic_checkpoint_name(10), LogFileName(LogFileKind.CLASSIC_CHECKPOINT, 10)),
        (
            multi_part_checkpoint_name(10, 2, 3),
            LogFileName(LogFileKind.MULTI_PART_CHECKPOINT, 10, part=2, num_parts=3),
        ),
        (
            v2_checkpoint_name(10, "6b4e-0f", "json"),
            LogFileName(LogFileKind.V2_CHECKPOINT, 10),
        ),
        (
            v2_checkpoint_name(10, "6b4e-0f", "parquet"),
            LogFileName(LogFileKind.V2_CHECKPOINT, 10),
        ),
        (compacted_name(3, 9), LogFileName(LogFileKind.COMPACTED, 3, end_version=9)),
    ],
)
def test_each_kind_of_name_is_recognised(name, expected):
    assert parse_log_file_name(name) == expected


@pytest.mark.parametrize(
    "name",
    [
        "_last_checkpoint",
        ".00000000000000000001.json.crc",
        ".00000000000000000001.json.6f.tmp",
        "00000000000000000001.json.tmp",
        "00000000000000000001.checkpoint.a.b.parquet",
        "x.json",
        "\N{ARABIC-INDIC DIGIT ONE}.json",
        "00000000000000000001.checkpoint.abc.txt",
        f"{1 << 63}.json",
        "99999999999999999999.checkpoint.parquet",
        f"0.{1 << 63}.compacted.json",
        "9" * 5_000 + ".json",
    ],
)
def test_other_names_are_none_of_the_logs(name):
    assert parse_log_file_name(name) is None


def test_only_checkpoints_are_checkpoints():
    assert {kind for kind in LogFileKind if kind.is_checkpoint} == {
        LogFileKind.CLASSIC_CHECKPOINT,
        LogFileKind.MULTI_PART_CHECKPOINT,
        LogFileKind.V2_CHECKPOINT,
    }


def test_a_listing_starts_before_every_file_of_its_version():
    start = listing_start("/t/_delta_log", 5).rpartition("/")[2]
    names = [commit_name(5), checksum_name(5), classic_checkpoint_name(5), compacted_name(5, 9)]
    assert all(name > start for name in names)
    assert commit_name(4) < start


def test_paths_are_below_the_tables_log():
    assert log_path_of("s3://b/t/") == "s3://b/t/_delta_log"
    assert commit_path("s3://b/t/_delta_log", 3) == "s3://b/t/_delta_log/" + "3".zfill(20) + ".json"
