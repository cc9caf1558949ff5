"""The log of a table: names, segments, commits, checkpoints, replay, checksums."""
