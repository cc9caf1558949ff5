"""The log of a table: names, segments, replay, checkpoints, checksums, history, cleanup."""
