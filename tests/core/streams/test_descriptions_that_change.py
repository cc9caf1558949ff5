"""Feeds, followers and queries over tables whose descriptions change: a small sample.

tests/exhaustive/test_descriptions_that_change.py searches on.
"""

from hypothesis import given
from hypothesis import strategies as st

from changing_descriptions import MODE, Story, steps
from description_readers import Follower, Query, ensure_feed_is_right

TABLES = st.sampled_from([{}, {MODE: "name"}, {"delta.enableDeletionVectors": "true"}])
READERS = st.sampled_from(["follower", "tracked", "query", "query of one file"])


def reader_of(kind, story, *, changes, start):
    if kind.startswith("query"):
        max_files = 1 if kind.endswith("one file") else 1000
        return Query(story, changes=changes, start=start, max_files=max_files)
    return Follower(story, changes=changes, start=start, is_tracked=kind == "tracked")


@given(TABLES, READERS, st.booleans(), st.sampled_from([None, 0, 1]), steps(most=10))
def test_what_comes_is_what_was_written_or_a_refusal(
    tmp_path_factory, table, kind, changes, start, taken
):
    story = Story.begun(tmp_path_factory.mktemp("t") / "table", table)
    reader = reader_of(kind, story, changes=changes, start=start)
    for step, number in [*taken, ("look", 0)]:
        if step == "look":
            reader.look()
        else:
            story.take(step, number)


@given(TABLES, steps(most=8), st.data())
def test_a_range_of_changes_is_what_was_written_or_a_refusal(tmp_path_factory, table, taken, data):
    story = Story.begun(tmp_path_factory.mktemp("t") / "table", table)
    for step, number in taken:
        if step != "look":
            story.take(step, number)
    for _ in range(3):
        first = data.draw(st.integers(0, story.newest))
        ensure_feed_is_right(story, first, data.draw(st.integers(first, story.newest)))


def test_a_row_that_a_restore_removed_has_its_columns_by_their_names_at_the_end(tmp_path):
    story = Story.begun(tmp_path / "table", {MODE: "name"})
    readers = [reader_of(kind, story, changes=True, start=4) for kind in ("follower", "query")]
    for step, number in (("append", 1), ("append", 1), ("drop", 0), ("restore", 1), ("rename", 1)):
        story.take(step, number)
    assert story.newest == 6
    assert list(story.versions[4].columns) == []
    assert list(story.versions[6].columns) == ["c"]
    assert ensure_feed_is_right(story, 4, 6)
    for reader in readers:
        reader.look()
