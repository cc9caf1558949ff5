"""ALTER TABLE: changes of a table's metadata, one commit each, with Spark and without it."""
