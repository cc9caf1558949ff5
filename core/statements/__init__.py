"""Runs statements: from a value of the grammar to rows as Arrow, with Delta's columns."""
