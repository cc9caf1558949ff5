"""Commits that a directory's listing has missed, although they were there before others in it.

A file system reads a large directory piece by piece, in an order of its own. Of two files that are
created meanwhile, it may miss the first and show the second. Then the log seems to have lost a
commit. Versions are made in order, so a commit between two others is looked up by its name.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from optimist.core.log.names import commit_name

__all__ = ["missed_commits"]

_DIGITS = 20
_LENGTH = len(commit_name(0))
_MOST = 100
"""More are not missed by a listing: they were removed."""


def missed_commits(names: Sequence[str]) -> list[str]:
    """Return the names of commits that are missing between others, ascending, the newest ones.

    Args:
        names: The names in a log's directory, sorted.
    """
    versions = [int(name[:_DIGITS]) for name in names if _is_commit(name)]
    if not versions or versions[-1] - versions[0] + 1 == len(versions):
        return []
    return [commit_name(version) for version in reversed(list(_newest_missing(versions)))]


def _newest_missing(versions: Sequence[int]) -> Iterator[int]:
    known, found = set(versions), 0
    for version in range(versions[-1], versions[0], -1):
        if version not in known:
            yield version
            found += 1
        if found == _MOST:
            return


def _is_commit(name: str) -> bool:
    digits = name[:_DIGITS]
    is_plain = len(name) == _LENGTH and name.endswith(".json")
    return is_plain and digits.isascii() and digits.isdecimal()
