"""Anything that fsspec has a driver for."""
