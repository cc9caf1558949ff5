"""MERGE: rows of a source change, remove and join those of a table (spec 10.15)."""
