"""S3: conditional writes, alone or beside an arbiter."""
