"""Azure Data Lake Storage and Blob Storage: conditional writes."""
