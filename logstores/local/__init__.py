"""Local disks and mounts."""

from optimist.logstores.local.store import LocalLogStore

__all__ = ["LocalLogStore"]
