"""From a table, or its history, to a DataFrame."""
