"""The native plane: Parquet files read and written by Spark itself, planned by us."""
