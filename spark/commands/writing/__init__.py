"""Commits of the rows of a DataFrame."""
