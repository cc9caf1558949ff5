"""Commits that a directory's listing has missed, although they were there before others in it.

A file system reads a large directory piece by piece, in an order of its own, and so does a bucket
whose listings are not sorted. Of two files that are created meanwhile, the listing may miss the
first and show the second. Then the log seems to have lost a commit. Versions are made in order, so
a commit that is missing between two others is looked for once more.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from optimist.core.log.names import commit_name

__all__ = ["commits_after_gap", "missed_commits"]

_DIGITS = 20
_LENGTH = len(commit_name(0))
_MOST = 100
"""More are not missed by a listing: they were removed."""


def missed_commits(names: Sequence[str]) -> list[str]:
    """Return the names of commits that are missing between others, ascending, the newest ones.

    Args:
        names: The names in a log's directory, sorted.
    """
    versions = _versions_in(names)
    if not versions or versions[-1] - versions[0] + 1 == len(versions):
        return []
    return [commit_name(version) for version in reversed(list(_newest_missing(versions)))]


def commits_after_gap(names: Sequence[str], first_listing: Sequence[str]) -> frozenset[str]:
    """Return the commits in two listings together that come after a gap of the second.

    What the first listing shows was made before the second began, which shows all before it. Of the
    commits above, the second may have missed some, too: those after a gap are too new to tell.

    Args:
        names: The names in both listings, sorted.
        first_listing: The names in the first, sorted.
    """
    expected = max(_versions_in(first_listing), default=-1) + 1
    newer = [version for version in _versions_in(names) if version >= expected]
    is_after_gap = (version != expected + place for place, version in enumerate(newer))
    return frozenset(
        commit_name(v) for v, is_late in zip(newer, is_after_gap, strict=True) if is_late
    )


def _versions_in(names: Sequence[str]) -> list[int]:
    return [int(name[:_DIGITS]) for name in names if _is_commit(name)]


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
