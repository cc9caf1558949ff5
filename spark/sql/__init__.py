"""SQL that stands in a table's log: judged before Spark may run it."""
