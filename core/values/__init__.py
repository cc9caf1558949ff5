"""Strict reading of single values and texts: numbers, Unicode, JSON that others wrote."""
