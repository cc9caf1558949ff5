"""Google Cloud Storage: conditional writes."""
