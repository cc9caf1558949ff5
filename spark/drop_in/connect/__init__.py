"""The drop-in for clients of Spark Connect, which have no JVM at hand."""
