"""From the rows of a DataFrame to a commit."""
