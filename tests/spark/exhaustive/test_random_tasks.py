"""Random writes whose tasks fail late, run again or are interrupted: no row lost, none doubled."""

from __future__ import annotations

from itertools import islice

import pytest

from tasks_again import play, stories, with_attempts


@pytest.mark.parametrize("seed", range(12))
def test_rows_are_those_of_the_source_whatever_happens_to_the_tasks(spark, tmp_path, conf, seed):
    with with_attempts(spark):
        for at, story in enumerate(islice(stories(seed), 8)):
            folder = tmp_path / str(at)
            folder.mkdir()
            with pytest.MonkeyPatch.context() as patch:
                play(spark, folder, story, conf, patch)
