"""ALTER TABLE: changes of a table's metadata, each one commit, with Spark and without it."""
