"""Google Cloud Storage: conditional writes."""

from optimist.logstores.gcs.store import GCSLogStore

__all__ = ["GCSLogStore"]
