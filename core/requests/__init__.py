"""What callers ask of a command, as values: builders and the SQL grammar make them."""
