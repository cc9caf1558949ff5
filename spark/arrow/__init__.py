"""The arrow plane: rows through pyarrow on the executors, for Spark Connect and any store."""
