"""PySpark in, PySpark out."""
