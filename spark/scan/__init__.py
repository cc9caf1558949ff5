"""The native read."""
