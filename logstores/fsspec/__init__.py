"""Stores for all URLs that fsspec has a driver for."""

from optimist.logstores.fsspec.store import FsspecLogStore

__all__ = ["FsspecLogStore"]
