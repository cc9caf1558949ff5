"""One transaction, from its first read to its last hook. `optimistic.py` is the way in."""
