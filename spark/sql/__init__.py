"""SQL in a table's log, which is judged before Spark may run it."""
