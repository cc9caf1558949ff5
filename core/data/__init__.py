"""Rows as files: partition values, statistics of footers, reading, writing. No Spark."""
