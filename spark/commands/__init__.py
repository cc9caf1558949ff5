"""What users call: read, write, DELETE, UPDATE, MERGE, and DeltaTable."""
