"""DataFrames of a table's rows, and of its history."""
