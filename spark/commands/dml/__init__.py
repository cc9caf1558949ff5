"""DELETE and UPDATE with Spark, and what MERGE shares with them."""
