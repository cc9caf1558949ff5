"""The contract of arbiters, under the name that their authors import: `plugins/arbiter.py`."""

from optimist.core.plugins.arbiter import Arbiter, CommitEntry, damaged_entry, parse_commit_entry

__all__ = ["Arbiter", "CommitEntry", "damaged_entry", "parse_commit_entry"]
