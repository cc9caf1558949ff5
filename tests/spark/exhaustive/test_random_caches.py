"""Many histories of frames that are made, cached, followed and given back beside two writers."""

from __future__ import annotations

import pytest

from cached_frames import CachedFrames
from exhaustive_cases import in_proportion


@pytest.mark.parametrize("seed", range(100, 100 + in_proportion(30)))
def test_frames_show_what_the_model_says(enabled, conf, tmp_path, seed):
    conf("spark.optimist.spark.plane", ("native", "arrow")[seed % 2])
    held = enabled.sparkContext._jsc.getPersistentRDDs().size
    before = held()
    frames = CachedFrames(enabled, tmp_path, seed)
    for _ in range(25):
        frames.step()
    frames.give_back()
    assert held() == before, (seed, frames.done)
