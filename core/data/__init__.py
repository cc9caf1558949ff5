"""Rows as files: partition values, statistics from footers, reading, writing. No Spark."""
