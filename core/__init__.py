"""The engine: actions, log, snapshot, predicates, transaction, conflicts. No Spark, no JVM."""
