"""Upkeep of the log: checkpoints, compacted commits, and cleanup of expired files."""
