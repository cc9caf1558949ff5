"""Feeds, followers and queries over tables whose descriptions change, in long histories."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from changing_descriptions import MODE, Story, steps
from description_readers import Follower, Query, Reader, ensure_feed_is_right
from exhaustive_cases import in_proportion

TABLES = [{}, {MODE: "name"}, {MODE: "id"}, {"delta.enableDeletionVectors": "true"}]
STARTS = st.sampled_from([None, 0, 1])
UNHURRIED = settings(
    max_examples=in_proportion(100), deadline=None, suppress_health_check=list(HealthCheck)
)


def readers(story: Story, start: int | None) -> list[Reader]:
    """One of each kind; all of them read the same history."""
    found: list[Reader] = []
    for changes in (False, True):
        found += [
            Follower(story, changes=changes, start=start),
            Follower(story, changes=changes, start=start, is_tracked=True),
            Query(story, changes=changes, start=start),
            Query(story, changes=changes, start=start, max_files=1),
        ]
    return found


@pytest.mark.timeout(7200)
@pytest.mark.parametrize("table", TABLES, ids=str)
@UNHURRIED
@given(STARTS, steps(most=25))
def test_what_comes_is_what_was_written_or_a_refusal(tmp_path_factory, table, start, taken):
    story = Story.begun(tmp_path_factory.mktemp("t") / "table", table)
    everyone = readers(story, start)
    for step, number in [*taken, ("look", 0), ("look", 1)]:
        if step == "look":
            for reader in everyone[number % 2 :: 2]:
                reader.look()
        else:
            story.take(step, number)
    for first in range(len(story.versions)):
        ensure_feed_is_right(story, first, story.newest)
        ensure_feed_is_right(story, first, min(first + 2, story.newest))
