"""The commands for users: read, write, DELETE, UPDATE, MERGE, and DeltaTable."""
