"""CONVERT TO DELTA: a log for Parquet files and for Iceberg tables."""
