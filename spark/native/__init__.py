"""The native plane: Spark reads and writes the Parquet files, and we plan."""
