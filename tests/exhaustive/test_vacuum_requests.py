"""VACUUM of a large table on S3: how many requests it sends, which docs/vacuum.md tells."""

from dead_objects import requests_of, table_half_dead
from moto_server import running_s3


def test_100_000_dead_of_200_000_files_are_listed_and_deleted_by_301_requests():
    with running_s3() as server:
        log = table_half_dead(server, "large", 200_000)
        asked = requests_of(server, lambda: log.vacuum(0))
    # The page that is one too many has what is in the log.
    assert (asked["list files"], asked["delete many"] - 1) == (201, 100)
    assert asked.total() <= 308
