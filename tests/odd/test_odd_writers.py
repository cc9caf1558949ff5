"""Tables of writers with odd habits are read, changed and read again, by ours and by deltalake."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import given

from odd_writer_trials import TRIALS, play


@given(TRIALS)
def test_what_odd_writers_wrote_is_read_and_changed(trial):
    with TemporaryDirectory() as folder:
        play(Path(folder) / "table", **trial)
