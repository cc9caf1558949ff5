"""DELETE, UPDATE and MERGE on Arrow, in this process, without Spark."""
