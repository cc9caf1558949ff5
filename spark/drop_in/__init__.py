"""The drop-in: Spark's own reader, writer and SQL reach Delta tables through Optimist."""
