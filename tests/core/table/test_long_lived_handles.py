"""A handle that lives long: it goes on from newer checkpoints, and says what a fresh one says."""

from __future__ import annotations

import pytest

from handle_lives import HandleLife
from optimist.core.errors import OptimistError
from optimist.core.log.names import (
    classic_checkpoint_name,
    listing_start,
    parse_log_file_name,
)
from optimist.core.paths import join


def clean_up(log, *, below):
    """Remove the log below a checkpoint, as a cleanup does."""
    for status in list(log.store.list_from(listing_start(log.log_path, 0))):
        name = parse_log_file_name(status.name)
        if name is not None and name.version < below:
            log.store.delete(status.path)


@pytest.mark.parametrize("seed", [0, 1])
def test_a_handle_says_what_a_fresh_one_says(seed):
    life = HandleLife(seed, others=bool(seed % 2))
    for _ in range(4):
        life.live(25)
        life.ensure_alike()
        assert life.num_commits_held < 130  # others' checkpoints are looked for in a hundred


def test_a_handle_that_only_appends_holds_neither_old_commits_nor_their_files():
    life = HandleLife(2, others=False)
    life.clock.advance(1)
    for _ in range(45):
        life.append(1)
        life.clock.advance(12 * 3600)  # the log is cleaned up behind it
    assert life.num_commits_held <= 10
    assert life.checkpoints() == [40, 30]
    life.ensure_alike()


def test_a_handle_takes_up_the_checkpoints_of_others():
    life = HandleLife(3, others=False, **{"delta.checkpointInterval": "1000"})
    for _ in range(30):
        life.append(3)
    life.other.checkpoint()
    for _ in range(75):
        life.append(1)
    assert life.num_commits_held < 80
    life.ensure_alike()


def test_a_version_is_read_from_a_newer_checkpoint_once_its_own_is_cleaned_up():
    life = HandleLife(4, others=False)
    life.append(3)
    life.other.checkpoint()
    reader = life.handle()
    reader.snapshot()
    life.append(2)
    held = reader.snapshot()
    assert (held.version, held.segment.checkpoint_version) == (2, 1)
    life.other.checkpoint()
    clean_up(life.log, below=2)
    assert set(held.files["path"].to_pylist()) == life.files
    assert held.tombstones.num_rows == 0
    life.append(1)
    assert set(reader.snapshot().files["path"].to_pylist()) == life.files


def test_a_version_is_read_from_a_newer_checkpoint_once_its_own_is_damaged():
    life = HandleLife(6, others=False)
    life.append(3)
    life.other.checkpoint()
    reader = life.handle()
    reader.snapshot()
    life.append(2)
    held = reader.snapshot()
    assert (held.version, held.segment.checkpoint_version) == (2, 1)
    life.other.checkpoint()
    clean_up(life.log, below=2)
    damaged = join(life.log.log_path, classic_checkpoint_name(1))
    life.log.store.put_if_absent(damaged, b"no Parquet")
    assert set(held.files["path"].to_pylist()) == life.files


def test_a_version_that_is_gone_is_not_made_from_the_log_of_another_table():
    life = HandleLife(5, others=False)
    life.append(3)
    life.other.checkpoint()
    reader = life.handle()
    reader.snapshot()
    life.append(2)
    held = reader.snapshot()
    another = HandleLife(5, others=False)  # made anew at the same place
    for _ in range(2):
        another.append(1)
    another.other.checkpoint()
    clean_up(another.log, below=2)
    with pytest.raises(OptimistError):
        _ = held.files
