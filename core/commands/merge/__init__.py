"""MERGE as both planes run it: its clauses, the resolved request and the way to a commit."""
