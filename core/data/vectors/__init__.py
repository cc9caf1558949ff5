"""Deletion vectors: their bytes, their files, the rows that they delete."""
