"""Where the bytes of a log go: local disk, memory, and anything fsspec speaks."""
