"""Parquet files: footers, reading, writing."""
