"""Upkeep of the log: checkpoints, compacted commits, cleanup of what has expired."""
