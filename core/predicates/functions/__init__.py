"""The table of functions that this engine computes as Spark does, and its typed expressions."""
