"""What VACUUM asks of S3: full pages of a listing, full requests of deletions, little else."""

import pytest

from dead_objects import name, objects, requests_of, table_half_dead


@pytest.mark.again
def test_vacuum_asks_for_a_request_per_thousand_listed_and_per_thousand_deleted(server, s3):
    log = table_half_dead(server, "half-dead", 4000)
    asked = requests_of(server, lambda: log.vacuum(0))
    # One page more for what is in the log; one request more removes the intents of this process.
    assert asked["list files"] == 4 + 1
    assert asked["delete many"] == 2 + 1
    assert asked["other"] <= 6
    left = {key.removeprefix("table/") for key in objects("half-dead") if "/part-" in key}
    assert {name(number) for number in range(1, 4000, 2)} <= left
    assert len(left) == 2000 + 1
