"""Keys of objects, from the part of a path that follows the bucket."""

from __future__ import annotations

__all__ = ["object_key", "split_key"]


def object_key(path: str) -> str:
    """Return the key without doubled or leading slashes, as Hadoop writes paths.

    A trailing slash is kept, and nothing is percent-decoded.
    """
    directory, _, name = path.rpartition("/")
    parts = [part for part in directory.split("/") if part]
    return "/".join((*parts, name))


def split_key(key: str) -> tuple[str, str]:
    """Split a key into a directory, which is empty or ends in a slash, and a name."""
    name = key.rpartition("/")[2]
    return key[: len(key) - len(name)], name
