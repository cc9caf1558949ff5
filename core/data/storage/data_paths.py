"""The meaning of the paths in a table's log, and which of them may be opened (spec 10.2).

A log names its files by `add.path`, `remove.path`, `cdc.path` and the paths of deletion vectors.
Anyone who can write into the table's folder chooses these texts. So this module turns all of them
into paths, for all planes, before anything is opened:

1. The text is percent-decoded once, and `.` and `..` are resolved as text.
2. A scheme that does not serve the table itself is refused, and so is a chain of fsspec's drivers
   (`::`). A table in a bucket or in memory has no local files. No option lifts this.
3. A file of another bucket, account or host is refused. For a file outside the table, the option
   `optimist.paths.outsideTable` decides.

Nearly all paths are plain names below the table: Arrow finds them and joins them. Of the others,
each directory is checked once.
"""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from optimist.core.errors import StorageError, TableError
from optimist.core.errors.foreign_text import quoted, shown
from optimist.core.log.file_table import canonical_path, canonical_paths
from optimist.core.paths import join, scheme_of, strip_file_scheme, without_dots
from optimist.core.plugins.data_origin import DataOrigin

__all__ = ["ANY", "NEVER", "OUTSIDE_TABLE_KEY", "SAME_STORE", "DataPaths", "split_at_last_slash"]

SAME_STORE, ANY, NEVER = "same-store", "any", "never"
OUTSIDE_TABLE_KEY = "optimist.paths.outsideTable"

_ODD = r"^/|^[A-Za-z][A-Za-z0-9+.-]*:|(^|/)\.\.?(/|$)|::|\x00"
"""The pattern of a path that is more than a plain name below the table."""
_ODD_NAME = r"^\.{0,2}$|::|\x00"
_STAND_IN = "f"
_DOTS = (".", "..")


