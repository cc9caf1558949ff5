"""RESTORE and CLONE: tables made of another version or another table."""
