"""The choice of the plane that reads and writes a table."""