@dataclass(frozen=True, slots=True)
class DataPaths:
    """The paths of one table's files. A small value that tasks of Spark may carry.

    Attributes:
        table_path: The directory from which relative paths start.
        origin: The store that the table is in.
        outside: Which files outside the table may be read: `same-store`, `any` or `never`.
    """

    table_path: str
    origin: DataOrigin
    outside: str = SAME_STORE

    @classmethod
    def of(cls, table_path: str) -> DataPaths:
        """Return the paths of a table of which only its path is known, with the default rule."""
        return cls(table_path, DataOrigin.of(table_path))

    def full_path(self, reference: str) -> str:
        """Return the path of a percent-encoded reference of the log (see `full_paths`)."""
        return str(self.full_paths(pa.array([reference], pa.string()))[0])

    def full_paths(self, references: pa.Array) -> pa.Array:
        """Return the decoded paths of percent-encoded references of the log.

        Raises:
            TableError: One of them may not be opened (kind `OPTIMIST_FOREIGN_DATA_PATH`), or not
                under the option `optimist.paths.outsideTable` (kind `OPTIMIST_PATH_OUTSIDE_TABLE`).
            StorageError: The option is `never`, the table is local, and one of the paths is not a
                file but a pipe or similar (kind `OPTIMIST_NOT_A_FILE`).
        """
        return self._ensure_allowed(canonical_paths(references))

    @property
    def are_looked_at(self) -> bool:
        """Whether each file is checked on the disk whenever its path is requested."""
        return self.outside == NEVER and self.origin.is_local

    def are_plain(self, references: pa.Array) -> bool:
        """Return whether all are names below the table that need no check and can't be refused."""
        is_odd = pc.match_substring_regex(canonical_paths(references), _ODD)
        return not self.are_looked_at and not pc.any(is_odd, min_count=0).as_py()

    def full_path_of_text(self, text: str) -> str:
        """Return the path of a text that is not percent-encoded, like `full_path`."""
        return str(self._ensure_allowed(pa.array([text], pa.string()))[0])

    def spelled_path(self, reference: str) -> str:
        """Return the path of a reference, even if it may not be opened. For display only."""
        return self.spelled_text(canonical_path(reference))

    def spelled_text(self, text: str) -> str:
        """Return the path of a text that is not percent-encoded, like `spelled_path`."""
        return self._decide(text).path

    def are_outside(self, references: pa.Array) -> pa.Array:
        """Return which references lead out of the table's directory, symbolic links included.

        Each file of a local table costs an access to the disk, so ask only for the few that matter.
        """
        verdicts = [self._decide(text) for text in canonical_paths(references).to_pylist()]
        inside = [not verdict.is_outside for verdict in verdicts]
        if self.origin.is_local:
            root = self._real_root()
            inside = [
                is_below and os.path.realpath(verdict.path).startswith(root)
                for is_below, verdict in zip(inside, verdicts, strict=True)
            ]
        return pa.array([not is_below for is_below in inside], pa.bool_())

    def ensure_not_led_out(self, path: str) -> None:
        """Refuse to write a file of a known name where a symbolic link leads out of the table.

        The names of data files can't be guessed, but those of commits and manifests can: a link in
        the table's folder could make a commit land in the log of another table. Only local tables
        have links. The option `any` allows them.

        Args:
            path: A full path below the table. It need not exist.

        Raises:
            TableError: The path leads out of the table's directory (kind
                `OPTIMIST_LINK_OUT_OF_TABLE`).
        """
        if not self.origin.is_local or self.outside == ANY:
            return
        if not os.path.realpath(strip_file_scheme(path)).startswith(self._real_root()):
            raise TableError(
                f"A symbolic link leads from {shown(path)} out of the table's directory. Nothing "
                "was written there. Remove the link. Or, if you trust the table's writers, set "
                f"{OUTSIDE_TABLE_KEY}={ANY}.",
                kind="OPTIMIST_LINK_OUT_OF_TABLE",
                path=path,
                option=OUTSIDE_TABLE_KEY,
            )

    def _ensure_allowed(self, decoded: pa.Array) -> pa.Array:
        is_odd = pc.match_substring_regex(decoded, _ODD)
        full = pc.binary_join_element_wise(self.table_path.rstrip("/"), decoded, "/")
        if pc.any(is_odd, min_count=0).as_py():
            full = pc.replace_with_mask(full, is_odd, self._resolve_odd(decoded.filter(is_odd)))
        if self.are_looked_at:
            self._ensure_files_within(full, decoded)
        return full

    def _resolve_odd(self, texts: pa.Array) -> pa.Array:
        """Return the paths of odd texts, with one check per directory by a stand-in."""
        folders, names = split_at_last_slash(texts)
        is_whole = pc.match_substring_regex(names, _ODD_NAME)
        stand_ins = pc.binary_join_element_wise(folders, _STAND_IN, "")
        distinct = pc.if_else(is_whole, texts, stand_ins).dictionary_encode()
        verdicts = [self._decide(text) for text in distinct.dictionary.to_pylist()]
        for number, verdict in enumerate(verdicts):
            if verdict.problem:
                text = texts[pc.index(distinct.indices, number).as_py()].as_py()
                raise self._error(text, verdict.problem, verdict.lifted_by)
        paths = pa.array([verdict.path for verdict in verdicts], pa.string())
        stems = pa.array([verdict.path[: -len(_STAND_IN)] for verdict in verdicts], pa.string())
        joined = pc.binary_join_element_wise(stems.take(distinct.indices), names, "")
        return pc.if_else(is_whole, paths.take(distinct.indices), joined)

    def _decide(self, text: str) -> _Verdict:
        """Decide what a decoded text of the log means and whether it may be opened."""
        is_absolute = text.startswith("/") or bool(scheme_of(text))
        path = strip_file_scheme(text) if is_absolute else join(self.table_path, text)
        if "\0" in text:
            return _Verdict(path, True, "it holds a character that no path may hold")
        if "::" in text and self.origin.goes_by_driver:
            return _Verdict(path, True, "it chains one driver to another (::)")
        has_dots = any(part in _DOTS for part in text.split("/"))
        if not is_absolute and not has_dots:
            return _Verdict(path, False)
        plain = without_dots(path) if has_dots else path
        if plain is None:
            return _Verdict(path, True, "it climbs above the root of the store")
        if not self.origin.serves(plain):
            return _Verdict(plain, True, self._wrong_scheme(scheme_of(plain)))
        return self._decide_for_own_scheme(plain)

    def _decide_for_own_scheme(self, path: str) -> _Verdict:
        key, own = self.origin.key_of(path), self.origin.key_of(self.table_path)
        if key is None:
            problem = "" if self.outside == ANY else "it is in another bucket, account or host"
            return _Verdict(path, True, problem, ANY)
        is_inside = own is not None and (not own or key.startswith(f"{own}/"))
        if is_inside or self.outside != NEVER:
            return _Verdict(path, not is_inside)
        return _Verdict(path, True, "it is outside the table's directory", SAME_STORE)

    def _wrong_scheme(self, scheme: str) -> str:
        served = ", ".join(f"{item}:" for item in self.origin.schemes if item)
        what = f"of the scheme {shown(scheme, 40)}:" if scheme else "a path of this machine"
        return f"it is {what}, but the table is reached by {served}"

    def _ensure_files_within(self, paths: pa.Array, texts: pa.Array) -> None:
        root = self._real_root()
        for path, text in zip(paths.to_pylist(), texts.to_pylist(), strict=True):
            if not os.path.realpath(path).startswith(root):
                problem = "a symbolic link leads out of the table's directory"
                raise self._error(text, problem, SAME_STORE)
            _ensure_file_or_missing(path)

    def _real_root(self) -> str:
        return os.path.realpath(strip_file_scheme(self.table_path)).rstrip("/") + "/"

    def _error(self, text: str, problem: str, lifted_by: str) -> TableError:
        kind = "OPTIMIST_FOREIGN_DATA_PATH"
        remedy = "No option allows it. Find out who wrote that, and restore an older version."
        if lifted_by:
            kind = "OPTIMIST_PATH_OUTSIDE_TABLE"
            remedy = f"If you trust the table's writers, set {OUTSIDE_TABLE_KEY}={lifted_by}."
        return TableError(
            f"The log of {shown(self.table_path)} names the file {quoted(text)}: {problem}. The "
            f"file was not opened, and nothing was written. {remedy}",
            kind=kind,
            path=shown(text),
            table_path=self.table_path,
            option=OUTSIDE_TABLE_KEY if lifted_by else None,
        )


