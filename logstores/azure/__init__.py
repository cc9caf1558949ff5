"""Azure Data Lake Storage and Blob Storage: conditional writes."""

from optimist.logstores.azure.store import AzureLogStore

__all__ = ["AzureLogStore"]
