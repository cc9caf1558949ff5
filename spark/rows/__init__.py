"""Rows as the table has them: columns, types, assignments."""