def _ensure_file_or_missing(path: str) -> None:
    """Refuse a pipe before a reader waits for it. The reader reports a missing file."""
    try:
        mode = Path(path).stat().st_mode
    except OSError:
        return
    if not stat.S_ISREG(mode):
        raise StorageError(
            f"The path {shown(path)}, which the table's log names as a data file or a deletion "
            "vector, is not a file but a directory, a pipe or a device. It was not opened, and "
            "nothing was written. Find out who made it, and remove it or move it away.",
            kind="OPTIMIST_NOT_A_FILE",
            path=path,
            retryable=False,
        )


def split_at_last_slash(texts: pa.Array) -> tuple[pa.Array, pa.Array]:
    """Return each text up to and including its last slash, and the rest of each."""
    # A slash before each text gives it one to split at. Ten times as fast as a pattern.
    slashed = pc.binary_join_element_wise("", texts, "/")
    pieces = pc.split_pattern(slashed, "/", max_splits=1, reverse=True)
    folders = pc.binary_join_element_wise(pc.list_element(pieces, 0), "", "/")
    return pc.utf8_slice_codeunits(folders, 1), pc.list_element(pieces, 1)


@dataclass(frozen=True, slots=True)
class _Verdict:
    """The meaning of one text of the log.

    Attributes:
        path: The path, as far as it can be resolved.
        is_outside: Whether its text, without regard to links, leads out of the table's directory.
        problem: The reason why it may not be opened. Empty if it may.
        lifted_by: The value of the option that allows it. Empty for none.
    """

    path: str
    is_outside: bool
    problem: str = ""
    lifted_by: str = ""
