"""What a transaction has read, by which its conflicts are judged (spec 1.3)."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import pyarrow as pa
import pyarrow.compute as pc
from pyroaring import BitMap64

from optimist.core.log.file_sums import COUNTED, ReadFiles
from optimist.core.log.file_table import canonical_paths
from optimist.core.predicates import SplitPredicate

__all__ = ["ReadTracker", "Reads"]


@dataclass(frozen=True, slots=True)
class Reads:
    """Everything a transaction has read, frozen at its commit.

    Attributes:
        predicates: The predicates read by, each split into partition and data conjuncts.
        paths: The canonical paths of all files that reads returned, one string per file.
        whole_table: Whether the transaction depends on the whole table.
        app_ids: Application ids whose progress was looked up.
        needed_paths: Those of `paths` whose rows the transaction depends on, all of them.
        needed_rows: By canonical path, the rows of other files that it depends on.
        files: The files that reads returned, as they are in the version read.
    """

    predicates: tuple[SplitPredicate, ...]
    paths: pa.ChunkedArray
    whole_table: bool
    app_ids: frozenset[str]
    needed_paths: pa.ChunkedArray
    needed_rows: Mapping[str, BitMap64] = field(default_factory=dict)
    files: ReadFiles = field(default_factory=ReadFiles)

    @property
    def has_read_files(self) -> bool:
        """Whether the transaction depends on any file or predicate. A blind append does not."""
        return bool(self.predicates) or len(self.paths) > 0

    def paths_among(self, paths: pa.Array, *, only_needed: bool = False) -> frozenset[str]:
        """Return those of the canonical paths that were read, or that are needed."""
        # The few given paths become the hash set; the read ones, maybe a million, are only scanned.
        read = self.needed_paths if only_needed else self.paths
        hits = read.filter(pc.is_in(read, value_set=paths)).to_pylist()
        by_row = self.needed_rows.keys() & set(paths.to_pylist()) if only_needed else ()
        return frozenset((*hits, *by_row))

    def single_rows_of(self, paths: Collection[str]) -> Mapping[str, BitMap64]:
        """Return the rows needed of the given files, except of files that are needed whole."""
        named = self.needed_rows.keys() & set(paths)
        whole = pc.is_in(self.needed_paths, value_set=pa.array(list(named), pa.string()))
        others = named - set(self.needed_paths.filter(whole).to_pylist())
        return {path: self.needed_rows[path] for path in paths if path in others}

    def without(self, paths: Collection[str]) -> Reads:
        """Return the same reads without some files, by their canonical paths."""
        gone = pa.array(list(paths), pa.string())
        kept, needed = (
            known.filter(pc.invert(pc.is_in(known, value_set=gone)))
            for known in (self.paths, self.needed_paths)
        )
        return replace(self, paths=kept, needed_paths=needed)

    def of_version(self, new_files: Collection[str], *, by_predicate: bool) -> Reads:
        """Return those of the reads that concern a version, without files that steps have written.

        Args:
            new_files: The canonical paths of files that are not in the version.
            by_predicate: Whether its files can be judged by the predicates; otherwise any file
                that is added to it counts as read.
        """
        kept = self.without(new_files)
        rows = {path: rows for path, rows in self.needed_rows.items() if path not in new_files}
        every = (SplitPredicate(),) if self.predicates else ()
        predicates = self.predicates if by_predicate else every
        return replace(kept, predicates=predicates, needed_rows=rows)

    def moved(
        self, left: Collection[str], whole: Collection[str], rows: Mapping[str, BitMap64]
    ) -> Reads:
        """Return the same reads after another commit has moved rows to other files.

        Args:
            left: The canonical paths of files that are gone.
            whole: Those of new files, all rows of which are needed.
            rows: By canonical path, the rows of other new files that are needed.
        """
        kept = {path: kept for path, kept in self.needed_rows.items() if path not in left}
        new = pa.array([*whole, *(rows.keys() - whole)], pa.string())
        return replace(
            self,
            paths=_in_one([self.paths, pa.chunked_array([new])]),
            needed_paths=_in_one([self.needed_paths, pa.chunked_array([list(whole)], pa.string())]),
            needed_rows={**kept, **rows},
        )


class ReadTracker:
    """Collects what one transaction reads. `freeze` gives the value that checks work on."""

    def __init__(self) -> None:
        self._predicates: list[SplitPredicate] = []
        self._paths: list[pa.Array] = []
        self._needed: list[pa.ChunkedArray] = []
        self._rows: dict[str, BitMap64] = {}
        self._files: list[pa.Table] = []
        self._whole_table = False
        self._app_ids: set[str] = set()

    def record_files(self, split: SplitPredicate, files: pa.Table) -> None:
        """Record a read by predicate that returned these files (all that survived skipping)."""
        if split not in self._predicates:
            self._predicates.append(split)
        self.record_only(files)

    def record_only(self, files: pa.Table) -> None:
        """Record that these files were read, and no predicate: files to come do not matter."""
        paths = canonical_paths(files.column("path"))
        self._paths.extend(paths.chunks)
        self._needed.append(paths)
        self._files.append(files.select(COUNTED))

    def record_need(self, files: pa.Table, rows: Sequence[BitMap64] | None) -> None:
        """Record that of what the last read returned, only these files or these rows are needed."""
        paths = canonical_paths(files.column("path"))
        self._needed.pop()
        if rows is None:
            self._needed.append(paths)
        else:
            self._rows.update(zip(paths.to_pylist(), rows, strict=True))

    def record(self, reads: Reads) -> None:
        """Record what a part of the transaction has read, maybe of a version that no log has."""
        self._predicates += [each for each in reads.predicates if each not in self._predicates]
        self._paths.extend(reads.paths.chunks)
        self._needed.append(reads.needed_paths)
        for path, rows in reads.needed_rows.items():
            self._rows[path] = self._rows.get(path, BitMap64()) | rows
        self._whole_table |= reads.whole_table
        self._app_ids |= reads.app_ids

    def record_whole_table(self) -> None:
        """Record a read of the whole table, files that are added later included."""
        self._predicates.append(SplitPredicate((), ()))
        self._whole_table = True

    def record_app_id(self, app_id: str) -> None:
        """Record a look-up of how far an application has got."""
        self._app_ids.add(app_id)

    def freeze(self, *, wrote_others: bool = False) -> Reads:
        """Return the reads recorded so far, as a value.

        Args:
            wrote_others: Whether the commit adds no file that it has neither read nor written.
        """
        return Reads(
            predicates=tuple(self._predicates),
            paths=pa.chunked_array(self._paths, type=pa.string()),
            whole_table=self._whole_table,
            app_ids=frozenset(self._app_ids),
            needed_paths=_in_one(self._needed),
            needed_rows=dict(self._rows),
            files=ReadFiles(tuple(self._files), wrote_others),
        )


def _in_one(parts: Iterable[pa.ChunkedArray]) -> pa.ChunkedArray:
    return pa.chunked_array([chunk for part in parts for chunk in part.chunks], type=pa.string())
