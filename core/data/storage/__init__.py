"""Data files in their storage: paths, file systems, listing, copying, deleting."""
