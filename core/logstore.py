"""The contract of stores, under the name that their authors import: `plugins/logstore.py`."""

from optimist.core.plugins.logstore import FileStatus, LogStore, PutOutcome

__all__ = ["FileStatus", "LogStore", "PutOutcome"]
