"""Names of objects: the key that a path's text after the bucket stands for."""

from __future__ import annotations

__all__ = ["object_key", "split_key"]


def object_key(path: str) -> str:
    """The key without doubled slashes and without one before it, as Hadoop's paths are.

    A trailing slash stays, nothing is percent-decoded.
    """
    directory, _, name = path.rpartition("/")
    parts = [part for part in directory.split("/") if part]
    return "/".join((*parts, name))


def split_key(key: str) -> tuple[str, str]:
    """Directory and name: the directory is empty or ends in a slash."""
    name = key.rpartition("/")[2]
    return key[: len(key) - len(name)], name
