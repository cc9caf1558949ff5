"""S3: conditional writes, alone or with an arbiter."""

from optimist.logstores.s3.store import S3LogStore

__all__ = ["S3LogStore"]
