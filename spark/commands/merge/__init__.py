"""MERGE: rows of a source update, delete and add rows of a table (spec 10.15)."""
