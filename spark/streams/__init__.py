"""Delta tables as sources and sinks of Structured Streaming (spec 11)."""
