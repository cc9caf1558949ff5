"""The Spark session: its conf, its JVM, its errors, the arguments of our calls."""
