"""The Spark session: its conf, its JVM, its errors, and the arguments of our calls."""
