"""Where the bytes of a log go: local disk, memory, and anything fsspec speaks."""

from optimist.core.logstore import LogStore
from optimist.logstores.fsspec_store import FsspecLogStore
from optimist.logstores.local import LocalLogStore
from optimist.logstores.memory import MemoryLogStore

__all__ = ["FsspecLogStore", "LocalLogStore", "LogStore", "MemoryLogStore"]
