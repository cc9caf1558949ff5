"""Requests to commands as values, which builders and the SQL grammar make."""
