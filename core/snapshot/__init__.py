"""One version of a table: finding it, its files, and its rows in this process."""
