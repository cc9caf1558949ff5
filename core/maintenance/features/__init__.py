"""DROP FEATURE: which traces a feature leaves, and their removal."""
