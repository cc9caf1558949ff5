"""What users call: read, write, DELETE, UPDATE, and DeltaTable."""
