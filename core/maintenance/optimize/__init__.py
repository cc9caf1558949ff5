"""OPTIMIZE and REORG: which files become which, and the commits of it."""
