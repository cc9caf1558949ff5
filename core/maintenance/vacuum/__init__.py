"""VACUUM: which files no version needs, and their deletion."""
