"""Names of tables: Spark's session catalog, and paths in place of names."""
